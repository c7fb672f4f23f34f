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
  /** Which turn; default: the end of a task run, and the latest turn that an open run was given. */
  readonly turn?: number;
  /** Ends the waiting; the run does not notice. */
  readonly signal?: AbortSignal;
}

/**
 * Waits for the end of a turn and gives its outcome as a value, whatever its status. Follows the
 * history through all segments, so it takes no place from anybody and needs no worker to wait.
 *
 * Where the run ends before the turn has begun, the run's own end is given. Rejects with a
 * `NoRunError`, with an `InputError` for a turn that there is not, with a `ResultLostError`, and with
 * the signal's reason.
 */
export async function waitForResult(
  client: Client,
  id: string,
  { turn, signal = new AbortController().signal }: ResultOptions,
): Promise<Outcome> {
  signal.throwIfAborted();
  if (turn !== undefined && (!Number.isInteger(turn) || turn < 1)) {
    throw new InputError(`turn: ${turn} is no turn; give a whole number from 1 on`);
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

/** Reads one event, however long the run. */
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
  const wanted = turn ?? Math.max(1, last ?? 0);
  const found = endOfTurn(run.view, wanted);
  if (found !== null) return found;
  if (turn !== undefined && last !== null && turn > last) throw noTurn(id, turn, last);
  if (state !== null && wanted < state.turn.number) return await earlier(client, run, wanted);
  for await (const { view } of followRun(client, { id, runId: run.runId, signal })) {
    const outcome = endOfTurn(view, wanted) ?? endOfRun({ view, terminatedWhy: '' })?.outcome;
    if (outcome !== undefined) return outcome;
  }
  return null;
}

/** Null while it is not over, and where this segment does not tell. */
function endOfTurn({ state, turns }: Projection, turn: number): Outcome | null {
  const ended = [...turns, ...(state?.recent ?? [])].find((told) => told.turn === turn);
  if (ended !== undefined) return ended.outcome;
  return state?.turn.number === turn ? state.turn.outcome : null;
}

async function earlier(client: Client, run: RunReading, turn: number): Promise<Outcome> {
  let previous = previousRunId(run.events);
  while (previous !== '') {
    const segment = await readSegment(client, run.id, previous);
    if (segment === null) break;
    const outcome = endOfTurn(segment.view, turn);
    if (outcome !== null) return outcome;
    previous = segment.previousRunId;
  }
  throw new ResultLostError(
    `turn ${turn} of run ${visible(run.id)} is over, and the server does not keep that part of its ` +
      'history any more; what was said may be in the transcript',
  );
}

function noTurn(id: string, turn: number, last: number): InputError {
  const known = last === 0 ? 'it has none yet' : `its last one is ${last}`;
  return new InputError(`turn: run ${visible(id)} has no turn ${turn}; ${known}`);
}
