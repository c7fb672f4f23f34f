import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { undoUpdate } from '../../src/workflows/messages/definitions.js';
import { type Gate, gate } from '../support/gate.js';
import { createDesk, type Desk } from '../support/requests.js';

let desk: Desk;
beforeAll(async () => {
  desk = await createDesk();
});
beforeEach(() => desk.reset());
afterAll(async () => await desk.close());

/** An agent with a tool whose undo waits at a gate. */
const clerk = (name: string, approval: 'always' | 'never', undoing: Gate) =>
  defineAgent({
    name,
    instructions: 'x',
    model: 'script',
    tools: [
      defineTool({
        name: 'book',
        description: 'Books.',
        effect: 'keyed',
        approval,
        input: z.object({}),
        execute: () => 'booked',
        undo: async () => {
          desk.did('undo');
          await undoing.wait();
        },
      }),
    ],
  });

test('a run whose undo is being executed ends when it is canceled', async () => {
  const undoing = gate();
  await desk.work([clerk('quick', 'never', undoing)]);
  desk.script([{ book: {} }, 'Booked.']);
  const handle = await desk.rig.start({ agent: 'quick', message: 'go', open: true });
  await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  await handle.executeUpdate(undoUpdate, { args: [{}] });
  await desk.untilDone('undo');
  await handle.cancel();
  // The run asks its activity to stop, and answers meanwhile.
  expect((await handle.query<RunStatus>('status')).status).toBe('working');
  undoing.release();
  const { outcome } = await desk.end(handle);
  expect(outcome.status).toBe('cancelled');
});

test('a run whose decision about an undo is being checked ends when it is canceled', async () => {
  const undoing = gate();
  await desk.rig.stopWorkers();
  const checking = gate();
  let checks = 0;
  await desk.work([clerk('careful', 'always', undoing)], {
    mayDecide: async () => {
      checks += 1;
      if (checks > 1) {
        desk.did('check');
        await checking.wait();
      }
      return true;
    },
  });
  desk.script([{ book: {} }, 'Booked.']);
  const { handle } = await desk.asked({ agent: 'careful', message: 'go', open: true });
  await desk.decide(handle, { as: 'approve', by: 'ann' });
  await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  await handle.executeUpdate(undoUpdate, { args: [{}] });
  await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
  await desk.decide(handle, { as: 'approve', by: 'ann' });
  await desk.untilDone('check');
  await handle.cancel();
  checking.release();
  const { outcome } = await desk.end(handle);
  expect(outcome.status).toBe('cancelled');
  expect(desk.done).not.toContain('undo');
});
