import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  ContinueAsNew,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow';
import { closeFailedTurn, record, runLoop } from '../core/interpret/loop.js';
import { isOutcome } from '../core/guards/recorded.js';
import { getInterruption } from '../core/state/change.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { NewerStateError } from '../core/segments/migrations.js';
import { inTurn } from '../core/state/turn.js';
import { problemText } from '../core/text/text.js';
import { failureMessage } from './do-work.js';
import { archiveAtEnd, readSegmentArguments, rootRun } from './begin.js';
import { firstState } from '../core/segments/start.js';
import {
  cancelFlight,
  startDeadlineTimer,
  createRunContext,
  recordNow,
  type RunContext,
} from './run-context.js';
import { effects } from './effects.js';
import {
  handleQueries,
  reportTurn,
  publishStatus,
  recordTurnMemo,
  showDetails,
  statusAtStart,
  updatesHandled,
} from './messages/queries.js';
import { continueRequests, publishRequests, continueUndoing } from './requests.js';
import { handleSignals, handleUpdates } from './messages/updates.js';

/**
 * Workflow type `agent`: one run of one agent. Returns the outcome of a run that completed or was
 * stopped. Ends as Canceled if the run was canceled, and fails with `AgentFailed` if it failed; the
 * outcome is in the details of both. The second argument carries the run's state between segments;
 * a starter must not pass it.
 *
 * @example
 * ```ts
 * // The workflows file of your own worker: commands see by `probe` whether a worker is there.
 * export { agent, probe } from 'perdure/workflow';
 * ```
 */
export async function agent(input: unknown, carried?: unknown): Promise<Outcome> {
  const root = CancellationScope.current();
  // Cancellation by Temporal cancels everything in the root scope at once. The loop must outlive it
  // to complete the open calls and record the outcome.
  try {
    return await CancellationScope.nonCancellable(() => runSegment(input, carried, root));
  } catch (error) {
    throw runFailure(error);
  }
}

async function runSegment(
  argument: unknown,
  carried: unknown,
  root: CancellationScope,
): Promise<Outcome> {
  const { input, before } = readSegmentArguments(argument, carried);
  const { firstExecutionRunId: firstRunId } = workflowInfo();
  const start = { input, at: Date.now(), root: rootRun(), firstRunId };
  const state = before?.state ?? firstState(start);
  const publish = { status: publishStatus, requests: publishRequests };
  const atStart = statusAtStart(input);
  const shown = before?.shown ?? atStart ?? '';
  const hasAttributes = atStart !== null;
  const run = createRunContext(input, { state, shown, hasAttributes, publish });
  root.cancelRequested.catch(() => recordNow(run, { type: 'cancel-requested' }));
  // Nothing is published before the run has begun.
  if (root.consideredCancelled) record(run, { type: 'cancel-requested', at: start.at });
  if (getInterruption(run.state) !== null) cancelFlight(run);
  showDetails(run);
  startDeadlineTimer(run);
  continueRequests(run);
  continueUndoing(run);
  // This must precede any await, and follow the setup that handlers need: the start may deliver
  // messages.
  handleSignals(run);
  handleQueries(run);
  handleUpdates(run);
  if (before !== null) await updatesHandled();
  const outcome = await runToEnd(run);
  await finish(run, outcome);
  return conclude(outcome);
}

/**
 * Runs the loop. An exception ends the turn; otherwise, the workflow task would be retried
 * indefinitely.
 */
async function runToEnd(run: RunContext): Promise<Outcome> {
  for (;;) {
    try {
      return await runLoop(run, effects(run));
    } catch (error) {
      if (error instanceof ContinueAsNew || !inTurn(run.state)) {
        run.ended = outcomeIn(error);
        if (run.ended !== null) {
          reportTurn(run, run.ended);
          run.publishStatus();
        }
        throw error;
      }
      run.state = closeFailedTurn(run.state, { message: faultText(error), at: Date.now() });
    }
  }
}

/** Returns the outcome in the failure of a run that cannot begin; null for any other error. */
function outcomeIn(error: unknown): Outcome | null {
  const [outcome] = error instanceof ApplicationFailure ? (error.details ?? []) : [];
  return isOutcome(outcome) ? outcome : null;
}

/**
 * Returns the failure for an exception outside all turns: it ends the run visibly instead of
 * failing the workflow task repeatedly. Only a state of a newer version waits for a worker that can
 * read it.
 */
function runFailure(error: unknown): unknown {
  const passed = [ContinueAsNew, TemporalFailure, NewerStateError];
  if (passed.some((known) => error instanceof known)) return error;
  return ApplicationFailure.create({
    type: 'AgentFailed',
    nonRetryable: true,
    message: faultText(error),
  });
}

function faultText(error: unknown): string {
  return problemText(`internal error of perdure: ${failureMessage(error)}`);
}

async function finish(run: RunContext, outcome: Outcome): Promise<void> {
  run.ended = outcome;
  run.deadlineTimer?.cancel();
  run.expiryTimer?.scope.cancel();
  await archiveAtEnd(run);
  if (run.state.open) recordTurnMemo(run.state.turn.number, outcome);
  // A turn that ended well was reported then, perhaps in an earlier segment.
  if (outcome.status === 'failed') reportTurn(run, outcome);
  run.publishStatus();
  // Each accepted update gets its answer before the workflow closes.
  run.leaving = true;
  await condition(allHandlersFinished);
}

function conclude(outcome: Outcome): Outcome {
  switch (outcome.status) {
    case 'completed':
    case 'stopped':
      return outcome;
    case 'cancelled':
      throw new CancelledFailure('the run was canceled', [outcome]);
    case 'failed':
      throw ApplicationFailure.create({
        type: 'AgentFailed',
        nonRetryable: true,
        message: `${outcome.reason}: ${outcome.error ?? ''}`,
        details: [outcome],
      });
  }
}
