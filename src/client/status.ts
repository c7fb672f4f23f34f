import type { Client } from '@temporalio/client';
import { InputError, NoRunError, ResultLostError } from '../core/errors.js';
import { type StateStatus, finalOutcome, runStatus } from '../core/run/status.js';
import { type CancelRequest, type RunStatus, isOpenStatus } from '../core/state/status.js';
import type { RunState } from '../core/state/state.js';
import { actorText, visible } from '../core/state/summaries.js';
import { getOutcome, nothingSpent } from '../core/state/turn.js';
import { blocks } from '../core/state/work.js';
import { isObject } from '../core/text/json.js';
import { shorten } from '../core/text/text.js';
import type { Outcome } from '../core/transcript/outcome.js';
import {
  type FollowedSegment,
  followSegments,
  nextRunId,
  segmentEvents,
} from '../history/follow-history.js';
import {
  type PendingWork,
  currentActivity,
  endOfRun,
  failedAttempts,
  hasProcessedEnd,
  pendingWork,
  workInFlight,
} from '../history/pending-work.js';
import { decodeFields } from '../history/history-event.js';
import { type Projection, endOutcome, writtenByNewer } from '../history/projection.js';
import { type RunReading, describeRun, readRun } from '../history/read-run.js';
import { readTurns } from '../history/run-transcript.js';
import { previousRunId, readSegment, readSegmentStart } from '../history/segments.js';
import type { Archive } from '../storage/blob-store.js';
import { type GivenNames, readGiven } from '../temporal/stored-ids.js';
import { type ClientOrigin, warnWithoutWorker } from './no-worker.js';

/**
 * Returns what the query `status` would return, computed from the description and the history. It
 * needs no worker, and it also works for runs that have ended. `now` is the Unix time in ms. `by`: the name
 * under which the reader's commands decide; absent: unknown.
 */
export function toRunStatus(run: RunReading, now: number, by?: string): RunStatus {
  const { id, runId, view, events, description } = run;
  const end = endOfRun(run);
  const found: StateStatus =
    view.state === null
      ? notBegun(run)
      : runStatus(view.state, {
          ended: end?.outcome ?? finalOutcome(view.state),
          run: id,
          reader: { by, now },
        });
  const isUnended = end === null && OPEN.includes(description?.status.name ?? '');
  const status = isUnended && view.state !== null ? whileOpen(found, view.state, run) : found;
  const work = pendingWork(description);
  const reports = failedAttempts(events, work);
  const common = {
    ...status,
    message: newestOf(status.message, reports),
    id,
    runId,
    historyLength: view.lastEvent,
    ...namesOf(run),
    reports,
  };
  if (description === null) return { ...common, ...archivedStatus(run, status) };
  const isCancelling = view.cancelRequested && end === null && isOpenStatus(status.status);
  const inFlight = workInFlight(view, work);
  const isHeld = description.status.name === 'PAUSED' && end === null;
  return {
    ...common,
    ...(end !== null && { status: 'done', reason: end.reason }),
    ...(isHeld && { status: 'paused' }),
    // The cancel comes before any decision that would still be sent.
    ...(isCancelling && { pending: [] }),
    ...(view.cancelRequested && view.cancel && { cancel: view.cancel }),
    message:
      (end === null ? (writtenByNewer(events) ?? stuckMessage(work, run.history)) : null) ??
      (isCancelling ? cancelingText(view.cancel) : common.message),
    doing: currentActivity({ view, work }, now),
    ...(inFlight.length > 0 && { inFlight }),
  };
}

/** The server's names for the status of an open run. */
const OPEN: readonly string[] = ['RUNNING', 'PAUSED'];

/**
 * Returns the status of a run that the server has open. If the run itself has not processed its end, the last
 * workflow task waits for a worker, and a cancel may still come first, so no reader shows the end.
 */
