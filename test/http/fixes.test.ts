import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { httpClient, listen } from '../../src/http.js';
import { openServer } from '../../src/http/create-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

/** Pays without asking, so that a run has calls that can be undone. */
const cashier = defineAgent({
  name: 'cashier',
  instructions: 'x',
  model: 'm',
  tools: [
    defineTool({
      name: 'pay',
      description: 'pays',
      input: z.object({ euros: z.number() }),
      effect: 'keyed',
      describe: ({ euros }) => `pay ${euros} €`,
      execute: async ({ euros }) => `paid ${euros}`,
      undo: async () => undefined,
    }),
  ],
});

let desk: HttpDesk;
beforeAll(async () => {
  const serve = { mcp: { decide: true }, principals: { ann: { rights: { '*': 'all' } } } } as const;
  desk = await openHttpDesk(['ann', 'bob'], serve, { agents: [cashier] });
});
afterAll(() => desk.close());

/** Posts to a run. Returns the message and the fix of the refusal. */
async function refused(id: string, path: string, body: object): Promise<readonly unknown[]> {
  const { error } = (await desk.send(`/v1/runs/${id}/${path}`, { body })).body;
  return [error.message, error.fix];
}

describe('a refusal over HTTP says what to do, as the command does', () => {
  test('of a decision: see the requests of the run', async () => {
    const { id, request } = await desk.asking(31);
    const given = { request: request.id, digest: request.digest };
    const decide = async (decision: object) =>
      await refused(id, 'decisions', { decisions: [{ ...given, ...decision }] });
    const inbox = `see it with: npx perdure inbox ${id}`;
    expect(await decide({ as: 'retry' })).toEqual([
      'as: expected one of approve, deny, edit, answer for r1, got "retry"',
      inbox,
    ]);
    expect(await decide({ as: 'edit' })).toEqual([
      'arguments: expected all arguments of the call, got none',
      inbox,
    ]);
    expect(await decide({ as: 'deny', request: 'r9' })).toEqual([
      'request: expected an open request, got "r9" (open: r1)',
      `see it with: npx perdure status ${id}`,
    ]);
    // The run has said what to do.
    expect(await decide({ as: 'deny', digest: '0'.repeat(64) })).toEqual([
      expect.stringMatching(/^digest: expected the current digest of r1, got /),
      'review the request again',
    ]);
  });

  test('of a misspelled kind of decision: the nearest one', async () => {
    const { id, request } = await desk.asking(32);
    const decision = { request: request.id, digest: request.digest, as: 'aprove' };
    expect(await refused(id, 'decisions', { decisions: [decision] })).toEqual([
      expect.stringMatching(/^decisions\[0\]\.as: expected one of approve, .*, got "aprove"$/),
      'did you mean approve?',
    ]);
  });

  test('of anything about a run that has ended: see its status', async () => {
    const { id, request } = await desk.asking(33);
    await desk.client.resolve(id, { request: request.id, digest: request.digest, as: 'deny' });
    await desk.client.result(id);
    const said = [`run ${id} has ended`, `see it with: npx perdure status ${id}`];
    for (const path of ['pause', 'resume', 'close'])
      expect(await refused(id, path, {})).toEqual(said);
    expect(await refused(id, 'messages', { message: 'x' })).toEqual(said);
    expect(await refused(id, 'limits', { limits: { steps: 5 } })).toEqual(said);
    expect(await refused(id, 'undo', {})).toEqual(said);
  });
});

test('an undo needs no call if only one can be undone, and otherwise names those that can', async () => {
  const { id } = await desk.client.start('cashier', { message: 'pay 5', open: true, by: 'ann' });
  await desk.client.result(id);
  const [first] = await desk.client.calls(id);
  const undo = async (body: object) => await desk.send(`/v1/runs/${id}/undo`, { body });
  const undoable = async () => (await desk.client.status(id)).undoable ?? [];
  expect((await undo({})).body).toEqual({ id, call: first?.call.id });
  await expect.poll(async () => (await undoable())[0]?.state).toBe('undone');
  expect((await undo({})).body.error.message).toMatch(/^call: nothing can be undone/);
  for (const [turn, message] of [
    [2, 'pay 6'],
    [3, 'pay 7'],
  ] as const) {
    await desk.client.send(id, message, { by: 'ann' });
    await desk.client.result(id, { turn });
  }
  const ids = (await undoable()).filter(({ state }) => state === undefined).map(({ call }) => call);
  expect(ids).toHaveLength(2);
  const several = await undo({});
  expect([several.status, several.body.error.fix]).toEqual([400, 'give the id of one']);
  for (const call of ids) expect(several.body.error.message).toContain(`"${call}" (pay `);
  await desk.client.close(id);
});

