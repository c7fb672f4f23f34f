import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { defineAgent } from '../../agents/define-agent.js';
import { openClient } from '../../client/create-client.js';
import { defineConfig } from '../../config.js';
import type { Model } from '../../models/model.js';
import type { ServerHandle } from '../../server/server-settings.js';
import { defineTool } from '../../tools/define-tool.js';
import { startWorker } from '../../worker/create-worker.js';
import { installRuntime } from '../../worker/log.js';
import { BENCH, type Probe, type ProbePlace, removeRuns, withProbe } from './probe.js';

const [TRIVIAL_CALLS, BARE_STEPS, STEPS] = [20, 20, 20];
/** How many runs there are at once when throughput is measured. */
export const RUNS = 10;

/** What the server does without a worker, in ms; medians. */
export interface BareFigures {
  /** A call that needs no database. */
  readonly roundTripMs: number;
  /** A call that writes. */
  readonly writeMs: number;
  /** From the end of a write until the next task arrives. */
  readonly dispatchMs: number;
  /** A step of two activities whose tasks this process answers itself, at once. */
  readonly bareStepMs: number;
}

/** What perdure does on that server, with a worker in this process. */
export interface RunFigures {
  readonly stepMs: number;
  /** CPU time of this process, with 10 runs at once. */
  readonly cpuMsPerStep: number;
  readonly stepsPerSecond: number;
}

export async function measureBare(place: ProbePlace): Promise<BareFigures> {
  const { connection } = place;
  const trips: number[] = [];
  for (let call = 0; call < TRIVIAL_CALLS; call += 1) {
    place.signal.throwIfAborted();
    trips.push(await timed(async () => void (await connection.workflowService.getSystemInfo({}))));
  }
  return { roundTripMs: median(trips), ...(await withProbe(place, bareSteps)) };
}

/** The shape of an agent's step: a workflow task that starts an activity, twice. */
async function bareSteps(probe: Probe): Promise<Omit<BareFigures, 'roundTripMs'>> {
  const { service, namespace } = probe;
  const [writes, waits, steps]: [number[], number[], number[]] = [[], [], []];
  const activity = async (): Promise<void> => {
    const task = await arrival(waits, async () => await probe.take('workflow'));
    writes.push(await timed(async () => await probe.finish(task, 'scheduleActivity')));
    const taskToken = await arrival(waits, async () => await probe.take('activity'));
    const answer = { namespace, taskToken, identity: BENCH };
    writes.push(await timed(async () => void (await service.respondActivityTaskCompleted(answer))));
  };
  for (let step = 0; step < BARE_STEPS; step += 1) {
    steps.push(
      await timed(async () => {
        await activity();
        await activity();
      }),
    );
  }
  return { writeMs: median(writes), dispatchMs: median(waits), bareStepMs: median(steps) };
}

async function arrival<T>(waits: number[], take: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  const taken = await take();
  waits.push(performance.now() - begun);
  return taken;
}

/**
 * Runs an agent with a model that costs nothing, alone and with others, on a task queue and in a folder
 * that are removed afterwards, with everything that the runs have stored.
 */
export async function measureRuns(
  { connection, namespace, signal }: ProbePlace,
  { address }: Pick<ServerHandle, 'address'>,
  env: NodeJS.ProcessEnv,
): Promise<RunFigures> {
  signal.throwIfAborted();
  const taskQueue = `${BENCH}-${randomUUID()}`;
  const home = await mkdtemp(join(tmpdir(), `${BENCH}-home-`));
  // Large texts and archives stay in the folder, even if the workers of this environment use S3.
  const { PERDURE_STORE: _, ...rest } = env;
  const place = { address, namespace, taskQueue, home, env: { ...rest, PERDURE_HOME: home } };
  const ids: string[] = [];
  const config = defineConfig({ agents: [stepper], models: { [BENCH]: model } });
  const shutdownGrace = '1 second';
  installRuntime('ERROR');
  const worker = await startWorker({ config, ...place, shutdownGrace }, { erases: false });
  try {
    await using client = await openClient({ config, ...place });
    const run = async (): Promise<void> => {
      signal.throwIfAborted();
      const id = `${taskQueue}-${ids.length}`;
      ids.push(id);
      const { status } = await client.run(stepper, { message: 'Do the steps.', id, signal });
      if (status !== 'completed') throw new Error(`a run of the measurement has ended: ${status}`);
    };
    // The first run loads code.
    await run();
    const stepMs = median([await timed(run), await timed(run), await timed(run)]) / STEPS;
    const before = process.cpuUsage();
    const ms = await timed(async () => {
      const ends = await Promise.allSettled(Array.from({ length: RUNS }, run));
      const failed = ends.find((end) => end.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
    });
    const { user, system } = process.cpuUsage(before);
    const steps = RUNS * STEPS;
    return {
      stepMs,
      cpuMsPerStep: (user + system) / 1_000 / steps,
      stepsPerSecond: (1_000 * steps) / ms,
    };
  } finally {
    await removeRuns(connection, namespace, ids);
    await worker.shutdown();
    await rm(home, { recursive: true, force: true });
  }
}

const stepper = defineAgent({
  name: BENCH,
  instructions: 'Do the steps.',
  model: BENCH,
  tools: [
    defineTool({
      name: 'work',
      description: 'does a step',
      input: z.object({ step: z.int() }),
      effect: 'read',
      execute: () => 'done',
    }),
  ],
  limits: { steps: null, toolCalls: null },
});

const model: Model = {
  async call({ messages }) {
    const step = messages.filter(({ role }) => role === 'assistant').length;
    const isDone = step >= STEPS;
    return {
      text: isDone ? 'Done.' : '',
      calls: isDone ? [] : [{ name: 'work', arguments: JSON.stringify({ step }) }],
      finish: isDone ? 'stop' : 'calls',
      usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0 },
    };
  },
};

async function timed(work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
