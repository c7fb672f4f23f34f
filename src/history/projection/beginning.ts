import { parseProblem } from '../../core/failure.js';
import { isProblem, parseRunInput } from '../../core/input/input.js';
import { reduce } from '../../core/reduce.js';
import { isRunConfig } from '../../core/guards/recorded.js';
import { initialState, type RunConfig } from '../../core/state.js';
import { isLoaded } from '../../core/definition/initial-config.js';
import { readCarried } from './carried-state.js';
import { personSaid } from './people.js';
import type { EventOf, ProjectionState } from './state.js';
import { tell } from './emit.js';

/** A segment begins, with what the one before has handed over. */
export function started(told: ProjectionState, { id, input, carried }: EventOf<'started'>): void {
  const parsed = parseRunInput(input, { continued: carried !== null });
  told.input = isProblem(parsed) ? null : parsed;
  const form = readCarried(carried);
  if (form === null) return;
  const { state, blocked = [] } = form;
  for (const { name, reason, message, definition } of blocked) {
    const offered = definition !== undefined && { definition };
    told.blocked.set(name, { reason, message, since: id, ...offered });
  }
  if (!isLoaded(state)) {
    told.unloaded = state;
    return;
  }
  told.state = state;
  told.said.push(...told.state.transcript.messages);
  told.said.sort((one, other) => one.n - other.n);
}

/** The agent is pinned: what was said before is taken now. */
export function loaded(told: ProjectionState, config: RunConfig, at: number): void {
  told.blocked.clear();
  if (told.unloaded === null) begun(told, config, at);
  else told.state = reduce(told.unloaded, { type: 'agent-loaded', config });
  for (const fact of told.early.splice(0)) personSaid(told, fact);
  if (told.cancelRequested) tell(told, { type: 'ending', by: 'cancelled' });
}

/** The run's first segment, with the message that it was started with. */
function begun(told: ProjectionState, config: RunConfig, at: number): void {
  const { open = false, message: text, attachments } = told.input ?? {};
  told.state = initialState(config, { open, startedAt: told.startedAt ?? at });
  if (text === undefined) return;
  const message = { id: '', text, turn: 1, ...(attachments && { attachments }) };
  tell(told, { type: 'message-received', message });
}

/** The worker of the first workflow task has loaded the agent, or said why it could not. */
export function local(told: ProjectionState, { result, failure, at }: EventOf<'local'>): void {
  told.notHere = parseProblem(failure?.details);
  if (isRunConfig(result)) loadedAgain(told, result, at);
}

/** The agent was loaded, at the beginning of the run or before a turn that asked for it. */
export function loadedAgain(told: ProjectionState, config: RunConfig, at: number): void {
  if (told.state === null) return loaded(told, config, at);
  tell(told, { type: 'agent-refreshed', config });
}

/**
 * An agent that no worker knows, or has loaded in time, is waited for, and so is a store that does not
 * take the run's context. Where a run only asked for a newer form of its agent, it keeps the one it has.
 */
export function notLoaded(
  told: ProjectionState,
  { id, failure }: Pick<EventOf<'failed'>, 'id' | 'failure'>,
): void {
  const { timedOut, message: lost } = failure;
  // Where no other worker has answered in time, the answer of the first one holds.
  const problem = parseProblem(failure.details) ?? (timedOut ? told.notHere : null);
  const isBlocked = problem === null ? timedOut : problem.type === 'blocked';
  const reason = problem?.type === 'blocked' ? problem.reason : 'agent_missing';
  if (told.state !== null && !(isBlocked && reason === 'storage')) {
    told.blocked.delete('agent');
    tell(told, { type: 'agent-refreshed', config: null });
  } else if (isBlocked) {
    told.blocked.set('agent', { reason, message: problem?.message ?? lost, since: id });
  }
}
