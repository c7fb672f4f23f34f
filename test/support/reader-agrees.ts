import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { WorkflowNotFoundError, type WorkflowHandle } from '@temporalio/client';
import type { History } from '../../src/history/history-event.js';
import { statusQuery, transcriptQuery } from '../../src/workflows/messages/definitions.js';
import { answerByReplay, type ReplayedAnswer } from './answer-by-replay.js';
import {
  carriedDifferences,
  carriedProblem,
  compare,
  endOfLastTask,
  readerAt,
  readerBefore,
  readerBeforeEnd,
} from './oracle.js';
import { replayLater } from './replays.js';
import { wholeTranscript, type RunAnswer } from './run-answer.js';

/** The result of comparing a run with a reader of its history. */
export interface Comparison {
  readonly differences: readonly string[];
  /** What could not be compared, and why. */
  readonly unchecked: readonly string[];
}

interface ComparisonOptions {
  /** Moments that are left out because they were compared before. */
  readonly compared?: Set<string>;
  /**
   * How long a worker may take to answer. After that, or with 0 at once, the history is replayed.
   */
  readonly answerMs?: number;
}

/** Long enough for the replay of a long history on a busy machine. */
const ANSWER_MS = 30_000;
/** A busy run may process a workflow task between two queries. */
const TRIES = 20;

/** Queries a run for its status and its messages at one moment. Null if there is no answer. */
async function ask(handle: WorkflowHandle): Promise<RunAnswer | null> {
  for (let left = TRIES; left > 0; left -= 1) {
    const before = await handle.query(statusQuery);
    const page = await wholeTranscript(async (range) => await handle.query(transcriptQuery, range));
    const status = await handle.query(statusQuery);
    if (isDeepStrictEqual(before, status)) return { status, page };
  }
  return null;
}

/**
 * How often, and at which interval, a history is read until it contains what the run has reported.
 */
const HISTORY_TRIES = 20;
const HISTORY_PAUSE_MS = 100;

/**
 * Compares a run with a reader of its history at this moment, and at the ends of its earlier
 * segments. If no worker answers for the run, its history is replayed, and the replayed run is
 * queried.
 */
export async function compareWithReader(
  handle: WorkflowHandle,
  { compared = new Set(), answerMs = ANSWER_MS }: ComparisonOptions = {},
): Promise<Comparison> {
  const { client, workflowId } = handle;
  const isNew = (moment: string): boolean => !compared.has(moment) && compared.add(moment).size > 0;
  const answer =
    answerMs === 0
      ? null
      : await client
          .withDeadline(Date.now() + answerMs, async () => await ask(handle))
          .catch(() => null);
  const runId = answer?.status.runId ?? (await handle.describe()).runId;
  const answered = client.getHandle(workflowId, runId);
  let history = await answered.fetchHistory();
  const found: string[] = [];
  const unchecked: string[] = [];
  if (answer === null) {
    const { differences, unchecked: why } = await compareReplayed(history, workflowId);
    found.push(...differences);
    unchecked.push(...why);
  } else {
    if (!isNew(`${runId} ${answer.status.historyLength}`)) return { differences: [], unchecked };
    found.push(...presentDifferences(answer, history));
    // The run may have answered in a task that the server has not recorded yet.
    for (let tries = 0; found.length > 0 && tries < HISTORY_TRIES; tries += 1) {
      await pause(HISTORY_PAUSE_MS);
      history = await answered.fetchHistory();
      found.splice(0, found.length, ...presentDifferences(answer, history));
    }
  }
  const earlier = await compareEarlier(handle, { history, isNew });
  found.push(...earlier.differences);
  unchecked.push(...earlier.unchecked);
  return { differences: found, unchecked };
}

/**
 * Compares a run that has ended with a reader of its history: its earlier segments now, and its end
 * with all other replays at the end of the test file.
 */
export async function compareLater(
  handle: WorkflowHandle,
  { runId, compared, where }: Later,
): Promise<Comparison> {
  const { client, workflowId } = handle;
  const history = await client.getHandle(workflowId, runId).fetchHistory();
  const events = (history.events ?? []).slice(0, endOfLastTask(history));
  // Before its first task, a run has no state.
  if (events.length > 0) {
    replayLater({ events }, workflowId, (answer) => {
      const { differences, unchecked } = compareAnswer(answer, history);
      const found = [...differences, ...unchecked];
      return found.length === 0 ? [] : [`${where}${differenceMessage(workflowId, found)}`];
    });
  }
  const isNew = (moment: string): boolean => !compared.has(moment) && compared.add(moment).size > 0;
  return await compareEarlier(handle, { history, isNew });
}

