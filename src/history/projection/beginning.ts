import { parseProblem } from '../../core/failure.js';
import { textField } from '../../core/json.js';
import { isProblem, parseRunInput } from '../../core/input/input.js';
import { reduce } from '../../core/reduce.js';
import { isRunConfig, type ForkMessagesResult } from '../../core/guards/recorded.js';
import { initialState, type RunConfig } from '../../core/state.js';
import { isLoaded } from '../../core/definition/initial-config.js';
import { readCarried } from './carried-state.js';
import { applyPersonEvent } from './people.js';
import type { EventOf, InFlight, ProjectionState } from './state.js';
import { emit } from './emit.js';

/** A segment starts, with the state that the previous one carried over. */
export function started(
  projection: ProjectionState,
  { id, input, carried }: EventOf<'started'>,
): void {
  const parsed = parseRunInput(input, { continued: carried !== null });
  projection.input = isProblem(parsed) ? null : parsed;
  const form = readCarried(carried);
  if (form === null) return;
  const { state, blocked = [] } = form;
  for (const { name, reason, message, definition } of blocked) {
    const offered = definition !== undefined && { definition };
    projection.blocked.set(name, { reason, message, since: id, ...offered });
  }
  if (!isLoaded(state)) {
    projection.unloaded = state;
    return;
  }
  projection.state = state;
  projection.messages.push(...projection.state.transcript.messages);
  projection.messages.sort((one, other) => one.n - other.n);
}

/** The agent is pinned, so the messages that came before are applied now. */
export function loaded(projection: ProjectionState, config: RunConfig, at: number): void {
  projection.blocked.clear();
  if (projection.unloaded === null) begun(projection, config, at);
  else projection.state = reduce(projection.unloaded, { type: 'agent-loaded', config });
  for (const event of projection.earlyMessages.splice(0)) applyPersonEvent(projection, event);
  if (projection.cancelRequested) emit(projection, { type: 'ending', by: 'cancelled' });
}

/** Starts the first segment of a run with the message of its input. */
function begun(projection: ProjectionState, config: RunConfig, at: number): void {
  const { open = false, message: text, attachments } = projection.input ?? {};
  projection.state = initialState(config, { open, startedAt: projection.startedAt ?? at });
  if (text === undefined) return;
  const message = { id: '', text, turn: 1, ...(attachments && { attachments }) };
  emit(projection, { type: 'message-received', message });
}

/** The worker of the first workflow task loaded the agent, or reported why it could not. */
export function local(
  projection: ProjectionState,
  { result, failure, at }: EventOf<'local'>,
): void {
  projection.localLoadProblem = parseProblem(failure?.details);
  if (isRunConfig(result)) agentLoaded(projection, result, at);
}

/** The agent was loaded, at the start of the run or before a turn that requested it. */
export function agentLoaded(projection: ProjectionState, config: RunConfig, at: number): void {
  if (projection.state === null) return loaded(projection, config, at);
  emit(projection, { type: 'agent-refreshed', config });
}

/**
 * The agent could not be loaded. The run waits for a worker that knows the agent, and for a store that
 * accepts the run's context. A run that only requested a newer form of its agent keeps the one it has.
 */
export function agentNotLoaded(
  projection: ProjectionState,
  { id, failure }: Pick<EventOf<'failed'>, 'id' | 'failure'>,
): void {
  const { timedOut, message: lost } = failure;
  // If no other worker answers in time, the answer of the first worker counts.
  const problem = parseProblem(failure.details) ?? (timedOut ? projection.localLoadProblem : null);
  const isBlocked = problem === null ? timedOut : problem.type === 'blocked';
  const reason = problem?.type === 'blocked' ? problem.reason : 'agent_missing';
  if (projection.state !== null && !(isBlocked && reason === 'storage')) {
    projection.blocked.delete('agent');
    emit(projection, { type: 'agent-refreshed', config: null });
  } else if (isBlocked) {
    projection.blocked.set('agent', { reason, message: problem?.message ?? lost, since: id });
  }
}

/** The messages of another run were taken over before the first turn. */
export function forkedFrom(
  projection: ProjectionState,
  { input }: InFlight,
  { next, pinned = [], from: read, ...taken }: ForkMessagesResult,
): void {
  const from = { run: textField(input, 'run'), runId: read.runId, at: next };
  emit(projection, { type: 'forked', ...taken, from, pinned });
}
