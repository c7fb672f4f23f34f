import type { Message, ToolCall, ToolMessage } from './messages.js';

/** A call of a run with its result. */
export interface CallPair {
  readonly turn: number;
  readonly step: number;
  /** Number of the message that requests the call. */
  readonly n: number;
  readonly call: ToolCall;
  /**
   * The result for the model; null if the call has none yet, or if it is not among the messages.
   */
  readonly result: ToolMessage | null;
}

/** Pairs the calls in these messages with their results, in call order. */
export function callPairs(messages: readonly Message[]): readonly CallPair[] {
  const results = new Map(
    messages.flatMap((message) =>
      message.role === 'tool' ? [[message.callId, message] as const] : [],
    ),
  );
  return messages.flatMap((message) => {
    if (message.role !== 'assistant') return [];
    const { turn, step, n, calls = [] } = message;
    return calls.map((call) => ({ turn, step, n, call, result: results.get(call.id) ?? null }));
  });
}
