import type { Fact, Task } from '../../src/core/run/events.js';
import { toEvents, isAtOnce } from '../../src/core/interpret/loop.js';
import { NEVER_FULL, nextAction } from '../../src/core/run/next-action.js';
import { reduce } from '../../src/core/run/reduce.js';
import { openRequests } from '../../src/core/requests/open-requests.js';
import type { Request } from '../../src/core/transcript/request.js';
import type { RunState } from '../../src/core/state/state.js';
import type { RequestedCall } from '../../src/core/transcript/messages.js';
import { findWork } from '../../src/core/state/work.js';
import { replied, update } from './facts.js';
import { callReply, begun, config } from './scripts.js';

/** The id of the only call in `asked`. */
export const ID = 'call_1_1_0';

/** Returns a run whose model calls this tool once. */
export function runWithCall(
  name: string,
  rest: Partial<RequestedCall> = {},
  start: RunState = begun(config()),
): RunState {
  const [call] = callReply([name]).calls ?? [];
  return replied(start, { ...callReply(), calls: call ? [{ ...call, ...rest }] : [] });
}

/** Returns the public form of the request about this work. */
export function requestOf(state: RunState, name = ID): Request {
  const id = findWork(state, name)?.request?.id;
  const request = openRequests(state, 'run').find((one) => one.id === id);
  if (request === undefined) throw new Error(`no request about ${name}`);
  return request;
}

/** Returns the update that decides the request about this work. */
export function decision(
  state: RunState,
  as: string,
  rest: object = {},
  { name = ID, at = 0 } = {},
): Fact {
  const { id: request, digest } = requestOf(state, name);
  return update('resolve', { request, digest, as, ...rest }, `u ${request}`, at);
}

/** The worker's check of a decision about this work. */
export function checkOf(state: RunState, name = ID): Task {
  const request = { id: findWork(state, name)?.request?.id };
  return { activity: 'checkDecision', input: { work: name, request } };
}

/** Returns the state after the next action, which takes no time. */
export function afterNextAction(state: RunState, at = 0): RunState {
  const action = nextAction(state, NEVER_FULL, at);
  if (!isAtOnce(action)) throw new Error(action.type);
  return toEvents(action, at).reduce(reduce, state);
}
