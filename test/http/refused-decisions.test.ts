import { randomUUID } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { HttpAgent } from '@ag-ui/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { errorsOf, payer, runOf, say, approve, textsOf, watch } from '../support/ag-ui.js';
import { gate } from '../support/gate.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';
import { UiChat, uiApproval, uiCall, uiText } from '../support/ui-chat.js';

/** Decisions that a worker refuses after it has checked them: at each door, they can be made again. */
let desk: HttpDesk;
const paid: number[] = [];
/** Whether a decision may be made; a test changes it. */
let check: () => boolean | Promise<boolean> = () => true;

beforeAll(async () => {
  const serve = { mcp: { decide: true } };
  desk = await openHttpDesk(['ann'], serve, {
    agents: [payer(paid)],
    mayDecide: async () => await check(),
  });
});
afterAll(() => desk.close());

const headers = { authorization: `Bearer ${keyOf('ann')}` };

/** Waits until the check has refused decisions about the request of a run, and returns their number. */
async function refusals(run: string): Promise<number> {
  await expect
    .poll(async () => (await desk.client.status(run)).pending[0]?.refused)
    .toEqual(expect.any(String));
  const { decisions = [] } = await desk.client.status(run);
  return decisions.filter(({ refused }) => refused !== undefined).length;
}

describe('a decision that the check has refused', () => {
  test('is another one when it is made again, and a second click is the same one', async () => {
    const { id, request } = await desk.asking(41);
    const decision = { request: request.id, digest: request.digest, as: 'approve' };
    const click = () => desk.send(`/v1/runs/${id}/decisions`, { body: { decisions: [decision] } });
    const held = gate();
    check = async () => {
      await held.wait();
      return false;
    };
    const clicks = [await click(), await click()];
    const checking = { status: 200, body: { receipts: [{ request: 'r1', checking: true }] } };
    expect(clicks).toMatchObject([checking, checking]);
    const listed = async () => (await desk.send(`/v1/requests?run=${id}`)).body.requests;
    const shown = { id: 'r1', checking: true, fix: expect.stringContaining(`inbox ${id} r1`) };
    await expect.poll(listed).toMatchObject([shown]);
    expect((await desk.client.requests({ run: id })).requests).toMatchObject([shown]);
    held.release();
    expect(await refusals(id)).toBe(1);
    await expect.poll(async () => (await listed())[0]?.checking).toBeUndefined();
    check = () => true;
    expect((await click()).status).toBe(200);
    expect((await desk.client.result(id)).answer).toBe('done: paid 41');
    expect(desk.paid.filter((euros) => euros === 41)).toHaveLength(1);
  });

  test('is another one after many other decisions, too', async () => {
    const { id, request } = await desk.asking(45);
    const decision = { request: request.id, digest: request.digest, as: 'approve' };
    const click = () => desk.send(`/v1/runs/${id}/decisions`, { body: { decisions: [decision] } });
    check = () => false;
    await click();
    expect(await refusals(id)).toBe(1);
    for (let n = 0; n < 10; n += 1) {
      await desk.client.pause(id);
      await desk.client.resume(id);
    }
    check = () => true;
    expect((await click()).status).toBe(200);
    expect((await desk.client.result(id)).answer).toBe('done: paid 45');
  });

  test('is made again by a client of MCP', async () => {
    const { id, request } = await desk.asking(42);
    const client = new Client({ name: 'test', version: '1' });
    const url = new URL('/mcp', desk.url);
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    const given = { id, request: request.id, digest: request.digest, as: 'approve' };
    const decide = () => client.callTool({ name: 'decide', arguments: given });
    check = () => false;
    expect(await decide()).toMatchObject({ structuredContent: { checking: true } });
    expect(await refusals(id)).toBe(1);
    check = () => true;
    await decide();
    expect((await desk.client.result(id)).answer).toBe('done: paid 42');
    await client.close();
  });

  test('ends the stream of useChat with the refusal, which offers the approval again', async () => {
    const chat = new UiChat(desk.url, {
      agent: 'desk',
      id: `chat-${randomUUID()}`,
      key: keyOf('ann'),
    });
    await chat.sendMessage({ text: 'pay 43' });
    check = () => false;
    await chat.addToolApprovalResponse({ id: uiApproval(chat.lastMessage), approved: true });
    await expect.poll(() => chat.status).toBe('error');
    expect(chat.error?.message).toMatch(/^request: the decision about r1 was refused: /);
    expect(uiCall(chat.lastMessage)).toMatchObject({ state: 'approval-requested' });
    check = () => true;
    await chat.addToolApprovalResponse({ id: uiApproval(chat.lastMessage), approved: true });
    await expect.poll(() => uiText(chat.lastMessage)).toBe('done: paid 43');
    expect(uiCall(chat.lastMessage)).toMatchObject({ state: 'output-available' });
    expect(desk.paid.filter((euros) => euros === 43)).toHaveLength(1);
  });

  test('raises the interrupt of AG-UI again, with the reason', async () => {
    const url = `${desk.url}/v1/ag-ui/payer`;
    const thread = watch(new HttpAgent({ url, threadId: `thread-${randomUUID()}`, headers }));
    const { agent } = thread;
    await say(agent, 'pay 44');
    const answer = async (): Promise<void> => {
      const resume = agent.pendingInterrupts.map(({ id }) => approve(id));
      expect(resume).toHaveLength(1);
      await agent.runAgent({ resume });
    };
    check = () => false;
    await answer();
    expect(agent.pendingInterrupts).toMatchObject([
      { metadata: { perdure: { request: 'r1', refused: expect.any(String) } } },
    ]);
    expect(await refusals(runOf(thread))).toBe(1);
    check = () => true;
    await answer();
    expect(agent.pendingInterrupts).toEqual([]);
    expect(textsOf(agent.messages).at(-1)).toBe('assistant: paid 44');
    expect([paid, errorsOf(thread)]).toEqual([[44], []]);
  });
});
