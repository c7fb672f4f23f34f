import {
  workflowInfo,
  type ActivateInput,
  type WorkflowInternalsInterceptor,
  type WorkflowInterceptors,
} from '@temporalio/workflow';
import { TRACE_HEADER } from '../core/input/trace-header.js';
import { noteUpdates } from './messages/updates-handled.js';

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
  const isAgent = workflowInfo().workflowType === 'agent';
  const all = [isAgent ? { internals: [keepInStep()] } : {}, noteUpdates(), passTrace()];
  return {
    internals: all.flatMap(({ internals = [] }) => internals),
    inbound: all.flatMap(({ inbound = [] }) => inbound),
    outbound: all.flatMap(({ outbound = [] }) => outbound),
  };
}

/** Fails the task that follows when a query has brought the run ahead; see `interceptors`. */
export function keepInStep(): WorkflowInternalsInterceptor {
  let last: Place | null = null;
  let isAhead = false;
  return {
    activate(input, next) {
      const { jobs, isReplaying } = input.activation;
      // Queries come alone.
      if (!jobs || jobs.length === 0 || jobs[0]?.queryWorkflow) return next(input);
      const place = placeOf(input);
      // A replay has only what tasks have brought. So if this is ever wrong, it costs one task.
      if (last !== null && isReplaying !== true && isBetweenTasks(last, place)) isAhead = true;
      else if (isAhead) throw new Error(AHEAD);
      else last = place;
      return next(input);
    },
  };
}

/** Where the history stood at an activation. Only the start of a task sets the size and the time. */
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
 * Whether events have come since a task without the start of another. Two tasks may tell the same size,
 * because the server counts only what it has stored, and a worker whose clock is ahead may hold the time.
 */
function isBetweenTasks(last: Place, { length, size, time }: Place): boolean {
  return length > last.length && size === last.size && time === last.time;
}

/** The error of a task that is failed on purpose. */
export const AHEAD =
  'a query has brought this run ahead of its workflow tasks; it is replayed, and the task is given again';

type Headers = Parameters<
  NonNullable<NonNullable<WorkflowInterceptors['inbound']>[number]['execute']>
>[0]['headers'];
type WithHeaders = { readonly headers: Headers };

/** A larger header is dropped: the history would have it again with each activity. */
const MAX_TRACE_BYTES = 2_048;

/**
 * Passes the trace of whoever has started the run, or has sent the newest message, to its activities and to
 * the runs that it starts. It costs nothing in a run without one. OpenTelemetry itself is not needed in
 * workflow code, where it would be the larger part of the bundle.
 */
function passTrace(): WorkflowInterceptors {
  let trace: Headers[string] | undefined;
  const note = ({ headers }: WithHeaders): void => {
    const given = headers[TRACE_HEADER];
    if (given !== undefined && (given.data?.length ?? 0) <= MAX_TRACE_BYTES) trace = given;
  };
  const traced = <Input extends WithHeaders>(input: Input): Input =>
    trace === undefined || input.headers[TRACE_HEADER] !== undefined
      ? input
      : { ...input, headers: { ...input.headers, [TRACE_HEADER]: trace } };
  // None is async, because a promise more would change the order of commands.
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
