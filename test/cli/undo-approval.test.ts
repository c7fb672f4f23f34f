import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { approve, deny } from '../../src/cli/commands/approve.js';
import { inbox } from '../../src/cli/commands/list.js';
import { cancel, close } from '../../src/cli/commands/pause.js';
import { status } from '../../src/cli/commands/status.js';
import { transcript } from '../../src/cli/commands/transcript.js';
import { undo } from '../../src/cli/commands/undo.js';
import type { Command } from '../../src/cli/context.js';
import { requestView } from '../../src/http/views.js';
import { defineConfig } from '../../src/config.js';
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
  input: z.object({ order: z.number(), euros: z.number() }),
  approval: 'always',
  describe: ({ order, euros }) => `refund ${euros} € to order ${order}`,
  execute: () => {
    desk.did('refund');
    return 'ok';
  },
  undo: () => desk.did('undo'),
});

const book = defineTool({
  name: 'book',
  description: 'Books.',
  effect: 'keyed',
  input: z.object({ room: z.string() }),
  execute: ({ room }) => room,
  undo: ({ room }) => {
    if (room === 'gone') throw new Error('somebody else has it now');
  },
});

const clerk = defineAgent({
  name: 'clerk',
  instructions: 'x',
  model: 'script',
  tools: [refund, book],
});

beforeAll(async () => {
  desk = await createDesk();
  await desk.work([clerk]);
});
afterAll(async () => await desk.close());

async function type<Options>(
  command: Command<Options>,
  options: Options,
  how: { readonly json?: boolean } = {},
): Promise<CommandOutput> {
  const { home, taskQueue } = desk.rig;
  return await runInProcess(command, options, {
    address: inject('temporalAddress'),
    home,
    taskQueue,
    ...how,
  });
}

/** Returns a command that finds the agent in its configuration, so that it may host a worker. */
function configured<Options>(command: Command<Options>): Command<Options> {
  const models = { script: { call: () => Promise.reject(new Error('no call is expected')) } };
  const config = defineConfig({ agents: [clerk], models });
  return {
    run: async (context, options) =>
      await command.run({ ...context, config: () => Promise.resolve(config) }, options),
  };
}

/** An open run that has refunded, and whose undo waits for approval. */
async function undoing(): Promise<{
  readonly id: string;
  readonly digest: string;
  /** What the command `undo` printed. */
  readonly said: string;
}> {
  desk.reset();
  desk.script([{ refund: { order: 17, euros: 80 } }, 'Refunded.']);
  const handle = await desk.rig.start({ agent: 'clerk', message: 'go', open: true });
  const id = handle.workflowId;
  await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
  await desk.decide(handle, { as: 'approve' });
  await desk.statusWhere(handle, (now) => now.status === 'waiting_message');
  const undone = await type(undo, { id });
  expect(undone.code).toBe(0);
  const { pending } = await desk.statusWhere(handle, (now) => now.pending.length === 1);
  return { id, digest: pending[0]?.digest ?? '', said: undone.stderr };
}

const EXECUTED = 'executed call: call_1_1_0, executed in turn 1, step 1, at 20\\d\\d-\\d\\d-\\d\\d';
const SHOWN = new RegExp(`^${EXECUTED} \\d\\d:\\d\\d:\\d\\d$`, 'm');
const WHEN = new RegExp(`^${EXECUTED}T\\S+Z$`, 'm');

test('the approval of an undo says everywhere that it undoes an executed call, which, and when', async () => {
  const { id, digest } = await undoing();
  const shown = await type(inbox, { id, request: 'r2' });
  const read = await type(status, { id });
  for (const { stdout } of [shown, read]) {
    expect(stdout).toContain('asks for: approval to UNDO a call that was executed\n');
    expect(stdout).toContain('what: undo: refund 80 € to order 17\n');
    expect(stdout).toMatch(SHOWN);
    expect(stdout).toContain('# undo the executed call shown above\n');
    expect(stdout).toContain('# do not undo it; the note is recorded');
    expect(stdout).not.toContain('execute it exactly');
  }
  expect(read.stdout).toContain('for a message\n');
  expect(read.stdout).toContain('the undo of call_1_1_0 waits for request r2\n');
  expect(read.stdout).toMatch(/undoing +waits for request r2\n/);
  const json = JSON.parse((await type(status, { id }, { json: true })).stdout);
  expect(json.undoable).toMatchObject([{ state: 'undoing', request: 'r2' }]);
  expect(json.pending).toMatchObject([{ digest, undo: { turn: 1, step: 1 } }]);
  const { asksFor, fields } = requestView(json.pending[0]);
  expect(asksFor).toContain('UNDO');
  expect(fields.map(([name, text]) => `${name}: ${text}`).join('\n')).toMatch(WHEN);
  const no = await type(deny, { id, request: 'r2', digest });
  expect(no.stderr).toMatch(
    /deny; the executed call is not undone\. See the result with: .* status /,
  );
  expect(no.stderr).not.toContain('resumes');
  const over = JSON.parse((await type(status, { id }, { json: true })).stdout);
  expect(over.undoable[0]).not.toHaveProperty('request');
  expect(desk.done).toEqual(['refund']);
});

test('an approved undo says that the call is undone, not that the run resumes', async () => {
  const { id, digest } = await undoing();
  const yes = await type(approve, { id, request: 'r2', digest });
  expect(yes.stderr).toMatch(/approve; the call is undone\. See the result with: .* status /);
  await vi.waitFor(() => expect(desk.done).toEqual(['refund', 'undo']), { timeout: 10_000 });
});

