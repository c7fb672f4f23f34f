import { Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import type { History } from '../history/history-event.js';
import { isObject, parseJson } from '../core/json.js';
import { historyFromJson } from '../history/json.js';
import { encodingOf } from '../temporal/server-answers.js';
import { loadWorkflowCode } from './bundle.js';

/** The result of replaying a recorded history with this version. */
export type ReplayResult =
  | { readonly type: 'same'; readonly events: number }
  /**
   * This version would behave differently than recorded, so a run in flight could not continue with
   * it.
   */
  | { readonly type: 'different'; readonly events: number; readonly reason: string }
  /**
   * The history cannot be replayed: it is truncated or out of order, or its workflow code fails.
   */
  | { readonly type: 'broken'; readonly events: number; readonly reason: string }
  /** The text is not the history of a perdure run. */
  | { readonly type: 'no_history'; readonly reason: string };

/** Replays an exported history (its JSON text) with this version's code and without a server. */
export async function replayHistory(text: string): Promise<ReplayResult> {
  const history = readHistory(text);
  if (typeof history === 'string') return { type: 'no_history', reason: history };
  const encoding = await encodingOf(history);
  if (encoding !== '') {
    const reason = `its payloads are encoded as ${encoding}; decode them before they are replayed`;
    return { type: 'no_history', reason };
  }
  const id = history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowId;
  for await (const { replayed } of replayRuns([{ id: id ?? 'exported', history }])) return replayed;
  throw new Error('the replay ended without a result');
}

/** A run with its history. */
export interface RecordedRun {
  /** The workflow id. */
  readonly id: string;
  readonly history: History;
}

/**
 * Replays runs one after another, and yields each with its result. Reads the next run once the last
 * one is done.
 */
export async function* replayRuns<Run extends RecordedRun>(
  runs: AsyncIterable<Run> | Iterable<Run>,
): AsyncGenerator<{ readonly run: Run; readonly replayed: ReplayResult }, void, undefined> {
  const workflowBundle = await loadWorkflowCode();
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
        if (current !== undefined) yield { run: current, replayed: toResult(current, error) };
        current = undefined;
      }
      return;
    } catch (error) {
      // A history may end the worker that replays it; the remaining ones get a new worker.
      if (current === undefined) throw error;
      yield { run: current, replayed: toResult(current, error) };
    }
  }
}

function iteratorOf<T>(items: AsyncIterable<T> | Iterable<T>): AsyncIterator<T> | Iterator<T> {
  return Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
}

function toResult({ history }: RecordedRun, error: unknown): ReplayResult {
  const events = history.events?.length ?? 0;
  if (error === undefined) return { type: 'same', events };
  const type = error instanceof DeterminismViolationError ? 'different' : 'broken';
  return { type, events, reason: mainSentence(error) };
}

/** Returns the history, or why this version cannot replay the text. */
function readHistory(text: string): History | string {
  const json = parseJson(text);
  if (json === undefined) return 'it is not JSON';
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
  return `it is the history of a workflow of type "${type}", not of a perdure agent`;
}

/** Returns the sentence with the reason, which the SDK wraps in a dump of its structures. */
function mainSentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const [, quoted] = /message: ("(?:[^"\\]|\\.)+")/.exec(text) ?? [];
  const sentence = quoted === undefined ? undefined : parseJson(quoted);
  return typeof sentence === 'string' ? sentence : text;
}
