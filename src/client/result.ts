import type { Client } from '@temporalio/client';
import type { Outcome } from '../core/outcome.js';
import { visible } from '../core/text/summaries.js';
import { endOfRun } from '../history/end-of-run.js';
import { nextRunId, segmentEvents, type FollowOptions } from '../history/follow-history.js';
import { followRun } from '../history/follow-run.js';
import { isObject } from '../core/json.js';
import { outcomeOf, type Projection } from '../history/projection.js';
import { describeRun, readRun, type RunReading } from '../history/read-run.js';
import { previousRunId, readSegmentStart, readSegment } from '../history/segments.js';
import { InputError, ResultLostError } from '../core/errors.js';

export interface ResultOptions {
  /** The turn to wait for; default: the end of a task run and of a canceled run, or the latest turn of an open run. */
  readonly turn?: number;
  /** Ends the wait. The run is not affected. */
  readonly signal?: AbortSignal;
}

/**
 * Waits for the end of a turn and returns its outcome, whatever its status. Follows the history through
 * all segments, so it needs no worker. If the run ends before the turn has begun, returns the run's
 * outcome. Rejects with a `NoRunError`, with an `InputError` for a turn that does not exist, with a
 * `ResultLostError`, and with the reason of the signal.
 */
export async function waitForResult(
  client: Client,
  id: string,
  { turn, signal = new AbortController().signal }: ResultOptions,
): Promise<Outcome> {
  signal.throwIfAborted();
  if (turn !== undefined && (!Number.isInteger(turn) || turn < 1)) {
    throw new InputError(`turn: expected a whole number from 1, got ${turn}`);
  }
  const { runId } = await describeRun(client, id);
  const outcome = (await isOpen(client, id, runId))
    ? await outcomeOfTurn(client, { id, signal, turn })
    : await outcomeOfTask(client, { id, runId, signal }, turn);
  if (outcome !== null) return outcome;
  signal.throwIfAborted();
  throw new Error(`the server ended the history of run ${visible(id)} before the run`);
}

async function isOpen(client: Client, id: string, runId: string): Promise<boolean> {
  const input = (await readSegmentStart(client, id, runId))?.input;
  return isObject(input) && input['open'] === true;
}

/** Reads only the last event of each segment. */
async function outcomeOfTask(
  client: Client,
  task: FollowOptions,
  turn: number | undefined,
): Promise<Outcome | null> {
  if (turn !== undefined && turn > 1) throw noTurn(task.id, turn, 1);
  for (let runId: string | null = task.runId; runId !== null;) {
    let next: string | null = null;
    for await (const events of segmentEvents(client, { ...task, runId }, { only: 'end' })) {
      const last = events.at(-1);
      next = nextRunId(last);
      if (last?.type !== 'ended' || next !== null) continue;
      return outcomeOf(last) ?? endOfRun(await readRun(client, task.id))?.outcome ?? null;
    }
    runId = next;
  }
  return null;
}

async function outcomeOfTurn(
  client: Client,
  { id, signal, turn }: { id: string; signal: AbortSignal; turn: number | undefined },
): Promise<Outcome | null> {
  const run = await readRun(client, id);
  const { state } = run.view;
  const last = state === null ? null : Math.max(state.turn.number, state.inbox.lastTurn);
  const target = turn ?? Math.max(1, last ?? 0);
  // A run that was canceled while it waited has no turn that was: the run's own outcome counts.
  if (turn === undefined && state?.ending === 'cancelled') {
    return await outcomeOfRun(client, { id, runId: run.runId, signal });
  }
  const found = endOfTurn(run.view, target);
  if (found !== null) return found;
  if (turn !== undefined && last !== null && turn > last) throw noTurn(id, turn, last);
  if (state !== null && target < state.turn.number)
    return await readEarlierTurn(client, run, target);
  for await (const { view } of followRun(client, { id, runId: run.runId, signal })) {
    const outcome = endOfTurn(view, target) ?? endOfRun({ view, terminatedWhy: '' })?.outcome;
    if (outcome !== undefined) return outcome;
  }
  return null;
}

/** Waits for the end of the run itself. Returns null if the wait ends first. */
async function outcomeOfRun(client: Client, run: FollowOptions): Promise<Outcome | null> {
  for await (const { view } of followRun(client, run)) {
    const end = endOfRun({ view, terminatedWhy: '' });
    if (end !== null) return end.outcome;
  }
  return null;
}

/** Returns null while the turn is not over, and if this segment does not show its end. */
function endOfTurn({ state, turns }: Projection, turn: number): Outcome | null {
  const ended = [...turns, ...(state?.recent ?? [])].find((one) => one.turn === turn);
  if (ended !== undefined) return ended.outcome;
  // The outcome counts when the run has recorded it: only then does it go on.
  const phase = state?.turn.number === turn ? state.turn.phase : null;
  return phase?.type === 'idle' ? phase.outcome : null;
}

async function readEarlierTurn(client: Client, run: RunReading, turn: number): Promise<Outcome> {
  let previous = previousRunId(run.events);
  while (previous !== '') {
    const segment = await readSegment(client, { id: run.id, runId: previous });
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
