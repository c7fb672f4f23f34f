import type { Fact, Task } from '../../../src/core/run/events.js';
import { getInterruption } from '../../../src/core/state/change.js';
import { record, type Run } from '../../../src/core/interpret/loop.js';
import { nextDeadline } from '../../../src/core/rules/limits.js';
import { nextAction, isCancelable } from '../../../src/core/run/next-action.js';
import { askingWork } from '../../../src/core/requests/open-requests.js';
import type { SegmentFacts } from '../../../src/core/run/carry.js';
import type { RunConfig } from '../../../src/core/state/state.js';
import { findWork } from '../../../src/core/state/work.js';
import { chooseHumanAction, lastAction } from './human-actions.js';
import type { Dice } from './dice.js';
import { chooseCanceledEnding, chooseChildEnd, chooseEnding } from './endings.js';

/** A fact as the workflow received it, and the values that the next action depended on. */
export interface Entry {
  readonly fact: Fact;
  readonly segment: SegmentFacts;
}

/** An activity, or the run of a called agent, that is in flight. */
interface Flight {
  readonly task: Task;
  isCanceled: boolean;
}

/** A run in a random world. */
export interface World {
  readonly run: Run;
  readonly config: RunConfig;
  readonly dice: Dice;
  /** By the name of the work. */
  readonly flights: Map<string, Flight>;
  /** Called agents whose run already existed, and is followed next. */
  readonly existing: Set<string>;
  /** The facts, by segment. */
  readonly log: Entry[][];
  /** Continues the undoing of calls. Returns the times at which it can continue again. */
  readonly beside: (world: World) => readonly (number | null)[];
  /** Called after each fact. */
  readonly noted: (world: World, fact: Fact) => void;
  now: number;
  events: number;
  happenings: number;
}

/** More events than this mean that the run never ends. */
const MAX_HAPPENINGS = 2_500;

export type Observed<F = Fact> = F extends Fact ? Omit<F, 'at'> : never;

export function segmentOf(world: World): SegmentFacts {
  return { historyBytes: 0, historyEvents: world.events, suggested: false };
}

/** Records a fact, as the workflow does. An interruption cancels work in flight. */
export function note(world: World, observed: Observed): void {
  const { run } = world;
  const before = getInterruption(run.state);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the time makes it a fact
  const fact = { ...observed, at: world.now } as Fact;
  world.events += 1;
  world.log.at(-1)?.push({ fact, segment: segmentOf(world) });
  record(run, fact);
  if (getInterruption(run.state) !== before) {
    for (const flight of world.flights.values()) flight.isCanceled = true;
  }
  world.noted(world, fact);
}

/** Returns whether the segment is full, and the next one can continue all work. */
export function mustLeave(world: World): boolean {
  const { run, now } = world;
  return nextAction(run.state, segmentOf(world), now).type === 'continue-as-new';
}

/** Starts an activity or the run of a called agent. */
export function start(world: World, name: string, task: Task): void {
  world.flights.set(name, { task, isCanceled: getInterruption(world.run.state) !== null });
  note(world, { type: 'scheduled', task });
}

/** Counts an event. Throws if there are so many that the run never ends. */
export function countHappening(world: World): void {
  world.happenings += 1;
  if (world.happenings > MAX_HAPPENINGS) throw new Error('the run never ends');
}

/** Lets one thing happen: work ends, a person decides, or time passes until one of these times. */
export function happen(world: World, times: readonly (number | null)[]): void {
  const { run, dice, flights } = world;
  countHappening(world);
  const later = [...times, ...world.beside(world), nextExpiry(world)];
  cancelUnwanted(world);
  const action = chooseHumanAction(run.state, dice, { serial: world.happenings, now: world.now });
  if (action !== null) return note(world, action);
  const deadline = nextDeadline(run.state);
  const next = Math.min(...later.map((time) => time ?? Infinity), deadline?.at ?? Infinity);
  if (flights.size > 0 && !dice.chance(6)) return land(world);
  if (next < Infinity) return pass(world, next);
  if (flights.size > 0) return land(world);
  note(world, lastAction(run.state, world.happenings, world.now));
}

/** Returns when the next request expires, as the workflow's timer does; null if none does. */
function nextExpiry({ run: { state } }: World): number | null {
  const times = askingWork(state).flatMap(({ request }) => request.expiresAt ?? []);
  return times.length === 0 ? null : Math.min(...times);
}

/** After `resume`, and at the end of a segment, a probe that has not begun to act is canceled. */
function cancelUnwanted(world: World): void {
  const { run, flights } = world;
  const isLeaving = mustLeave(world);
  for (const [name, flight] of flights) {
    const work = findWork(run.state, name);
    if (work === undefined || !isCancelable(run.state, work)) continue;
    if (work.resumed === true || isLeaving) flight.isCanceled = true;
  }
}

function pass(world: World, until: number): void {
  world.now = Math.max(world.now, until);
  note(world, { type: 'clock' });
}

/** Ends a piece of work in flight. */
function land(world: World): void {
  const { flights, dice, config } = world;
  world.now += dice.pick([10, 3_000]);
  const names = [...flights.keys()];
  const name = names[dice.roll(names.length)] ?? '';
  const flight = flights.get(name);
  if (flight === undefined) return;
  flights.delete(name);
  const { task, isCanceled } = flight;
  if (task.activity === 'agent') {
    const isKnown = !isCanceled && dice.chance(4);
    if (isKnown) {
      world.existing.add(name);
      note(world, { type: 'child-existed', call: name });
    } else note(world, { ...chooseChildEnd(dice), call: name });
    return;
  }
  const choose = isCanceled ? chooseCanceledEnding : chooseEnding;
  note(world, { ...choose(dice, task, config), task });
}
