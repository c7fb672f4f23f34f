import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { replyError, replyReset, type Reply, withDelivery } from '../../src/testing/replies.js';
import type { Script } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import type { Figure } from '../report/results.js';
import { recoverySeries } from '../row.js';
import { median } from '../statistics.js';
import { repliesIn, stubAnswer } from '../subject/models.js';
import type { Part, Sizes } from './measures.js';
import type { Side } from './sides.js';

/** The model call that is disturbed, counted from 0. */
const AT_STEP = 2;
const STEPS = 4;
const RESETS = 4;
/** Long enough for a run to give up or to settle. */
const WATCHED_MS = 60_000;

const scriptOf = (name: string, steps = STEPS, bytes = 500): Script => ({
  name,
  steps,
  tools: ['work'],
  bytes,
});

/** From `kill -9` during a model call until the next request of the run; all sides at the same time. */
export async function killed(bench: Bench, sides: readonly Side[], sizes: Sizes): Promise<Part> {
  const samples = new Map<string, number[]>(sides.map(({ name }) => [name, []]));
  for (let repeat = 0; repeat < Math.ceil(sizes.repeats / 7); repeat += 1) {
    await Promise.all(
      sides.map(async (side) => samples.get(side.name)?.push(await killOnce(bench, side))),
    );
  }
  const figures = sides.map(({ name: side }): Figure => {
    const values = (samples.get(side) ?? []).map((ms) => ms / 1_000);
    const what = 'kill -9 during a model call: until the next request';
    return { what, side, value: median(values), unit: 's', samples: values };
  });
  return { figures, series: [...samples].map(([side, ms]) => recoverySeries(side, ms)) };
}

/** Kills the worker of a run during a model call. Returns the milliseconds until another repeats the call. */
export async function killOnce(bench: Bench, side: Side): Promise<number> {
  const own = await side.fresh();
  const held = holdOnce(bench);
  const id = await own.start(held.script);
  await held.reached;
  const second = await own.second();
  const at = Date.now();
  await own.worker.kill();
  const ms = (await held.repeated) - at;
  await bench.client.workflow.getHandle(id).result();
  await second.end();
  return ms;
}

/** A conversation of which one model call is held until its process is killed, and answered when it comes again. */
export function holdOnce({ stub }: Bench): {
  readonly script: Script;
  readonly reached: Promise<unknown>;
  /** When the call came again. */
  readonly repeated: Promise<number>;
} {
  const name = `killed-${randomUUID()}`;
  const barrier = stub.barrier(name);
  let isHeld = false;
  let repeat = (_at: number): void => undefined;
  const repeated = new Promise<number>((resolve) => {
    repeat = resolve;
  });
  stub.answer((request) => {
    if (!request.text.includes(name)) return undefined;
    if (repliesIn(request) !== AT_STEP) return stubAnswer(request);
    if (isHeld) {
      repeat(Date.now());
      return stubAnswer(request);
    }
    isHeld = true;
    return withDelivery(stubAnswer(request), { holdBeforeHeaders: name });
  });
  return { script: scriptOf(name), reached: barrier.reached, repeated };
}

/** What becomes of a run whose connection is reset several times, and of one without credit. */
export async function refused(bench: Bench, sides: readonly Side[]): Promise<Part> {
  const reset = `${RESETS} connection resets`;
  const quota = 'insufficient_quota';
  const figures = await Promise.all(
    sides.flatMap((side) => [
      watched(bench, side, reset, (tries) => (tries <= RESETS ? replyReset() : undefined)),
      watched(bench, side, quota, () => replyError(429, NO_CREDIT)),
    ]),
  );
  return { figures, series: [] };
}

const NO_CREDIT = {
  message: 'You exceeded your current quota.',
  type: 'insufficient_quota',
  code: 'insufficient_quota',
};

async function watched(
  bench: Bench,
  side: Side,
  what: string,
  fault: (tries: number) => Reply | undefined,
): Promise<Figure> {
  const name = `watched-${randomUUID()}`;
  let tries = 0;
  bench.stub.answer((request) => {
    if (!request.text.includes(name)) return undefined;
    if (repliesIn(request) !== AT_STEP) return stubAnswer(request);
    tries += 1;
    return fault(tries) ?? stubAnswer(request);
  });
  const id = await side.start(scriptOf(name));
  const handle = bench.client.workflow.getHandle(id);
  const settled = handle.result().then(
    () => true,
    () => true,
  );
  // A run that neither ends nor gives up is what this looks for, so the wait has an end.
  await Promise.race([settled, pause(WATCHED_MS)]);
  const value = `${await stateOf(bench, id)}, ${tries} requests`;
  await handle.terminate().catch(() => undefined);
  return { what, side: side.name, value, unit: '', samples: [] };
}

/** perdure's own status, which tells `blocked` from `running`, or Temporal's. */
async function stateOf({ client }: Bench, id: string): Promise<string> {
  const { status, searchAttributes, type } = await client.workflow.getHandle(id).describe();
  const own = searchAttributes['AgentStatus']?.[0];
  return type === 'agent' && own !== undefined ? String(own) : status.name.toLowerCase();
}

/** The step at which the server ends a run for the size of its history. */
export async function sizeLimit(
  bench: Bench,
  sides: readonly Side[],
  steps: number,
): Promise<Part> {
  const figures: Figure[] = [];
  for (const side of sides) {
    const name = `limit-${randomUUID()}`;
    let reached = 0;
    bench.stub.answer((request) => {
      if (!request.text.includes(name)) return undefined;
      reached = Math.max(reached, repliesIn(request));
      return stubAnswer(request);
    });
    const id = await side.start(scriptOf(name, steps, 2_000));
    const isDone = await bench.client.workflow
      .getHandle(id)
      .result()
      .then(
        () => true,
        () => false,
      );
    const value = isDone ? `not within ${steps} steps` : `step ${reached}`;
    const what = 'the server ends the run at (messages of 2 kB)';
    figures.push({ what, side: side.name, value, unit: '', samples: [] });
  }
  return { figures, series: [] };
}
