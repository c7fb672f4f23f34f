import {
  setCurrentDetails,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { currentDetails } from '../core/text/details.js';
import type { Outcome } from '../core/outcome.js';
import { decidedByPeople, type RunStatus, type RunStatusName } from '../core/status.js';
import { isLoaded } from '../core/definition/initial-config.js';
import { turnMemo } from '../core/transcript/pages.js';
import type { Session } from './run-context.js';

/** The run as the outside sees it now. */
export function statusOf(session: Session): RunStatus {
  const { state } = session;
  const { workflowId, runId } = workflowInfo();
  const outcome = session.ended ?? state.turn.outcome;
  const [blocked] = session.blocked.values();
  return {
    id: workflowId,
    runId,
    agent: state.config.definition.name,
    status: statusName(session),
    reason: outcome?.reason ?? blocked?.reason ?? null,
    message: outcome?.error ?? blocked?.message ?? null,
    turn: state.turn.number,
    step: state.turn.spent.steps,
    segments: state.segments,
    queued: state.inbox.waiting.length,
    limits: state.config.limits,
    usage: state.total.usage,
    pending: [...session.pending.values()],
    doing: session.doing.size === 0 ? null : [...session.doing.values()].join(', '),
    reports: [...state.turn.reports, ...(blocked?.reports ?? [])],
    outcome,
    ...(state.forkedFrom && { forkedFrom: state.forkedFrom }),
    ...(state.config.definition.mcp?.left && { left: state.config.definition.mcp.left }),
    ...decidedByPeople(state),
  };
}

function statusName({ state, blocked, awaiting, ended }: Session): RunStatusName {
  if (ended !== null || (!state.open && state.turn.outcome !== null)) return 'done';
  if (blocked.size > 0) return 'blocked';
  if (state.paused) return 'paused';
  if (awaiting === 'await-message') return 'waiting_message';
  return awaiting === 'await-time' ? 'waiting_time' : 'working';
}

/** Shows each change: details for the UI when it asks, search attributes when the status changes. */
export function presence(session: Session): () => void {
  setCurrentDetails(lazyText(() => currentDetails(session.state, statusOf(session))));
  return () => {
    // Which attributes there are is known with the agent.
    if (!isLoaded(session.state)) return;
    const status = statusOf(session);
    const key = `${status.status} ${status.reason ?? ''}`;
    if (key === session.shown) return;
    session.shown = key;
    writeAttributes(session.state.config.searchAttributes, {
      AgentName: status.agent,
      AgentStatus: status.status,
      AgentReason: status.reason ?? '',
    });
  };
}

/**
 * A text that is made when somebody looks: the SDK hands it on as JSON to whoever asks. Made at every
 * step, it would cost more than all decisions together.
 */
function lazyText(make: () => string): string {
  const text: { toJSON(): string } = { toJSON: make };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is a text in JSON
  return text as unknown as string;
}

/** Writing one that the namespace lacks would hang the run, so only those found at the start are. */
function writeAttributes(known: readonly string[], values: Record<string, string>): void {
  const entries = Object.entries(values).filter(([name]) => known.includes(name));
  if (entries.length === 0) return;
  upsertSearchAttributes(
    Object.fromEntries(entries.map(([name, value]) => [name, value === '' ? [] : [value]])),
  );
}

export function rememberTurn({ state }: Session, turn: number, outcome: Outcome): void {
  upsertMemo({ ...turnMemo(state, turn, outcome) });
}
