import { Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import type { History } from '../history/decode-event.js';
import { isObject, parseJson } from '../core/json.js';
import { historyFromJson } from '../history/json.js';
import { workflowCode } from './bundle.js';

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
  const id = history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowId;
  for await (const { replayed } of replayRuns([{ id: id ?? 'exported', history }])) return replayed;
  throw new Error('the replay ended without a result');
}

/** Whatever has a history; it is given back with what became of it. */
export interface Recorded {
  /** The workflow's. */
  readonly id: string;
  readonly history: History;
}

/** The same for one run after the other; the next one is asked for when this one is done. */
export async function* replayRuns<Run extends Recorded>(
  runs: AsyncIterable<Run> | Iterable<Run>,
): AsyncGenerator<{ readonly run: Run; readonly replayed: Replayed }, void, undefined> {
  const workflowBundle = await workflowCode();
  const source = iteratorOf(runs);
  for (;;) {
    let current: Run | undefined;
    const feed = async function* () {
      for (let next = await source.next(); !next.done; next = await source.next()) {
        current = next.value;
        yield { history: current.history, workflowId: current.id };
      }
    };
    try {
      for await (const { error } of Worker.runReplayHistories({ workflowBundle }, feed())) {
        if (current !== undefined) yield { run: current, replayed: judged(current, error) };
        current = undefined;
      }
      return;
    } catch (error) {
      // One that ends the worker it is replayed on does not keep the others from theirs.
      if (current === undefined) throw error;
      yield { run: current, replayed: judged(current, error) };
    }
  }
}

function iteratorOf<T>(items: AsyncIterable<T> | Iterable<T>): AsyncIterator<T> | Iterator<T> {
  return Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
}

function judged({ history }: Recorded, error: unknown): Replayed {
  const events = history.events?.length ?? 0;
  if (error === undefined) return { type: 'same', events };
  const type = error instanceof DeterminismViolationError ? 'different' : 'broken';
  return { type, events, reason: essence(error) };
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
    history = historyFromJson({ events: json['events'] });
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
