import { type Interruption, inTurn } from '../../src/core/state/turn.js';
import type { Fact, Failure, Task } from '../../src/core/run/events.js';
import { apply, record, runLoop, type Effects, type Run } from '../../src/core/interpret/loop.js';
import { NEVER_FULL, type TimedAction } from '../../src/core/run/next-action.js';
import type { RunState } from '../../src/core/state/state.js';
import type { ToolCall } from '../../src/core/transcript/messages.js';
import type { ModelCall, World } from './world.js';

/** More actions than this mean that a run never ends. */
const MAX_ACTIONS = 3_000;

/** A run in a scripted world, and the world's clock in ms. */
interface Stage {
  readonly run: Run;
  readonly world: World;
  now: number;
}

/** Returns the effects of a run in a scripted world. They record facts as the workflow does. */
export function effectsOf(run: Run, world: World): Effects {
  const stage: Stage = { run, world, now: 0 };
  let actions = 0;
  return {
    now: () => stage.now,
    segment: () => world.segment?.() ?? NEVER_FULL,
    perform: (action) => perform(stage, action),
    changed: () => undefined,
    observe: (state, action) => {
      actions += 1;
      if (actions > MAX_ACTIONS) throw new Error('the run never ends');
      world.observe?.(state, action);
    },
  };
}

/** Runs a run to its end and returns its last state. */
export async function runTurn(from: RunState, world: World): Promise<RunState> {
  const run: Run = { state: from };
  await runLoop(run, effectsOf(run, world));
  return run.state;
}

/** Returns a failure as the history records it, with a problem that names its reason. */
export function failure(message: string, problem: object | null = null): Failure {
  const details = problem === null ? [] : [{ message, ...problem }];
  return { message, type: 'Failed', timedOut: false, details };
}

function perform(stage: Stage, action: TimedAction): Promise<void> {
  const { world } = stage;
  switch (action.type) {
    case 'call-model':
      return callModel(stage, { closing: action.closing });
    case 'compact':
      return callModel(stage, { closing: false, cut: action.cut });
    case 'run-calls':
      return runCalls(stage, action.calls);
    case 'retrieve':
      return retrieve(stage);
    case 'archive':
      return archive(stage, action);
    case 'refresh-agent':
      return refreshAgent(stage);
    case 'await-time':
      return awaitTime(stage, action.until);
    case 'continue-as-new':
      return nextSegment(stage);
    default: {
      if (world.awaitChange === undefined) throw new Error(`${action.type}: nothing ends it`);
      return awaitChange(stage, world.awaitChange(action));
    }
  }
}

type Observed<F = Fact> = F extends Fact ? Omit<F, 'at'> : never;

function note({ run, now }: Stage, observed: Observed): void {
  record(run, { ...observed, at: now });
}

/** Interrupts the run as a person does, or as the deadline of a turn does. */
function interrupt(stage: Stage, by: Interruption | null): void {
  const { run } = stage;
  if (by === 'cancel') note(stage, { type: 'cancel-requested' });
  else if (by === 'cancelTurn') {
    const id = `cancel turn at message ${run.state.transcript.next}`;
    note(stage, { type: 'update', name: 'cancelTurn', id, input: {} });
  } else if (by === 'wallMs' && inTurn(run.state)) {
    apply(run, { type: 'interruption-requested', by });
  }
}

async function callModel(stage: Stage, call: ModelCall): Promise<void> {
  const { closing, cut } = call;
  const input = { ...(closing && { closing }), ...(cut !== undefined && { compact: cut }) };
  const task: Task = { activity: 'callModel', input };
  note(stage, { type: 'scheduled', task });
  const end = await stage.world.callModel(stage.run.state, call);
  switch (end.type) {
    case 'replied':
      interrupt(stage, end.interrupted ?? null);
      return note(stage, { type: 'completed', task, result: end.reply });
    case 'failed':
      return note(stage, { type: 'failed', task, failure: failure(end.message, end) });
    case 'interrupted':
      interrupt(stage, end.by);
      return note(stage, { type: 'cancelled', task });
  }
}

async function runCalls(stage: Stage, calls: readonly ToolCall[]): Promise<void> {
  const { run, world } = stage;
  if (world.runCalls === undefined) throw new Error('no call is expected');
  const by = await world.runCalls(run.state, calls, (id, result) => {
    const call = calls.find((one) => one.id === id);
    const task: Task = { activity: 'runTool', input: { call, key: `key of ${id}` } };
    note(stage, { type: 'scheduled', task });
    note(stage, { type: 'completed', task, result });
  });
  interrupt(stage, by);
}

const UNKNOWN = { type: 'failed', reason: 'error' };

async function retrieve(stage: Stage): Promise<void> {
  const task: Task = { activity: 'retrieveDocuments', input: {} };
  note(stage, { type: 'scheduled', task });
  const end = (await stage.world.retrieve?.()) ?? { type: 'retrieved', documents: [] };
  switch (end.type) {
    case 'retrieved':
      interrupt(stage, end.interrupted ?? null);
      return note(stage, { type: 'completed', task, result: { documents: end.documents } });
    case 'failed':
      return note(stage, { type: 'failed', task, failure: failure(end.message, UNKNOWN) });
    case 'interrupted':
      interrupt(stage, end.by);
      return note(stage, { type: 'cancelled', task });
  }
}

async function archive(
  stage: Stage,
  { cut, must }: Extract<TimedAction, { type: 'archive' }>,
): Promise<void> {
  const { archived: from, transcript } = stage.run.state;
  const range = { from, to: transcript.next };
  const input = { archive: range, chunk: null, cut, ...(must && { must }) };
  const task: Task = { activity: 'archiveMessages', input };
  note(stage, { type: 'scheduled', task });
  const isStored = (await stage.world.archive?.()) ?? true;
  if (isStored) note(stage, { type: 'completed', task, result: {} });
  else note(stage, { type: 'failed', task, failure: failure('the store is down') });
}

async function refreshAgent(stage: Stage): Promise<void> {
  const task: Task = { activity: 'loadAgent', input: { local: true } };
  const config = (await stage.world.refreshAgent?.()) ?? null;
  const gone = failure('no such agent', { type: 'failed', reason: 'input' });
  if (config === null) note(stage, { type: 'failed', task, failure: gone });
  else note(stage, { type: 'completed', task, result: config });
}

async function awaitTime(stage: Stage, until: number): Promise<void> {
  const by = (await stage.world.awaitTime?.()) ?? null;
  if (by === null) stage.now = Math.max(stage.now, until);
  interrupt(stage, by);
}

async function awaitChange(stage: Stage, change: Promise<Interruption | null>): Promise<void> {
  interrupt(stage, await change);
}

async function nextSegment({ world }: Stage): Promise<void> {
  await world.continueAsNew?.();
}
