import { randomUUID } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withProgram } from '../../src/core/requests/commands.js';
import { createServer, listen, type HttpServer, type Listening } from '../../src/http.js';
import { openServer } from '../../src/http/create-server.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;
/** A second server in front of the same runs, whose clients may decide. */
let deciding: Listening;
const open: Client[] = [];

const principals = {
  ann: { rights: { '*': 'all' } },
  bob: { rights: { desk: ['start'] } },
  eve: { rights: { other: 'all' } },
} as const;

beforeAll(async () => {
  desk = await openHttpDesk(['ann', 'bob', 'eve'], { principals: structuredClone(principals) });
  const env = {
    PERDURE_SERVE_KEYS: Object.keys(principals)
      .map((name) => `${name}:${keyOf(name)}`)
      .join(','),
  };
  const serve = { principals: structuredClone(principals), mcp: { decide: true } };
  deciding = await listen(await createServer({ client: desk.client, serve, env }));
});
afterAll(async () => {
  await Promise.all(open.map((client) => client.close()));
  await deciding.close();
  await desk.close();
});

type Mode = 'auto' | 'legacy';

async function connect(
  name: string,
  { mode = 'auto', url = desk.url }: { readonly mode?: Mode; readonly url?: string } = {},
) {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  const headers = { authorization: `Bearer ${keyOf(name)}` };
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', url), {
    requestInit: { headers },
  });
  await client.connect(transport);
  open.push(client);
  return client;
}

interface Answer {
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads any field of an answer
  readonly [field: string]: any;
}

async function call(client: Client, name: string, given: Record<string, unknown>) {
  const result = await client.callTool({ name, arguments: given });
  const text = result.content.map((one) => (one.type === 'text' ? one.text : '')).join('\n');
  return { failed: result.isError === true, text, value: result.structuredContent as Answer };
}

const operation = (): string => randomUUID();

describe.each<Mode>(['auto', 'legacy'])('an official client (%s)', (mode) => {
  test('starts a run once, talks to it, and reads its answers', async () => {
    const client = await connect('ann', { mode });
    expect(client.getServerCapabilities()).toEqual({ tools: { listChanged: false } });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'agent_list',
      'agent_start',
      'agent_status',
      'agent_result',
      'agent_send',
      'agent_cancel',
      'agent_close',
    ]);
    const start = { agent: 'desk', message: 'hello', open: true, operation_id: operation() };
    const { id } = (await call(client, 'agent_start', start)).value;
    expect((await call(client, 'agent_start', start)).value).toEqual({ id, repeated: true });
    const taken = await call(client, 'agent_start', { ...start, message: 'bye' });
    expect(taken.text).toContain(
      `operation_id: expected a new id, got "${start.operation_id}", which started run ${id} for another request; choose a new one`,
    );
    const first = await call(client, 'agent_result', { id });
    expect(first.value).toMatchObject({ done: true, answer: 'you said: hello' });
    const send = { id, message: 'and again', operation_id: operation() };
    expect((await call(client, 'agent_send', send)).value).toMatchObject({ turn: 2 });
    expect((await call(client, 'agent_send', send)).value).toMatchObject({ turn: 2 });
    await expect
      .poll(async () => (await call(client, 'agent_result', { id })).value['answer'])
      .toBe('you said: and again');
    const { messages } = await desk.client.transcript(id);
    const said = messages.filter(({ role }) => role === 'user');
    expect(said).toMatchObject([{ by: 'ann' }, { by: 'ann' }]);
    expect((await call(client, 'agent_cancel', { id })).value).toEqual({ id, cancelled: 'run' });
    await desk.client.result(id);
    const twice = await call(client, 'agent_cancel', { id });
    expect(twice.text).toContain('has ended, so there is nothing to cancel');
    expect(twice.text).toContain('code: run_ended');
    const ofTurn = await call(client, 'agent_cancel', { id, turn: 1 });
    expect(ofTurn.text).toContain('code: run_ended');
    const late = await call(client, 'agent_send', { ...send, operation_id: operation() });
    expect(late.text).toContain('code: run_ended');
    const again = { message: 'x' };
    const { status, body } = await desk.send(`/v1/runs/${id}/messages`, { body: again });
    expect([status, body.error]).toEqual([
      409,
      expect.objectContaining({ code: 'run_ended', message: `run ${id} has ended` }),
    ]);
    expect(body.error).not.toHaveProperty('reason');
  });
});

