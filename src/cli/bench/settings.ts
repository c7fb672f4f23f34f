import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DYNAMIC_CONFIG } from '../../server/server-settings.js';
import { messageOf } from '../../server/server-settings.js';
import { GRPC, grpcCode } from '../../temporal/grpc.js';
import { optionalTsToMs } from '../../temporal/sdk-internals.js';
import { tenantsFinding } from '../doctor/tenants.js';
import type { BareFigures } from './measure.js';
import { type Probe, type ProbePlace, withProbe } from './probe.js';

/*
 * A server does not tell its settings. Most of them have an effect that a client can see, so each check does
 * what a setting limits, and looks at the answer. The verdict depends on no time, except for one.
 */

export type Setting = keyof typeof DYNAMIC_CONFIG;

/** What was found out about settings. */
export interface CheckedSetting {
  readonly settings: readonly Setting[];
  /** `unknown`: no effect could be seen. */
  readonly state: 'set' | 'differs' | 'unknown';
  readonly seen: string;
  /** What the setting does for runs. */
  readonly why: string;
}

type Seen = Pick<CheckedSetting, 'state' | 'seen'>;

interface Check extends Pick<CheckedSetting, 'settings' | 'why'> {
  readonly look: (place: ProbePlace) => Promise<Seen>;
}

/** More than the defaults of 10 and 1. */
const [UPDATES, QUERIES] = [14, 4];
/** The server refuses at once what exceeds a limit. */
const REFUSE_MS = 1_500;
const TASK_TIMEOUT_MS = 5_000;
/** A segment that is younger than this waits for the rest of the interval, which is 1 s by default. */
const [YOUNG_MS, SHORT_MS, TRIES] = [700, 150, 3];

export const CHECKS: readonly Check[] = [
  {
    settings: ['matching.numTaskqueueReadPartitions', 'matching.numTaskqueueWritePartitions'],
    why: 'with few workers, more than one partition per task queue only adds forwarding',
    look: async (place) => await withProbe(place, partitions),
  },
  {
    settings: ['history.defaultWorkflowTaskTimeout'],
    why: 'a run makes no progress for this time if its worker is killed during a task',
    look: async (place) => await withProbe(place, taskTimeout),
  },
  {
    settings: ['system.enableCancelActivityWorkerCommand', 'frontend.WorkerCommandsEnabled'],
    why: 'with them, a cancellation reaches a call at once, not with its next heartbeat',
    look: workerCommands,
  },
  {
    settings: ['history.maxInFlightUpdates'],
    why: 'the number of people and programs that can wait for answers of one run at once',
    look: async (place) => await withProbe(place, updates),
  },
  {
    settings: ['history.MaxBufferedQueryCount'],
    why: 'a second reader during a step is refused, and tries again only after a second',
    look: async (place) => await withProbe(place, queries),
  },
  {
    settings: ['history.workflowIdReuseMinimalInterval'],
    why: 'a long run that begins a new segment soon after the last one waits for the rest of it',
    look: interval,
  },
  {
    settings: ['matching.enableFairness'],
    why: 'without it, the server ignores the tenants of runs',
    look: fairness,
  },
];

/** Makes a check; one that fails has seen nothing. */
export async function checkSetting(
  { look, settings, why }: Check,
  place: ProbePlace,
): Promise<CheckedSetting> {
  const seen = await look(place).catch((error: unknown): Seen => {
    place.signal.throwIfAborted();
    return { state: 'unknown', seen: messageOf(error) };
  });
  return { settings, ...seen, why };
}

async function partitions({ service, namespace, queue }: Probe): Promise<Seen> {
  const list = await service.listTaskQueuePartitions({ namespace, taskQueue: { name: queue } });
  const count = Math.max(
    list.workflowTaskQueuePartitions.length,
    list.activityTaskQueuePartitions.length,
  );
  return { state: count === 1 ? 'set' : 'differs', seen: `${count} per task queue` };
}

async function taskTimeout({ service, namespace, workflowId }: Probe): Promise<Seen> {
  const execution = { workflowId };
  const { executionConfig } = await service.describeWorkflowExecution({ namespace, execution });
  const ms = optionalTsToMs(executionConfig?.defaultWorkflowTaskTimeout) ?? Number.NaN;
  return { state: ms <= TASK_TIMEOUT_MS ? 'set' : 'differs', seen: `${ms / 1_000} s` };
}

async function workerCommands({ connection, namespace }: ProbePlace): Promise<Seen> {
  const { namespaceInfo } = await connection.workflowService.describeNamespace({ namespace });
  const isOn = namespaceInfo?.capabilities?.workerCommands === true;
  return { state: isOn ? 'set' : 'differs', seen: isOn ? 'on' : 'off' };
}

