import type { ForkMessagesResult, RetrieveResult } from '../activities/contract.js';
import { isObject, textOf } from '../core/json.js';
import type { BlobRef } from '../core/messages.js';
import type { InFlight, Retelling } from './retelling-state.js';
import { tell } from './retelling-tell.js';

// What activities beside the steps have brought, told as the events that the workflow made of it.

export function retrieved(told: Retelling, result: Record<string, unknown>, at: number): void {
  told.blocked.delete('retrieve');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own retrieveDocuments
  const { documents } = result as unknown as RetrieveResult;
  tell(told, { type: 'documents-retrieved', documents, at });
}

export function kept(
  told: Retelling,
  { input }: InFlight,
  { blob }: Record<string, unknown>,
): void {
  const { archive, chunk } = input;
  const archived = isObject(archive) ? Number(archive['to']) : 0;
  const count = isObject(chunk) ? Number(chunk['to']) - Number(chunk['from']) : 0;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own keepMessages
  const stored = isObject(blob) ? { blob: blob as unknown as BlobRef, count } : null;
  tell(told, { type: 'messages-kept', archived, chunk: stored });
}

export function forkedFrom(
  told: Retelling,
  { input }: InFlight,
  result: Record<string, unknown>,
): void {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own forkMessages
  const { next, pinned = [], from: read, ...taken } = result as unknown as ForkMessagesResult;
  const from = { run: textOf(input, 'run'), runId: read.runId, at: next };
  tell(told, { type: 'forked', ...taken, from, pinned });
}
