import { isObject, textOf } from '../../core/json.js';
import type {
  ForkMessagesResult,
  KeepMessagesResult,
  RetrieveResult,
} from '../../core/guards/recorded.js';
import type { InFlight, Retelling } from './state.js';
import { tell } from './emit.js';

// What activities beside the steps have brought, told as the events that the workflow made of it.

export function retrieved(told: Retelling, { documents }: RetrieveResult, at: number): void {
  tell(told, { type: 'documents-retrieved', documents, at });
}

export function kept(told: Retelling, { input }: InFlight, { blob }: KeepMessagesResult): void {
  const { archive, chunk } = input;
  const archived = isObject(archive) ? Number(archive['to']) : 0;
  const count = isObject(chunk) ? Number(chunk['to']) - Number(chunk['from']) : 0;
  const stored = blob === undefined ? null : { blob, count };
  tell(told, { type: 'messages-kept', archived, chunk: stored });
}

export function forkedFrom(
  told: Retelling,
  { input }: InFlight,
  { next, pinned = [], from: read, ...taken }: ForkMessagesResult,
): void {
  const from = { run: textOf(input, 'run'), runId: read.runId, at: next };
  tell(told, { type: 'forked', ...taken, from, pinned });
}
