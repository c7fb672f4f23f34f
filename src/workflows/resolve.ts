import { setHandler } from '@temporalio/workflow';
import type { Resolution } from '../core/calls/call-result.js';
import { isObject } from '../core/json.js';
import { apply } from '../core/loop.js';
import { show } from '../core/text/format-value.js';
import { resolveUpdate, type ActorClaim } from './messages.js';
import { claimProblem, currentUpdate, recordDecision } from './record-decision.js';
import { refuse } from './refuse.js';
import { retryBlocked, type RunContext } from './run-context.js';

/** A result that a person gives goes into history and prompt as it is, so its JSON is bounded. */
const MAX_RESULT_CHARACTERS = 32_000;

/** Handles the update `resolve`: a person's decision about a call that `decisions.ts` waits for. */
export function handleResolve(run: RunContext): void {
  setHandler(resolveUpdate, (resolution) => resolve(run, resolution), {
    validator: (resolution) => refuse(resolutionProblem(run, resolution)),
  });
}

function resolve(
  run: RunContext,
  resolution: Resolution & ActorClaim,
): { readonly resolved: string } {
  const { call, as } = resolution;
  const update = currentUpdate(run);
  if (update.before !== undefined) return { resolved: call };
  if (as === 'accept') acceptTool(run, resolution);
  else run.resolutions.set(call, resolution);
  recordDecision(run, update, { what: 'resolve', call, as, claim: resolution });
  return { resolved: call };
}

/** Returns why the decision is refused, or null. The first decision about a call wins. */
function resolutionProblem(run: RunContext, resolution: Resolution): string | null {
  if (!isObject(resolution)) {
    return `resolve: expected {call, as, result?}, got ${show(resolution)}`;
  }
  const problem = claimProblem(resolution);
  if (problem !== null) return problem;
  if (currentUpdate(run).before !== undefined) return null;
  const { call, as } = resolution;
  if (as === 'accept') return acceptanceProblem(run, resolution);
  if (!['happened', 'retry', 'abandon'].includes(as)) {
    return `as: expected one of happened, retry, abandon, accept; got ${show(as)}`;
  }
  const size = jsonSize(resolution.result);
  if (size > MAX_RESULT_CHARACTERS) {
    return `result: expected at most ${MAX_RESULT_CHARACTERS} characters of JSON, got ${size}; give a summary`;
  }
  if (run.resolutions.has(call)) return `call: ${call} is already resolved`;
  const pending = run.pending.get(call);
  if (pending?.type === 'safety_check' && as === 'happened') {
    return `as: expected retry or abandon for ${call}, which was not executed; got "happened"`;
  }
  if (pending !== undefined) return null;
  const open = [...run.pending.keys()];
  const known = open.length === 0 ? 'no call waits for a decision' : `waiting: ${open.join(', ')}`;
  return `call: ${JSON.stringify(call)} does not wait for a decision; ${known}`;
}

function jsonSize(value: unknown): number {
  return value === undefined ? 0 : JSON.stringify(value).length;
}

/** A person accepts exactly the form of the changed tool that was shown. */
function acceptanceProblem(run: RunContext, { call, definition }: Resolution): string | null {
  const offered = run.blocked.get(call)?.definition;
  if (offered === undefined) {
    const waiting = [...run.blocked].flatMap(([id, block]) => (block.definition ? [id] : []));
    const known = waiting.length === 0 ? 'none does' : `waiting: ${waiting.join(', ')}`;
    return `call: ${JSON.stringify(call)} does not wait for a changed tool; ${known}`;
  }
  if (definition === offered) return null;
  return `definition: expected "${offered}", the tool's current form, got ${show(definition ?? null)}; read the run's status again`;
}

/** The accepted form holds for all further calls of the tool. Another change blocks the run again. */
function acceptTool(run: RunContext, { call, definition = '' }: Resolution): void {
  const asked = run.state.turn.batch?.calls.find(({ id }) => id === call);
  if (asked !== undefined) {
    apply(run, { type: 'tool-accepted', tool: asked.name, definition });
  }
  retryBlocked(run);
  run.changed();
}
