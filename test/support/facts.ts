import type { Fact, Task } from '../../src/core/run/events.js';
import { record, type Run } from '../../src/core/interpret/loop.js';
import type { RecordedReply } from '../../src/core/transcript/outcome.js';
import type { RunState } from '../../src/core/state/state.js';
import { findWork } from '../../src/core/state/work.js';
import { failure } from './turn.js';
import { getOpenBatch } from '../../src/core/state/turn.js';

/** Returns the state after facts, in order. */
export function after(state: RunState, ...facts: readonly Fact[]): RunState {
  const run: Run = { state };
  for (const fact of facts) record(run, fact);
  return run.state;
}

/** The activity of a tool call. `rest`: further fields of its input. */
export function toolTask(state: RunState, index: number, rest: object = {}): Task {
  const call = getOpenBatch(state)?.calls[index];
  return { activity: 'runTool', input: { call, key: `key ${index}`, ...rest } };
}

export const model = (input: object = {}): Task => ({ activity: 'callModel', input });

export const scheduled = (task: Task, at = 0): Fact => ({ type: 'scheduled', task, at });

export const completed = (task: Task, result: unknown, at = 0): Fact => ({
  type: 'completed',
  task,
  result,
  at,
});

export const failed = (
  task: Task,
  message: string,
  problem: object | null = null,
  at = 0,
): Fact => ({
  type: 'failed',
  task,
  failure: failure(message, problem),
  at,
});

export const canceled = (task: Task, at = 0): Fact => ({ type: 'cancelled', task, at });

/** A failure that blocks work. */
export const blocked = (task: Task, reason: string, rest: object = {}, at = 0): Fact =>
  failed(task, `no ${reason}`, { type: 'blocked', reason, ...rest }, at);

export const update = (name: string, input: object = {}, id = name, at = 0): Fact => ({
  type: 'update',
  name,
  id,
  input,
  at,
});

export const CANCEL: Fact = { type: 'cancel-requested', at: 0 };

/** Returns the state after a model call with this reply. */
export function replied(state: RunState, reply: RecordedReply, at = 0): RunState {
  return after(state, scheduled(model(), at), completed(model(), reply, at));
}

/**
 * Returns work by name, without its name, and with `as` only while it is in flight; null if it does
 * not exist.
 */
export function workOf(state: RunState, name: string): Readonly<Record<string, unknown>> | null {
  const found = findWork(state, name);
  if (found === undefined) return null;
  const { name: _, as, ...work }: Partial<Record<string, unknown>> = { ...found };
  return { ...work, ...(work['phase'] === 'in-flight' && { as }) };
}

/** Returns until when work is blocked, Unix time in ms; undefined if it is not blocked. */
export function blockedUntil(state: RunState, name: string): number | undefined {
  return findWork(state, name)?.block?.until;
}

/** Returns the texts of the tool messages. */
export function results(state: RunState): readonly string[] {
  return state.transcript.messages.filter(({ role }) => role === 'tool').map(({ text }) => text);
}
