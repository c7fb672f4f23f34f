import { expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { statusQuery } from '../../src/workflows/messages/definitions.js';
import { createMemoryRig } from '../support/memory-rig.js';

const isOnServer = process.env['TEST_WORLD'] === 'server';

test.skipIf(isOnServer)(
  'queries, updates, and waits fail with the error that has ended the rig',
  async () => {
    const rig = await createMemoryRig();
    rig.exempt('its workflow tasks fail');
    await rig.worker([defineAgent({ name: 'a', instructions: 'hi' })]);
    const options = { taskQueue: rig.taskQueue, workflowId: 'lost', args: [] };
    const handle = await rig.client.workflow.start('no-such-workflow', options);
    // The client wraps what a call of its service rejects with.
    const failure = { cause: { message: expect.stringContaining('no-such-workflow') } };
    await expect(handle.query(statusQuery)).rejects.toMatchObject(failure);
    await expect(handle.executeUpdate('message', { args: [] })).rejects.toMatchObject(failure);
    await expect(handle.result()).rejects.toMatchObject(failure);
    await rig.close().catch(() => undefined);
  },
);
