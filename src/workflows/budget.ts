import { ApplicationFailure, condition, continueAsNew, setHandler } from '@temporalio/workflow';
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
import { budgetQuery, leaseUpdate, settleSignal } from './messages/definitions.js';
import { MAX_TAKEN, followBuilds } from './rate.js';

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
