import {
  CancellationScope,
  condition,
  sleep,
  upsertMemo,
  workflowInfo,
} from '@temporalio/workflow';
import { findTool } from '../core/calls/batch.js';
import { askingWork, openRequest } from '../core/requests/open-requests.js';
import { withFixOfDecider } from '../core/requests/refusal.js';
import { stateMemo } from '../core/requests/request-memo.js';
import type { CheckDecisionInput, RunFunctionInput } from '../core/run/contract.js';
import { nextWorkStep } from '../core/run/next-action.js';
import { callSummary } from '../core/state/summaries.js';
import {
  type AskingWork,
  type Proposal,
  UNDO,
  type CallWork,
  callOfWork,
  findWork,
  isUndo,
} from '../core/state/work.js';
import { MAX_DURABLE_MS } from '../core/text/text.js';
import { parseCallId } from '../core/transcript/messages.js';
import { checkDecision, notifyRequest, undoActivity } from './activities.js';
import { type ActivityStart, activityStart, doWork, failureFact } from './do-work.js';
import {
  type RunContext,
  contextFields,
  inFlight,
  mustLeave,
  recordNow,
  scopeOf,
  startDeadlineTimer,
} from './run-context.js';

/**
 * Publishes the open requests if they have changed. It updates the memo, which an inbox reads
 * without a worker, and the timer for the next expiry, and sends notifications.
 */
export function publishRequests(run: RunContext): void {
  const asking = askingWork(run.state);
  const ids = asking.map(shownAs).join();
  if (ids === run.shownRequests) return;
  const before = new Set(run.shownRequests.split(','));
  const wasAtLimit = before.size > asking.length && run.shownRequests.includes(LIMIT);
  run.shownRequests = ids;
  startExpiryTimer(run);
  // A raised limit may have moved the deadline.
  if (wasAtLimit) startDeadlineTimer(run);
  // A run without requests is found by its status, so its memo may be outdated.
  if (ids !== '') {
    upsertMemo({ ...stateMemo(run.state, workflowInfo().workflowId) });
  }
  for (const work of asking) if (!before.has(shownAs(work))) notify(run, work.request.id);
  run.publishStatus();
}

const LIMIT = '=limit';

/** Returns the name of a request in a segment's context. */
function shownAs({ request }: AskingWork): string {
  return request.kind === 'limit' ? `${request.id}${LIMIT}` : request.id;
}

/** Continues the work that a new segment received: the expiry timer and the unsent notices. */
export function continueRequests(run: RunContext): void {
  run.shownRequests = askingWork(run.state).map(shownAs).join();
  startExpiryTimer(run);
  for (const { request } of askingWork(run.state)) {
    if (!request.notified) notify(run, request.id);
  }
}

/** Starts the timer for the next request that expires, and replaces the previous timer. */
function startExpiryTimer(run: RunContext): void {
  const times = askingWork(run.state).flatMap(({ request }) => request.expiresAt ?? []);
  const at = times.length === 0 ? null : Math.min(...times);
  if (at === (run.expiryTimer?.at ?? null)) return;
  run.expiryTimer?.scope.cancel();
  run.expiryTimer = null;
  if (at === null || !(at - Date.now() <= MAX_DURABLE_MS)) return;
  const scope = new CancellationScope();
  run.expiryTimer = { at, scope };
  scope
    .run(async () => {
      await sleep(Math.max(1, at - Date.now()), { summary: 'a request expires' });
      recordNow(run, { type: 'clock' });
    })
    .catch(() => undefined);
}

/**
 * Calls the worker's `notify` for a request. The run does not wait for it: the next segment sends a
 * lost notice again, under the same id.
 */
