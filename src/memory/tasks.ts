import {
  type Update,
  type Segment,
  append,
  isClosed,
  notifyWatchers,
  ENDS,
  type LocalActivity,
  type Outgoing,
  toId,
} from './segment.js';
import { type ActivityResult, optionalTsToMs } from '../temporal/sdk-internals.js';
import { type ActivityHost, TIMEOUT, placeOf, timeoutFailure } from './activities.js';
import { TaskLostError, createAttempt, runAttempt } from './attempt.js';
import { commandRecorded } from './commands.js';
import { follow } from './effects.js';
import { type MemoryServer, TASK_MS, newRunId, scheduleTask } from './server.js';
import {
  CORE_FLAGS,
  type TaskResult,
  type WorkflowHost,
  answerQuery,
  runTask,
} from './workflow-task.js';

/** Runs the tasks and queries of a segment until there are none. */
export function wake(server: MemoryServer, segment: Segment): void {
  if (segment.isDraining) return;
  segment.isDraining = true;
  server.activities.begin();
  drain(server, segment)
    .catch(server.fail)
    .finally(() => {
      segment.isDraining = false;
      server.activities.end();
    });
}

async function drain(server: MemoryServer, segment: Segment): Promise<void> {
  // What happens at the same moment belongs to the same task.
  await Promise.resolve();
  for (;;) {
    const updates = [...segment.updates.values()].filter(({ isDelivered }) => !isDelivered);
    const [query] = segment.queries;
    const isFree = !isClosed(segment) && !segment.inTask;
    if (isFree && (segment.scheduled !== null || updates.length > 0)) {
      await completeTask(server, segment, updates);
    } else if (query !== undefined) {
      segment.queries.shift();
      await answerQuery(hostOf(server), segment, query);
    } else return;
  }
}

function hostOf({ workflows, activities, clock }: MemoryServer): WorkflowHost {
  const runLocal: WorkflowHost['runLocal'] = (segment, local) =>
    runLocalActivity(activities, segment, local);
  return { workflows, now: clock.now, runLocal };
}

async function completeTask(
  server: MemoryServer,
  segment: Segment,
  updates: readonly Update[],
): Promise<void> {
  const at = server.clock.now();
  const isSpeculative = segment.scheduled === null;
  const scheduled = segment.scheduled ?? segment.events.length + 1;
  const bytes = segment.bytes;
  segment.inTask = true;
  for (const update of updates) update.isDelivered = true;
  const begin = (): number => {
    if (isSpeculative) scheduleEvent(segment, at);
    const scheduledEventId = toId(scheduled);
    const attributes = { scheduledEventId, historySizeBytes: toId(bytes) };
    return append(segment, { kind: 'workflowTaskStarted', at, attributes });
  };
  const started = isSpeculative ? scheduled + 1 : begin();
  segment.scheduled = null;
  const task = { started, bytes, at, updates };
  const result = await runTask(hostOf(server), segment, task).catch(unlessLost);
  if (isClosed(segment)) return;
  if (result === null) {
    return loseTask(server, segment, {
      updates,
      place: isSpeculative ? null : { scheduled, started },
    });
  }
  const isIdle = isSpeculative && result.outgoing.length === 0;
  if (isIdle && segment.cached !== null) segment.cached.seen = scheduled - 1;
  if (isSpeculative && !isIdle) begin();
  if (!isIdle) endTask(server, segment, { result, started, scheduled });
  for (const [update, failure] of result.refused) {
    segment.updates.delete(update.id);
    update.outcome = { failure };
    for (const wait of update.waiting) wait();
  }
  segment.inTask = false;
  const buffered = segment.buffered.splice(0);
  for (const event of buffered) event.append();
  if (buffered.length > 0) scheduleTask(server, segment);
  notifyWatchers(segment);
}

function unlessLost(error: unknown): null {
  if (error instanceof TaskLostError) return null;
  throw error;
}

/**
 * The worker of a task has died: the server notices it by the timeout, and gives the task to another
 * worker. `place`: null if the history does not show the task.
 */
function loseTask(
  server: MemoryServer,
  segment: Segment,
  {
    updates,
    place,
  }: {
    readonly updates: readonly Update[];
    readonly place: { readonly scheduled: number; readonly started: number } | null;
  },
): void {
  const { clock } = server;
  clock.set({ at: clock.now() + TASK_MS, kind: 'lost' }, () => {
    if (isClosed(segment)) return;
    segment.inTask = false;
    for (const update of updates) update.isDelivered = false;
    if (place !== null) {
      append(segment, {
        kind: 'workflowTaskTimedOut',
        at: clock.now(),
        attributes: {
          scheduledEventId: toId(place.scheduled),
          startedEventId: toId(place.started),
          timeoutType: START_TO_CLOSE,
        },
      });
    }
    for (const event of segment.buffered.splice(0)) event.append();
    scheduleTask(server, segment);
    server.wake(segment);
  });
}

