import type { WorkflowHandle } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { RunStatus } from '../../src/core/state/status.js';
import type { Decision } from '../../src/core/transcript/request.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { resolveUpdate, undoUpdate } from '../../src/workflows/messages/definitions.js';
import { type Gate, gate } from '../support/gate.js';
import { createDesk, type Desk } from '../support/requests.js';

/*
 * A worker without the run in its cache takes an update together with the events of a workflow task that had no
 * commands, and validates the update before these events. What a run has then done must not be unseen.
 */

let desk: Desk;

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  effect: 'keyed',
  input: z.object({ euros: z.number() }),
  execute: ({ euros }) => desk.did(`pay ${euros}`),
  undo: ({ euros }) => desk.did(`return ${euros}`),
});
const payer = defineAgent({
  name: 'payer',
  instructions: 'Pay.',
  model: 'script',
  tools: [pay],
  rules: [{ tool: 'pay', where: { op: 'over', path: 'euros', value: 5 }, then: 'ask' }],
});

beforeAll(async () => {
  desk = await createDesk();
});
beforeEach(() => desk.reset());
afterEach(() => vi.restoreAllMocks());
afterAll(async () => await desk.close());

/** Holds the first workflow task that the next worker completes. */
function holdFirstTask(): Gate {
  const held = gate();
  const create = Worker.create.bind(Worker);
  vi.spyOn(Worker, 'create').mockImplementationOnce(async (options) => {
    const worker = await create(options);
    const native = Reflect.get(worker, 'nativeWorker') as {
      completeWorkflowActivation: (bytes: Buffer) => Promise<void>;
    };
    const complete = native.completeWorkflowActivation;
    let isFirst = true;
    native.completeWorkflowActivation = async (bytes) => {
      const waits = isFirst;
      isFirst = false;
      if (waits) await held.wait();
      await complete(bytes);
    };
    return worker;
  });
  return held;
}

/**
 * Lets a worker execute the activity that a run waits for while another one refuses an update in a workflow task,
 * so that the server records the activity after this task. Resolves with the refusal, and without a worker.
 */
async function executeDuring(
  handle: WorkflowHandle,
  update: () => Promise<unknown>,
  until: (status: RunStatus) => boolean,
): Promise<string> {
  await desk.rig.stopWorkers();
  const held = holdFirstTask();
  await desk.work([payer], { activities: false });
  const refusal = update().then(
    () => 'accepted',
    (error: unknown) => String((error as Error).cause),
  );
  await held.reached;
  await desk.work([payer], { workflows: false });
  await expect.poll(async () => (await handle.describe()).raw.pendingActivities?.length).toBe(0);
  held.release();
  await refusal;
  await desk.statusWhere(handle, until);
  await desk.rig.stopWorkers();
  return await refusal;
}

test('a decision is made after one whose check was refused during another workflow task', async () => {
  await desk.work([payer]);
  desk.script([{ pay: { euros: 7 } }, 'Paid.']);
  const { handle, requests } = await desk.asked({ agent: 'payer', message: 'pay' });
  const [{ id: request, digest } = { id: '', digest: '' }] = requests;
  const decide = async (decision: Partial<Decision>) =>
    await handle.executeUpdate(resolveUpdate, {
      args: [{ request, digest, as: 'edit', ...decision }],
    });
  await desk.rig.stopWorkers();
  await desk.work([payer], { activities: false });
  const { resolved } = await decide({ arguments: { euros: 'seven' } });
  expect(resolved).toMatchObject([{ checking: true }]);

  const refusal = await executeDuring(
    handle,
    async () => await decide({ as: 'approve' }),
    ({ pending }) => pending[0]?.refused !== undefined,
  );
  expect(refusal).toContain('waits for a worker to check it');

  await desk.work([payer]);
  await decide({ arguments: { euros: 8 } });
  await desk.end(handle);
  expect(desk.done).toEqual(['pay 8']);
});

test('a call is undone after another one that was undone during another workflow task', async () => {
  await desk.work([payer]);
  desk.script([{ pay: { euros: 1 } }, { pay: { euros: 2 } }, { pay: { euros: 7 } }, 'Paid.']);
  const { handle } = await desk.asked({ agent: 'payer', message: 'pay' });
  const undo = async () => await handle.executeUpdate(undoUpdate, { args: [{}] });
  await desk.rig.stopWorkers();
  await desk.work([payer], { activities: false });
  await undo();

  const refusal = await executeDuring(handle, undo, ({ undoable = [] }) =>
    undoable.some(({ state }) => state === 'undone'),
  );
  expect(refusal).toContain('is being undone');

  await desk.work([payer]);
  await undo();
  await desk.untilDone('return 1');
  await desk.decide(handle, { as: 'deny' });
  await desk.end(handle);
  expect(desk.done).toEqual(['pay 1', 'pay 2', 'return 2', 'return 1']);
});
