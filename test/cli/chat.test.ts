import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { osUser } from '../../src/cli/input/option-parsers.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { closeRun, pauseRun, resumeRun } from '../../src/updates/decide.js';
import { clientOf } from '../support/clerk.js';
import { commandLine } from '../support/command.js';
import { createPayer } from '../support/payer.js';
import { createDesk, type Desk } from '../support/requests.js';
import { atTerminal, hasTerminal, type Terminal, textOf } from '../support/terminal.js';

const command = await commandLine();
let desk: Desk;
beforeAll(async () => {
  desk = await createDesk();
});
beforeEach(() => desk.reset());
afterAll(async () => await desk.close());

const payer = createPayer(() => desk).payer();

async function chatting(...words: readonly string[]): Promise<Terminal> {
  return await atTerminal(desk.rig, 'chat', 'payer', ...words, '--task-queue', desk.rig.taskQueue);
}

test.skipIf(!hasTerminal)(
  'a chat sends each line to one open run, asks for decisions between, and goes on another time',
  async () => {
    await desk.work([payer]);
    desk.script([{ pay: { to: 'ann' } }, 'Paid ann.', 'First.', 'Second.', 'Back.']);
    const id = `chat-${randomUUID()}`;
    const terminal = await chatting('--id', id);
    await terminal.isShown('Type a message; Ctrl-D in place of one leaves the chat.');
    terminal.type('pay ann');
    await terminal.isShown('/ full / later?');
    terminal.type('yes');
    await terminal.isShown('Paid ann.');
    // Two lines at once are two messages, and an empty one is none.
    terminal.type('\rone\rtwo');
    await terminal.isShown('First.');
    await terminal.isShown('Second.');
    await expect.poll(() => textOf(terminal).trimEnd()).toMatch(/\n>$/);
    terminal.press('Ctrl-D');
    await terminal.isShown(`Run ${id} stays open.`);
    expect(await terminal.exit()).toBe(0);
    expect(textOf(terminal)).toMatch(new RegExp(`chat payer --id ${id}`));
    expect(textOf(terminal)).not.toContain('was the only one');
    const handle = desk.rig.client.workflow.getHandle(id);
    const { turn, decisions } = await handle.query<RunStatus>('status');
    expect(turn).toBe(3);
    expect(decisions).toMatchObject([{ as: 'approve', by: osUser() }]);
    const again = await chatting('--id', id, 'hello', 'again');
    await again.isShown('Back.');
    await closeRun(desk.rig.client, id);
    await handle.result();
    again.type('too late');
    await again.isShown('has ended');
    again.close();
    // A run that has ended is not called open.
    const other = await chatting('--id', `${id}-2`, 'hi');
    await other.isShown('over.');
    await expect.poll(() => textOf(other).trimEnd()).toMatch(/\n>$/);
    await closeRun(desk.rig.client, `${id}-2`);
    await desk.rig.client.workflow.getHandle(`${id}-2`).result();
    other.press('Ctrl-D');
    await other.isShown('completed (closed)');
    expect(textOf(other)).not.toContain('stays open');
    other.close();
    expect(desk.done).toEqual(['pay ann']);
  },
);

test.skipIf(!hasTerminal)(
  'in a chat, a line typed right after `later` is the next message',
  async () => {
    await desk.work([payer]);
    desk.script([{ pay: { to: 'ann' } }, 'Paid ann.', 'Hello.']);
    const id = `chat-${randomUUID()}`;
    const terminal = await chatting('--id', id, 'pay', 'ann');
    await terminal.isShown('/ full / later?');
    terminal.type('later\rand hello');
    await terminal.isShown('A line that you type now is sent once the run can take it.');
    const client = await clientOf(desk.rig);
    const [request] = (await client.status(id)).pending;
    const { id: number = '', digest = '' } = request ?? {};
    await client.resolve(id, { request: number, digest, as: 'approve' });
    await terminal.isShown('Hello.');
    expect((await client.transcript(id)).messages.map(({ text }) => text)).toContain('and hello');
    terminal.close();
    await closeRun(desk.rig.client, id);
  },
);

