import { randomUUID } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { HttpAgent } from '@ag-ui/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Agent } from '../../src/agents/agent.js';
import { runOf as chatRun } from '../../src/http/chats.js';
import { parseRecording } from '../../src/recordings/parse-recording.js';
import { recordRun } from '../../src/recordings/record-run.js';
import { rerun } from '../../src/recordings/rerun.js';
import { approve, payer, runOf, say, watch } from '../support/ag-ui.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';
import { UiChat, uiApproval, uiText } from '../support/ui-chat.js';

/** Decisions that came through a server, or as a list: a rerun makes them again. */
let desk: HttpDesk;
const paid: number[] = [];
const free = payer(paid);
/** Only people of a group that the server has verified decide about its payments. */
const guarded = payer(paid, { name: 'guarded', rule: { deciders: ['group:ops'] } });

beforeAll(async () => {
  const principals = {
    ann: { rights: { '*': 'all' } },
    oscar: { rights: { '*': 'all' }, groups: ['ops'] },
  } as const;
  desk = await openHttpDesk(
    ['ann', 'oscar'],
    { principals, mcp: { decide: true } },
    { agents: [free, guarded] },
  );
});
afterAll(async () => await desk.close());

const headers = { authorization: `Bearer ${keyOf('ann')}` };

/** Waits until a run asks about so many payments, and returns its requests. */
async function pending(run: string, count: number) {
  await expect.poll(async () => (await desk.client.status(run)).pending).toHaveLength(count);
  return (await desk.client.status(run)).pending;
}

async function start(agent: string, message: string, as = 'ann'): Promise<string> {
  const { body } = await desk.send('/v1/runs', { as, body: { agent, message } });
  return String(body.id);
}

/** Expects a recording with every decision, and a rerun like the recorded run that executes nothing. */
async function expectSame(
  run: string,
  agent: Agent,
  decisions: readonly { as: string; by?: string; door?: string }[],
  answer: string,
): Promise<void> {
  await expect
    .poll(async () => (await desk.client.transcript(run)).messages.at(-1))
    .toMatchObject({ role: 'assistant', text: answer });
  const recording = parseRecording(JSON.parse(JSON.stringify(await recordRun(desk.client, run))));
  const [root] = recording.runs;
  const made = root?.facts.filter(({ type }) => type === 'decision');
  expect(made).toMatchObject(
    decisions.map((decision) => ({ decision, about: { kind: 'approval', tool: 'pay' } })),
  );
  expect(root?.undecided).toEqual([]);
  const count = paid.length;
  const { divergence, recording: again } = await rerun(recording, { agent });
  expect(divergence?.text).toBeUndefined();
  const [rootAgain] = again.runs;
  expect(rootAgain?.messages.at(-1)?.text).toBe(answer);
  expect(rootAgain?.facts.filter(({ type }) => type === 'decision')).toMatchObject(
    decisions.map((decision) => ({ decision })),
  );
  expect(paid).toHaveLength(count);
}

describe('a recorded decision is made again in the rerun', () => {
  test.each([
    ['of the HTTP API, one for all requests of a turn', free, 'ann', {}],
    ['of a member of a group that the server has verified', guarded, 'oscar', { groups: ['ops'] }],
  ])('%s', async (_what, agent, as, more) => {
    const run = await start(agent.name, 'pay 1 and 2', 'ann');
    const open = await pending(run, 2);
    const decisions = open.map(({ id: request, digest }, index) => ({
      request,
      digest,
      as: index === 0 ? 'approve' : 'deny',
    }));
    const { status } = await desk.send(`/v1/runs/${run}/decisions`, { as, body: { decisions } });
    expect(status).toBe(200);
    const { answer } = await desk.client.result(run);
    const by = { by: as, door: 'http', ...more };
    await expectSame(
      run,
      agent,
      [
        { as: 'approve', ...by },
        { as: 'deny', ...by },
      ],
      answer ?? '',
    );
  });

  test('of a client, as a list', async () => {
    const run = await start('payer', 'pay 3');
    const open = await pending(run, 1);
    const made = open.map(
      ({ id: request, digest }) => ({ request, digest, as: 'approve' }) as const,
    );
    await desk.client.resolve(run, made, { by: 'bob' });
    await expectSame(run, free, [{ as: 'approve', by: 'bob' }], 'paid 3');
  });

  test('of a client of MCP', async () => {
    const run = await start('payer', 'pay 4');
    const [request] = await pending(run, 1);
    const client = new Client({ name: 'test', version: '1' });
    const url = new URL('/mcp', desk.url);
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    const args = { id: run, request: request?.id, digest: request?.digest, as: 'approve' };
    await client.callTool({ name: 'decide', arguments: args });
    await client.close();
    await expectSame(run, free, [{ as: 'approve', by: 'ann', door: 'mcp' }], 'paid 4');
  });

  test('of a message that names the request', async () => {
    const run = await start('payer', 'pay 7');
    const [request] = await pending(run, 1);
    const answers = { request: request?.id ?? '', digest: request?.digest ?? '' };
    await desk.client.send(run, { message: 'yes', answers, by: 'ann' });
    await expectSame(run, free, [], 'paid 7');
  });

  test('of useChat', async () => {
    const id = randomUUID();
    const chat = new UiChat(desk.url, { agent: 'payer', id, key: keyOf('ann') });
    await chat.sendMessage({ text: 'pay 5' });
    await chat.addToolApprovalResponse({ id: uiApproval(chat.lastMessage), approved: true });
    await expect.poll(() => uiText(chat.lastMessage)).toBe('paid 5');
    const run = chatRun({ principal: { name: 'ann' } }, { door: 'chat', agent: 'payer', id });
    await expectSame(run, free, [{ as: 'approve', by: 'ann', door: 'ui-stream' }], 'paid 5');
  });

  test('of AG-UI', async () => {
    const url = `${desk.url}/v1/ag-ui/payer`;
    const thread = watch(new HttpAgent({ url, threadId: `thread-${randomUUID()}`, headers }));
    await say(thread.agent, 'pay 6');
    const resume = thread.agent.pendingInterrupts.map(({ id }) => approve(id));
    await thread.agent.runAgent({ resume });
    const run = runOf(thread);
    await expectSame(run, free, [{ as: 'approve', by: 'ann', door: 'ag-ui' }], 'paid 6');
  });
});
