import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type CallToolResult } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as Temporal, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { builtProgram } from '../support/built-program.js';
import { MCP_CONFIG } from '../support/mcp-config.js';

interface Answer {
  readonly isError: boolean;
  /** The stable code of an error. */
  readonly code: unknown;
  readonly text: string;
  readonly value: Record<string, unknown>;
}

/** The command as a process, with the SDK's client connected to it. */
interface Served {
  readonly pid: number;
  /** Messages that the client could not parse or did not expect. */
  readonly faults: readonly Error[];
  readonly stderr: () => string;
  call(tool: string, args: Record<string, unknown>): Promise<Answer>;
  tools(): ReturnType<Client['listTools']>;
  close(): Promise<void>;
}

let folder: string;
let stub: Stub;
let program: string;
/** The server of the tests that need none of their own. The last test but one kills it. */
let shared: Served;
const served: Served[] = [];
let temporal: Temporal;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perdure-mcp-cli-'));
  await writeFile(join(folder, 'perdure.config.ts'), MCP_CONFIG);
  program = await builtProgram();
  stub = await startStub();
  temporal = new Temporal({
    connection: await Connection.connect({ address: inject('temporalAddress') }),
  });
  shared = await serve(QUEUE);
});
afterAll(async () => {
  await Promise.all(served.map((each) => each.close().catch(() => undefined)));
  await temporal.connection.close();
  await stub.close();
  await rm(folder, { recursive: true, force: true });
});

const QUEUE = `mcp-${randomUUID()}`;

let withAllRuns: Promise<Served> | undefined;
const allRunsServer = (): Promise<Served> =>
  (withAllRuns ??= serve(`mcp-${randomUUID()}`, '--all-runs'));

let next: Promise<Served> | undefined;
/** The server after `shared`, on the same queue. */
const nextServer = (): Promise<Served> => (next ??= serve(QUEUE, '--decide'));

/** Starts an open run that waits for a message, on a queue without a worker. Returns its id. */
async function foreignRun(): Promise<string> {
  const workflowId = `foreign-${randomUUID()}`;
  const args = [{ agent: 'clerk', open: true }];
  await temporal.workflow.start('agent', { taskQueue: workflowId, workflowId, args });
  return workflowId;
}

async function serve(taskQueue: string, ...flags: readonly string[]): Promise<Served> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program, 'mcp', '--task-queue', taskQueue, ...flags],
    cwd: folder,
    env: {
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      PERDURE_HOME: join(folder, 'home'),
      OPENAI_BASE_URL: stub.baseUrl,
    },
    stderr: 'pipe',
  });
  let errorOutput = '';
  transport.stderr?.on('data', (chunk: Buffer) => (errorOutput += chunk.toString()));
  const faults: Error[] = [];
  const client = new Client({ name: 'test', version: '1' });
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK's client is not an event target
  client.onerror = (error) => faults.push(error);
  await client.connect(transport);
  const one: Served = {
    pid: transport.pid ?? 0,
    faults,
    stderr: () => errorOutput,
    async call(tool, args) {
      const result = await client.callTool({ name: tool, arguments: args });
      const [first] = result.content;
      return {
        code: codeOf(result),
        isError: result.isError === true,
        text: first?.type === 'text' ? first.text : '',
        value: (result.structuredContent ?? {}) as Record<string, unknown>,
      };
    },
    tools: () => client.listTools(),
    close: () => client.close(),
  };
  served.push(one);
  return one;
}

/** The stable code of an error, in the last line of its text and in its metadata. */
function codeOf({ _meta: meta, content }: CallToolResult): unknown {
  const last = content.at(-1);
  const code = meta?.['perdure/code'];
  return last?.type === 'text' && last.text === `code: ${String(code)}` ? code : undefined;
}

/** Polls for the result until the run is done, as a client does. */
async function probeOwnServer(from: Served, id: unknown): Promise<Record<string, unknown>> {
  for (;;) {
    const { value, isError } = await from.call('agent_result', { id, wait_seconds: 20 });
    if (value['done'] !== false || isError) return value;
  }
}