test.skipIf(!hasTerminal)('a chat says that others have sent messages meanwhile', async () => {
  await desk.work([payer]);
  desk.script(['Hello.', 'Elsewhere.', 'Here.']);
  const id = `chat-${randomUUID()}`;
  const terminal = await chatting('--id', id, 'one');
  await terminal.isShown('Hello.');
  await expect.poll(() => textOf(terminal).trimEnd()).toMatch(/\n>$/);
  await (await clientOf(desk.rig)).send(id, 'two');
  const handle = desk.rig.client.workflow.getHandle(id);
  await expect
    .poll(async () => await handle.query<RunStatus>('status'))
    .toMatchObject({ turn: 2, status: 'waiting_message' });
  terminal.type('three');
  await terminal.isShown('Here.');
  expect(textOf(terminal)).toContain(
    `Others have sent messages: turn 2 of run ${id}. Read them with: `,
  );
  terminal.close();
  await closeRun(desk.rig.client, id);
});

test.skipIf(!hasTerminal)(
  'a chat of a run without a message waits for it, and says that a paused run waits',
  async () => {
    await desk.work([payer]);
    desk.script(['Hello.']);
    const handle = await desk.rig.start({ agent: 'payer', open: true });
    await pauseRun(desk.rig.client, handle.workflowId);
    const terminal = await chatting('--id', handle.workflowId);
    await terminal.isShown('is paused, so messages wait. Resume it with:');
    await resumeRun(desk.rig.client, handle.workflowId);
    await terminal.isShown('> ');
    terminal.type('hi');
    await terminal.isShown('Hello.');
    expect(textOf(terminal)).toContain('turn 1 completed');
    terminal.type('/help');
    await terminal.isShown('Each line is a message.');
    terminal.type('/exit');
    await terminal.isShown(`Run ${handle.workflowId} stays open.`);
    terminal.close();
  },
);

test.skipIf(!hasTerminal)(
  'a chat that is left between turns asks for no worker, which an idle run does not need',
  async () => {
    const place = ['--no-config', '--task-queue', `lonely-${randomUUID()}`];
    const terminal = await atTerminal(desk.rig, 'chat', 'files', 'hello', ...place);
    await expect.poll(() => textOf(terminal).trimEnd(), { timeout: 60_000 }).toMatch(/\n>$/);
    terminal.press('Ctrl-D');
    await terminal.isShown(' stays open. Continue it with: ');
    expect(await terminal.exit()).toBe(0);
    expect(textOf(terminal)).not.toContain('Start one with');
  },
);

test.skipIf(!hasTerminal)(
  'a chat that is left before its first message starts no run',
  async () => {
    await desk.work([payer]);
    const terminal = await chatting('--id', `chat-${randomUUID()}`);
    await terminal.isShown('> ');
    terminal.press('Ctrl-D');
    await terminal.isShown('No run was started.');
    expect(await terminal.exit()).toBe(0);
  },
);

test.skipIf(!hasTerminal)(
  'a chat refuses a run of another agent, and one that takes no messages',
  async () => {
    await desk.work([payer, defineAgent({ name: 'other', instructions: 'x', model: 'script' })]);
    desk.script([{ pay: { to: 'ann' } }]);
    const { handle } = await desk.asked({ agent: 'payer', message: 'pay' });
    const task = await chatting('--id', handle.workflowId);
    await task.isShown('--id: expected an open run');
    expect(await task.exit()).toBe(2);
    const other = await desk.rig.start({ agent: 'other', open: true });
    const wrong = await chatting('--id', other.workflowId);
    await wrong.isShown('agent: expected other, the agent of run');
    expect(await wrong.exit()).toBe(2);
    await handle.terminate();
  },
);

test('a chat without a terminal is refused, with what to use instead', async () => {
  const { code, stderr } = await command.here(['chat', 'payer']).ended;
  expect(code).toBe(2);
  expect(stderr).toContain('chat: expected a terminal');
});
