import { appendMessage } from '../change.js';
import type { CallResult } from '../calls/call-result.js';
import { cutValue } from '../plan/cut-value.js';
import { resultsOf } from '../plan/plan-batch.js';
import { doneText } from '../plan/report.js';
import type { RunState } from '../state.js';
import type { ToolCall } from '../transcript/messages.js';
import { getOpenBatch } from '../turn.js';
import { errorIn } from './error-in.js';
import { currentNode, definedTool } from './node-tool.js';

/** Maximum characters of all results kept from an interrupted visit. */
const MAX_KEPT = 400_000;

/**
 * Keeps the results of the current node's calls when its work is interrupted. The visit may resume
 * later and must not repeat completed calls. For a plan, a report of them is added to the
 * transcript.
 */
export function keepResults(state: RunState, at: number): RunState {
  const node = currentNode(state);
  const batch = getOpenBatch(state);
  const { graph } = state;
  if (node === undefined || batch === null || !graph?.at) return state;
  const kept = batch.calls.flatMap((call, index) => {
    const result = batch.results[index];
    return result && hasHappened(state, call, result) ? [result] : [];
  });
  if (node.kind === 'execute') {
    const values = { ...graph.values, [node.save]: resultsOf(graph.values, node, kept) };
    const saved = { ...state, graph: { ...graph, values } };
    const text = doneText({ values, plan: node.plan, results: node.save });
    if (text === null) return saved;
    return appendMessage(saved, at, { role: 'user', text, origin: 'perdure' });
  }
  if (kept.length === 0) return state;
  const share = MAX_KEPT / kept.length;
  const results = kept.map((result) =>
    result.output === undefined ? result : { ...result, output: cutValue(result.output, share) },
  );
  const interrupted = { node: node.name, visit: graph.at.visit, results };
  return { ...state, graph: { ...graph, interrupted } };
}

/** Whether a call counts as done. A canceled call can be repeated, unless its tool is `once`. */
function hasHappened(
  { config }: RunState,
  call: ToolCall,
  { executed, text }: CallResult,
): boolean {
  if (!executed) return false;
  if (errorIn(text).type !== 'cancelled') return true;
  return definedTool(config.definition, call.name)?.effect === 'once';
}
