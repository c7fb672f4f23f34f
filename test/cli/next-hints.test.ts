import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { attach } from '../../src/cli/commands/run.js';
import { approve } from '../../src/cli/commands/approve.js';
import { cancel } from '../../src/cli/commands/pause.js';
import type { Command } from '../../src/cli/context.js';
import { askRun } from '../../src/updates/ask.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createDesk, type Desk } from '../support/requests.js';

let desk: Desk;

const refund = defineTool({
  name: 'refund',
  description: 'Refunds.',
  effect: 'keyed',
  repeat: 'allow',
  input: z.object({ euros: z.number() }),
  approval: 'always',
  execute: () => 'ok',
});

beforeAll(async () => {
  desk = await createDesk();
  await desk.work([
    defineAgent({ name: 'clerk', instructions: 'x', model: 'script', tools: [refund] }),
  ]);
});
afterAll(async () => await desk.close());

async function type<Options>(command: Command<Options>, options: Options): Promise<CommandOutput> {
  const { home, taskQueue } = desk.rig;
  return await runInProcess(command, options, {
    address: inject('temporalAddress'),
    home,
    taskQueue,
  });
}

test('after `cancel --turn`, the hint fits the turn that a queued message begins', async () => {
  desk.script([{ refund: { euros: 1 } }, { refund: { euros: 2 } }]);
  const handle = await desk.rig.start({ agent: 'clerk', message: 'one', open: true });
  const id = handle.workflowId;
  await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
  await askRun(desk.rig.client, id, { message: 'and two', answers: false });
  const end = await type(cancel, { id, turn: true });
  expect(end.stderr).toMatch(
    /^The run continues with turn 2\. Follow it with: .* attach run-\S+ /m,
  );
  expect(end.stderr).not.toMatch(/ (send|close) run-/);
  await desk.statusWhere(handle, ({ turn, pending }) => turn === 2 && pending.length === 1);
  const next = await type(attach, { id, wait: false });
  expect(next).toMatchObject({ code: 3, stderr: expect.stringContaining('euros: 2') });
  // The block of the request, and no line besides.
  expect(next.stderr.match(/^request r2/gm)).toHaveLength(1);
  await handle.terminate();
});

test('an approval that covers later calls names its grant, and the command that ends it', async () => {
  desk.script([{ refund: { euros: 1 } }, { refund: { euros: 2 } }, 'Both.']);
  const handle = await desk.rig.start({ agent: 'clerk', message: 'two' });
  const id = handle.workflowId;
  const { pending } = await desk.statusWhere(handle, (now) => now.pending.length === 1);
  const given = { id, request: 'r1', digest: pending[0]?.digest ?? '' };
  const yes = await type(approve, { ...given, grant: 'tool' as const });
  expect(yes.stderr).toMatch(/^Grant g1 covers later calls; end it with: .* revoke run-\S+ g1 /m);
  await handle.result();
});
