import { nextAction } from '../core/next-action.js';
import type { RunState } from '../core/state.js';
import { carriedState } from './projection/carried-state.js';
import { endOfRun } from './end-of-run.js';
import type { HistoryEvent } from './decode-event.js';
import { createProjector, type BlockedSince, type Projection } from './projection.js';
import type { DurableStep } from './durable-events.js';
import { messageSteps, type MessageProgress } from './message-steps.js';

/** Takes the facts of one segment in order and gives the steps that each of them tells of. */
export type StepEmitter = (fact: HistoryEvent) => readonly DurableStep[];

/** What has been told already. */
interface Told extends MessageProgress {
  readonly blocked: ReadonlyMap<string, BlockedSince>;
  readonly paused: boolean;
  readonly wait: WaitBegun | null;
}

type WaitBegun = Extract<DurableStep, { type: 'wait-begun' }>;

const NOTHING: Told = { next: 0, turn: 0, ended: 0, blocked: new Map(), paused: false, wait: null };
/** What is scheduled only within a turn that has truly begun. */
const WORK: readonly string[] = ['callModel', 'retrieveDocuments', 'runTool', 'runFunction'];

/**
 * Tells a segment as steps, by what each fact changes in the retold run. A pure function of the facts,
 * so whoever begins at the segment's start hears the same.
 *
 * A turn that should begin is told when something shows that it has: the run may as well go on in a
 * new segment first, and then it begins there. What is handed over says how far a segment came.
 */
export function createStepEmitter(runId: string): StepEmitter {
  const projector = createProjector();
  const begunCalls = new Set<string>();
  let told = NOTHING;
  return (fact) => {
    const begun = fact.type === 'started' ? carriedState(fact.carried) : null;
    if (begun !== null) told = toldIn(begun);
    projector.push(fact);
    const view = projector.settled();
    const over = fact.type === 'ended' ? carriedState(fact.carried) : null;
    const said = messageSteps(
      over === null ? view : handedOver(view, over),
      told,
      reached(fact, view),
    );
    const now: Told = { ...(over === null ? toldBy(view) : toldIn(over)), ...said.told };
    const steps = [
      ...opening(fact, view, { begun, runId }),
      ...unblocked(told, now, view),
      ...said.steps,
      ...callBegun(fact, view, begunCalls),
      ...changes(told, now, view),
    ];
    told = now;
    return steps;
  };
}

/** The turn that has begun for certain; 0 where the fact does not say. */
function reached(fact: HistoryEvent, { state }: Projection): number {
  if (fact.type === 'memo') return Number(fact.fields['turn'] ?? 0);
  if (fact.type === 'ended') return carriedState(fact.carried)?.turn.number ?? 0;
  const isWork = fact.type === 'scheduled' && WORK.includes(fact.activity);
  return isWork ? (state?.turn.number ?? 0) : 0;
}

/** What was said, as far as a segment came: no event tells of what the run did just before it left. */
function handedOver(
  { said, turns, paid }: Projection,
  state: RunState,
): Pick<Projection, 'said' | 'turns' | 'paid'> {
  const { next, messages } = state.transcript;
  const known = new Map([...said, ...messages].map((message) => [message.n, message]));
  const all = [...known.values()].filter(({ n }) => n < next);
  return { said: all.toSorted((one, other) => one.n - other.n), turns, paid };
}

function toldBy({ state, blocked, ended }: Projection): Told {
  if (state === null) return { ...NOTHING, blocked };
  const isIdle = blocked.size === 0 && ended === null;
  const told = toldIn(state);
  return { ...told, blocked, wait: isIdle ? told.wait : null };
}

function toldIn(state: RunState): Told {
  const { transcript, turn, paused } = state;
  const said = { next: transcript.next, turn: turn.number, ended: 0 };
  return { ...NOTHING, ...said, paused, wait: waitOf(state) };
}

function waitOf(state: RunState): WaitBegun | null {
  // Whether it waits here or in a new segment makes no difference to a reader.
  const action = nextAction(state);
  if (action.type === 'await-message') return { type: 'wait-begun', for: 'message' };
  if (action.type !== 'await-time') return null;
  return { type: 'wait-begun', for: 'time', until: action.until };
}

function opening(
  fact: HistoryEvent,
  { input }: Projection,
  { begun, runId }: { begun: RunState | null; runId: string },
): readonly DurableStep[] {
  if (fact.type !== 'started') return [];
  if (begun !== null) return [{ type: 'segment-begun', segment: begun.segments, runId }];
  return [{ type: 'run-started', agent: input?.agent ?? '', open: input?.open === true }];
}

/** A probe of a blocked call is no second beginning. */
function callBegun(
  fact: HistoryEvent,
  { state, inFlight }: Projection,
  begunCalls: Set<string>,
): readonly DurableStep[] {
  const flying = inFlight.get(fact.id);
  if (!flying?.call || flying.activity === 'runFunction') return [];
  if (begunCalls.has(flying.call.id)) return [];
  begunCalls.add(flying.call.id);
  return [{ type: 'call-begun', turn: state?.turn.number ?? 0, call: flying.call }];
}

/** Whatever was in the way of a run that ends, its end says. */
function unblocked(before: Told, now: Told, { ended }: Projection): readonly DurableStep[] {
  if (ended !== null) return [];
  const freed = [...before.blocked.keys()].filter((on) => !now.blocked.has(on));
  return freed.map((on) => ({ type: 'work-unblocked', on }));
}

function changes(before: Told, now: Told, view: Projection): readonly DurableStep[] {
  const end = endOfRun({ view, terminatedWhy: '' });
  if (end !== null) return [{ type: 'run-ended', ...end }];
  const blocked = [...now.blocked].filter(([on, { reason }]) => {
    return before.blocked.get(on)?.reason !== reason;
  });
  const waits = now.wait !== null && JSON.stringify(now.wait) !== JSON.stringify(before.wait);
  return [
    ...blocked.map(([on, why]) => {
      const { reason, message } = why;
      return { type: 'work-blocked', on, reason, message } as const;
    }),
    ...(now.paused && !before.paused ? [{ type: 'run-paused' } as const] : []),
    ...(before.paused && !now.paused ? [{ type: 'run-resumed' } as const] : []),
    ...(waits && now.wait !== null ? [now.wait] : []),
  ];
}
