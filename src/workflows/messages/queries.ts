import { defineQuery, setHandler, workflowInfo } from '@temporalio/workflow';
import { nodeBudget, type NodeAllowance } from '../../core/calls/child.js';
import { graphView } from '../../core/plan/progress.js';
import { runStatus } from '../../core/run-status.js';
import type { RunStatus } from '../../core/status.js';
import { openRequests } from '../../core/requests/open-requests.js';
import { blocks } from '../../core/work/work.js';
import { promptPage, rangeProblem, transcriptPage } from '../../core/transcript/pages.js';
import {
  artifactsQuery,
  definitionQuery,
  graphQuery,
  pendingQuery,
  promptQuery,
  statusQuery,
  transcriptQuery,
} from './definitions.js';
import { refuse } from './refuse.js';
import type { RunContext } from '../run-context.js';

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
  setHandler(pendingQuery, () => openRequests(run.state, workflowInfo().workflowId));
  setHandler(artifactsQuery, () => run.state.artifacts ?? []);
  setHandler(allowanceQuery, () => allowance(run));
  setHandler(definitionQuery, () => run.state.config.definition);
  setHandler(graphQuery, () => graphView(run.state));
}

/** What limits the model calls of a node's function; only the run's own activities ask for it. */
const allowanceQuery = defineQuery<NodeAllowance>('allowance');

function allowance({ state, input: { modelAttempts } }: RunContext): NodeAllowance {
  const left = nodeBudget(state);
  return {
    ...(left !== null && { left }),
    ...(modelAttempts !== undefined && { attempts: modelAttempts }),
  };
}

/** Returns the run's status for queries and search attributes. */
export function createStatus({ state, ended, doing }: RunContext): RunStatus {
  const { workflowId, runId, historyLength } = workflowInfo();
  const [blocked] = blocks(state);
  return {
    id: workflowId,
    runId,
    historyLength,
    ...runStatus(state, { ended, run: workflowId }),
    doing: doing.size === 0 ? null : [...doing.values()].join(', '),
    reports: [...state.turn.reports, ...(blocked?.reports ?? [])],
  };
}