test('a principal sees and starts what its rights say, and a run of others is unknown to it', async () => {
  const bob = await connect('bob');
  const { agents } = (await call(bob, 'agent_list', {})).value;
  expect(agents).toEqual([{ name: 'desk', description: 'pays' }]);
  // Without a description, what an agent has tells what it is for.
  const all = (await call(await connect('ann'), 'agent_list', {})).value;
  expect(all['agents']).toContainEqual({ name: 'other', description: 'no description' });
  const { id } = await desk.asking(21);
  const unknown = await call(bob, 'agent_status', { id });
  expect(unknown).toMatchObject({ failed: true });
  expect(unknown.text).toBe(
    (await call(bob, 'agent_status', { id: 'none' })).text.replace('none', id),
  );
  const eve = await connect('eve');
  const refused = await call(eve, 'agent_start', {
    agent: 'desk',
    message: 'pay 22',
    operation_id: operation(),
  });
  expect(refused.text).toContain('agent: there is no agent "desk"; agent_list lists them');
  expect(refused.text).toContain('code: input');
  await desk.client.cancel(id);
});

test('a result is not awaited while the run itself waits', async () => {
  const ann = await connect('ann');
  const start = { agent: 'desk', open: true, operation_id: operation() };
  const { id } = (await call(ann, 'agent_start', start)).value;
  const result = async () => (await call(ann, 'agent_result', { id, wait_seconds: 300 })).value;
  expect(await result()).toMatchObject({
    done: false,
    status: 'waiting_message',
    message: 'the run waits for its first message; send it with agent_send',
  });
  await desk.client.pause(id);
  const message = `the run is paused; a person resumes it with: npx perdure resume ${id}`;
  await call(ann, 'agent_send', { id, message: 'pay 31', operation_id: operation() });
  expect(await result()).toMatchObject({ done: false, status: 'paused', message });
  expect((await call(ann, 'agent_status', { id })).value).toMatchObject({ message });
  await desk.client.resume(id);
  // The request is raised while the result is awaited, or just before.
  expect(await result()).toMatchObject({ status: 'waiting_decision', pending: [{ tool: 'pay' }] });
  await call(ann, 'agent_cancel', { id });
});

test('a server for this machine only gives commands for any of its shells, and one with keys does not', async () => {
  const { id } = await desk.asking(29, 'bob');
  const runnable = (text: string): string => withProgram(text, 'X=1 npx perdure');
  const fixOf = async (server: HttpServer): Promise<unknown> => {
    const listening = await listen(server);
    const client = await connect('ann', { url: listening.url });
    const { value } = await call(client, 'agent_status', { id });
    await listening.close();
    return value['pending'][0].fix;
  };
  const { client } = desk;
  const own = await openServer({ client, env: {} }, { runnable });
  expect(await fixOf(own)).toMatch(/^X=1 npx perdure approve pay-/);
  const serve = { principals: structuredClone(principals) };
  const env = { PERDURE_SERVE_KEYS: `ann:${keyOf('ann')},bob:${keyOf('bob')},eve:${keyOf('eve')}` };
  const verified = await openServer({ client, serve, env }, { runnable });
  expect(await fixOf(verified)).toMatch(/^npx perdure approve pay-/);
});

