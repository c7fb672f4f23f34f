import { isObject } from '../core/json.js';
import type { Resolution } from '../core/calls/call-result.js';
import { decidedBefore } from '../core/decisions.js';
import type { RunState } from '../core/state.js';
import { show } from '../core/text/format-value.js';
import { findWork } from '../core/work/work.js';

/** A result that a person gives goes into history and prompt as it is, so its JSON is bounded. */
const MAX_RESULT_CHARACTERS = 32_000;

/**
 * Returns why the run refuses a person's decision about a call, or null. The first decision about a
 * call wins. `update`: the id of the update.
 */
export function resolutionProblem(
  state: RunState,
  resolution: Resolution,
  update: string,
): string | null {
  if (!isObject(resolution)) {
    return `resolve: expected {call, as, result?}, got ${show(resolution)}`;
  }
  if (decidedBefore(state.decisions, update) !== undefined) return null;
  const { call, as } = resolution;
  if (as === 'accept') return acceptanceProblem(state, resolution);
  if (!['happened', 'retry', 'abandon'].includes(as)) {
    return `as: expected one of happened, retry, abandon, accept; got ${show(as)}`;
  }
  const size = jsonSize(resolution.result);
  if (size > MAX_RESULT_CHARACTERS) {
    return `result: expected at most ${MAX_RESULT_CHARACTERS} characters of JSON, got ${size}; give a summary`;
  }
  const work = findWork(state, call);
  if (work?.phase === 'asking') {
    if (work.about === 'outcome_unknown' || as !== 'happened') return null;
    return `as: expected retry or abandon for ${call}, which was not executed; got "happened"`;
  }
  if (state.decisions?.some((made) => made.what === 'resolve' && made.call === call)) {
    return `call: ${call} is already resolved`;
  }
  const open = state.work.flatMap(({ name, phase }) => (phase === 'asking' ? [name] : []));
  const known = open.length === 0 ? 'no call waits for a decision' : `waiting: ${open.join(', ')}`;
  return `call: ${JSON.stringify(call)} does not wait for a decision; ${known}`;
}

function jsonSize(value: unknown): number {
  return value === undefined ? 0 : JSON.stringify(value).length;
}

/** A person accepts exactly the form of the changed tool that was shown. */
function acceptanceProblem(state: RunState, { call, definition }: Resolution): string | null {
  const offered = findWork(state, call)?.block?.definition;
  if (offered === undefined) {
    const waiting = state.work.flatMap(({ name, block }) => (block?.definition ? [name] : []));
    const known = waiting.length === 0 ? 'none does' : `waiting: ${waiting.join(', ')}`;
    return `call: ${JSON.stringify(call)} does not wait for a changed tool; ${known}`;
  }
  if (definition === offered) return null;
  return `definition: expected "${offered}", the tool's current form, got ${show(definition ?? null)}; read the run's status again`;
}
