import type { Agent } from '../../src/agents/agent.js';
import { recordingOf, rerun } from '../../src/recordings/rerun.js';
import { runInMemory } from '../../src/testing.js';
import type { MemoryRun } from '../../src/memory/memory-run.js';
import { openingMessage } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import type { Row } from '../row.js';
import { median, quantile } from '../statistics.js';
import { benchAgents } from '../subject/agents.js';
import { scriptedModel } from '../subject/models.js';
import { show } from '../table.js';

const STEPS = 20;
const WARM_UP = { quick: 1, whole: 5 };
const RUNS = { quick: 3, whole: 30 };
const RERUNS = { quick: 3, whole: 100 };

/** Wall time, and CPU time of all threads of this process. */
interface Timed {
  readonly ms: number;
  readonly cpuMs: number;
}

/** Measures a run without a server, and a recorded run that is executed again. */
export async function measureInMemory(bench: Bench): Promise<readonly Row[]> {
  const size = bench.quick ? 'quick' : 'whole';
  const message = openingMessage({ name: 'memory', steps: STEPS, tools: ['work'], bytes: 500 });
  const agent = scriptedAgent();
  const run = async (): Promise<Pick<MemoryRun, 'history'>> =>
    await runInMemory(agent, { models: { scripted: scriptedModel }, message });
  const runs = await repeated(WARM_UP[size], RUNS[size], async () => void (await run()));
  const recording = recordingOf(await run(), { blobs: {} });
  const reruns = await repeated(WARM_UP[size], RERUNS[size], async () => {
    const { divergence } = await rerun(recording, { agent });
    if (divergence !== null) throw new Error(divergence.text);
  });
  const times = runs.map(({ ms }) => ms);
  return [
    {
      name: 'in-memory/run',
      what: `a run of ${STEPS} steps in memory`,
      value: median(times),
      unit: 'ms',
      bar: { atMost: 40 },
      samples: times,
      detail: described(runs),
    },
    {
      name: 'in-memory/rerun',
      what: `${reruns.length} recorded runs of ${STEPS} steps, executed again one after another`,
      value: reruns.reduce((sum, { ms }) => sum + ms, 0) / 1_000,
      unit: 's',
      bar: { atMost: 3 },
      samples: [],
      detail: `each ${described(reruns)}`,
    },
  ];
}

function scriptedAgent(): Agent {
  const agents = benchAgents({ ledgerUrl: '', tell: () => undefined });
  const agent = agents.find(({ name }) => name === 'scripted');
  if (agent === undefined) throw new Error('benchAgents has no agent "scripted"');
  return agent;
}

/** The times of each repeat, after some that warm up. */
async function repeated(
  warmUp: number,
  count: number,
  work: () => Promise<void>,
): Promise<readonly Timed[]> {
  const times: Timed[] = [];
  for (let at = -warmUp; at < count; at += 1) {
    const begun = performance.now();
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    const timed = { ms: performance.now() - begun, cpuMs: (user + system) / 1_000 };
    if (at >= 0) times.push(timed);
  }
  return times;
}

function described(times: readonly Timed[]): string {
  const wall = times.map(({ ms }) => ms);
  const cpu = times.map(({ cpuMs }) => cpuMs);
  return (
    `median ${show(median(wall))} ms, least ${show(quantile(wall, 0))} ms; ` +
    `CPU: median ${show(median(cpu))} ms, least ${show(quantile(cpu, 0))} ms`
  );
}
