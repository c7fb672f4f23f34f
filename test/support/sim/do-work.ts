import { findTool } from '../../../src/core/calls/batch.js';
import type { Task } from '../../../src/core/run/events.js';
import { getInterruption } from '../../../src/core/state/change.js';
import type { ToolCall } from '../../../src/core/transcript/messages.js';
import {
  NEVER_FULL,
  nextAction,
  nextWorkStep,
  type WorkStep,
} from '../../../src/core/run/next-action.js';
import { openRequests } from '../../../src/core/requests/open-requests.js';
import { callOfWork, findWork, isUndo, UNDO, type Work } from '../../../src/core/state/work.js';
import { apply, toEvents } from '../../../src/core/interpret/loop.js';
import { requestDue } from '../../../src/core/requests/raise-requests.js';
import { happen, mustLeave, segmentOf, start, type World } from './world.js';
import { openCallById } from '../../../src/core/state/turn.js';

type StartStep = Extract<WorkStep, { type: 'start' }>;

/** The activities of a piece of work, as the workflow starts them. */
export interface WorkSpec {
  readonly name: string;
  readonly activity: (step: StartStep, work: Work | undefined) => Task;
}

/** The activities of a tool call. */
export function callSpec(call: ToolCall): WorkSpec {
  const input = { call, key: `key of ${call.id}` };
  return {
    name: call.id,
    activity: (step) => {
      if (step.as === 'check') return checkOf(call.id, step);
      if (step.as === 'verify') return { activity: 'runFunction', input };
      const blocked = step.as !== 'attempt' && { blocked: step.block?.reason };
      return {
        activity: 'runTool',
        input: { ...input, ...blocked, ...(step.as === 'find' && { find: true }) },
      };
    },
  };
}

/** The activities of other work, with this input. */
export function workSpec(name: string, activity: string, input: object): WorkSpec {
  return {
    name,
    activity: (step) => {
      if (step.as === 'check') return checkOf(name, step);
      const blocked = step.as === 'probe' && { blocked: step.block?.reason };
      return { activity, input: { ...input, ...blocked } };
    },
  };
}

function checkOf(name: string, { block }: StartStep): Task {
  return { activity: 'checkBlob', input: { sha256: block?.blob, work: name } };
}

/** Work in progress: when it can continue, or null if that is unknown. */
interface Active {
  readonly spec: WorkSpec;
  isFirst: boolean;
  until: number | null;
}

const FIRST: StartStep = { type: 'start', as: 'attempt' };
/** Pieces of work that are in progress at the same time. */
const LANES = 5;

/** Executes pieces of work until they are over, as `doWork` and `runCalls` of the workflow do. */
export function doAll(
  world: World,
  pieces: readonly WorkSpec[],
  { areCalls = false }: { readonly areCalls?: boolean } = {},
): void {
  const waiting = [...pieces];
  let active: Active[] = [];
  for (;;) {
    if (areCalls) raiseRequests(world);
    if (areCalls) waiting.push(...decidedCalls(world, [...waiting, ...active.map(piece)]));
    while (active.length < LANES && waiting.length > 0) {
      const next = waiting.shift();
      if (next === undefined || (areCalls && !mayBegin(world, next))) continue;
      active.push({ spec: next, isFirst: true, until: null });
    }
    const still = active.filter((one) => advance(world, one));
    const isFree = still.length < active.length;
    active = still;
    if (isFree && waiting.length > 0) continue;
    if (active.length === 0) return;
    happen(
      world,
      active.map(({ until }) => until),
    );
  }
}

const piece = ({ spec: one }: Active): WorkSpec => one;

/** Raises the requests that have become due while calls run. */
function raiseRequests(world: World): void {
  const { run, now } = world;
  const action = nextAction(run.state, segmentOf(world), now);
  if (action.type !== 'raise-requests') return;
  for (const event of toEvents(action, now)) apply(run, event);
}

