import { workflowInfo } from '@temporalio/workflow';
import type { CheckDecisionInput } from '../core/contract.js';
import { openRequests } from '../core/requests/open-requests.js';
import { parseCallId } from '../core/transcript/messages.js';
import { callOfWork, findWork, type Proposal, type Work } from '../core/work/work.js';
import { checkDecision } from './activities.js';
import { failureFact } from './activity-result.js';
import { contextFields, inFlight, recordNow, type RunContext } from './run-context.js';

/**
 * Checks the proposed decision about this work on a worker. It then takes effect, or the request
 * stays open. Does nothing without a proposal. Never rejects because of a worker.
 */
export async function checkProposal(run: RunContext, name: string): Promise<void> {
  const work = findWork(run.state, name);
  if (work?.proposal === undefined) return;
  const input = checkInput(run, work, work.proposal);
  const task = { activity: 'checkDecision', input };
  recordNow(run, { type: 'scheduled', task });
  try {
    const result = await inFlight(run, () => checkDecision(input));
    recordNow(run, { type: 'completed', task, result });
  } catch (error) {
    recordNow(run, failureFact(task, error));
  }
}

function checkInput(
  run: RunContext,
  { name, request: raised }: Work,
  { decision }: Proposal,
): CheckDecisionInput {
  const { state, input } = run;
  const request = openRequests(state, workflowInfo().workflowId).find(
    ({ id }) => id === raised?.id,
  );
  if (request === undefined) throw new Error(`no request about "${name}"`);
  const { definition } = state.config;
  const { rules } = input;
  const call = callOfWork(state, name);
  const place = call === undefined ? { turn: state.turn.number, step: 0 } : parseCallId(call);
  return {
    definition: definition.hash,
    ...place,
    work: name,
    request,
    decision,
    ...(state.config.decisions?.mayDecide && { mayDecide: true }),
    ...(call && { call }),
    ...(rules && { rules }),
    ...contextFields(run),
  };
}