test('the command of a refusal carries what selects the server, where the server knows it', async () => {
  const { id } = await desk.client.start('other', { message: 'hello', by: 'ann' });
  await desk.client.result(id);
  const runnable = (text: string) => text.replace('perdure status', 'HOME=/h npx perdure status');
  const server = await openServer({ client: desk.client }, { runnable });
  const request = new Request(`http://127.0.0.1/v1/runs/${id}/pause`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  const answer = await server.fetch(request);
  expect(await answer.json()).toMatchObject({
    error: { fix: `see it with: HOME=/h npx perdure status ${id}` },
  });
  await server.close();
});

test('listen refuses a port that is none', async () => {
  const server = { fetch: () => Promise.reject(new Error('not used')), isVerified: false };
  for (const port of ['x', -1, 99_999]) {
    const unfit = 'port: expected 1 to 65535, or 0 for any free port; got ';
    await expect(listen(server, { port } as object)).rejects.toThrow(unfit);
  }
});

test('a client of the server refuses an option that it does not have', () => {
  const open = () => httpClient({ url: 'http://127.0.0.1:1', kay: 'x' } as never);
  expect(open).toThrow('httpClient: "kay" is not an option; did you mean key?');
});

test('listen names the nearest option for one that it does not have', async () => {
  const server = { fetch: () => Promise.reject(new Error('not used')), isVerified: false };
  await expect(listen(server, { prot: 1 } as object)).rejects.toThrow(
    'listen: "prot" is not an option; did you mean port?',
  );
});

test('a refusal names the person who has decided as other texts for people do', async () => {
  const given = { message: 'pay 35', open: true, by: 'ann' } as const;
  const { id } = await desk.client.start('desk', given);
  await expect.poll(async () => (await desk.client.status(id)).pending.length).toBe(1);
  const [request] = (await desk.client.status(id)).pending;
  const decision = { request: 'r1', digest: request?.digest ?? '', as: 'deny' } as const;
  await desk.client.resolve(id, { ...decision, by: 'unverified:os-user:bo' });
  const decided = 'request: r1 has already been decided (deny, by os-user:bo (not verified))';
  const body = { decisions: [{ ...decision, note: 'again' }] };
  const { error } = (await desk.send(`/v1/runs/${id}/decisions`, { body })).body;
  expect(error.message).toBe(decided);
  const again = desk.client.resolve(id, { ...decision, note: 'again', by: 'cy' });
  await expect(again).rejects.toThrow(decided);
  expect((await desk.client.status(id)).decisions).toMatchObject([{ by: 'unverified:os-user:bo' }]);
  await desk.client.close(id);
});

/** Calls a tool of MCP over HTTP. */
async function callTool(as: string, name: string, args: Record<string, unknown>) {
  const client = new Client({ name: 'test', version: '1' });
  const headers = { authorization: `Bearer ${keyOf(as)}` };
  const url = new URL('/mcp', desk.url);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  const { content, structuredContent } = await client.callTool({ name, arguments: args });
  await client.close();
  return { value: structuredContent, text: JSON.stringify(content) };
}

test('agent_close ends an open run after its messages, and refuses a run that has ended', async () => {
  const { id } = await desk.client.start('other', { message: 'hello', open: true, by: 'ann' });
  expect((await callTool('ann', 'agent_close', { id })).value).toEqual({ id, closed: true });
  await desk.rig.client.workflow.getHandle(id).result();
  expect((await desk.client.status(id)).outcome?.status).toBe('completed');
  const late = await callTool('ann', 'agent_close', { id });
  expect(late.text).toContain('code: run_ended');
});
