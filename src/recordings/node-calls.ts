import { nodeOfCall, nodeOfCallId } from '../core/state/turn-definition.js';
import { canonicalJson } from '../core/text/json.js';
import type { ComparedCall } from './divergence-text.js';
import { recordedResults } from './recorded-results.js';
import type { RecordedRun, Recording } from './recording.js';

/** A call that a node of a graph made itself, so that no message of the run has it. */
interface NodeCall extends ComparedCall {
  readonly turn: number;
}

/** Whether a call is one of a node's function, and not of a tool. */
export function isFunctionCall({ tool }: ComparedCall): boolean {
  return nodeOfCall({ name: tool }) !== null;
}

/**
 * Returns the calls of tools and functions that the nodes of a graph executed, visit by visit. The
 * calls of one visit run at the same time, so their names and arguments decide their order. A function
 * has no arguments here: it gets the whole state, in which are the words of the model.
 */
export function nodeCalls(run: RecordedRun, recording: Recording): readonly NodeCall[] {
  const visits = new Map<string, Map<string, NodeCall>>();
  for (const { call, tool, turn, arguments: args } of recordedResults(run, recording)) {
    if (nodeOfCallId(call) === null) continue;
    const visit = `${turn} ${call.replace(/(?:_\d+|\.[^.]*)$/, '')}`;
    const calls = visits.get(visit) ?? new Map<string, NodeCall>();
    const isFunction = isFunctionCall({ tool, arguments: args });
    // A call that was executed again has several results.
    calls.set(call, { turn, tool, arguments: isFunction ? null : args });
    visits.set(visit, calls);
  }
  return [...visits.values()].flatMap((calls) =>
    [...calls.values()]
      .map((one) => ({ one, text: canonicalJson({ ...one }) }))
      .toSorted((a, b) => (a.text < b.text ? -1 : 1))
      .map(({ one }) => one),
  );
}
