import { WorkflowUpdateStage } from '@temporalio/client';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Limits } from '../../src/core/definition/definition.js';
import { defineTool } from '../../src/tools/define-tool.js';
import {
  closeUpdate,
  outcomeUpdate,
  setLimitsUpdate,
  statusQuery,
} from '../../src/workflows/messages/definitions.js';
import { ask } from '../support/conversation.js';
import { expectKeptReplays } from '../support/replays.js';
import { createDesk, type Desk } from '../support/requests.js';
import { segmentsOf } from '../support/segments.js';
import { waitUntilAdmitted } from '../support/wait-until-admitted.js';

// A worker that does not have the run in its cache gets a workflow task without commands together
// with the next one. If the next one accepts an update, a later replay gets them one by one.

const WITHIN = { timeout: 20_000, interval: 50 };

let desk: Desk;
beforeAll(async () => {
  desk = await createDesk();
});
afterAll(async () => {
  await desk.close();
  await expectKeptReplays();
});

test('a decision that reaches a new worker together with the empty first task of a segment replays', async () => {
  const pay = defineTool({
    name: 'pay',
    description: 'pays',
    input: z.object({}),
    effect: 'keyed',
    approval: 'always',
    execute: async () => 'paid',
  });
  const agent = defineAgent({ name: 'payer', instructions: 'x', model: 'script', tools: [pay] });
  const work = async () =>
    await desk.work([agent], { segment: { steps: 100, bytes: 1e6, events: 20 } });
  await work();
  desk.script([{ pay: {} }]);
  const { handle, requests } = await desk.asked({ agent: 'payer', open: true, message: 'go' });
  // Messages fill the segment while the run waits, so that nothing is new when the next one begins.
  const isAtEmptyBegin = async (): Promise<boolean> => {
    // A message that arrives while the segment is archived would be in the next one.
    await vi.waitFor(async () => {
      expect((await handle.describe()).raw.pendingActivities ?? []).toEqual([]);
    }, WITHIN);
    const { segments } = await handle.query(statusQuery);
    const { events } = await handle.fetchHistory();
    return segments >= 3 && events?.length === 4;
  };
  for (let n = 0; !(await isAtEmptyBegin()); n += 1) {
    await ask(handle, { message: `m${n}`, id: `m${n}` });
  }
  await desk.rig.stopWorkers();
  const { id = '', digest = '' } = requests[0] ?? {};
  const decided = desk.decideAll(handle, [{ request: id, digest, as: 'approve' }]);
  await work();
  expect(await decided).toMatchObject([{ request: id, as: 'approve' }]);
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  await handle.result();
  expect((await segmentsOf(desk.rig.client, handle.workflowId)).length).toBeGreaterThan(2);
});

// A refused update leaves nothing in the history, so a replay does not know that it came.
test('an update that is refused next to the result that the loop waits for does not change the order', async () => {
  const { client } = desk.rig;
  const agent = defineAgent({ name: 'clerk', instructions: 'x', model: 'script' });
  desk.script(['hello']);
  const untilEvents = async (
    field: 'activityTaskScheduledEventAttributes' | 'activityTaskCompletedEventAttributes',
    count: number,
  ): Promise<void> => {
    await vi.waitFor(async () => {
      const { events } = await handle.fetchHistory();
      expect(events?.filter((event) => event[field])).toHaveLength(count);
    }, WITHIN);
  };
  await desk.work([], { activities: false });
  const handle = await desk.rig.start({ agent: 'clerk', open: true, message: 'go' });
  // The second one waits until a worker has the agent.
  await untilEvents('activityTaskScheduledEventAttributes', 2);
  // It waits for the agent, and then starts a timer, in parallel with the loop, which calls the
  // model.
  const limited = await handle.startUpdate<unknown, [Limits]>(setLimitsUpdate.name, {
    args: [{ wallMs: 600_000 }],
    waitForStage: WorkflowUpdateStage.ACCEPTED,
  });
  await desk.rig.stopWorkers();
  await desk.work([agent], { workflows: false });
  await untilEvents('activityTaskCompletedEventAttributes', 1);
  await desk.rig.stopWorkers();
  const refused = handle.executeUpdate(outcomeUpdate, { args: [{ turn: 99 }], updateId: 'wait' });
  const problem = refused.catch((error: unknown) => error);
  await waitUntilAdmitted(client, handle, 'wait');
  await desk.work([agent]);
  expect(await problem).toMatchObject({ cause: { message: expect.stringContaining('got 99') } });
  expect(await limited.result()).toMatchObject({ turn: { wallMs: 600_000 } });
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  await handle.result();
  await segmentsOf(client, handle.workflowId);
});
