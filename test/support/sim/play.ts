import type { Fact } from '../../../src/core/run/events.js';
import { isLoaded } from '../../../src/core/rules/limits.js';
import { apply, runLoop, type Effects } from '../../../src/core/interpret/loop.js';
import {
  FIRST_MESSAGE_MS,
  nextAction,
  type TimedAction,
} from '../../../src/core/run/next-action.js';
import type { Outcome } from '../../../src/core/transcript/outcome.js';
import { firstState } from '../../../src/core/segments/start.js';
import { countOverflow } from '../../../src/core/run/carry.js';
import { parseCarriedState, STATE_VERSION } from '../../../src/core/segments/migrations.js';
import type { FinishedTurn, RunState } from '../../../src/core/state/state.js';
import { chunkedLength } from '../../../src/core/transcript/transcript.js';
import { findWork, WORK } from '../../../src/core/state/work.js';
import { chooseConfig } from './agent.js';
import { createDice, type Dice } from './dice.js';
import { checkProposal, doAll, workSpec, callSpec, undoBeside } from './do-work.js';
import {
  countHappening,
  happen,
  mustLeave,
  note,
  segmentOf,
  type Entry,
  type World,
} from './world.js';

/** A simulated run, after its end. */
export interface Played {
  readonly first: RunState;
  readonly last: RunState;
  /** Null for a run whose agent could not be loaded. */
  readonly outcome: Outcome | null;
  readonly turns: readonly FinishedTurn[];
  /** The facts, by segment. */
  readonly log: readonly (readonly Entry[])[];
  /** What each segment except the last one passed on. */
  readonly carried: readonly RunState[];
}

/** The agent cannot be loaded, so the run fails without a turn. */
class NotBegun extends Error {}

export interface Watching {
  /** Called after each fact. */
  readonly noted?: (world: World, fact: Fact) => void;
  /** Passes the state through JSON after each fact. */
  readonly isSaved?: boolean;
}

const STARTED_AT = 1_000;
/** When an open run without a message is closed. */
const UNUSED_AT = STARTED_AT + FIRST_MESSAGE_MS;

/** Plays a run in a random world to its end. */
export async function play(numbers: readonly number[], watching: Watching = {}): Promise<Played> {
  const dice = createDice(numbers);
  const config = chooseConfig(dice);
  const first = chooseFirst(dice);
  const { noted = () => undefined, isSaved = false } = watching;
  const world: World = {
    run: { state: first },
    config,
    dice,
    flights: new Map(),
    existing: new Set(),
    log: [[]],
    now: first.startedAt,
    events: 0,
    happenings: 0,
    beside: undoBeside,
    noted: (now, fact) => {
      noted(now, fact);
      if (isSaved) now.run.state = carry(now.run.state);
    },
  };
  const turns: FinishedTurn[] = [];
  const carried: RunState[] = [];
  const effects: Effects = {
    now: () => world.now,
    segment: () => segmentOf(world),
    perform: async (action) => perform(world, action, carried),
    changed: () => undefined,
    observe: ({ turn }, action) => {
      countHappening(world);
      if (action.type === 'record-turn') turns.push({ turn: turn.number, outcome: action.outcome });
    },
  };
  const outcome = await runLoop(world.run, effects).catch((error: unknown) => {
    if (error instanceof NotBegun) return null;
    throw error;
  });
  return { first, last: world.run.state, outcome, turns, log: world.log, carried };
}

function chooseFirst(dice: Dice): RunState {
  const open = !dice.chance(3);
  const archive = dice.chance(2);
  const message = !open || !dice.chance(4) ? { message: 'go' } : {};
  const by = dice.chance(3) ? { by: dice.pick(['ann', 'bob']) } : {};
  const unattended = dice.chance(12) ? ({ unattended: 'deny' } as const) : {};
  return firstState({
    input: { agent: 'test', open, archive, ...message, ...by, ...unattended },
    at: STARTED_AT,
    root: 'r',
    firstRunId: 'first',
  });
}

/** Returns the state as the next segment receives it. Throws if that segment would refuse it. */
export function carry(state: RunState): RunState {
  const read = parseCarriedState(
    JSON.parse(JSON.stringify({ schema: STATE_VERSION, state, shown: '' })),
  );
  if (!('carried' in read)) throw new Error(read.problem);
  return read.carried.state;
}

function perform(world: World, action: TimedAction, carried: RunState[]): void {
  const { run } = world;
  switch (action.type) {
    case 'call-model':
      return doAll(world, [
        workSpec('model', 'callModel', action.closing ? { closing: true } : {}),
      ]);
    case 'compact':
      return doAll(world, [workSpec('model', 'callModel', { compact: action.cut })]);
    case 'run-calls':
      return doAll(world, action.calls.map(callSpec), { areCalls: true });
    case 'retrieve':
      return doAll(world, [workSpec('retrieve', 'retrieveDocuments', {})]);
    case 'archive': {
      const { cut, must } = action;
      const input = { archive: unarchived(run.state), chunk: null, cut, ...(must && { must }) };
      return doAll(world, [workSpec('archive', 'archiveMessages', input)]);
    }
    case 'check-decision':
      return checkProposal(world, WORK.limit);
    case 'load':
    case 'refresh-agent':
      return loadAgent(world);
    case 'continue-as-new':
      return continueAsNew(world, carried);
    case 'await-time':
      return awaitChange(world, action, action.until);
    case 'await-message':
      return awaitChange(world, action, run.state.inbox.lastTurn > 0 ? null : UNUSED_AT);
    default:
      return awaitChange(world, action, null);
  }
}

function awaitChange(world: World, { type }: TimedAction, until: number | null): void {
  do happen(world, [until !== null && until > world.now ? until : null]);
  while (nextAction(world.run.state, segmentOf(world), world.now).type === type);
}

function loadAgent(world: World): void {
  const { run, dice, config } = world;
  if (findWork(run.state, 'agent') === undefined) {
    const task = { activity: 'loadAgent', input: { local: true } };
    if (!dice.chance(6)) note(world, { type: 'completed', task, result: config });
    else {
      const details = !dice.chance(4) ? [] : [{ type: 'failed', reason: 'input', message: 'no' }];
      const failure = { message: 'not here', type: 'Failed', timedOut: false, details };
      note(world, { type: 'failed', task, failure });
    }
  }
  if (findWork(run.state, 'agent') !== undefined) {
    doAll(world, [workSpec('agent', 'loadAgent', {})]);
  }
  const isOver = findWork(run.state, 'agent') === undefined && run.state.ending !== 'cancelled';
  if (isOver && !isLoaded(run.state)) throw new NotBegun();
}

function unarchived({ archives, archived, transcript }: RunState) {
  return archives && transcript.next > archived ? { from: archived, to: transcript.next } : null;
}

function continueAsNew(world: World, carried: RunState[]): void {
  const { run } = world;
  const archive = unarchived(run.state);
  const count = countOverflow(run.state, 400);
  const from = chunkedLength(run.state.transcript);
  if (archive !== null || count > 0) {
    const chunk = count === 0 ? null : { from, to: from + count };
    doAll(world, [workSpec('archive', 'archiveMessages', { archive, chunk })]);
  }
  if (!mustLeave(world)) return;
  carried.push(run.state);
  apply(run, { type: 'segment-begun' });
  run.state = carry(run.state);
  world.events = 0;
  world.log.push([]);
  // The first workflow task of the segment.
  note(world, { type: 'clock' });
}
