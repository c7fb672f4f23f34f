import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { replyText } from '../../src/testing/replies.js';
import { askUpdate, closeUpdate, statusQuery } from '../../src/workflows/messages/definitions.js';
import { ask } from '../support/conversation.js';
import { gate } from '../support/gate.js';
import { expectKeptReplays } from '../support/replays.js';
import { createRig, type Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';
import { waitUntilAdmitted } from '../support/wait-until-admitted.js';

// A query that waits for a worker delivers the events since the last workflow task, without a task.
// The commands that follow from them are sent with the next task, before the answer of its update,
// but a replay has the update first.

const WITHIN = { timeout: 20_000, interval: 50 };
/** A query has to reach the new worker before its task does, which is up to the server. */
const ATTEMPTS = [1, 2, 3];

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
});
afterAll(async () => {
  await rig.close();
  await expectKeptReplays();
});

/** Resolves when no worker answers for the run any more. */
async function untilUnanswered(handle: WorkflowHandle): Promise<void> {
  await vi.waitFor(async () => {
    const answered = await rig.client
      .withDeadline(Date.now() + 300, async () => await handle.query(statusQuery))
      .then(() => true)
      .catch(() => false);
    expect(answered).toBe(false);
  }, WITHIN);
}

test.each(ATTEMPTS)(
  'a run that receives queries and an update together on a new worker replays (attempt %i)',
  async (attempt) => {
    const held = gate();
    let calls = 0;
    const model = {
      call: async () => {
        calls += 1;
        if (calls === 1) await held.wait();
        return replyText('ok');
      },
    };
    const agent = defineAgent({ name: 'clerk', instructions: 'x', model: 'm' });
    const work = async () =>
      await rig.worker([agent], { models: { m: model }, shutdownGrace: '30 seconds' });
    const first = await work();
    const handle = await rig.start({ agent: 'clerk', open: true, message: 'go' });
    await held.reached;
    // It takes no more tasks, but lets its model call end.
    const stopped = first.shutdown();
    await untilUnanswered(handle);
    const queries = Array.from(
      { length: 20 },
      async (): Promise<RunStatus> => await handle.query(statusQuery),
    );
    held.release();
    await vi.waitFor(async () => {
      const { events = [] } = await handle.fetchHistory();
      const done = events?.some((event) => event.activityTaskCompletedEventAttributes);
      expect(done).toBe(true);
    }, WITHIN);
    const updateId = `more ${attempt}`;
    const more = { message: 'more', id: 'more' };
    const asked = handle.executeUpdate(askUpdate, { args: [more], updateId });
    await waitUntilAdmitted(rig.client, handle, updateId);
    await work();
    // The server may refuse an update that its worker could not accept with the task; that changes
    // nothing.
    await asked.catch(() => undefined);
    for (const status of await Promise.all(queries)) expect(status.agent).toBe('clerk');
    expect(await ask(handle, { message: 'more', id: `more ${attempt}` })).toMatchObject({
      turn: 2,
    });
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    expect(await handle.result()).toMatchObject({ reason: 'closed', steps: 2 });
    await stopped;
    await segmentsOf(rig.client, handle.workflowId);
    await rig.stopWorkers();
  },
  120_000,
);
