import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { startStub } from '../../src/testing/stub-server.js';
import { reply } from '../../src/testing/steps.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { gate } from '../support/gate.js';
import { startLedger } from '../support/ledger.js';
import { expectKeptReplays } from '../support/replays.js';
import { createDesk, type Desk } from '../support/requests.js';
import { segmentsOf } from '../support/segments.js';
import { workerChild, workerHere, type WorkerChild } from '../support/worker-child.js';

let desk: Desk;
let home: string;
const children: WorkerChild[] = [];
beforeAll(async () => {
  desk = await createDesk();
  home = await mkdtemp(join(tmpdir(), 'perdure-killed-plan-'));
});
afterAll(async () => {
  await Promise.all(children.map((each) => each.kill()));
  await desk.close();
  await rm(home, { recursive: true, force: true });
  await expectKeptReplays();
});

const plan = JSON.stringify({
  actions: [
    { id: 'a1', tool: 'note', arguments: { what: 'one' } },
    { id: 'a2', tool: 'note', arguments: { what: { $ref: 'a1', path: 'id' } } },
    { id: 'a3', tool: 'wipe', arguments: { what: 'old' } },
    { id: 'a4', tool: 'note', arguments: { what: 'last' }, after: ['a2', 'a3'] },
  ],
});

describe('a worker that is killed', () => {
  test.each(['planning', 'at the confirmation', 'executing'] as const)(
    'while it is %s executes each action of the plan once',
    { timeout: 120_000 },
    async (when) => {
      const [ledger, stub] = [await startLedger(), await startStub()];
      const queue = `planner-${randomUUID()}`;
      const env = {
        ADDRESS: inject('temporalAddress'),
        QUEUE: queue,
        LEDGER: ledger.url,
        PERDURE_HOME: home,
        OPENAI_BASE_URL: stub.baseUrl,
        OPENAI_API_KEY: 'x',
      };
      const held = gate();
      if (when === 'executing') {
        ledger.onAttempt = async (number, at) => {
          if (number === 2 && at === 'after') await held.wait();
        };
      }
      const planning = stub.barrier('planning');
      const first = await workerChild(env);
      children.push(first);
      stub.script(
        ...(when === 'planning' ? [reply.text(plan, { holdBeforeHeaders: 'planning' })] : []),
        reply.text(plan),
        reply.text('All done.'),
      );
      const handle = await desk.rig.client.workflow.start('agent', {
        taskQueue: queue,
        workflowId: queue,
        args: [{ agent: 'planner', message: 'go' }],
      });
      if (when === 'planning') await planning.reached;
      else await desk.statusWhere(handle, ({ status }) => status === 'waiting_decision');
      if (when === 'executing') {
        await desk.decide(handle, { as: 'approve' });
        await held.reached;
      }
      await first.kill();
      held.release();
      planning.release();
      const second = await workerHere(env);
      if (when !== 'executing') {
        await desk.statusWhere(handle, ({ status }) => status === 'waiting_decision');
        await desk.decide(handle, { as: 'approve' });
      }
      const { outcome } = await desk.end(handle);
      expect(outcome).toMatchObject({ status: 'completed', answer: 'All done.' });
      await second.stop();
      await Promise.all([ledger.close(), stub.close()]);
      const done = [...ledger.effects].map(
        (key) => ledger.attempts.find((one) => one.key === key)?.tool ?? '',
      );
      expect(done.toSorted()).toEqual(['note last', 'note one', 'note one', 'wipe old']);
    },
  );
});

describe('a plan of 200 actions', () => {
  const width = 50;
  const wide = JSON.stringify({
    actions: Array.from({ length: 200 }, (_, index) => ({
      id: `a${index}`,
      tool: 'step',
      arguments: { index },
      ...(index >= width && { after: [`a${index - width}`] }),
    })),
  });

  test('runs fifty at once, each once, through several segments', async () => {
    let running = 0;
    let most = 0;
    const seen: number[] = [];
    const step = defineTool({
      name: 'step',
      description: 'x',
      input: z.object({ index: z.number() }),
      effect: 'keyed',
      execute: async ({ index }) => {
        running += 1;
        most = Math.max(most, running);
        seen.push(index);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return index;
      },
    });
    const agent = planAndExecute({
      name: 'wide',
      instructions: 'x',
      model: 'script',
      tools: [step],
      atOnce: 50,
      limits: { toolCalls: 500 },
    });
    await desk.work([agent], { segment: { steps: 100, bytes: 100_000 } });
    desk.script([wide, 'Done.']);
    const { outcome, handle } = await desk.run({ agent: 'wide', message: 'go' });
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Done.', toolCalls: 200 });
    expect([...seen].toSorted((one, other) => one - other)).toEqual(
      Array.from({ length: 200 }, (_, index) => index),
    );
    expect(most).toBeLessThanOrEqual(50);
    expect((await segmentsOf(desk.rig.client, handle.workflowId)).length).toBeGreaterThan(1);
  });
});

test('a plan that is not answered expires, and none of it is executed', async () => {
  const wipe = defineTool({
    name: 'wipe',
    description: 'x',
    input: z.object({}),
    effect: 'once',
    execute: async () => desk.did('wipe'),
  });
  const agent = planAndExecute({
    name: 'brief',
    instructions: 'x',
    model: 'script',
    tools: [wipe],
    rules: [{ tool: 'wipe', then: 'ask' }],
    confirm: { expires: 200 },
  });
  await desk.work([agent]);
  desk.script([
    JSON.stringify({ actions: [{ id: 'a1', tool: 'wipe', arguments: {} }] }),
    'Nobody agreed, so nothing was wiped.',
  ]);
  const { outcome } = await desk.run({ agent: 'brief', message: 'wipe' });
  expect(outcome.answer).toBe('Nobody agreed, so nothing was wiped.');
  expect(desk.done).toEqual([]);
});
