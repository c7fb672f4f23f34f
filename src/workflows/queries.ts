import { setHandler, workflowInfo } from '@temporalio/workflow';
import { decidedByPeople, type RunStatus, type RunStatusName } from '../core/status.js';
import { pendingDecisions } from '../core/work/pending.js';
import { blocks } from '../core/work/work.js';
import { promptPage, rangeProblem, transcriptPage } from '../core/transcript/pages.js';
import {
  definitionQuery,
  pendingQuery,
  promptQuery,
  statusQuery,
  transcriptQuery,
} from './messages.js';
import { refuse } from './refuse.js';
import type { RunContext } from './run-context.js';

/** Answers the run's queries. */
export function handleQueries(run: RunContext): void {
  setHandler(statusQuery, () => createStatus(run));
  setHandler(transcriptQuery, (range) => {
    refuse(rangeProblem('transcript', range));
    return transcriptPage(run.state.transcript, range ?? {});
  });
  setHandler(promptQuery, (range) => {
    refuse(rangeProblem('prompt', range, ['from', 'to']));
    return promptPage(run.state.transcript, range);
  });
  setHandler(pendingQuery, () => pendingDecisions(run.state, 'RUN'));
  setHandler(definitionQuery, () => run.state.config.definition);
}

/** Returns the run's status as queries and search attributes show it. */
export function createStatus(run: RunContext): RunStatus {
  const { state } = run;
  const { workflowId, runId, historyLength } = workflowInfo();
  const outcome = run.ended ?? state.turn.outcome;
  const [blocked] = blocks(state);
  return {
    id: workflowId,
    runId,
    historyLength,
    agent: state.config.definition.name,
    status: statusName(run),
    reason: outcome?.reason ?? blocked?.reason ?? null,
    message: outcome?.error ?? blocked?.message ?? null,
    turn: state.turn.number,
    step: state.turn.spent.steps,
    segments: state.segments,
    queued: state.inbox.waiting.length,
    limits: state.config.limits,
    usage: state.total.usage,
    pending: pendingDecisions(state, 'RUN'),
    doing: run.doing.size === 0 ? null : [...run.doing.values()].join(', '),
    reports: [...state.turn.reports, ...(blocked?.reports ?? [])],
    outcome,
    ...(state.forkedFrom && { forkedFrom: state.forkedFrom }),
    ...(state.config.definition.mcp?.left && { left: state.config.definition.mcp.left }),
    ...decidedByPeople(state),
  };
}

function statusName({ state, awaiting, ended }: RunContext): RunStatusName {
  if (ended !== null || (!state.open && state.turn.outcome !== null)) return 'done';
  if (blocks(state).length > 0) return 'blocked';
  if (state.paused) return 'paused';
  if (awaiting === 'await-message') return 'waiting_message';
  return awaiting === 'await-time' ? 'waiting_time' : 'working';
}
