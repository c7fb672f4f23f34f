import { stepsOf } from './graph/node-tool.js';
import { isLoaded } from './definition/initial-config.js';
import { nextAction } from './next-action.js';
import type { Outcome } from './outcome.js';
import type { RunState } from './state.js';
import { decidedByPeople, type RunStatus, type RunStatusName } from './status.js';
import { getOutcome } from './turn.js';
import type { Request } from './requests/request.js';
import { askingWork, openRequests } from './requests/open-requests.js';
import { undoableCalls } from './requests/undo.js';
import { anyInFlight, blocks } from './work/work.js';

/** The parts of a run's status that its state does not contain. */
export interface StatusContext {
  /** The run's own outcome; null while the run continues. */
  readonly ended: Outcome | null;
  /** The run's id in the commands that decide. */
  readonly run: string;
}

/** The fields of a status that derive from the state of a run. */
export type StateStatus = Omit<RunStatus, 'id' | 'runId' | 'historyLength' | 'doing' | 'reports'>;

/** Returns a run's status as the query and every reader show it. */
export function runStatus(state: RunState, { ended, run }: StatusContext): StateStatus {
  const outcome = ended ?? getOutcome(state);
  // A run that Temporal ended keeps its requests in its state, and no decision reaches them.
  const pending = ended === null ? openRequests(state, run) : [];
  const [first] = pending;
  const [blocked] = first === undefined ? blocks(state) : [asMessage(first)];
  const { forkedFrom, config } = state;
  const left = config.definition.mcp?.left;
  return {
    agent: config.definition.name,
    status: statusName(state, ended),
    reason: outcome?.reason ?? blocked?.reason ?? null,
    message: outcome?.error ?? blocked?.message ?? null,
    turn: state.turn.number,
    step: stepsOf(state),
    segments: state.segments,
    queued: state.inbox.waiting.length,
    limits: config.limits,
    usage: state.total.usage,
    pending,
    ...(state.grants && state.grants.length > 0 && { grants: state.grants }),
    ...undoable(state, ended !== null || isOver(state)),
    outcome,
    ...(forkedFrom && { forkedFrom }),
    ...(left && { left }),
    ...decidedByPeople(state),
  };
}

/**
 * Returns the outcome of a run that is only finishing. It archives its messages first, which may be
 * delayed if its store is down. Null for a run that continues.
 */
export function finalOutcome(state: RunState): Outcome | null {
  const work = state.work.filter(({ last }) => last === undefined);
  const action = nextAction({ ...state, work });
  return action.type === 'finish' ? action.outcome : null;
}

/** Returns a request as the reason and the message of a status. */
function asMessage({ kind, why, fix }: Request): { reason: string; message: string } {
  return { reason: kind, message: `${why}; decide: ${fix}` };
}

/**
 * Returns the calls that can be undone. After its end, a run undoes no call, so only those remain
 * whose undo was tried.
 */
function undoable(state: RunState, ended: boolean): Pick<RunStatus, 'undoable'> {
  if (!state.kept) return {};
  const calls = undoableCalls(state);
  return { undoable: ended ? calls.filter((call) => call.state !== undefined) : calls };
}

/** Whether a task has its outcome. */
function isOver(state: RunState): boolean {
  return !state.open && getOutcome(state) !== null;
}

function statusName(state: RunState, ended: Outcome | null): RunStatusName {
  const end = ended ?? (isOver(state) ? getOutcome(state) : null);
  if (end !== null) return end.status;
  if (askingWork(state).length > 0) return 'waiting_decision';
  if (blocks(state).length > 0) return 'blocked';
  if (state.paused) return 'paused';
  if (anyInFlight(state) || !isLoaded(state)) return 'working';
  const { type } = nextAction(state);
  if (type === 'await-message') return 'waiting_message';
  return type === 'await-time' ? 'waiting_time' : 'working';
}
