/**
 * `npm run chaos -- --seed N --minutes M`: runs agents while workers and the server are killed,
 * workers freeze and come back, connections are cut, clocks jump, storage goes away, and the model
 * fails, then checks invariants
 * I1–I12. It prints the seed, what was done, and every violation; the exit code is 1 if there is
 * one.
 */
import { parseArgs } from 'node:util';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { createClient } from '../src/index.js';
import { installRuntime } from '../src/worker/log.js';
import { keepEvidence } from './evidence.js';
import { inflict, nextFaults } from './faults.js';
import { violations } from './invariants.js';
import { answerAll } from './model.js';
import { answerRequests } from './person.js';
import { seeded } from './random.js';
import { createSchedules, scheduleFaults } from './schedules.js';
import { traffic, type ChaosRun } from './traffic.js';
import { createWorld, QUEUE } from './world.js';

const { values } = parseArgs({
  options: { seed: { type: 'string' }, minutes: { type: 'string', default: '10' } },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const minutes = Number(values.minutes);
if (!Number.isInteger(seed)) throw new Error(`--seed: expected a whole number, got ${values.seed}`);
if (!(minutes > 0)) throw new Error(`--minutes: expected a number above 0, got ${values.minutes}`);

installRuntime('ERROR');
const places = seeded(seed + 6);
const canary = `sk-proj-chaos${seed}canary9f3b7c21d8e4`;
const faults = new AbortController();
const world = await createWorld({ OPENAI_API_KEY: canary }, () =>
  faults.signal.aborted ? [] : nextFaults(places),
);
const model = answerAll(world.stub, seed, canary);
const connection = await Connection.connect({ address: world.address });
const client = new Client({ connection });
const perdure = await createClient({
  address: world.links.client.address,
  taskQueue: QUEUE,
  env: { PERDURE_HOME: world.home },
});
console.log(`seed ${seed}, ${minutes} min; page and histories: ${world.address}`);

const people = new AbortController();
const runs: ChaosRun[] = [];
let isKept = true;
const progress = setInterval(() => {
  const over = runs.filter(({ isOver }) => isOver).length;
  console.log(`${over} of ${runs.length} runs over, ${world.ledger.attempts} tool attempts`);
}, 30_000);
try {
  await createSchedules(perdure);
  const working = traffic(perdure, { seed, signal: faults.signal, runs });
  const resolving = answerRequests(perdure, {
    ledger: world.ledger,
    runs,
    seed,
    signal: people.signal,
  });
  const harming = inflict(world, seed, faults.signal);
  // None of these ends earlier; if one fails, the chaos run ends.
  await Promise.race([pause(minutes * 60_000), working, resolving, harming]);
  faults.abort();
  const tally = await harming;
  model.calm();
  await working;
  people.abort();
  const resolved = await resolving;
  const scheduled = await scheduleFaults(perdure, { client, ledger: world.ledger });
  const found = [
    ...(await violations(runs, { client, perdure, world, model, canary })),
    ...scheduled.faults,
  ];
  const faultKills = world.workers.reduce((sum, slot) => sum + slot.faultKills, 0);
  const turns = runs.reduce((sum, { outcomes }) => sum + outcomes.length, 0);
  console.log(
    `${runs.length} runs, ${scheduled.runs} scheduled runs, ${turns} turns, ${model.summaries} summaries, ${world.stub.requestCount} model requests, ` +
      `${world.ledger.attempts} tool attempts; ${tally.kills} workers killed, ` +
      `${faultKills} killed just before or after a call, ${tally.zombies} frozen, ` +
      `${tally.serverKills} server kills, ${tally.outages} storage outages, ` +
      `${tally.cuts} cut connections, ${tally.jumps} clock jumps, ${resolved} decisions of people, ` +
      `${world.ledger.refused.length} late payments refused by the ledger`,
  );
  console.log(`turns by agent: ${countAgents(runs)}`);
  console.log(`turns by end: ${countEnds(runs)}`);
  for (const violation of found) console.log(violation);
  console.log(`seed ${seed}: ${found.length} violations`);
  isKept = found.length > 0;
  if (isKept) console.log(`evidence: ${await keepEvidence(found, { client, world, runs })}`);
  process.exitCode = found.length > 0 ? 1 : 0;
} finally {
  clearInterval(progress);
  await perdure.disconnect();
  await connection.close();
  await world.close({ keep: isKept });
  if (isKept) console.log(`kept: ${world.home}`);
}

/** How many turns each agent has ended, such as `planner 12`. */
function countAgents(ended: readonly ChaosRun[]): string {
  const counts = new Map<string, number>();
  for (const { agent, outcomes } of ended) {
    counts.set(agent, (counts.get(agent) ?? 0) + outcomes.length);
  }
  return [...counts].map(([agent, count]) => `${agent} ${count}`).join(', ');
}

/** How many turns ended in each way, such as `completed (answer) 12`. */
function countEnds(ended: readonly ChaosRun[]): string {
  const counts = new Map<string, number>();
  for (const { status, reason } of ended.flatMap(({ outcomes }) => outcomes)) {
    const end = `${status} (${reason})`;
    counts.set(end, (counts.get(end) ?? 0) + 1);
  }
  return [...counts].map(([end, count]) => `${end} ${count}`).join(', ');
}