test('no client decides, unless the server lets it and its principal has the right', async () => {
  const { id, request } = await desk.asking(23, 'bob');
  const decision = { id, request: request.id, digest: request.digest, as: 'approve' };
  const ann = await connect('ann');
  await expect(call(ann, 'decide', decision)).rejects.toThrow('decide');
  const said = { id, message: 'approve', operation_id: operation() };
  await call(ann, 'agent_send', said);
  expect(desk.paid).not.toContain(23);
  // Without the tools for decisions, a person decides in the terminal of a project.
  const [waiting] = (await call(ann, 'agent_status', { id })).value['pending'];
  expect(waiting.fix).toMatch(/^npx perdure approve pay-\S+ r1 --digest [0-9a-f]{12}$/);
  // It returns at once, not after the seconds that it may wait.
  expect((await call(ann, 'agent_result', { id, wait_seconds: 300 })).value).toMatchObject({
    done: false,
    status: 'waiting_decision',
    message: expect.stringMatching(/; decide: npx perdure approve pay-\S+ r1 --digest /) as string,
    pending: [{ request: 'r1', fix: waiting.fix }],
  });
  const { body: read } = await desk.send(`/v1/runs/${id}`);
  expect([read.pending[0].fix, read.message]).toEqual([
    waiting.fix,
    expect.stringContaining(`decide: ${waiting.fix}`),
  ]);
  const bob = await connect('bob', { url: deciding.url });
  expect(await call(bob, 'decide', decision)).toMatchObject({ failed: true });
  expect(desk.paid).not.toContain(23);
  const able = await connect('ann', { url: deciding.url });
  const { requests } = (await call(able, 'list_requests', { id })).value;
  const next = `call decide with request "r1", its digest, and as: ${request.decisions.join(', ')}`;
  const fix = `show it to a person with list_requests, id "${id}"; then ${next}`;
  // Whoever reads this has called list_requests.
  const shown = `show it to a person as it is here; then ${next}`;
  expect(requests).toMatchObject([{ id: request.id, digest: request.digest, fix: shown }]);
  expect((await call(able, 'agent_status', { id })).value).toMatchObject({
    message: expect.stringContaining(`decide: ${fix}`) as string,
    pending: [{ fix }],
  });
  expect(await call(able, 'decide', { ...decision, as: 'aprove' })).toMatchObject({
    failed: true,
    text: `as: expected one of ${request.decisions.join(', ')} for r1, got "aprove"; did you mean approve?\ncode: input`,
  });
  const odd = await call(able, 'decide', { ...decision, request: 'r9', as: 'aprove' });
  expect(odd.text).toContain('got "aprove"; did you mean approve?');
  expect((await call(able, 'decide', { ...decision, as: 'raise' })).text).toContain(
    `as: expected one of ${request.decisions.join(', ')} for r1, got "raise"`,
  );
  const wrong = await call(able, 'decide', { ...decision, digest: '0'.repeat(64) });
  expect(wrong.text).toContain('code: changed');
  expect(desk.paid).not.toContain(23);
  expect((await call(able, 'decide', decision)).failed).toBe(false);
  expect((await desk.client.result(id)).answer).toBe('done: paid 23');
  // Whoever decides again, in whatever way, reads who was first.
  const over = new RegExp(
    `^request: r1 of run ${id} was decided by ann \\(verified by mcp\\) \\(approve\\) at \\S+Z, and cannot be decided again`,
  );
  const fixed = 'read the result of the run, which has ended';
  const again = await call(able, 'decide', { ...decision, as: 'deny' });
  expect(again.text).toMatch(over);
  expect(again.text).toContain(`; ${fixed}\ncode: run_ended`);
  const made = { request: request.id, digest: request.digest, as: 'deny' } as const;
  const { body } = await desk.send(`/v1/runs/${id}/decisions`, { body: { decisions: [made] } });
  const code = 'run_ended';
  const message = expect.stringMatching(over);
  expect(body.error).toEqual({ code, message, fix: fixed });
  await expect(desk.client.resolve(id, made)).rejects.toMatchObject({ reason: code, message });
  await expect(desk.client.resolve(id, { ...made, request: 'r9' })).rejects.toMatchObject({
    message: `run ${id} has ended, so r9 is no longer open; read its result`,
  });
});

test('arguments that do not fit are refused with the field, the value, and the fix', async () => {
  const ann = await connect('ann');
  const refused = async (name: string, given: Record<string, unknown>) =>
    (await call(ann, name, given)).text.split('\n');
  expect(await refused('agent_start', { agent: 'desk', message: 'x' })).toEqual([
    'operation_id: missing, expected string; give an id that you choose, new for each new operation; repeating it has no second effect',
    'code: input',
  ]);
  const given = { agent: 'desk', mesage: 'x', operation_id: operation() };
  expect(await refused('agent_start', given)).toEqual([
    '"mesage": expected one of the fields agent, message, input, args, operation_id, context, open; did you mean message?',
    'code: input',
  ]);
  const [wrong] = await refused('agent_result', { id: 'x', wait_seconds: 'soon' });
  expect(wrong).toBe('wait_seconds: expected number, got "soon"');
});