interface Later {
  readonly runId: string;
  readonly compared: Set<string>;
  /** The test in which the run ended. */
  readonly where: string;
}

/** Compares the states at the ends of the segments before this one. */
async function compareEarlier(
  { client, workflowId }: WorkflowHandle,
  { history, isNew }: { readonly history: History; readonly isNew: (moment: string) => boolean },
): Promise<Comparison> {
  const found: string[] = [];
  const unchecked: string[] = [];
  for (let id = previousRunId(history); id !== '' && isNew(id);) {
    const earlier = await client.getHandle(workflowId, id).fetchHistory().catch(unlessGone);
    if (earlier === null) {
      unchecked.push(`the server has deleted segment ${id}`);
      break;
    }
    // A workflow of another type may have continued as new into the run.
    if (typeOf(earlier) !== 'agent') break;
    const unreadable = carriedProblem(earlier);
    if (unreadable !== null)
      unchecked.push(`segment ${id} passes on an invalid state: ${unreadable}`);
    found.push(
      ...carriedDifferences(earlier).map((line) => `at the end of segment ${id}: ${line}`),
    );
    id = previousRunId(earlier);
  }
  return { differences: found, unchecked };
}

/** The SDK's message about a run that ended before it could answer: its input was refused. */
const ANSWERS_NOTHING = 'register a handler';

/** Compares a reader of a history with the run as it is after a replay of the history. */
async function compareReplayed(history: History, workflowId: string): Promise<Comparison> {
  const events = (history.events ?? []).slice(0, endOfLastTask(history));
  // Before its first task, a run has no state.
  if (events.length === 0) return { differences: [], unchecked: [] };
  return compareAnswer(await answerByReplay({ events }, workflowId), history);
}

/** Compares a reader of a history with the answer of the run after a replay of it. */
function compareAnswer(answer: ReplayedAnswer, history: History): Comparison {
  if (!('problem' in answer)) {
    return { differences: presentDifferences(answer, history), unchecked: [] };
  }
  if (!answer.problem.includes(ANSWERS_NOTHING)) {
    return { differences: [], unchecked: [`no worker answers, and ${answer.problem}`] };
  }
  const { state } = readerAt(history, Number.MAX_SAFE_INTEGER).view;
  return {
    differences: state === null ? [] : ['the run has no state, the reader has one'],
    unchecked: [],
  };
}

function unlessGone(error: unknown): null {
  if (error instanceof WorkflowNotFoundError) return null;
  throw error;
}

function presentDifferences({ status, page }: RunAnswer, history: History): readonly string[] {
  const found = compare(status, page, readerAt(history, status.historyLength));
  if (found.length === 0) return found;
  const others = [readerBefore, readerBeforeEnd].map((reader) =>
    reader(history, status.historyLength),
  );
  if (others.some((other) => other && compare(status, page, other).length === 0)) return [];
  // On a busy worker that replays a run for a query, the SDK may name an earlier task than the one
  // that the run was in. A reader that stops after a later task has to agree then.
  const later = (history.events ?? [])
    .map(({ eventId }) => Number(eventId))
    .filter((id) => id > status.historyLength);
  return later.some((id) => compare(status, page, readerAt(history, id)).length === 0) ? [] : found;
}

function typeOf({ events }: History): string {
  return events?.[0]?.workflowExecutionStartedEventAttributes?.workflowType?.name ?? '';
}

function previousRunId({ events }: History): string {
  return events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? '';
}

/** Throws if a reader of the run's history differs from the run itself at this moment. */
export async function expectReaderAgrees(handle: WorkflowHandle): Promise<void> {
  const { differences, unchecked } = await compareWithReader(handle);
  const found = [...differences, ...unchecked];
  if (found.length > 0) throw new Error(differenceMessage(handle.workflowId, found));
}

export function differenceMessage(id: string, found: readonly string[]): string {
  return `a reader of ${id} differs from the run:\n${found.map((one) => `  ${one}`).join('\n')}`;
}
