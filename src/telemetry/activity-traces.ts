import type { ActivityInterceptorsFactory, WorkerInterceptors } from '@temporalio/worker';
import { inTraceOf } from './spans.js';

/** Continues the trace of a run in each of its activities. */
const activityTraces: ActivityInterceptorsFactory = () => ({
  inbound: {
    execute: async (input, next) =>
      await inTraceOf(input.headers, input.args, async () => next(input)),
  },
});

/** Returns the interceptors of a worker, followed by those that continue traces. */
export function withTraces(given: WorkerInterceptors = {}): WorkerInterceptors {
  return { ...given, activity: [...(given.activity ?? []), activityTraces] };
}
