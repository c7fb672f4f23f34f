import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Command, GlobalOptions } from '../../src/cli/context.js';
import { deny } from '../../src/cli/commands/approve.js';
import { limits } from '../../src/cli/commands/limits.js';
import { close, pause, resume } from '../../src/cli/commands/pause.js';
import { send as sendTo } from '../../src/cli/commands/send.js';
import { undo } from '../../src/cli/commands/undo.js';
import { withWorker } from '../../src/cli/hosting/with-worker.js';
import { requireOpenRun } from '../../src/cli/open-run.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { pauseRun } from '../../src/updates/decide.js';
import { submitDecision } from '../../src/cli/requests/decide.js';
import { untilStatus } from '../support/conversation.js';
import { runInProcess } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
async function work(): Promise<void> {
  const pay = defineTool({
    name: 'pay',
    description: 'pays',
    input: z.object({}),
    effect: 'once',
    approval: 'always',
    execute: () => 'paid',
  });
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm' });
  const payer = defineAgent({ name: 'payer', instructions: 'x', model: 'p', tools: [pay] });
  await rig.worker([agent, payer], {
    models: {
      m: scriptedModel([replyText('one')]),
      p: {
        call: async ({ messages }) =>
          messages.at(-1)?.role === 'tool' ? replyText('done') : replyCall('pay'),
      },
    },
  });
}
beforeAll(async () => {
  rig = await createRig();
  await work();
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

/** Runs a command beside the worker of this file. */
async function perdure<Options>(command: Command<Options>, options: Options, how?: GlobalOptions) {
  const { home, taskQueue } = rig;
  const place = { address: inject('temporalAddress'), home, taskQueue };
  return await runInProcess(command, options, { ...place, ...how });
}

test('whoever comes second is shown what was decided', async () => {
  const handle = await rig.start({ agent: 'payer', message: 'x', open: true });
  const { workflowId: id } = handle;
  await untilStatus(handle, 'waiting_decision');
  const second: Command<object> = {
    run: async (context) => {
      const first = { id, request: 'r1', by: 'bob' };
      const check = async (): Promise<void> => {
        await perdure(deny, first);
      };
      const what = { as: 'deny', command: 'deny', check } as const;
      return await submitDecision(context, { ...first, by: 'ann', ...what });
    },
  };
  await expect(perdure(second, {})).rejects.toThrow(
    /^the decision about request r1 is refused \(decided\): r1 .*\(deny, by bob\)\. See: .* status run-/,
  );
  await handle.terminate();
});

test('a message to a closed run that waits for a decision names the request', async () => {
  const handle = await rig.start({ agent: 'payer', message: 'x', open: true });
  const { workflowId: id } = handle;
  await untilStatus(handle, 'waiting_decision');
  await perdure(close, { id });
  const sending = perdure(sendTo, { id, message: ['yes'], wait: false, detach: true });
  await expect(sending).rejects.toThrow(
    /^the run accepts no more messages: it is closed\. It waits for a decision about request r1; see .*: .* inbox run-/,
  );
  await handle.terminate();
});

test('a run that is closed without a worker is named what it needs once', async () => {
  const handle = await rig.start({ agent: 'payer', message: 'x', open: true });
  const { workflowId: id } = handle;
  await untilStatus(handle, 'waiting_decision');
  await rig.stopWorkers();
  const { stderr } = await perdure(close, { id });
  expect(stderr).toMatch(/ends after the messages it already has\. No worker is running\. /);
  expect(stderr).not.toMatch(/makes no progress|Follow it with/);
  await handle.terminate();
  await work();
});

test('a run that is being canceled accepts nothing more, and no command says that it does', async () => {
  const handle = await rig.start({ agent: 'a', message: 'x', open: true });
  const { workflowId: id } = handle;
  await untilStatus(handle, 'waiting_message');
  await rig.stopWorkers();
  await handle.cancel();
  const commands: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['pause', async () => await perdure(pause, { id })],
    ['resume', async () => await perdure(resume, { id })],
    ['close', async () => await perdure(close, { id })],
    ['limits', async () => await perdure(limits, { id, limit: { steps: 9 } })],
    ['undo', async () => await perdure(undo, { id })],
    [
      'a message',
      async () => await perdure(sendTo, { id, message: ['more'], wait: false, detach: true }),
    ],
  ];
  for (const [what, run] of commands) {
    await expect(run()).rejects.toThrow(
      new RegExp(
        `^run ${id} is being canceled, and ends when a worker carries that out; ${what} would have no effect\\. See: .* status `,
      ),
    );
  }
  await handle.terminate();
});
