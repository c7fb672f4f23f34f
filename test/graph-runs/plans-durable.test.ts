import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import type { RunStatus } from '../../src/core/state/status.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { gate } from '../support/gate.js';
import { killTogether } from '../support/kill-together.js';
import { startLedger, type Ledger } from '../support/ledger.js';
import { expectKeptReplays } from '../support/replays.js';
import { createDesk, type Desk } from '../support/requests.js';
import { segmentsOf } from '../support/segments.js';

let desk: Desk;
let home: string;
beforeAll(async () => {
  desk = await createDesk();
  home = await mkdtemp(join(tmpdir(), 'perdure-killed-plan-'));
});
afterAll(async () => {
  await desk.close();
  await rm(home, { recursive: true, force: true });
  await expectKeptReplays();
});

const plan = JSON.stringify({
  actions: [
    { tool: 'note', id: 'a1', arguments: { what: 'one' }, after: [] },
    { tool: 'note', id: 'a2', arguments: { what: { from: 'a1', path: 'id' } }, after: [] },
    { tool: 'wipe', id: 'a3', arguments: { what: 'old' }, after: [] },
    { tool: 'note', id: 'a4', arguments: { what: 'last' }, after: ['a2', 'a3'] },
  ],
  answer: null,
});

/** When the workers of three runs are killed. */
const RUNS = ['planning', 'at the confirmation', 'executing'].map((when) => {
  return { when, id: `planner-${randomUUID()}` };
});

describe('a worker that is killed', () => {
  let stub: Stub;
  let ledger: Ledger;
  let handles: readonly WorkflowHandle[] = [];
  let stop = (): Promise<void> => Promise.resolve();
  const isWaiting = ({ status }: RunStatus): boolean => status === 'waiting_decision';

  beforeAll(async () => {
    [ledger, stub] = [await startLedger(), await startStub()];
    const executing = gate();
    ledger.onAttempt = async (_, at, entry) => {
      const { run = '' } = entry;
      const isSecond = ledger.attemptsOf(run).indexOf(entry) === 1;
      const isDoomed = RUNS.some(({ when, id }) => when === 'executing' && id === run);
      if (isDoomed && isSecond && at === 'after') await executing.wait();
    };
    const planning = stub.barrier('planning');
    for (const { when, id } of RUNS) {
      const lost = replyText(plan, { holdBeforeHeaders: 'planning' });
      const lostFirst = when === 'planning' ? [lost] : [];
      stub.scriptFor(id, ...lostFirst, replyText(plan), replyText('All done.'));
    }
    ({ handles, stop } = await killTogether(desk.rig.client, {
      env: {
        ADDRESS: inject('temporalAddress'),
        QUEUE: `planner-${randomUUID()}`,
        LEDGER: ledger.url,
        PERDURE_HOME: home,
        OPENAI_BASE_URL: stub.baseUrl,
        OPENAI_API_KEY: 'x',
      },
      runs: RUNS.map(({ when, id }) => ({
        id,
        input: { agent: 'planner', message: id },
        held: async (handle) =>
          when === 'planning' ? await planning.reached : await desk.statusWhere(handle, isWaiting),
      })),
      last: async (all) => {
        const handle = all.at(-1);
        if (handle !== undefined) await desk.decide(handle, { as: 'approve' });
        await executing.reached;
      },
    }));
    executing.release();
    planning.release();
  });
  afterAll(async () => {
    await stop();
    await Promise.all([ledger.close(), stub.close()]);
  });

  test.concurrent.each(RUNS)(
    'while it is $when leaves a plan whose actions are done once each',
    async ({ when, id }) => {
      const handle = handles.find(({ workflowId }) => workflowId === id);
      if (handle === undefined) throw new Error(`there is no run ${id}`);
      if (when !== 'executing') {
        await desk.statusWhere(handle, isWaiting);
        await desk.decide(handle, { as: 'approve' });
      }
      const { outcome } = await desk.end(handle);
      expect(outcome).toMatchObject({ status: 'completed', answer: 'All done.' });
      const made = ledger.attemptsOf(id);
      const done = [...ledger.effects].flatMap(
        (key) => made.find((one) => one.key === key)?.tool ?? [],
      );
      expect(done.toSorted()).toEqual(['note last', 'note one', 'note one', 'wipe old']);
      // The provider has accepted and enforced the schema of the plan.
      const format = stub.requests.map(({ body }) => body['response_format']).find(Boolean);
      expect(format).toMatchObject({ type: 'json_schema', json_schema: { strict: true } });
      expect(() => stub.assertConsumed()).not.toThrow(/strict schema/);
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
