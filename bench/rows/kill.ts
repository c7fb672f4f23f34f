import type { Script } from '../conversation.js';
import { killPoints } from '../kill/kill-point.js';
import { prepareRun, type Killed } from '../kill/killed-run.js';
import type { Bench } from '../kit/bench.js';
import { recoverySeries, type Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const SCRIPT: Script = { name: 'kill', steps: 6, tools: ['post', 'look'], bytes: 300 };
/**
 * Every model call and tool call except the last reply, after which there may be nothing left to
 * kill.
 */
const ARRIVALS = SCRIPT.steps * (1 + SCRIPT.tools.length);
/** An answer takes 20 ms, and the interval until the next one about as long. */
const MAX_DELAY_MS = 45;
const SEED = 20_261_121;
const AT_ONCE = 4;

/** The greater of heartbeat timeout (10 s) and workflow task timeout (5 s), plus two seconds. */
const RECOVERY_BAR_MS = 12_000;

/** Kills workers with SIGKILL at random points while a second worker stands by. */
export async function measureKill(bench: Bench): Promise<readonly Row[]> {
  const points = killPoints(bench.quick ? 2 : 20, {
    seed: SEED,
    arrivals: ARRIVALS,
    longestDelayMs: MAX_DELAY_MS,
  });
  const killed: Killed[] = [];
  for (let from = 0; from < points.length; from += AT_ONCE) {
    const wave = points.slice(from, from + AT_ONCE);
    const ready = await Promise.all(
      wave.map(async (point) => ({ point, run: await prepareRun(bench, SCRIPT) })),
    );
    killed.push(...(await Promise.all(ready.map(({ point, run }) => run.go(point)))));
  }
  return [
    zero(
      'model',
      'completed model calls repeated',
      killed.map((one) => one.modelRepeats),
    ),
    zero(
      'tool',
      'completed tools repeated',
      killed.map((one) => one.toolRepeats),
    ),
    zero(
      'messages',
      'messages lost or doubled',
      killed.map((one) => one.lost + one.doubled),
    ),
    zero(
      'unfinished',
      'runs that did not complete',
      killed.map((one) => (one.completed ? 0 : 1)),
    ),
    recovery(killed),
  ].map((row) => ({ ...row, what: `kill -9 at ${points.length} points: ${row.what}` }));
}

function zero(name: string, what: string, counts: readonly number[]): Row {
  return {
    name: `kill/${name}`,
    what,
    value: counts.reduce((sum, count) => sum + count, 0),
    unit: 'count',
    bar: { atMost: 0 },
    samples: counts,
    detail: '',
  };
}

function recovery(killed: readonly Killed[]): Row {
  const samples = killed.map((one) => one.nextStepMs);
  const places = ['model', 'tool', 'hand-over'] as const;
  const hit = places.map((place) => {
    const times = killed.filter(({ killedIn }) => killedIn === place).map((one) => one.nextStepMs);
    return `${times.length} in ${place}${times.length > 0 ? ` (${show(median(times))} ms)` : ''}`;
  });
  return {
    name: 'kill/next-step',
    what: 'to the next recorded step, at the latest',
    value: Math.max(...samples),
    unit: 'ms',
    bar: { atMost: RECOVERY_BAR_MS },
    samples,
    detail: `median ${show(median(samples))} ms; killed ${hit.join(', ')}`,
    series: [recoverySeries('perdure', samples)],
  };
}
