import { test } from 'vitest';
import { askUpdate, messageSignal } from '../../src/workflows/messages/definitions.js';
import { clerk } from '../support/clerk.js';
import { obedientModel, outcomeOf } from '../support/conversation.js';
import { expectReplays } from '../support/memory.js';
import { createMemoryRig } from '../support/memory-rig.js';

test('messages by signal and by update that reach a run in one task replay below the real core', async () => {
  const rig = await createMemoryRig();
  const handle = await rig.start({ agent: 'clerk', open: true });
  // The first task loads the agent, so it lasts until there is a worker.
  await handle.signal(messageSignal, { message: 'one', id: 'one' });
  const args: [{ message: string; id: string }] = [{ message: 'three', id: 'three' }];
  const asked = handle.executeUpdate(askUpdate, { args, updateId: 'three' });
  await handle.signal(messageSignal, { message: 'two', id: 'two' });
  await rig.worker([clerk()], { models: { m: obedientModel() } });
  const { turn } = await asked;
  await outcomeOf(handle, turn);
  const { workflowId: id } = handle;
  const { runId } = await handle.describe();
  await expectReplays({ history: [{ id, runId, history: await handle.fetchHistory() }] });
  await rig.close();
});