/** Returns the calls that a decision allows to begin meanwhile. */
function decidedCalls(world: World, known: readonly WorkSpec[]): readonly WorkSpec[] {
  const { state } = world.run;
  if (mustLeave(world)) return [];
  const action = nextAction(state, NEVER_FULL, world.now);
  if (action.type !== 'run-calls') return [];
  const names = new Set(known.map(({ name }) => name));
  const begun = action.calls.filter(({ id }) => !names.has(id) && findWork(state, id));
  return begun.map(callSpec);
}

/** Checks the proposed decision about this work, if there is one. */
export function checkProposal(world: World, name: string): void {
  startCheck(world, name);
  while (world.flights.has(name)) happen(world, [null]);
}

/** Starts the check of the proposed decision about this work. Returns whether there is one. */
function startCheck(world: World, name: string): boolean {
  const { state } = world.run;
  const { proposal, request: asked } = findWork(state, name) ?? {};
  if (proposal === undefined || getInterruption(state) !== null) return false;
  const request = openRequests(state, 'run').find(({ id }) => id === asked?.id);
  const call = callOfWork(state, name);
  const { decision } = proposal;
  const input = { work: name, request, decision, ...(call && { call }) };
  start(world, name, { activity: 'checkDecision', input });
  return true;
}

/** Undoes calls in parallel with the run. Returns the times at which it can continue. */
export function undoBeside(world: World): readonly (number | null)[] {
  return world.run.state.work.filter(isUndo).map((work) => {
    const { name } = work;
    const active: Active = { spec: undoSpec(world, name), isFirst: false, until: null };
    advance(world, active);
    return active.until;
  });
}

function undoSpec({ run }: World, name: string): WorkSpec {
  const kept = run.state.kept?.find(({ call }) => name === `${UNDO}${call.id}`);
  const input = { function: 'undo', call: kept?.call, key: kept?.key };
  return {
    name,
    activity: (_, work) => ({
      activity: 'runFunction',
      input: { ...input, ...(work?.approved && { approved: true }) },
    }),
  };
}

function mayBegin(world: World, { name }: WorkSpec): boolean {
  const { state } = world.run;
  if (getInterruption(state) !== null) return false;
  const call = openCallById(state, name);
  if (call !== undefined && requestDue(state, call, world.now) !== null) return false;
  const isNew = findWork(state, name) === undefined;
  return !isNew || (!state.paused && !mustLeave(world));
}

/** Takes the steps that can be taken now. Returns false when nothing is left to do. */
function advance(world: World, active: Active): boolean {
  const { spec: doing } = active;
  const { name } = doing;
  active.until = null;
  for (;;) {
    if (world.flights.has(name)) return true;
    const { state } = world.run;
    const work = findWork(state, name);
    if (work === undefined && !active.isFirst) return false;
    if (startCheck(world, name)) {
      active.isFirst = false;
      return true;
    }
    if (work?.phase === 'asking') return false;
    if (isAgentCall(world, name)) {
      active.isFirst = false;
      callAgent(world, name);
      continue;
    }
    if (work !== undefined && mustLeave(world)) return false;
    const step = work === undefined ? FIRST : nextWorkStep(state, work, world.now);
    active.isFirst = false;
    if (step.type === 'stop') return false;
    if (step.type === 'wait') {
      active.until = step.until;
      return true;
    }
    start(world, name, doing.activity(step, work));
  }
}

function isAgentCall({ run: { state } }: World, name: string): boolean {
  const call = openCallById(state, name);
  return call !== undefined && findTool(state, call.name)?.kind === 'agent';
}

/** Starts the run of a called agent. One that existed before is followed, and may run again. */
function callAgent(world: World, call: string): void {
  const follow = { activity: 'followRun', input: { run: `caller/${call}-0123456789abcdef` } };
  const isKnown = world.existing.delete(call);
  start(world, call, isKnown ? follow : { activity: 'agent', input: { call } });
}
