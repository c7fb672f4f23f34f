import { say, withTurn } from './change.js';
import type { BlobRef } from './transcript/messages.js';
import type { RunState } from './state.js';

/** A document that an agent's `retrieve` has found, as the history keeps it. */
export interface RetrievedDocument {
  /** What the model reads: wrapped, and where it is too large, by head and tail. */
  readonly text: string;
  /** The whole document, where it was cut. */
  readonly blob?: BlobRef;
  readonly id?: string;
  readonly source?: string;
}

/** Whether the turn's documents are still to be found: before its first model call, and once. */
export function retrievalDue({ config, turn }: RunState): boolean {
  return config.definition.retrieve !== undefined && !turn.retrieved && turn.spent.steps === 0;
}

/**
 * How many of the newest messages are what this turn is about. One at least: what has left the memory
 * for a chunk is not counted.
 */
export function askedMessages({ transcript, turn }: RunState): number {
  const own = transcript.messages.filter((message) => message.turn === turn.number);
  return Math.max(1, own.length);
}

/** The documents become messages, in their order, behind what was asked. */
export function addDocuments(
  state: RunState,
  { documents, at }: { documents: readonly RetrievedDocument[]; at: number },
): RunState {
  return documents.reduce<RunState>(
    (next, { text, blob, id, source }) =>
      say(next, at, {
        role: 'user',
        text,
        origin: 'retrieved',
        ...(blob && { blob }),
        ...((id !== undefined || source !== undefined) && {
          document: { ...(id !== undefined && { id }), ...(source !== undefined && { source }) },
        }),
      }),
    withTurn(state, { retrieved: true }),
  );
}
