import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { Rule } from '../../src/core/definition/rules.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { parseRecording } from '../../src/recordings/parse-recording.js';
import { recordRun } from '../../src/recordings/record-run.js';
import { rerun } from '../../src/recordings/rerun.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { gate } from '../support/gate.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';

let desk: Desk;
let client: PerdureClient;
beforeAll(async () => {
  desk = await createDesk(await createMemoryRig());
  client = await clientOf(desk.rig);
});
afterAll(async () => {
  await client.disconnect();
  await desk.close();
});

/** A graph that pays for items one after the other. `mayCheck`: resolves when the rules of an item may be checked. */
const paying = (mayCheck: (n: number) => Promise<void>, rules: readonly Rule[] = []) => {
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    effect: 'once',
    approval: async ({ n }) => {
      await mayCheck(n);
      return true;
    },
    input: z.object({ n: z.number() }),
    execute: ({ n }) => `paid ${n}`,
  });
  return defineGraph({
    name: 'payer',
    rules,
    state: z.object({ all: z.array(z.number()), paid: z.unknown() }),
    nodes: ({ each }) => ({
      pay: each({
        over: (s) => s.all,
        atOnce: 1,
        tool: pay,
        arguments: (_, n) => ({ n }),
        save: 'paid',
      }),
    }),
  }).wire({ start: 'pay', edges: { pay: 'end' } });
};

/** Records a run in which a grant was given while two later items were not checked yet. */
async function recorded() {
  const granted = gate();
  await desk.work([
    paying(async (n) => {
      if (n > 2) await granted.wait();
    }),
  ]);
  const handle = await desk.rig.start({ agent: 'payer', input: { all: [1, 2, 3, 4] } });
  await desk.statusWhere(handle, ({ pending }) => pending.length === 2);
  await desk.decide(handle, { as: 'approve', by: 'ann', grant: { scope: 'tool' } });
  granted.release();
  await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
  await desk.decide(handle, { as: 'approve', by: 'ann' });
  const { outcome } = await desk.end(handle);
  expect(outcome).toMatchObject({ status: 'completed', toolCalls: 4 });
  return parseRecording(JSON.parse(JSON.stringify(await recordRun(client, handle.workflowId))));
}

test('a grant that a person has given in the middle of an each covers the items after it', async () => {
  const { divergence } = await rerun(await recorded(), { agent: paying(async () => {}) });
  expect(divergence?.text).toBeUndefined();
});

test('a rule of the rerun that does not let that person decide is said', async () => {
  const agent = paying(async () => {}, [
    {
      tool: 'pay',
      then: 'ask',
      deciders: ['boss'],
      where: { op: 'over', path: 'n', value: 3 },
    },
  ]);
  const { divergence } = await rerun(await recorded(), { agent });
  expect(divergence?.text).toMatch(/asked for a decision about "pay .*n: 4"; recorded none/s);
});