function notify(run: RunContext, id: string): void {
  const { config, turn } = run.state;
  if (!config.decisions?.notify) return;
  const { workflowId } = workflowInfo();
  const request = openRequest(run.state, { id, run: workflowId });
  if (request === undefined) return;
  const named = config.revised ? withFixOfDecider(run.state, request, workflowId) : request;
  const { arguments: _, argumentsBlob: __, parsed: ___, parsedBlob: ____, ...shown } = named;
  const input = { request: shown, agent: config.definition.name, turn: turn.number };
  notifyRequest(input).then(
    () =>
      recordNow(run, {
        type: 'completed',
        task: { activity: 'notifyRequest', input },
        result: null,
      }),
    () => undefined,
  );
}

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
  updateMemo(run);
  try {
    const result = await inFlight(run, () => checkDecision(input), name);
    recordNow(run, { type: 'completed', task, result });
  } catch (error) {
    recordNow(run, failureFact(task, error));
  }
  if (findWork(run.state, name)?.phase === 'asking') updateMemo(run);
}

/**
 * Publishes which requests are being checked. When a check, or an undo, has ended, this also gives the current workflow
 * task a command where people may act next. A worker that does not have the run in its
 * cache processes a task without commands together with the next one, and validates the updates of that one first:
 * against a state in which the check, or the undo, has not ended. Such a refusal would leave no trace, so the next
 * worker would repeat it.
 */
function updateMemo({ state }: RunContext): void {
  if (state.config.revised) upsertMemo({ ...stateMemo(state, workflowInfo().workflowId) });
}

function checkInput(
  run: RunContext,
  { name, request: raised }: CallWork,
  { decision }: Proposal,
): CheckDecisionInput {
  const { state, input } = run;
  const request = openRequest(state, { id: raised?.id, run: workflowInfo().workflowId });
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

/** Continues the undoing of calls that a new segment has received. */
export function continueUndoing(run: RunContext): void {
  for (const { name } of run.state.work.filter(isUndo)) runUndo(run, name.slice(UNDO.length));
}

/**
 * Undoes a call while the run continues. Ignores an unknown call. The handler of an
 * update is in the root scope, whose cancellation would reject the waits of the undo; the scope of the
 * run cancels its work.
 */
export function runUndo(run: RunContext, id: string): void {
  void CancellationScope.nonCancellable(() => undo(run, `${UNDO}${id}`));
}

async function undo(run: RunContext, name: string): Promise<void> {
  const isOver = (): boolean => run.ended !== null || findWork(run.state, name) === undefined;
  for (;;) {
    await condition(() => isOver() || canProceed(run, name));
    if (isOver()) return;
    await checkProposal(run, name);
    await doWork(run, {
      name,
      doing: 'undo',
      activity: (_, work) => activityFor(run, work),
    });
    if (findWork(run.state, name) === undefined) updateMemo(run);
  }
}

/** Whether an undo can proceed. It waits for decisions, interruptions, and the next segment. */
function canProceed(run: RunContext, name: string): boolean {
  const work = findWork(run.state, name);
  if (work === undefined || run.leaving || mustLeave(run)) return false;
  // The canceled scope would reject whatever is started.
  if (scopeOf(run, name).consideredCancelled) return false;
  if (work.proposal !== undefined) return true;
  return work.phase !== 'asking' && nextWorkStep(run.state, work, Date.now()).type !== 'stop';
}

function activityFor(run: RunContext, work: CallWork | undefined): ActivityStart {
  const kept = run.state.kept?.find(({ call }) => work?.name === `${UNDO}${call.id}`);
  const tool = kept && findTool(run.state, kept.call.name);
  if (work === undefined || kept === undefined || tool === undefined) {
    throw new Error('no call to undo');
  }
  const { call, turn, step, key, text, blob } = kept;
  const { definition, contextBlob } = run.state.config;
  const { context, rules } = run.input;
  const input: RunFunctionInput = {
    function: 'undo',
    definition: definition.hash,
    turn,
    step,
    call,
    effect: tool.effect,
    key,
    result: { text, ...(blob && { blob }) },
    ...(rules && { rules }),
    ...(work.approved && { approved: true }),
    ...(contextBlob ? { contextBlob } : context !== undefined && { context }),
  };
  return activityStart('runFunction', input, undoActivity(tool, `undo ${callSummary(call)}`));
}