async function updates({ within, service, namespace, workflowId }: Probe): Promise<Seen> {
  const update = async (): Promise<unknown> =>
    await service.updateWorkflowExecution({
      namespace,
      workflowExecution: { workflowId },
      // Accepted.
      waitPolicy: { lifecycleStage: 2 },
      request: { meta: { updateId: randomUUID() }, input: { name: 'none' } },
    });
  return await overload(UPDATES, async () => await within(REFUSE_MS, update));
}

async function queries(probe: Probe): Promise<Seen> {
  const { within, service, namespace, workflowId } = probe;
  await probe.finish(await probe.take('workflow'));
  await service.signalWorkflowExecution({
    namespace,
    workflowExecution: { workflowId },
    signalName: 'go',
    requestId: randomUUID(),
  });
  // While this task is in work, queries wait for its end.
  await probe.take('workflow');
  const query = async (): Promise<unknown> =>
    await service.queryWorkflow({
      namespace,
      execution: { workflowId },
      query: { queryType: 'none' },
    });
  return await overload(QUERIES, async () => await within(REFUSE_MS, query));
}

/** Makes calls at once. The ones that the server accepts time out, because no worker answers them. */
async function overload(count: number, call: () => Promise<unknown>): Promise<Seen> {
  const ends = await Promise.allSettled(Array.from({ length: count }, call));
  const codes = ends.map((end) => (end.status === 'rejected' ? grpcCode(end.reason) : null));
  const refused = codes.filter((code) => code === GRPC.resourceExhausted).length;
  const seen = `${refused} of ${count} at once refused`;
  if (refused > 0) return { state: 'differs', seen };
  const isOther = codes.some((code) => code !== GRPC.deadlineExceeded && code !== CANCELLED);
  return isOther
    ? { state: 'unknown', seen: 'the server answered otherwise' }
    : { state: 'set', seen };
}

/** gRPC's code for a call that was cut off at its deadline. */
const CANCELLED = 1;

/** Continues a young workflow in a new run, and reads how long the server makes that one wait. */
async function interval(place: ProbePlace): Promise<Seen> {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const begun = performance.now();
    const { waitMs, ageMs } = await withProbe(place, async (probe) => {
      const { service, namespace, workflowId, runId } = probe;
      await probe.finish(await probe.take('workflow'), 'continueAsNew');
      const age = performance.now() - begun;
      const { workflowExecutionInfo: info } = await service.describeWorkflowExecution({
        namespace,
        execution: { workflowId },
      });
      if (info?.execution?.runId === runId) throw new Error('the workflow did not continue');
      const [at = 0, from = 0] = [info?.executionTime, info?.startTime].map(optionalTsToMs);
      return { waitMs: at - from, ageMs: age };
    });
    const seen = `a new segment waits ${Math.round(waitMs)} ms`;
    if (waitMs > SHORT_MS) return { state: 'differs', seen };
    if (ageMs < YOUNG_MS) return { state: 'set', seen };
    await sleep(100, undefined, { signal: place.signal });
  }
  return { state: 'unknown', seen: 'the server was too slow to tell' };
}

async function fairness({ connection, namespace, signal }: ProbePlace): Promise<Seen> {
  signal.throwIfAborted();
  const { data, text } = await tenantsFinding(connection, { namespace });
  const of = data['ofOthers'];
  const state = typeof of !== 'number' ? 'unknown' : of > 0 ? 'set' : 'differs';
  return { state, seen: text };
}

/** A server that polls in ticks of 50 ms holds a task much longer than a write takes. */
const [TICK_MS, TIMES_A_WRITE] = [25, 3];

/** Judges what only times can show: a busy server may hide the effect, so this never finds a setting set. */
export function checkDelivery({ dispatchMs, writeMs }: BareFigures): CheckedSetting {
  const isLate = dispatchMs >= TICK_MS && dispatchMs >= TIMES_A_WRITE * writeMs;
  return {
    settings: ['history.transferProcessorMaxPollRPS', 'history.transferProcessorMaxPollHostRPS'],
    state: isLate ? 'differs' : 'unknown',
    seen: `a task arrives ${Math.round(dispatchMs)} ms after a write, which takes ${Math.round(writeMs)} ms`,
    why: 'by default, the server delivers tasks in ticks of 50 ms, while a step has four',
  };
}

/** A setting that saves only processor time of the server. */
export const UNSEEN: CheckedSetting = {
  settings: ['system.forceSearchAttributesCacheRefreshOnRead'],
  state: 'unknown',
  seen: 'no client can see it; only `temporal server start-dev` has it on by default',
  why: 'with it, the server reads the namespace from the database for each start of a run',
};