test('the command says that the undo waits for approval, and refuses a second one', async () => {
  const { id, digest, said } = await undoing();
  expect(said).toContain(
    `The undo of call call_1_1_0 of run ${id} waits for approval (request r2). See it, and how to decide, with: `,
  );
  expect(said).toContain(`inbox ${id} r2`);
  const waits = 'the undo of call_1_1_0 waits for a decision about request r2';
  await expect(type(undo, { id })).rejects.toThrow(waits);
  await expect(type(undo, { id })).rejects.toThrow(/ See it with: .* inbox run-\S+ r2 /);
  await expect(type(undo, { id, call: 'call_1_1_0' })).rejects.toThrow(waits);
  await type(approve, { id, request: 'r2', digest });
  await vi.waitFor(() => expect(desk.done).toEqual(['refund', 'undo']), { timeout: 10_000 });
});

test('the command says how an undo has ended that needs no approval', async () => {
  desk.script([{ book: { room: 'gone' } }, { book: { room: '7' } }, 'Booked.']);
  const handle = await desk.rig.start({ agent: 'clerk', message: 'go', open: true });
  const id = handle.workflowId;
  await desk.statusWhere(handle, (now) => now.status === 'waiting_message');
  const good = await type(undo, { id }, { json: true });
  expect(good.stderr).toContain(`Call call_1_2_0 of run ${id} is undone.`);
  expect(JSON.parse(good.stdout)).toEqual({ id, undoing: 'call_1_2_0', state: 'undone' });
  const bad = await type(undo, { id });
  expect(bad.code).toBe(1);
  expect(bad.stderr).toMatch(/The undo of call call_1_1_0 .* failed: .*somebody else has it now/);
});

test.each([
  ['close', close],
  ['cancel', cancel],
])(
  '%s names the undo that it drops, and the ended run says that it was not undone',
  async (_, end) => {
    const { id } = await undoing();
    const dropped = await type<{ readonly id: string }>(end, { id });
    const why = 'the run ended before it was approved';
    expect(dropped.stderr).toContain(
      `Call call_1_1_0 (refund 80 € to order 17) is not undone: ${why}.`,
    );
    await expect(type(undo, { id })).rejects.toThrow('An ended run undoes nothing; start one');
    expect((await type(status, { id })).stdout).toMatch(
      new RegExp(`^undo +call_1_1_0 .* not undone +${why}$`, 'm'),
    );
    expect((await type(transcript, { id })).stdout).toMatch(
      new RegExp(`call_1_1_0 .* · not undone: requested by .*, but ${why}$`, 'm'),
    );
    const json = JSON.parse((await type(status, { id }, { json: true })).stdout);
    expect(json.undoable).toMatchObject([
      { call: 'call_1_1_0', state: 'not_undone', message: why },
    ]);
    const queried = await desk.rig.client.workflow.getHandle(id).query('status');
    expect(queried).toMatchObject({ undoable: json.undoable });
    expect(desk.done).toEqual(['refund']);
  },
);

test('without a worker, the command says that nothing can be undone', async () => {
  desk.script(['Hello.']);
  const handle = await desk.rig.start({ agent: 'clerk', message: 'go', open: true });
  await desk.statusWhere(handle, (now) => now.status === 'waiting_message');
  await desk.rig.stopWorkers();
  const { workflowId: id } = handle;
  await expect(type(undo, { id })).rejects.toThrow(
    /^call: nothing can be undone: a call that succeeded can be,/,
  );
  await handle.terminate();
});

test('without a worker, the command hosts one if the configuration has the agent', async () => {
  desk.reset();
  await desk.work([clerk]);
  const calls = [{ refund: { order: 17, euros: 80 } }, { book: { room: '7' } }];
  desk.script([calls, 'Booked.']);
  const handle = await desk.rig.start({ agent: 'clerk', message: 'go', open: true });
  const id = handle.workflowId;
  await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
  await desk.decide(handle, { as: 'approve' });
  await desk.statusWhere(handle, (now) => now.status === 'waiting_message');
  await desk.rig.stopWorkers();

  await expect(type(undo, { id })).rejects.toThrow(
    /^no worker is running on task queue .* does not have agent "clerk": start the program/,
  );
  expect((await type(configured(status), { id })).stdout).toMatch(
    new RegExp(`undo ${id} call_1_1_0 .* undo this call$`, 'm'),
  );
  const undone = await type(configured(undo), { id, call: 'call_1_1_1' }, { json: true });
  expect(undone.stderr).toContain(`Call call_1_1_1 of run ${id} is undone.`);
  expect(undone.code).toBe(0);
  expect(JSON.parse(undone.stdout)).toEqual({ id, undoing: 'call_1_1_1', state: 'undone' });
  const asked = await type(configured(undo), { id });
  expect(asked.stderr).toContain('waits for approval (request r2). See it, and how to decide');
  expect(asked.code).toBe(0);
  await handle.terminate();
}, 60_000);

test('without a worker, an undo of a run in the middle of a turn names the command to start one', async () => {
  await desk.work([clerk]);
  desk.script([{ book: { room: '7' } }, { refund: { order: 17, euros: 80 } }, 'Booked.']);
  const handle = await desk.rig.start({ agent: 'clerk', message: 'go', open: true });
  const id = handle.workflowId;
  await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
  await desk.rig.stopWorkers();
  await expect(type(configured(undo), { id })).rejects.toThrow(
    /^undo needs a worker, and none answers .* Start one with: .* worker /,
  );
  await handle.terminate();
}, 60_000);
