import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Command } from '../../src/cli/context.js';
import { withWorker } from '../../src/cli/hosting/with-worker.js';
import { requireOpenRun } from '../../src/cli/open-run.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { pauseRun } from '../../src/updates/decide.js';
import { untilStatus } from '../support/conversation.js';
import { runInProcess } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm' });
  await rig.worker([agent], { models: { m: scriptedModel([replyText('one')]) } });
});
afterAll(async () => await rig.close());

test('a command whose run ends before the decision arrives says how it has ended', async () => {
  const handle = await rig.start({ agent: 'a', message: 'x', open: true });
  const { workflowId: id } = handle;
  await untilStatus(handle, 'waiting_message');
  const late: Command<{ readonly id: string }> = {
    run: async (context) => {
      const opened = await requireOpenRun(context, id);
      await handle.cancel();
      await handle.result().catch(() => undefined);
      const send = async (): Promise<void> => await pauseRun(opened.client, id);
      await withWorker(context, opened, { decision: 'pause', send });
      return 0;
    },
  };
  const { home, taskQueue } = rig;
  const running = runInProcess(
    late,
    { id },
    { address: inject('temporalAddress'), home, taskQueue },
  );
  await expect(running).rejects.toThrow(
    new RegExp(`^run ${id} has ended: cancelled, .* ago\\. See: .* status ${id} `),
  );
});