/** `TIMEOUT_TYPE_START_TO_CLOSE`. */
const START_TO_CLOSE = 1;

function scheduleEvent(segment: Segment, at: number): void {
  append(segment, {
    kind: 'workflowTaskScheduled',
    at,
    attributes: { taskQueue: { name: segment.taskQueue }, attempt: 1 },
  });
}

interface TaskEvents {
  readonly result: TaskResult;
  readonly started: number;
  readonly scheduled: number;
}

/** Records the end of a task and its commands, and does what they ask for. */
function endTask(
  server: MemoryServer,
  segment: Segment,
  { result, started, scheduled }: TaskEvents,
): void {
  const at = server.clock.now();
  const place = {
    scheduledEventId: toId(scheduled),
    startedEventId: toId(started),
    identity: 'memory',
  };
  const isEnding = result.outgoing.some(({ kind }) => ENDS.includes(kind));
  if (isEnding && segment.buffered.length > 0) {
    // The workflow would end without having seen what has happened; the server gives the task again.
    append(segment, {
      kind: 'workflowTaskFailed',
      at,
      attributes: { ...place, cause: UNHANDLED_COMMAND },
    });
    segment.cached = null;
    for (const { update } of result.outgoing) if (update) update.isDelivered = false;
    return;
  }
  const completed = append(segment, {
    kind: 'workflowTaskCompleted',
    at,
    attributes: {
      ...place,
      sdkMetadata: {
        coreUsedFlags: [...CORE_FLAGS],
        langUsedFlags: [...result.flags],
        sdkName: 'temporal-typescript',
        sdkVersion: 'memory',
      },
    },
  });
  const effects: (() => void)[] = [];
  for (const outgoing of result.outgoing) {
    const effect = recordCommand(server, segment, { outgoing, completed });
    if (effect !== null) effects.push(effect);
    if (ENDS.includes(outgoing.kind)) break;
  }
  for (const effect of effects) effect();
}

/** `WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND`. */
const UNHANDLED_COMMAND = 1;

/** Records a command as an event. Returns what follows from it. */
function recordCommand(
  server: MemoryServer,
  segment: Segment,
  { outgoing, completed }: { readonly outgoing: Outgoing; readonly completed: number },
): (() => void) | null {
  const { kind, userMetadata } = outgoing;
  const isContinued = kind === 'workflowExecutionContinuedAsNew';
  const next = isContinued ? newRunId(server, segment.workflowId) : '';
  const id = append(segment, {
    kind,
    at: server.clock.now(),
    attributes: outgoing.attributes({ completed, newRunId: next }),
    ...(userMetadata && { userMetadata }),
  });
  if (segment.cached !== null) commandRecorded(segment.cached.machines, outgoing, id);
  const event = segment.events[id - 1];
  return event === undefined ? null : () => follow(server, segment, event);
}

/** Executes a local activity, which has one attempt. Rejects with a `TaskLostError`. */
async function runLocalActivity(
  host: ActivityHost,
  segment: Segment,
  { scheduled: local }: LocalActivity,
): Promise<ActivityResult> {
  const now = Date.now();
  const timeoutMs = optionalTsToMs(local.startToCloseTimeout) ?? 0;
  const attempt = createAttempt(
    host,
    {
      ...placeOf(segment),
      activityId: local.activityId ?? '',
      activityType: local.activityType ?? '',
      attempt: 1,
      isLocal: true,
      heartbeatDetails: undefined,
      scheduledTimestampMs: now,
      currentAttemptScheduledTimestampMs: now,
      startToCloseTimeoutMs: timeoutMs,
      scheduleToCloseTimeoutMs: optionalTsToMs(local.scheduleToCloseTimeout) ?? 0,
    },
    () => undefined,
  );
  const input = { payloads: local.arguments ?? [] };
  const header = { fields: local.headers ?? {} };
  let cancel: (() => void) | undefined;
  const over = new Promise<ActivityResult>((resolve, reject) => {
    host.locals.set(attempt, () => reject(new TaskLostError()));
    const failure = timeoutFailure(TIMEOUT.startToClose);
    const at = host.clock.now() + timeoutMs;
    cancel = host.clock.set({ at, kind: 'timeout' }, () => resolve({ failed: { failure } }));
  });
  try {
    return await Promise.race([runAttempt(host, attempt, { input, header }), over]);
  } finally {
    host.locals.delete(attempt);
    cancel?.();
  }
}
