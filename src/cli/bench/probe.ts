import { randomUUID } from 'node:crypto';
import type { Connection } from '@temporalio/client';
import { msToTs } from '../../temporal/sdk-internals.js';

/** The type of the workflows, and the prefix of the ids of everything that `bench` starts. */
export const BENCH = 'perdure-bench';
/** The server ends the workflows by then, should the process be killed before it deletes them. */
const MAX_MS = 120_000;
const POLL_MS = 5_000;
/** The values of Temporal's API for these commands. */
const COMMANDS = { scheduleActivity: 1, continueAsNew: 10 } as const;

/** A workflow of its own, on a task queue of its own, that this process handles without a worker. */
export interface Probe {
  readonly service: Connection['workflowService'];
  readonly namespace: string;
  readonly queue: string;
  readonly workflowId: string;
  /** The first run of the workflow. */
  readonly runId: string;
  /** Takes the next task of the workflow, and returns its token. Throws if there is none. */
  take(what: 'workflow' | 'activity'): Promise<Uint8Array>;
  /** Completes a workflow task, and asks the server for what comes next. */
  finish(taskToken: Uint8Array, next?: keyof typeof COMMANDS): Promise<void>;
  /** Makes a call that the server either refuses at once or answers late. */
  readonly within: <T>(ms: number, call: () => Promise<T>) => Promise<T>;
}

/** Where probes run. Its connection must not repeat calls that the server refuses. */
export interface ProbePlace {
  readonly connection: Connection;
  readonly namespace: string;
  readonly signal: AbortSignal;
}

/** Starts a workflow, uses it, and deletes it with all its runs, also if `use` fails. */
export async function withProbe<T>(
  { connection, namespace, signal }: ProbePlace,
  use: (probe: Probe) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const service = connection.workflowService;
  const workflowId = `${BENCH}-${randomUUID()}`;
  const queue = { name: workflowId };
  const identity = BENCH;
  const { runId } = await service.startWorkflowExecution({
    namespace,
    workflowId,
    workflowType: { name: BENCH },
    taskQueue: queue,
    requestId: randomUUID(),
    identity,
    workflowExecutionTimeout: msToTs(MAX_MS),
  });
  const within: Probe['within'] = async (ms, call) =>
    await connection.withAbortSignal(
      signal,
      async () => await connection.withDeadline(Date.now() + ms, call),
    );
  const probe: Probe = {
    service,
    namespace,
    queue: workflowId,
    workflowId,
    runId,
    within,
    async take(what) {
      const request = { namespace, taskQueue: queue, identity };
      const { taskToken } = await within<{ readonly taskToken: Uint8Array }>(
        POLL_MS,
        async () =>
          await (what === 'workflow'
            ? service.pollWorkflowTaskQueue(request)
            : service.pollActivityTaskQueue(request)),
      );
      if (taskToken.length === 0) throw new Error('the server handed out no task');
      return taskToken;
    },
    async finish(taskToken, next) {
      const commands = next === undefined ? [] : [commandFor(next, queue)];
      await service.respondWorkflowTaskCompleted({ namespace, taskToken, identity, commands });
    },
  };
  try {
    return await use(probe);
  } finally {
    await removeRuns(connection, namespace, [workflowId]);
  }
}

function commandFor(next: keyof typeof COMMANDS, taskQueue: { readonly name: string }) {
  const commandType = COMMANDS[next];
  if (next === 'continueAsNew') {
    const continueAsNewWorkflowExecutionCommandAttributes = {
      workflowType: { name: BENCH },
      taskQueue,
      workflowRunTimeout: msToTs(MAX_MS),
      workflowTaskTimeout: msToTs(MAX_MS),
    };
    return { commandType, continueAsNewWorkflowExecutionCommandAttributes };
  }
  const scheduleActivityTaskCommandAttributes = {
    activityId: randomUUID(),
    activityType: { name: BENCH },
    taskQueue,
    startToCloseTimeout: msToTs(MAX_MS),
    scheduleToCloseTimeout: msToTs(MAX_MS),
  };
  return { commandType, scheduleActivityTaskCommandAttributes };
}

/** Deletes workflows, open or ended, with the runs that they have continued. Never rejects. */
export async function removeRuns(
  { workflowService: service }: Connection,
  namespace: string,
  ids: readonly string[],
): Promise<void> {
  const remove = async (workflowId: string): Promise<void> => {
    for (let runId = ''; ;) {
      const workflowExecution = { workflowId, runId };
      const described = await service
        .getWorkflowExecutionHistory({
          namespace,
          execution: workflowExecution,
          maximumPageSize: 1,
        })
        .catch(() => null);
      if (described === null) return;
      const [first] = described.history?.events ?? [];
      await service.deleteWorkflowExecution({ namespace, workflowExecution });
      runId = first?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? '';
      if (runId === '') return;
    }
  };
  await Promise.allSettled(ids.map(remove));
}
