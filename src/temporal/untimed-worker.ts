import { Worker } from '@temporalio/worker';

/**
 * A worker of Temporal's SDK without a limit on how long workflow code may block its thread. The SDK sets one
 * of 5 s for each call into that code, of which an activation makes several, and for each of these Node starts
 * a thread that waits for the limit: half of the CPU time of a workflow thread. perdure's workflow
 * code does not block, and a limit by the clock does harm: a worker that was frozen in such a call for longer
 * loses its thread for all runs. It aborts the process, stops answering, or loses cancellations.
 */
export class UntimedWorker extends Worker {
  protected static override async createWorkflowCreator(
    ...[bundle, options, logger]: Parameters<(typeof Worker)['createWorkflowCreator']>
  ): ReturnType<(typeof Worker)['createWorkflowCreator']> {
    // Node takes an absent limit for none, which no value of the SDK's option stands for.
    const untimed = Object.assign({}, options, { isolateExecutionTimeoutMs: undefined });
    return await super.createWorkflowCreator(bundle, untimed, logger);
  }
}
