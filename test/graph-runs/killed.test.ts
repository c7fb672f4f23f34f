import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { gate } from '../support/gate.js';
import { killTogether } from '../support/kill-together.js';
import { startLedger, type Ledger } from '../support/ledger.js';
import { expectKeptReplays } from '../support/replays.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';

/** The attempts in order: run, route, three items, the nested graph, the tool, the last run. */
const PLACES = [
  { kind: 'run', number: 1, when: 'after' },
  { kind: 'route', number: 2, when: 'before' },
  { kind: 'each', number: 4, when: 'after' },
  { kind: 'nested graph', number: 6, when: 'after' },
  { kind: 'tool', number: 7, when: 'before' },
].map((place) => ({ ...place, id: `walker-${randomUUID()}`, gate: gate() }));

/** Nodes with a model call in which the worker is killed. */
const CALLS = ['decide', 'agent'].map((kind) => ({ kind, id: `decider-${randomUUID()}` }));

let rig: Rig;
let home: string;
let ledger: Ledger;
let stub: Stub;
const ends = new Map<string, Ended>();

beforeAll(async () => {
  [rig, ledger, stub] = [await createRig(), await startLedger(), await startStub()];
  home = await mkdtemp(join(tmpdir(), 'perdure-killed-graph-'));
  ledger.onAttempt = async (_, when, entry) => {
    const place = PLACES.find(({ id }) => entry.run?.startsWith(id));
    const number = ledger.attemptsOf(place?.id ?? '').indexOf(entry) + 1;
    if (place?.when === when && place.number === number) await place.gate.wait();
  };
  const decision = [{ name: 'pay', arguments: {} }];
  for (const { kind, id } of CALLS) {
    const held = replyCalls(decision, { holdBeforeHeaders: 'decide' });
    stub.scriptFor(id, ...(kind === 'decide' ? [held] : []), replyCalls(decision));
  }
  // Of the two agents, only one is asked before the kill.
  const paid = replyText('Paid.');
  stub.script(replyText('Paid.', { holdBeforeHeaders: 'agent' }), paid, paid);
  const { handles, stop } = await killTogether(rig.client, {
    env: {
      ADDRESS: inject('temporalAddress'),
      QUEUE: `graphs-${randomUUID()}`,
      LEDGER: ledger.url,
      PERDURE_HOME: home,
      OPENAI_BASE_URL: stub.baseUrl,
      OPENAI_API_KEY: 'x',
    },
    runs: [
      ...PLACES.map((place) => ({
        id: place.id,
        input: { agent: 'walker', input: {} },
        held: () => place.gate.reached,
      })),
      ...CALLS.map(({ kind, id }) => ({
        id,
        input: { agent: 'decider', message: id },
        held: () => stub.barrier(kind).reached,
      })),
    ],
  });
  for (const place of PLACES) place.gate.release();
  for (const { kind } of CALLS) stub.barrier(kind).release();
  const all = await Promise.all(handles.map((handle) => rig.end(handle)));
  for (const ended of all) ends.set(ended.handle.workflowId, ended);
  await stop();
});
afterAll(async () => {
  await Promise.all([rig.close(), ledger.close(), stub.close()]);
  await rm(home, { recursive: true, force: true });
  await expectKeptReplays();
});

test.each(PLACES)(
  'a worker killed in a $kind repeats nothing that had finished',
  ({ id, number: killedAt }) => {
    const outcome = ends.get(id)?.outcome;
    expect(outcome).toMatchObject({ status: 'completed' });
    expect(outcome?.output).toEqual({
      results: [1, 2, 3].map((value) => ({ ok: true, value })),
      n: {},
    });
    const attempts = ledger.attemptsOf(id);
    const keys = new Set(attempts.map(({ key }) => key));
    for (const key of keys) expect(ledger.effects).toContain(key);
    // Two items of the list are under way at the same time, so both may be attempted again.
    expect(keys.size).toBe(8);
    expect(attempts.length - keys.size).toBeLessThanOrEqual(2);
    const repeated = attempts.filter(
      ({ key }, index) => attempts.findIndex((one) => one.key === key) < index,
    );
    const inFlight = new Set(
      attempts.slice(Math.max(0, killedAt - 2), killedAt + 1).map(({ key }) => key),
    );
    for (const { key } of repeated) expect(inFlight).toContain(key);
  },
);

test.each(CALLS)(
  'a worker killed in the model call of a node of kind $kind repeats nothing that had finished',
  ({ id }) => {
    const outcome = ends.get(id)?.outcome;
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Paid.', toolCalls: 1 });
    // The call that was under way is made again, and nothing else.
    stub.assertConsumed();
    expect(ledger.attemptsOf(id)).toHaveLength(1);
  },
);
