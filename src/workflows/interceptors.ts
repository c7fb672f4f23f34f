import {
  workflowInfo,
  type ActivateInput,
  type WorkflowInternalsInterceptor,
  type WorkflowInterceptors,
} from '@temporalio/workflow';
import { TRACE_HEADER } from '../core/transcript/call-result.js';
import { noteUpdates } from './messages/queries.js';

/**
 * The interceptors of a run: the SDK loads them with the workflow code.
 *
 * A query that waited for a worker may deliver the events since the last workflow task without a
 * task of their own. The SDK passes them to the workflow at once. It sends the resulting commands
 * with the next task, before those for its other jobs, such as an update. A later replay processes
 * all of them together, updates first, and would fail. A run that is ahead of its tasks therefore
 * fails the next task with jobs. The worker then evicts the run and replays it in the order of any
 * later replay, and the server schedules the task again.
 */
export function interceptors(): WorkflowInterceptors {
  const isAgent = workflowInfo().workflowType === 'agent';
  const all = [isAgent ? { internals: [keepInStep()] } : {}, noteUpdates(), passTrace()];
  return {
    internals: all.flatMap(({ internals = [] }) => internals),
    inbound: all.flatMap(({ inbound = [] }) => inbound),
    outbound: all.flatMap(({ outbound = [] }) => outbound),
  };
}

/** Fails the next task if a query has advanced the run ahead of its tasks; see `interceptors`. */
export function keepInStep(): WorkflowInternalsInterceptor {
  let last: Place | null = null;
  let isAhead = false;
  return {
    activate(input, next) {
      const { jobs, isReplaying } = input.activation;
      // An activation with queries has no other jobs.
      if (!jobs || jobs.length === 0 || jobs[0]?.queryWorkflow) return next(input);
      const place = placeOf(input);
      // A replay includes only the events of tasks, so a false positive costs one task.
      if (last !== null && isReplaying !== true && isBetweenTasks(last, place)) isAhead = true;
      else if (isAhead) throw new Error(AHEAD);
      else last = place;
      return next(input);
    },
  };
}

/**
 * The position in the history at an activation. Only the start of a task sets the size and the
 * time.
 */
interface Place {
  readonly length: number;
  readonly size: string;
  readonly time: string;
}

function placeOf({ activation }: ActivateInput): Place {
  const { historyLength, historySizeBytes, timestamp } = activation;
  return {
    length: historyLength ?? 0,
    size: String(historySizeBytes),
    time: `${String(timestamp?.seconds)} ${String(timestamp?.nanos)}`,
  };
}

/**
 * Whether events have arrived since a task without the start of another. Two tasks may have the
 * same size, because the server counts only stored events. They may have the same time if a
 * worker's clock is ahead.
 */
function isBetweenTasks(last: Place, { length, size, time }: Place): boolean {
  return length > last.length && size === last.size && time === last.time;
}

/** The error of a task that is failed intentionally. */
export const AHEAD =
  'a query has brought this run ahead of its workflow tasks; it is replayed, and the task is given again';

type Headers = Parameters<
  NonNullable<NonNullable<WorkflowInterceptors['inbound']>[number]['execute']>
>[0]['headers'];
type WithHeaders = { readonly headers: Headers };

/**
 * Maximum bytes of the header. A larger one is dropped, because the history would repeat it with
 * each activity.
 */
const MAX_TRACE_BYTES = 2_048;

/**
 * Passes the trace of the run's starter, or of the newest message's sender, to its activities and
 * child runs. It costs nothing in a run without a trace. Workflow code does not need OpenTelemetry
 * itself, which would be most of the bundle.
 */
function passTrace(): WorkflowInterceptors {
  let trace: Headers[string] | undefined;
  const note = ({ headers }: WithHeaders): void => {
    const header = headers[TRACE_HEADER];
    if (header !== undefined && (header.data?.length ?? 0) <= MAX_TRACE_BYTES) trace = header;
  };
  const traced = <Input extends WithHeaders>(input: Input): Input =>
    trace === undefined || input.headers[TRACE_HEADER] !== undefined
      ? input
      : { ...input, headers: { ...input.headers, [TRACE_HEADER]: trace } };
  // No interceptor is async, because an additional promise would change the order of commands.
  return {
    inbound: [
      {
        execute(input, next) {
          note(input);
          return next(input);
        },
        handleUpdate(input, next) {
          note(input);
          return next(input);
        },
        handleSignal(input, next) {
          note(input);
          return next(input);
        },
      },
    ],
    outbound: [
      {
        scheduleActivity: (input, next) => next(traced(input)),
        scheduleLocalActivity: (input, next) => next(traced(input)),
        startChildWorkflowExecution: (input, next) => next(traced(input)),
        continueAsNew: (input, next) => next(traced(input)),
      },
    ],
  };
}