describe('perdure as an MCP server', () => {
  test('lists its agents, starts a run once per operation, and returns its answer', async () => {
    const server = shared;
    const { tools } = await server.tools();
    expect(tools.map(({ name }) => name.replace('agent_', '')).toSorted()).toEqual(
      'cancel close list result send start status'.split(' '),
    );
    expect(tools.find(({ name }) => name === 'agent_start')?.description).toContain(
      'double, clerk, poet, payout, guide',
    );
    const wait = tools.find(({ name }) => name === 'agent_result')?.inputSchema.properties;
    expect(wait).toMatchObject({ wait_seconds: { minimum: 0, maximum: 60 } });
    expect((await server.call('agent_list', {})).value).toEqual({
      agents: [
        { name: 'double', description: 'no description; a graph with the node do' },
        { name: 'clerk', description: 'does errands' },
        { name: 'poet', description: 'no description' },
        { name: 'payout', description: 'no description; a graph with the node sure' },
        { name: 'guide', description: 'no description' },
      ],
    });
    const task = { agent: 'clerk', message: `errand ${randomUUID()}`, operation_id: randomUUID() };
    stub.scriptFor(task.message, replyText('done it'));
    const first = await server.call('agent_start', task);
    expect(first.value).toMatchObject({ repeated: false });
    const { id } = first.value;
    // A longer wait than the longest is not refused.
    expect((await server.call('agent_result', { id, wait_seconds: 600 })).isError).toBe(false);
    expect(first.text).toBe(`id: ${String(id)}\nrepeated: false`);
    expect(await probeOwnServer(server, id)).toMatchObject({
      done: true,
      status: 'completed',
      reason: 'answer',
      answer: 'done it',
    });
    // The same operation still returns the run after it has ended.
    expect((await server.call('agent_start', task)).value).toEqual({ id, repeated: true });
    expect(
      stub.requests.filter(({ body }) => JSON.stringify(body).includes(task.message)),
    ).toHaveLength(1);
    const { value: status } = await server.call('agent_status', { id });
    expect(status).toMatchObject({
      id,
      agent: 'clerk',
      status: 'completed',
      reason: 'answer',
      step: 1,
    });
    expect(server.stderr()).toContain('worker in this process');
  });

  test('starts a graph with an input, and refuses what would have no effect', async () => {
    const start = async (args: Record<string, unknown>) =>
      await shared.call('agent_start', { operation_id: randomUUID(), ...args });
    const { value } = await start({ agent: 'double', input: { n: 21 } });
    expect(await probeOwnServer(shared, value['id'])).toMatchObject({ done: true, answer: '42' });
    const dropped = await start({ agent: 'double', message: 'hi', input: { n: 21 } });
    expect(dropped.code).toBe('input');
    expect(dropped.text).toContain('message: nothing in graph "double" reads it; omit it, and');
    const ignored = await start({ agent: 'clerk', message: 'hi', input: { n: 21 } });
    expect(ignored.code).toBe('input');
    expect(ignored.text).toContain('input: agent "clerk" is not a graph');
    const twice = await start({ agent: 'payout', message: 'hi', input: { what: 'x' } });
    expect(twice.text).toContain('input.what: the message of a run of graph "payout" fills this');
    const lacking = await start({ agent: 'guide', message: 'hi' });
    expect(lacking.text).toMatch(/^args\.city: missing; the template of agent "guide" takes city/);
    const given = await start({ agent: 'guide', message: 'hi', args: { city: 'Rome' } });
    expect(given.isError).toBe(false);
  });

  test('refuses an operation id that started another run', async () => {
    const server = shared;
    const operation = { operation_id: randomUUID() };
    const message = `one ${randomUUID()}`;
    stub.scriptFor(message, replyText('ok'));
    const { value } = await server.call('agent_start', { ...operation, agent: 'clerk', message });
    const other = await server.call('agent_start', {
      ...operation,
      agent: 'clerk',
      message: 'two',
    });
    expect(other.isError).toBe(true);
    expect(other.text).toContain(`which started run ${String(value['id'])} for another request`);
    const poet = await server.call('agent_start', { ...operation, agent: 'poet', message });
    expect(poet.text).toContain('for another request');
  });

  test('sends each message to an open run once, and cancels a turn or the run', async () => {
    const server = shared;
    const message = `open ${randomUUID()}`;
    stub.scriptFor(message, replyText('first'), replyText('second'));
    const { value } = await server.call('agent_start', {
      agent: 'clerk',
      message,
      operation_id: randomUUID(),
      open: true,
    });
    const { id } = value;
    expect(await probeOwnServer(server, id)).toMatchObject({ done: true, answer: 'first' });
    const more = { id, message: 'and more', operation_id: randomUUID() };
    expect((await server.call('agent_send', more)).value).toEqual({ delivered: true, id, turn: 2 });
    expect((await server.call('agent_send', more)).value).toEqual({ delivered: true, id, turn: 2 });
    expect(await probeOwnServer(server, id)).toMatchObject({ done: true, answer: 'second' });
    const { value: idle } = await server.call('agent_status', { id });
    expect(idle).toMatchObject({ status: 'waiting_message', turn: 2, queued: 0 });
    const noTurn = await server.call('agent_cancel', { id, turn: 2 });
    expect(noTurn.text).toContain('send it one with agent_send, close it with agent_close, or');
    expect((await server.call('agent_cancel', { id })).value).toEqual({ id, cancelled: 'run' });
    const isOver = async (): Promise<void> => {
      const { value: over } = await server.call('agent_status', { id });
      expect(over).toMatchObject({ status: 'cancelled', reason: 'cancelled' });
    };
    await vi.waitFor(isOver, { timeout: 30_000, interval: 100 });
    expect(await probeOwnServer(server, id)).toMatchObject({ done: true, status: 'cancelled' });
    const late = { id, message: 'late', operation_id: randomUUID() };
    expect(await server.call('agent_send', late)).toMatchObject({ code: 'run_ended' });
    expect((await server.call('agent_cancel', { id })).code).toBe('run_ended');
  });

  test('hosts a worker for a run on another task queue', async () => {
    const server = await allRunsServer();
    const id = await foreignRun();
    const message = `elsewhere ${randomUUID()}`;
    stub.scriptFor(message, replyText('first'));
    const sent = await server.call('agent_send', { id, message, operation_id: randomUUID() });
    expect(sent.value).toEqual({ id, delivered: true, turn: 1 });
    expect(await probeOwnServer(server, id)).toMatchObject({ answer: 'first' });
    await server.call('agent_cancel', { id });
  });

  test('names an invalid value and what was expected', async () => {
    const server = shared;
    const operation = { operation_id: randomUUID() };
    const wrong = async (tool: string, args: Record<string, unknown>): Promise<string> => {
      const { isError, text } = await server.call(tool, args);
      expect(isError).toBe(true);
      return text;
    };
    expect(await wrong('agent_start', { agent: 'clerk', message: 'x' })).toContain('operation_id');
    // The same words and the same code as over HTTP.
    const none = await server.call('agent_start', { ...operation, agent: 'clark', message: 'x' });
    expect(none.code).toBe('input');
    expect(none.text).toContain('agent: there is no agent "clark"; agent_list lists them');
    expect(
      await wrong('agent_start', { agent: 'clerk', message: 'x', ...operation, wait: 1 }),
    ).toContain('wait');
    const unknown = 'expected an id that agent_start returned, got "no-such-run"';
    for (const tool of ['agent_status', 'agent_result', 'agent_cancel'])
      expect(await wrong(tool, { id: 'no-such-run' })).toContain(unknown);
    expect(await wrong('agent_result', { id: 7 })).toContain('id');
    expect((await server.call('agent_result', { id: 7 })).code).toBe('input');
    expect((await server.call('agent_result', { id: 'no-such-run' })).code).toBe('no_run');
    const message = `task ${randomUUID()}`;
    stub.scriptFor(message, replyText('late', { holdBeforeHeaders: 'never' }));
    const { value } = await server.call('agent_start', { agent: 'clerk', message, ...operation });
    expect(
      await wrong('agent_send', { id: value['id'], message: 'x', operation_id: randomUUID() }),
    ).toContain('send with steer: true to join it, or start one with open: true');
    await server.call('agent_cancel', { id: value['id'] });
  });

  test('serves only runs that it started, unless --all-runs is given', async () => {
    const id = await foreignRun();
    const server = shared;
    const asked = [
      ['agent_status', {}],
      ['agent_result', { wait_seconds: 0 }],
      ['agent_send', { message: 'x', operation_id: 'o' }],
      ['agent_cancel', {}],
      ['agent_cancel', { turn: 1 }],
    ] as const;
    for (const [tool, rest] of asked) {
      const refused = await server.call(tool, { id, ...rest });
      expect(refused).toMatchObject({ isError: true });
      expect(refused.text).toContain(`expected an id that agent_start returned, got "${id}"`);
    }
    const all = await allRunsServer();
    expect((await all.call('agent_status', { id })).value).toMatchObject({ id, agent: 'clerk' });
    await temporal.workflow.getHandle(id).terminate();
  });

  test('reserves stdout for the protocol, whatever a tool writes', async () => {
    const server = shared;
    const message = `talk ${randomUUID()}`;
    stub.scriptFor(message, replyCalls([{ name: 'chatter', arguments: {} }]), replyText('talked'));
    const { value } = await server.call('agent_start', {
      agent: 'clerk',
      message,
      operation_id: randomUUID(),
    });
    expect(await probeOwnServer(server, value['id'])).toMatchObject({ answer: 'talked' });
    expect(server.faults).toEqual([]);
    expect(server.stderr()).toContain('not the protocol');
  });

  test('leaves its runs alive when it is killed: another server continues them', async () => {
    const first = shared;
    const message = `long ${randomUUID()}`;
    stub.scriptFor(
      message,
      replyCalls([{ name: 'chatter', arguments: {} }]),
      replyText('lost', { holdBeforeHeaders: 'killed' }),
      replyText('after all'),
    );
    const task = { agent: 'clerk', message, operation_id: randomUUID() };
    const { value } = await first.call('agent_start', task);
    const { id } = value;
    const waiting = await first.call('agent_result', { id, wait_seconds: 1 });
    expect(waiting.value).toMatchObject({ id, done: false, answer: null });
    await stub.barrier('killed').reached;
    process.kill(first.pid, 'SIGKILL');
    const second = await nextServer();
    expect((await second.call('agent_start', task)).value).toEqual({ id, repeated: true });
    expect(await probeOwnServer(second, id)).toMatchObject({ done: true, answer: 'after all' });
  }, 180_000);

  test('lets no message decide, except with --decide and what it answers', async () => {
    const deciding = await nextServer();
    const task = { agent: 'payout', message: 'go', operation_id: randomUUID() };
    const { id } = (await deciding.call('agent_start', task)).value;
    const requests = await vi.waitFor(
      async () => {
        const { value } = await deciding.call('list_requests', { id });
        expect(value['requests']).toHaveLength(1);
        return value['requests'] as readonly { readonly id: string; readonly digest: string }[];
      },
      { timeout: 30_000, interval: 100 },
    );
    const [{ id: request, digest } = { id: '', digest: '' }] = requests;
    expect((await deciding.call('agent_status', { id })).text).toContain('with list_requests, id');
    expect(JSON.stringify(requests)).toContain('as it is here; then call decide with request ');
    const { text: odd } = await deciding.call('decide', { id, request, digest, as: 'anser' });
    expect(odd).toContain('answer, deny for r1, got "anser"; did you mean answer?');
    // A command works in the client's folder and shell only if it names the place.
    const { text } = await (await allRunsServer()).call('agent_status', { id });
    const place = `PERDURE_HOME=${join(folder, 'home')} TEMPORAL_ADDRESS=${inject('temporalAddress')} PERDURE_HINTS=full`;
    expect(text).toContain(`decide: ${place} node ${program} `);
    expect(text).toMatch(/perdure\.js \w+ --task-queue/);
    const yes = () => ({ id, message: 'yes', operation_id: randomUUID() });
    const others = await Promise.all([
      deciding.call('agent_send', yes()),
      (await allRunsServer()).call('agent_send', yes()),
      deciding.call('agent_send', { ...yes(), answers: { request, digest: 'f'.repeat(64) } }),
    ]);
    expect(others.map(({ isError }) => isError)).toEqual([true, true, true]);
    expect(others[1]?.text).toContain('this message may not decide');
    const bound = { ...yes(), answers: { request, digest } };
    expect(await deciding.call('agent_send', bound)).toMatchObject({ isError: false });
    expect(await probeOwnServer(deciding, id)).toMatchObject({ done: true, status: 'completed' });
  }, 120_000);

  test('offers decisions only with --decide', async () => {
    const deciding = await nextServer();
    const names = (await deciding.tools()).tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['decide', 'list_requests']));
    const properties = async (from: Served): Promise<object> =>
      (await from.tools()).tools.find(({ name }) => name === 'agent_send')?.inputSchema
        .properties ?? {};
    expect(await properties(deciding)).toHaveProperty('answers');
    expect(await properties(await allRunsServer())).not.toHaveProperty('answers');
    const foreign = await deciding.call('list_requests', { id: 'not-ours' });
    expect(foreign.isError).toBe(true);
    expect(foreign.text).toContain('expected an id that agent_start returned');
  });
});