function whileOpen(status: StateStatus, state: RunState, run: RunReading): StateStatus {
  if (isOpenStatus(status.status) || hasProcessedEnd(run)) return status;
  const [block] = blocks(state);
  return {
    ...status,
    status: block === undefined ? 'working' : 'blocked',
    reason: block?.reason ?? null,
    message: block?.message ?? null,
    outcome: state.open ? getOutcome(state) : null,
  };
}

/** The beginning of a message about something that a certain worker lacks. */
const OF_WORKER = /^worker [^:]+(?=:| \()/;

/** Returns the newest attempt's message about a block, which names the worker that failed last. */
function newestOf(message: string | null, reports: RunStatus['reports']): string | null {
  const newest = reports.at(-1)?.message ?? '';
  const isSame = message?.replace(OF_WORKER, '') === newest.replace(OF_WORKER, '');
  return isSame ? newest : message;
}

/** A called run has the tenant of its caller by its priority alone. */
function namesOf({
  view,
  description,
  history,
}: RunReading): Pick<RunStatus, 'tenant' | keyof GivenNames> {
  const tenant = view.input?.tenant ?? description?.priority?.fairnessKey;
  const [started] = history.events ?? [];
  const fields = started?.workflowExecutionStartedEventAttributes?.memo?.fields ?? {};
  const memo = description === null ? decodeFields(fields) : description.memo;
  return { ...(tenant && { tenant }), ...readGiven(memo) };
}

/** After this many failures in a row, the cause is probably not just a worker that was killed. */
const STUCK_FAILURES = 2;

function cancelingText({ by }: Partial<CancelRequest> = {}): string {
  const who = by === undefined ? '' : ` by ${actorText({ by })}`;
  return `a cancel is requested${who}; the run ends when a worker carries it out`;
}

/** The characters of a worker's error that a status shows. */
const MAX_ERROR = 300;

/**
 * Returns why a run does not go on although workers poll, or null. It loses nothing meanwhile. The
 * server records the first of several failures in a row.
 */
function stuckMessage(
  { workflowFailures: failures }: PendingWork,
  history: RunReading['history'],
): string | null {
  if (failures < STUCK_FAILURES) return null;
  const task = history.events?.findLast(
    (event) =>
      event.workflowTaskFailedEventAttributes ??
      event.workflowTaskTimedOutEventAttributes ??
      event.workflowTaskCompletedEventAttributes,
  );
  if (task?.workflowTaskTimedOutEventAttributes) {
    return `workers do not continue the run (${failures} times in a row; the first time, the step timed out): they are overloaded, or were killed while they worked on it; look at their CPU, memory, and logs`;
  }
  const error = task?.workflowTaskFailedEventAttributes?.failure?.message ?? '';
  const why = error === '' ? "their logs and the run's history say why" : shortError(error);
  return `workers cannot continue the run (${failures} failures in a row): ${why}; if another version of perdure ran it, start a worker of that version`;
}

function shortError(error: string): string {
  const [line = ''] = error.split('\n');
  return visible(shorten(line, MAX_ERROR));
}

/** Returns the status of a deleted run, which has ended whether or not the archive has its end. */
function archivedStatus(
  { events }: RunReading,
  { status, outcome, reason, message }: StateStatus,
): Pick<RunStatus, 'status' | 'reason' | 'message' | 'pending' | 'doing' | 'outcome' | 'archived'> {
  const at = events.at(-1)?.at ?? 0;
  const isWhole = !isOpenStatus(status);
  return {
    status: 'done',
    reason: isWhole ? reason : 'unknown',
    message: isWhole
      ? message
      : 'the server has deleted the run, and the archive does not have its end',
    pending: [],
    doing: null,
    outcome: isWhole ? outcome : null,
    archived: { at, ended: isWhole },
  };
}

/** The status of a run that no worker has started. */
function notBegun(run: RunReading): StateStatus {
  const end = endOfRun(run);
  return {
    agent: run.agent,
    status: 'working',
    reason: null,
    message: end?.outcome.error ?? null,
    turn: 0,
    step: 0,
    segments: 1,
    queued: 0,
    limits: { turn: {}, run: {} },
    usage: nothingSpent(null).usage,
    pending: [],
    outcome: end?.outcome ?? null,
  };
}

/** Which turn `result` waits for, and what ends the wait. */
export interface ResultOptions {
  /**
   * The turn to wait for; default: the end of a task run and of a canceled run, or the latest turn
   * of an open run.
   */
  readonly turn?: number;
  /** Ends the wait. The run is not affected. Default: none. */
  readonly signal?: AbortSignal;
}

/**
 * Where to read the outcome of a run that the server has deleted; if absent, only the server is
 * queried.
 */
interface ReadFrom {
  readonly archive?: Archive | undefined;
  /** How the client was made, for a warning; absent: unknown. */
  readonly origin?: ClientOrigin;
}

/**
 * Waits for the end of a turn and returns its outcome, whatever its status. Follows the history
 * through all segments, so it needs no worker. If the run ends before the turn has begun, returns
 * the run's outcome. For a run that the server has deleted, returns the outcome from the archive.
 * Rejects with a `NoRunError`, with an `InputError` for a turn that does not exist, with a
 * `ResultLostError`, and with the signal's reason.
 */
export async function waitForResult(
  client: Client,
  id: string,
  { turn, signal = new AbortController().signal, archive, origin }: ResultOptions & ReadFrom,
): Promise<Outcome> {
  signal.throwIfAborted();
  if (turn !== undefined && (!Number.isInteger(turn) || turn < 1)) {
    throw new InputError(`turn: expected a whole number from 1, got ${turn}`);
  }
  const runId = await liveRunId(client, id, archive);
  if (runId === null) return await archivedOutcome(client, id, { turn, archive });
  const over = new AbortController();
  const isWorking = async (): Promise<boolean> =>
    toRunStatus(await readRun(client, id), Date.now()).status === 'working';
  const wait = { over: over.signal, isWorking, origin };
  warnWithoutWorker(client, id, wait).catch(() => undefined);
  try {
    const outcome = (await isOpen(client, id, runId))
      ? await outcomeOfTurn(client, { id, signal, turn, archive })
      : await outcomeOfTask(client, { id, runId, signal }, turn);
    if (outcome !== null) return outcome;
  } finally {
    over.abort();
  }
  signal.throwIfAborted();
  throw new ResultLostError(
    `the server ended the history of run ${visible(id)} before the run; its messages may be in the transcript`,
  );
}

/** Returns null for a run that only the archive has. */
async function liveRunId(client: Client, id: string, archive?: Archive): Promise<string | null> {
  try {
    return (await describeRun(client, id)).runId;
  } catch (error) {
    if (archive === undefined || !NoRunError.isInstance(error)) throw error;
    return null;
  }
}

async function archivedOutcome(
  client: Client,
  id: string,
  { turn, archive }: Omit<AwaitedTurn, 'id' | 'signal'>,
): Promise<Outcome> {
  const run = await readRun(client, id, { archive });
  const { state } = run.view;
  const { turns } = archive ? await readTurns(client, run, archive) : { turns: [] };
  const ended = state === null ? null : finalOutcome(state);
  const outcomeAt = (number: number): Outcome | null =>
    turns.find((one) => one.turn === number)?.outcome ?? null;
  const last = Math.max(0, ...turns.map((one) => one.turn));
  if (turn !== undefined && turn > last && ended !== null) throw noTurn(id, turn, last);
  const isTask = state?.open !== true || state.ending === 'cancelled';
  // Without the end of an open run, its newest turn is also unknown.
  const newest = isTask || ended === null ? ended : (outcomeAt(last) ?? ended);
  const outcome = turn === undefined ? newest : outcomeAt(turn);
  if (outcome !== null) return outcome;
  const what = turn === undefined ? 'the end' : `turn ${turn}`;
  throw new ResultLostError(
    `the server has deleted run ${visible(id)}, and the archive does not have ${what} of it`,
  );
}

async function isOpen(client: Client, id: string, runId: string): Promise<boolean> {
  const input = (await readSegmentStart(client, id, runId))?.input;
  return isObject(input) && input['open'] === true;
}

/** Reads only the last event of each segment. */
async function outcomeOfTask(
  client: Client,
  task: FollowedSegment,
  turn: number | undefined,
): Promise<Outcome | null> {
  if (turn !== undefined && turn > 1) throw noTurn(task.id, turn, 1);
  for (let runId: string | null = task.runId; runId !== null;) {
    let next: string | null = null;
    for await (const events of segmentEvents(client, { ...task, runId }, { only: 'end' })) {
      const last = events.at(-1);
      next = nextRunId(last);
      if (last?.type !== 'ended' || next !== null) continue;
      return endOutcome(last) ?? endOfRun(await readRun(client, task.id))?.outcome ?? null;
    }
    runId = next;
  }
  return null;
}

interface AwaitedTurn extends ReadFrom {
  readonly id: string;
  readonly signal: AbortSignal;
  readonly turn: number | undefined;
}

async function outcomeOfTurn(
  client: Client,
  { id, signal, turn, archive }: AwaitedTurn,
): Promise<Outcome | null> {
  const run = await readRun(client, id);
  const { state } = run.view;
  const last = state === null ? null : Math.max(state.turn.number, state.inbox.lastTurn);
  const target = turn ?? Math.max(1, last ?? 0);
  // A run that was canceled while it waited has no canceled turn, so the run's own outcome counts.
  if (turn === undefined && state?.ending === 'cancelled') {
    return await outcomeOfRun(client, { id, runId: run.runId, signal });
  }
  const found = endOfTurn(run.view, target);
  if (found !== null) return found;
  if (turn !== undefined && last !== null && turn > last) throw noTurn(id, turn, last);
  if (state !== null && target < state.turn.number)
    return await readEarlierTurn(client, { ...run, archive }, target);
  for await (const { view } of followSegments(client, { id, runId: run.runId, signal })) {
    const outcome = endOfTurn(view, target) ?? endOfRun({ view, terminatedWhy: '' })?.outcome;
    if (outcome !== undefined) return outcome;
  }
  return null;
}

/** Waits for the end of the run itself. Returns null if the wait ends first. */
async function outcomeOfRun(client: Client, run: FollowedSegment): Promise<Outcome | null> {
  for await (const { view } of followSegments(client, run)) {
    const end = endOfRun({ view, terminatedWhy: '' });
    if (end !== null) return end.outcome;
  }
  return null;
}

/** Returns null while the turn is not over, or if this segment does not contain its end. */
function endOfTurn({ state, turns }: Projection, turn: number): Outcome | null {
  const ended = [...turns, ...(state?.recent ?? [])].find((one) => one.turn === turn);
  if (ended !== undefined) return ended.outcome;
  // The outcome is final once the run has recorded it, since the run continues only then.
  const phase = state?.turn.number === turn ? state.turn.phase : null;
  return phase?.type === 'idle' ? phase.outcome : null;
}

async function readEarlierTurn(
  client: Client,
  run: RunReading & ReadFrom,
  turn: number,
): Promise<Outcome> {
  let previous = previousRunId(run.events);
  while (previous !== '') {
    const segment = await readSegment(client, {
      id: run.id,
      runId: previous,
      archive: run.archive,
    });
    if (segment === null) break;
    const outcome = endOfTurn(segment.view, turn);
    if (outcome !== null) return outcome;
    previous = segment.previousRunId;
  }
  throw new ResultLostError(
    `turn ${turn} of run ${visible(run.id)} is over, and the server no longer keeps that part of its ` +
      'history; its messages may be in the transcript',
  );
}

function noTurn(id: string, turn: number, last: number): InputError {
  const known = last === 0 ? 'it has none yet' : `its last one is ${last}`;
  return new InputError(`turn: run ${visible(id)} has no turn ${turn}; ${known}`);
}
