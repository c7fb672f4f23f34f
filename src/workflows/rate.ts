import {
  ApplicationFailure,
  condition,
  continueAsNew,
  setHandler,
  setWorkflowOptions,
  workflowInfo,
} from '@temporalio/workflow';
import { UNUSED, blockAsk, isPace, takeBlock } from '../core/rules/rate.js';
import { takeUpdate } from './messages/definitions.js';

/** The server admits 2,000 updates to one segment. */
export const MAX_TAKEN = 1_000;
/** Less than half of the time after which the server ends a segment that has no worker. */
const SEGMENT_MS = 4 * 60_000;

followBuilds(rate);

/**
 * Lets a workflow move to the current build with its next task, if there is worker versioning: all builds
 * share what it hands out.
 */
export function followBuilds(workflow: (carried?: unknown) => Promise<void>): void {
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
