import { randomUUID } from 'node:crypto';
import { openingMessage, type Script } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import type { Reading } from '../kit/child-side.js';
import { MARK_STEPS, stepEvent } from '../subject/models.js';
import { perStep, stepMarks } from './step-marks.js';

/** The cost of a step. */
export interface StepCost {
  readonly ms: number;
  /** Bytes of history. */
  readonly bytes: number;
  /** Memory of the worker's process. */
  readonly cpuMs: number;
}

/** A late stretch of one run, and the early stretch of another run in the same minutes. */
export interface Leg {
  readonly early: StepCost;
  readonly late: StepCost;
}

/** The early stretch is centered on this step. Both stretches include a change of segment. */
export const NEAR = 100;
const STRETCH = 100;

/** Many at once, so that a worker has optimized its code before it is measured. */
const WARM_UP = { runs: 20, steps: 60 };

/**
 * Runs one run after another, each on its own worker, so that the late stretch of each coincides
 * with the early stretch of the next. Other load on the machine affects both equally.
 */
export async function relay(
  bench: Bench,
  { agent, far, legs }: { readonly agent: string; readonly far: number; readonly legs: number },
): Promise<readonly Leg[]> {
  const done: Leg[] = [];
  let runner = await prepare(bench, agent);
  await runner.start(far + STRETCH);
  while (done.length < legs) {
    await runner.reaches(NEAR + STRETCH / 2);
    const next = await prepare(bench, agent);
    await runner.reaches(far - STRETCH);
    await next.start(done.length + 1 < legs ? far + STRETCH : NEAR + STRETCH);
    await Promise.all([next.reaches(NEAR + STRETCH / 2), runner.end()]);
    done.push({ late: await runner.cost(far), early: await next.cost(NEAR) });
    await runner.leave();
    runner = next;
  }
  await runner.end();
  await runner.leave();
  return done;
}

interface Runner {
  start(steps: number): Promise<void>;
  /**
   * Resolves once this many steps are done, or at once if they already are. Rejects if the run
   * fails.
   */
  reaches(steps: number): Promise<Reading>;
  end(): Promise<void>;
  /** The stretch around a step. */
  cost(around: number): Promise<StepCost>;
  /** Ends the worker. */
  leave(): Promise<void>;
}

async function prepare(bench: Bench, agent: string): Promise<Runner> {
  const worker = await bench.worker('perdure', { SEGMENTS: 'default' });
  const launch = async (script: Script): Promise<Run> => {
    const readings = Array.from({ length: script.steps / MARK_STEPS + 1 }, (_, mark) =>
      worker.next(stepEvent(script.name, mark * MARK_STEPS)),
    );
    const handle = await bench.client.workflow.start('agent', {
      taskQueue: worker.queue,
      workflowId: script.name,
      args: [{ agent, message: openingMessage(script) }],
    });
    const result = handle.result();
    // Whatever waits for the run rejects when the run fails.
    result.catch(() => undefined);
    return { id: script.name, readings, result };
  };
  await Promise.all(
    Array.from({ length: WARM_UP.runs }, async () => {
      const { result } = await launch(scriptOf(WARM_UP.steps));
      await result;
    }),
  );
  let run: Run | undefined;
  const begun = (): Run => {
    if (run === undefined) throw new Error('the run has not begun');
    return run;
  };
  const reaches = async (steps: number): Promise<Reading> => {
    const { readings, result } = begun();
    const reading = readings[steps / MARK_STEPS];
    if (reading === undefined) throw new Error(`no reading for step ${steps}`);
    return await Promise.race([reading, result.then(() => reading)]);
  };
  return {
    reaches,
    leave: () => worker.end(),
    async start(steps) {
      run = await launch(scriptOf(steps));
    },
    async end() {
      await begun().result;
    },
    async cost(around) {
      const [from, to] = [around - STRETCH / 2, around + STRETCH / 2];
      const [first, last] = [await reaches(from), await reaches(to)];
      const marks = await stepMarks(bench.client, begun().id);
      return { ...perStep(marks, { from, to }), cpuMs: (last.cpuMs - first.cpuMs) / STRETCH };
    },
  };
}

interface Run {
  readonly id: string;
  /** The distance between two marks, in steps. */
  readonly readings: readonly Promise<Reading>[];
  readonly result: Promise<unknown>;
}

function scriptOf(steps: number): Script {
  return { name: `flat-${randomUUID()}`, steps, tools: ['change'], bytes: 2_000 };
}
