import {
  ApplicationFailure,
  condition,
  continueAsNew,
  setHandler,
  setWorkflowOptions,
  workflowInfo,
} from '@temporalio/workflow';
import { UNUSED, blockAsk, isPace, takeBlock } from '../core/rules/rate.js';
import {
  areBooks,
  dayOf,
  isSettlement,
  leaseAsk,
  msLeftOf,
  openBooks,
  readBooks,
  settleLease,
  takeLease,
} from '../core/rules/budget.js';
import { takeUpdate, budgetQuery, leaseUpdate, settleSignal } from './messages/definitions.js';

/** The server admits 2,000 updates to one segment. */
const MAX_TAKEN = 1_000;
/** Less than half of the time after which the server ends a segment that has no worker. */
const SEGMENT_MS = 4 * 60_000;

followBuilds(rate);

/**
 * Lets a workflow move to the current build with its next task, if there is worker versioning: all builds
 * share what it hands out.
 */
function followBuilds(workflow: (carried?: unknown) => Promise<void>): void {
  setWorkflowOptions(() => {
    const { deploymentName = '' } = workflowInfo().currentDeploymentVersion ?? {};
    // The server refuses the option of a worker without versioning.
    return deploymentName === '' ? {} : { versioningBehavior: 'AUTO_UPGRADE' };
  }, workflow);
}

/**
 * Workflow type `rate`: hands out the allowance of one model (`rate` of its entry in `models`) to all
 * workers, in blocks. Workers start it; it ends when no worker has asked for some minutes. The argument is
 * what a segment passes on; a starter must not pass it.
 *
 * @example
 * ```ts
 * // The workflows file of your own worker, if a model has a `rate`
 * export { agent, probe, rate } from 'perdure/workflow';
 * ```
 */
export async function rate(carried?: unknown): Promise<void> {
  let pace = isPace(carried) ? carried : UNUSED;
  let taken = 0;
  setHandler(
    takeUpdate,
    (ask) => {
      const given = takeBlock(pace, ask, Date.now());
      ({ pace } = given);
      taken += 1;
      return given.block;
    },
    {
      validator(ask: unknown) {
        const problem = blockAsk(ask, 'ask');
        if (problem !== null) throw ApplicationFailure.nonRetryable(problem, 'Refused');
      },
    },
  );
  await condition(() => taken >= MAX_TAKEN, SEGMENT_MS);
  const isIdle = taken === 0 && Math.max(pace.requestsUntil, pace.tokensUntil) <= Date.now();
  if (!isIdle) await continueAsNew<typeof rate>(pace);
}

followBuilds(budget);

/**
 * Workflow type `budget`: hands out one budget of a day (`budgets` of the configuration) to all workers, in
 * leases. Workers start it; it ends with the day. The argument is what a segment passes on; a starter must
 * not pass it.
 *
 * @example
 * ```ts
 * // The workflows file of your own worker, if the configuration has `budgets`
 * export { agent, probe, budget } from 'perdure/workflow';
 * ```
 */
export async function budget(carried?: unknown): Promise<void> {
  let books = areBooks(carried) ? carried : openBooks(Date.now());
  let taken = 0;
  setHandler(
    leaseUpdate,
    (ask) => {
      const given = takeLease(books, ask, Date.now());
      ({ books } = given);
      taken += 1;
      return given.lease;
    },
    {
      validator(ask: unknown) {
        const problem = leaseAsk(ask, 'ask');
        if (problem !== null) throw ApplicationFailure.nonRetryable(problem, 'Refused');
      },
    },
  );
  setHandler(settleSignal, (said: unknown) => {
    taken += 1;
    if (isSettlement(said)) books = settleLease(books, said, Date.now());
  });
  setHandler(budgetQuery, () => readBooks(books, Date.now()));
  await condition(() => taken >= MAX_TAKEN, msLeftOf(Date.now()));
  // All leases have ended with the day, so nothing is left to remember.
  if (taken < MAX_TAKEN && dayOf(Date.now()) > books.day) return;
  await continueAsNew<typeof budget>(books);
}
