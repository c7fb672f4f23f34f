import {
  workflowInfo,
  type WorkflowInternalsInterceptor,
  type WorkflowInterceptors,
} from '@temporalio/workflow';

/**
 * The interceptors of a run: the SDK loads them with the workflow code.
 *
 * A query that has waited for a worker brings the events since the last workflow task, without a task of
 * their own. The SDK hands them to the workflow at once, and sends the commands that follow with the
 * next task, before those of what else that task brings, such as an update. A later replay gets all of
 * it in one piece, updates first, and would fail. So a run that is ahead of its tasks fails the next
 * one that brings something. The worker then forgets the run and replays it, in the order of any later
 * replay, and the server gives it the task again.
 */
export function interceptors(): WorkflowInterceptors {
  return workflowInfo().workflowType === 'agent' ? { internals: [keepInStep()] } : {};
}

function keepInStep(): WorkflowInternalsInterceptor {
  /** The last workflow task, by what the server says of the history at its start. */
  let last = { historyLength: 0, historySize: 0 };
  let isAhead = false;
  return {
    activate(input, next) {
      const { jobs } = input.activation;
      // Queries come alone.
      if (!jobs || jobs.length === 0 || jobs[0]?.queryWorkflow) return next(input);
      const { historyLength, historySize } = workflowInfo();
      // Only the start of a task tells the size of the history, and each adds to it. Servers before 1.20
      // do not tell it.
      const isTask = historyLength === last.historyLength || historySize !== last.historySize;
      if (isTask && isAhead) throw new Error(AHEAD);
      if (isTask) last = { historyLength, historySize };
      else isAhead = historySize > 0;
      return next(input);
    },
  };
}

const AHEAD =
  'a query has brought this run ahead of its workflow tasks; it is replayed, and the task is given again';
