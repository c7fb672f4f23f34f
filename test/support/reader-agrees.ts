import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  QueryNotRegisteredError,
  WorkflowNotFoundError,
  type WorkflowHandle,
} from '@temporalio/client';
import type { RunStatus, TranscriptPage } from '../../src/core/status.js';
import type { Message } from '../../src/core/transcript/messages.js';
import type { History } from '../../src/history/decode-event.js';
import { statusQuery, transcriptQuery } from '../../src/workflows/messages.js';
import { carriedDifferences, compare, readerAt, readerBefore } from './oracle.js';

/** What a run says about itself at one moment. */
interface RunAnswer {
  readonly status: RunStatus;
  /** The messages that the run holds in memory, side branches included. */
  readonly page: TranscriptPage;
}

/** Thrown if the run cannot answer, so there is nothing to compare. */
export class NoAnswerError extends Error {
  override name = 'NoAnswerError';
}

/** Thrown if the run ended before it could answer, because its input was refused or no task was started. */
export class NoStateError extends NoAnswerError {
  override name = 'NoStateError';
}

interface ComparisonOptions {
  readonly compared?: Set<string>;
  readonly answerMs?: number;
}

/** Long enough for the replay of a long history on a busy machine. */
const ANSWER_MS = 30_000;
/** The server's words about a run that ended before a worker took its first task. */
const NEVER_STARTED = 'closed before WorkflowTaskStarted';
/** A run that works may take a workflow task between two queries. */
const TRIES = 20;

/**
 * Asks the run for its status and its messages at one moment. Throws a `NoAnswerError` if no worker
 * answers, or if the run ended before it had a state.
 */
async function ask(handle: WorkflowHandle): Promise<RunAnswer> {
  for (let left = TRIES; left > 0; left -= 1) {
    const before = await handle.query(statusQuery);
    const page = await wholeTranscript(handle);
    const status = await handle.query(statusQuery);
    if (isDeepStrictEqual(before, status)) return { status, page };
  }
  throw new NoAnswerError('the run changed between all queries');
}

async function wholeTranscript(handle: WorkflowHandle): Promise<TranscriptPage> {
  const messages: Message[] = [];
  for (;;) {
    const from = (messages.at(-1)?.n ?? -1) + 1;
    const page = await handle.query(transcriptQuery, { from, side: true });
    messages.push(...page.messages);
    const isWhole = page.messages.length === 0 || messages.at(-1)?.n === page.total - 1;
    if (isWhole) return { messages, total: page.total };
  }
}

/** How often, and how long after each other, a history is read until it has what the run has said. */
const HISTORY_TRIES = 20;
const HISTORY_PAUSE_MS = 100;

/**
 * Returns in which ways a reader differs from a run at this moment, and at the ends of its earlier
 * segments. Rejects with a `NoAnswerError` if the run cannot answer within `answerMs`. `compared`: moments
 * that are left out because they were compared before.
 */
export async function readerDifferences(
  handle: WorkflowHandle,
  { compared = new Set(), answerMs = ANSWER_MS }: ComparisonOptions = {},
): Promise<readonly string[]> {
  const { client, workflowId } = handle;
  const { status, page } = await client
    .withDeadline(Date.now() + answerMs, async () => await ask(handle))
    .catch(rethrowNoAnswer);
  const isNew = (moment: string): boolean => !compared.has(moment) && compared.add(moment).size > 0;
  if (!isNew(`${status.runId} ${status.historyLength}`)) return [];
  const answered = client.getHandle(workflowId, status.runId);
  let history = await answered.fetchHistory();
  const found = [...presentDifferences({ status, page }, history)];
  // The run may have answered in a task that the server has not recorded yet.
  for (let tries = 0; found.length > 0 && tries < HISTORY_TRIES; tries += 1) {
    await pause(HISTORY_PAUSE_MS);
    history = await answered.fetchHistory();
    found.splice(0, found.length, ...presentDifferences({ status, page }, history));
  }
  for (let runId = previousRunId(history); runId !== '' && isNew(runId);) {
    const earlier = await client.getHandle(workflowId, runId).fetchHistory().catch(unlessGone);
    // The server keeps a segment for a while only, and a test may delete one.
    if (earlier === null) break;
    const lines = carriedDifferences(earlier);
    found.push(...lines.map((line) => `at the end of segment ${runId}: ${line}`));
    runId = previousRunId(earlier);
  }
  return found;
}

function unlessGone(error: unknown): null {
  if (error instanceof WorkflowNotFoundError) return null;
  throw error;
}

function rethrowNoAnswer(error: unknown): never {
  if (error instanceof NoAnswerError) throw error;
  const reason = error instanceof Error ? (error.cause ?? error) : error;
  const why = reason instanceof Error ? reason.message : 'unknown error';
  if (error instanceof QueryNotRegisteredError || why.includes(NEVER_STARTED)) {
    throw new NoStateError('the run ended before it had a state', { cause: error });
  }
  throw new NoAnswerError(`no worker answers: ${why}`, { cause: error });
}

function presentDifferences({ status, page }: RunAnswer, history: History): readonly string[] {
  const found = compare(status, page, readerAt(history, status.historyLength));
  if (found.length === 0) return found;
  const before = readerBefore(history, status.historyLength);
  if (before !== null && compare(status, page, before).length === 0) return [];
  // On a busy worker that replays a run for a query, the SDK has named an earlier task than the one that
  // the run was in. A reader that stops after a later task has to agree then.
  const later = (history.events ?? [])
    .map(({ eventId }) => Number(eventId))
    .filter((id) => id > status.historyLength);
  return later.some((id) => compare(status, page, readerAt(history, id)).length === 0) ? [] : found;
}

function previousRunId({ events }: History): string {
  return events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? '';
}

/** Throws if a reader of the run's history differs from the run itself at this moment. */
export async function expectReaderAgrees(handle: WorkflowHandle): Promise<void> {
  const found = await readerDifferences(handle);
  if (found.length > 0) report(differenceMessage(handle.workflowId, found));
}

/** Prints, and throws with PERDURE_ORACLE=strict. `where`: the test, for what is printed. */
export function report(differences: string, where = ''): void {
  if (process.env['PERDURE_ORACLE'] === 'strict') throw new Error(differences);
  process.stderr.write(`[oracle] ${where}${differences}\n`);
}

export function differenceMessage(id: string, found: readonly string[]): string {
  return `a reader of ${id} differs from the run:\n${found.map((one) => `  ${one}`).join('\n')}`;
}
