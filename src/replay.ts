import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import type { History } from './client/history-facts.js';
import { isObject, parseJson } from './core/json.js';
import { workflowCode } from './workflow-code.js';

/** What this version makes of a recorded history. */
export type Replayed =
  | { readonly type: 'same'; readonly events: number }
  /** This version would do something else than was recorded: a run in flight could not go on with it. */
  | { readonly type: 'different'; readonly events: number; readonly reason: string }
  /** A history, but not one that can be replayed: cut, mixed up, or with a fault in the workflow itself. */
  | { readonly type: 'broken'; readonly events: number; readonly reason: string }
  | { readonly type: 'no_history'; readonly reason: string };

/** Does again what an exported history (its JSON text) says, with this version's code and no server. */
export async function replayHistory(text: string): Promise<Replayed> {
  const history = readHistory(text);
  if (typeof history === 'string') return { type: 'no_history', reason: history };
  const events = history.events?.length ?? 0;
  const workflowId = history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowId;
  const workflowBundle = await workflowCode();
  try {
    await Worker.runReplayHistory({ workflowBundle }, history, workflowId ?? undefined);
    return { type: 'same', events };
  } catch (error) {
    const type = error instanceof DeterminismViolationError ? 'different' : 'broken';
    return { type, events, reason: essence(error) };
  }
}

/** The history, or why the text is none that this version could replay. */
function readHistory(text: string): History | string {
  const json = parseJson(text);
  if (json === undefined) return 'it is no JSON';
  if (!isObject(json) || !Array.isArray(json['events'])) {
    return 'it is JSON without a list of events; write one with: perdure export ID --out FILE';
  }
  let history: History;
  try {
    history = historyFromJSON(json);
  } catch (error) {
    return `its events cannot be read (${error instanceof Error ? error.message : String(error)})`;
  }
  const type = history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowType?.name;
  if (type === 'agent') return history;
  if (typeof type !== 'string') return 'it does not begin with the start of a workflow';
  return `it is of a workflow of type "${type}", no run of an agent of perdure`;
}

/** The one sentence that matters; the SDK wraps it into a dump of its structures. */
function essence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const [, quoted] = /message: ("(?:[^"\\]|\\.)+")/.exec(text) ?? [];
  const sentence = quoted === undefined ? undefined : parseJson(quoted);
  return typeof sentence === 'string' ? sentence : text;
}