test('a tool that the server does not offer is refused with the nearest name, or with how it is offered', async () => {
  const ann = await connect('ann');
  await expect(ann.callTool({ name: 'agent_stat' })).rejects.toThrow(
    'name: expected a tool of this server, got "agent_stat"; did you mean agent_start?',
  );
  for (const name of ['decide', 'list_requests']) {
    await expect(ann.callTool({ name })).rejects.toThrow(
      'it is offered only with `serve: { mcp: { decide: true } }` in its configuration',
    );
  }
  const { tools } = await ann.listTools();
  const wait = tools.find(({ name }) => name === 'agent_result')?.inputSchema.properties;
  expect(wait).toMatchObject({ wait_seconds: { minimum: 0, maximum: 60 } });
});

test('arguments that a program could not keep are refused, and none has a failure of its own', async () => {
  const ann = await connect('ann');
  const refused = async (name: string, given: Record<string, unknown>) =>
    (await call(ann, name, given)).text.split('\n')[0];
  const deep: unknown = JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`);
  const start = { agent: 'desk', message: 'x', operation_id: operation() };
  const { headers } = { headers: { accept: 'application/json, text/event-stream' } };
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'agent_start', arguments: { ...start, context: deep } },
  };
  expect((await desk.send('/mcp', { body, headers })).body.error.message).toBe(
    'body: expected at most 200 levels, got more',
  );
  const list = { ...body, params: { name: 'agent_start', arguments: [] } };
  expect((await desk.send('/mcp', { body: list, headers })).body.error.message).toBe(
    'arguments: expected an object with the fields of the tool, got []',
  );
  const large = JSON.stringify({ ...body, params: { context: 'N' } }).replace(
    '"N"',
    '9007199254740993',
  );
  const sent = await fetch(`${desk.url}/mcp`, {
    method: 'POST',
    headers: {
      ...headers,
      authorization: `Bearer ${keyOf('ann')}`,
      'content-type': 'application/json',
    },
    body: large,
  });
  expect([sent.status, await sent.text()]).toEqual([
    400,
    expect.stringContaining('the number 9007199254740993 cannot be kept exactly'),
  ]);
  expect(await refused('agent_cancel', { id: 'x', turn: true })).toBe(
    'turn: expected the number of a turn, such as 2, got true; omit it to cancel the whole run',
  );
  expect(await refused('agent_start', { ...start, agent: 'deks' })).toBe(
    'agent: there is no agent "deks"; did you mean desk? agent_list lists them',
  );
  // Some clients send an argument to each tool.
  expect((await call(ann, 'agent_list', { random_string: 'x' })).failed).toBe(false);
  // The protocol has an answer of its own for what is no JSON.
  const broken = await fetch(`${desk.url}/mcp`, {
    method: 'POST',
    headers: {
      ...headers,
      authorization: `Bearer ${keyOf('ann')}`,
      'content-type': 'application/json',
    },
    body: '{bad',
  });
  expect(await broken.json()).toMatchObject({ jsonrpc: '2.0', error: { code: -32_700 } });
});

test('rubbish is refused, and foreign pages, and who has no key', async () => {
  const init = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const accept = { accept: 'application/json, text/event-stream' };
  const send = async (body: unknown, options: object) =>
    await desk.send('/mcp', { body, headers: accept, ...options });
  expect(await send(init, { as: null })).toMatchObject({ status: 401 });
  const foreign = { headers: { ...accept, origin: 'https://evil.example' } };
  expect(await send(init, foreign)).toMatchObject({ status: 403 });
  for (const rubbish of [[], 7, 'x', {}, { jsonrpc: '2.0' }, { method: 3 }, [init, 5]]) {
    const { status } = await send(rubbish, {});
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
  }
  // A list would be one request for the rate, whatever it holds.
  for (const list of [[init], [init, init], [[init]]]) {
    const { status, body } = await send(list, {});
    expect([status, body.error.code]).toEqual([400, 'input']);
    expect(body.error.message).toBe('body: expected one JSON-RPC message, got a list');
  }
  const ann = await connect('ann');
  const odd = await call(ann, 'agent_start', { agent: 7, operation_id: 'x' });
  expect(odd).toMatchObject({ failed: true });
  expect(odd.text).toContain('code: input');
});
