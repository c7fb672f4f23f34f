import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Runtime } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { askRun } from '../../src/updates/ask.js';
import { closeRun, resumeRun } from '../../src/updates/decide.js';
import { waitForResult } from '../../src/client/status.js';
import type { AgentDefinition } from '../../src/core/definition/definition.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { mcpServer, type McpServer } from '../../src/mcp/mcp-server.js';
import type { ModelReply, ModelRequest } from '../../src/models/model.js';
import { replyCall, replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { asking, blocked, decide } from '../support/conversation.js';
import { bannerServer } from '../support/banner-server.js';
import { historyText } from '../support/history-text.js';
import { fixtureFiles, listed, offer, stdioFixture } from '../support/mcp-agent.js';
import { seen } from '../support/mcp-fixture.js';
import { httpFixture, type HttpFixture } from '../support/mcp-http.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';
import { workerChild } from '../support/worker-child.js';

type Step = ModelReply | (() => Promise<ModelReply>);
const scripts = new Map<string, readonly Step[]>();
const model = {
  async call(request: ModelRequest) {
    const step = request.messages.filter(({ role }) => role === 'assistant').length;
    const next = scripts.get(request.messages[0]?.text ?? '')?.[step] ?? replyText('done');
    return typeof next === 'function' ? await next() : next;
  },
};

const TOKEN = 'canary-token-81c';
const servers: HttpFixture[] = [];
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop().catch(() => undefined)));
});

/** Ends with its test, so that the next worker takes over its workflow thread. */
async function newRig(): Promise<Rig> {
  const rig = await createRig();
  onTestFinished(() => rig.close());
  return rig;
}

/** A worker that has only this agent. */
async function worker(
  mcp: readonly McpServer[],
  rest: Partial<Parameters<typeof defineAgent>[0]> = {},
): Promise<Rig> {
  const rig = await newRig();
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm', mcp, ...rest });
  await rig.worker([agent], {
    models: { m: model },
    env: { PERDURE_HOME: rig.home, DESK_TOKEN: TOKEN, DESK_KEY: 'canary-key-77d' },
  });
  return rig;
}

async function start(rig: Rig, ...replies: readonly Step[]) {
  const message = randomUUID();
  scripts.set(message, replies);
  return await rig.start({ agent: 'a', message });
}

async function run(rig: Rig, ...replies: readonly Step[]): Promise<Ended> {
  return await rig.end(await start(rig, ...replies));
}

const results = ({ projection }: Ended): readonly string[] =>
  projection.messages.flatMap((message) => (message.role === 'tool' ? [message.text] : []));

async function http(
  files: Parameters<typeof httpFixture>[0],
  options: Parameters<typeof httpFixture>[1] = {},
): Promise<HttpFixture> {
  const server = await httpFixture(files, options);
  servers.push(server);
  return server;
}

const isCall = (body: string): boolean => body.includes('"tools/call"');

test('an MCP server that writes a banner is used at its first start, and the log says so once', async () => {
  const rig = await worker([bannerServer("process.stdout.write('Starting ')")]);
  const warn = vi.spyOn(Runtime.instance().logger, 'warn');
  onTestFinished(() => warn.mockRestore());
  for (const _ of [1, 2]) expect(results(await run(rig, replyCall('odd__look')))).toEqual(['seen']);
  const said = warn.mock.calls.flatMap(([text]) => text.split('"odd": ').slice(1));
  expect(said).toEqual([expect.stringMatching(/not the protocol \("Starting"\), .* error$/)]);
});

describe('an MCP server over streamable HTTP', () => {
  test('is called with the keys that its definition names, which appear nowhere else', async () => {
    const files = await fixtureFiles([listed('note')]);
    const { url, headers } = await http(files);
    const rig = await worker([
      mcpServer({
        name: 'far',
        transport: 'http',
        url,
        authEnv: 'DESK_TOKEN',
        headersEnv: { 'X-Desk': 'DESK_KEY' },
      }),
    ]);
    const ended = await run(rig, replyCall('far__note', { leak: TOKEN }));
    expect(results(ended)).toEqual(['{"leak":"[redacted DESK_TOKEN]"}']);
    expect(headers.at(-1)).toMatchObject({
      authorization: `Bearer ${TOKEN}`,
      'x-desk': 'canary-key-77d',
    });
    expect(historyText(ended.history)).not.toContain('canary-key');
    // The agent is loaded in two attempts. The SDK warns of no failure that is benign.
    const failures = (ended.history.events ?? []).flatMap(
      (event) => event.markerRecordedEventAttributes?.failure?.applicationFailureInfo ?? [],
    );
    expect(failures).toEqual([expect.objectContaining({ type: 'AgentNeedsTime', category: 1 })]);
  });

  test('is reached again after a restart, without a decision by a person', async () => {
    const files = await fixtureFiles([listed('note')]);
    const first = await http(files);
    const rig = await worker([mcpServer({ name: 'far', transport: 'http', url: first.url })]);
    const restart = async (): Promise<ModelReply> => {
      await first.stop();
      await http(files, { port: first.port });
      return replyCall('far__note', { n: 2 });
    };
    const ended = await run(rig, replyCall('far__note', { n: 1 }), restart);
    expect(results(ended)).toEqual(['{"n":1}', '{"n":2}']);
    expect(seen(files.ledger)).toHaveLength(2);
  });

  test('that aborts a call leaves its outcome to a person, and is retried for a read', async () => {
    const files = await fixtureFiles([listed('note'), listed('look')]);
    const dropped = new Set<string>();
    const { url } = await http(files, {
      answer: (body) => {
        const tool = /"name":"(note|look)"/.exec(body)?.[1];
        if (!isCall(body) || tool === undefined || dropped.has(tool)) return null;
        dropped.add(tool);
        // One breaks the connection, the other ends its stream without an answer.
        return tool === 'look' ? 'drop' : 'cut';
      },
    });
    const rig = await worker([
      mcpServer({ name: 'far', transport: 'http', url, effects: { look: 'read' } }),
    ]);
    const handle = await start(rig, replyCall('far__look'), replyCall('far__note'));
    const status = await asking(handle);
    expect(status).toMatchObject({ reason: 'outcome_unknown', pending: [{ tool: 'far__note' }] });
    await decide(handle, { as: 'happened', result: 'noted' });
    expect(results(await rig.end(handle))).toEqual(['{}', 'noted']);
  });

  test('that rejects a request before it processes it has done nothing: the call is retried', async () => {
    const files = await fixtureFiles([listed('note')]);
    let refusals = 1;
    const { url } = await http(files, {
      answer: (body) => (isCall(body) && refusals-- > 0 ? 429 : null),
    });
    const rig = await worker([mcpServer({ name: 'far', transport: 'http', url })]);
    expect(results(await run(rig, replyCall('far__note', { n: 1 })))).toEqual(['{"n":1}']);
  });
});

test('a `keyed` call whose last attempts were not sent is left to a person if an earlier one may have acted', async () => {
  const files = await fixtureFiles([listed('note')]);
  const answers = ['drop'] as const;
  let calls = 0;
  const { url } = await http(files, {
    answer: (body) => (isCall(body) ? (answers[calls++] ?? 429) : null),
  });
  const effects = { note: 'keyed' } as const;
  const rig = await worker([mcpServer({ name: 'far', transport: 'http', url, effects })]);
  const handle = await start(rig, replyCall('far__note', { n: 1 }));
  const status = await asking(handle);
  expect(status).toMatchObject({ reason: 'outcome_unknown', pending: [{ tool: 'far__note' }] });
  expect(status.pending[0]?.why).toContain('; an earlier attempt may have taken effect');
  await decide(handle, { as: 'happened', result: 'noted' });
  expect(results(await rig.end(handle))).toEqual(['noted']);
});

test('an MCP server that rejects its key blocks the run until it accepts it', async () => {
  const files = await fixtureFiles([listed('note')]);
  let isRevoked = false;
  const { url } = await http(files, { answer: () => (isRevoked ? 401 : null) });
  const rig = await worker([
    mcpServer({ name: 'far', transport: 'http', url, authEnv: 'DESK_TOKEN' }),
  ]);
  const handle = await start(rig, async () => {
    isRevoked = true;
    return replyCall('far__note', { n: 1 });
  });
  const status = await blocked(handle);
  expect(status.reason).toBe('credentials');
  expect(status.message).toContain(
    'MCP server "far" refuses (HTTP 401); check the key in DESK_TOKEN',
  );
  isRevoked = false;
  await resumeRun(rig.client, handle.workflowId);
  expect(results(await rig.end(handle))).toEqual(['{"n":1}']);
  expect(seen(files.ledger)).toHaveLength(1);
});

describe('the tools of several servers', () => {
  test('are kept apart, whatever their names', async () => {
    const [here, there] = [
      await fixtureFiles([listed('note')]),
      await fixtureFiles([listed('note')]),
    ];
    const [one, two] = [await http(here), await http(there)];
    const rig = await worker([
      mcpServer({ name: 'one', transport: 'http', url: one.url, authEnv: 'DESK_TOKEN' }),
      mcpServer({ name: 'two', transport: 'http', url: two.url }),
    ]);
    await run(rig, replyCall('one__note', { at: 1 }), replyCall('two__note', { at: 2 }));
    expect(seen(here.ledger).map(({ args }) => args['at'])).toEqual([1]);
    expect(seen(there.ledger).map(({ args }) => args['at'])).toEqual([2]);
    expect(two.headers.some((each) => each.authorization !== undefined)).toBe(false);
  });

  test('that collide with a tool of the agent end the run at its start', async () => {
    const { url } = await http(await fixtureFiles([listed('note')]));
    const clash = defineTool({
      name: 'far__note',
      description: 'x',
      effect: 'read',
      input: z.object({}),
      execute: () => 'mine',
    });
    const rig = await worker([mcpServer({ name: 'far', transport: 'http', url })], {
      tools: [clash],
    });
    const { outcome } = await run(rig);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'input' });
    expect(outcome.error).toContain(
      'two tools are named "far__note", one of them of MCP server "far"',
    );
  });
});

test('tools of MCP servers can be shown as a catalog, with each server as a category', async () => {
  const files = await fixtureFiles([listed('note', { description: 'Notes it. In a book.' })]);
  const { url } = await http(files);
  const rig = await worker([mcpServer({ name: 'far', transport: 'http', url })], {
    toolExposure: 'catalog',
  });
  const ended = await run(
    rig,
    replyCall('discover_tools'),
    replyCall('invoke_tool', { name: 'far__note', arguments: { n: 1 } }),
  );
  const [catalog, result] = results(ended);
  expect(catalog).toContain('[MCP far] Notes it.');
  expect(catalog).not.toContain('In a book');
  expect(result).toBe('{"n":1}');
});

test('a message that refreshes the agent loads the current tools of the servers', async () => {
  const files = await fixtureFiles([listed('note', { description: 'old' })]);
  const { url } = await http(files);
  const rig = await worker([mcpServer({ name: 'far', transport: 'http', url })]);
  const message = randomUUID();
  const handle = await rig.start({ agent: 'a', message, open: true });
  const id = handle.workflowId;
  await waitForResult(rig.client, id, { turn: 1 });
  const old = listed('note', { description: 'old' });
  await offer(files, [old, listed('extra', { description: 'new' })]);
  scripts.set(message, [replyText('one'), replyCall('far__extra', { n: 2 })]);
  await askRun(rig.client, id, { message: 'again', refresh: true });
  await waitForResult(rig.client, id, { turn: 2 });
  const status = await handle.query<AgentDefinition>('definition');
  expect(status.tools[0]?.description).toBe('[MCP far] new');
  await closeRun(rig.client, id);
  const ended = await rig.end(handle);
  expect(results(ended)).toEqual(['{"n":2}']);
  expect(ended.projection.state?.config.definition.hash).toBe(status.hash);
});

test('more tools than a run can pin end it at its start, with the fix', async () => {
  const many = Array.from({ length: 100 }, (_, n) =>
    listed(`tool_${n}`, { description: 'x'.repeat(4_000) }),
  );
  const { url } = await http(await fixtureFiles(many));
  const rig = await worker([mcpServer({ name: 'far', transport: 'http', url })]);
  const { outcome } = await run(rig);
  expect(outcome).toMatchObject({ status: 'failed', reason: 'input' });
  expect(outcome.error).toContain('allow fewer tools of its MCP servers with allowTools');
});

describe('a server that is unavailable at the start', () => {
  const gone = { name: 'gone', transport: 'http', url: 'http://127.0.0.1:9/mcp' } as const;

  test('ends the run after some attempts, and is named', async () => {
    const rig = await worker([mcpServer(gone)]);
    const { outcome } = await run(rig);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'input' });
    expect(outcome.error).toContain('MCP server "gone" (http://127.0.0.1:9) cannot be reached');
  });

  test('is skipped if the agent allows it, and the status shows that', async () => {
    const { url } = await http(await fixtureFiles([listed('note')]));
    const rig = await worker([
      mcpServer({ ...gone, startup: 'best_effort' }),
      mcpServer({ name: 'far', transport: 'http', url }),
    ]);
    const ended = await run(rig, replyCall('far__note', { n: 1 }));
    expect(results(ended)).toEqual(['{"n":1}']);
    const status = await ended.handle.query<RunStatus>('status');
    expect(status.left).toEqual([
      { server: 'gone', message: expect.stringContaining('cannot be reached') as string },
    ]);
  });

  test('because of a missing variable ends the run at once, and the variable is named', async () => {
    const rig = await worker([stdioFixture(await fixtureFiles([]), { env: ['NO_SUCH_VARIABLE'] })]);
    const { outcome } = await run(rig);
    expect(outcome.error).toContain(
      `MCP server "desk" needs NO_SUCH_VARIABLE, which the environment of worker ${process.pid}@${hostname()} does not have; set it there, and restart the worker`,
    );
  });

  test('because its program is missing is reported as such', async () => {
    const rig = await worker([
      mcpServer({ name: 'desk', transport: 'stdio', command: 'no-such-program' }),
    ]);
    const { outcome } = await run(rig);
    expect(outcome.error).toContain('check that the command is installed');
  });

  test('because its command has arguments is reported with where they go', async () => {
    const command = 'node shop.js --all';
    const rig = await worker([mcpServer({ name: 'desk', transport: 'stdio', command })]);
    const { outcome } = await run(rig);
    expect(outcome.error).toContain(
      'arguments go to `args`: command: "node", args: ["shop.js","--all"]',
    );
  });

  test('or lacks the tools that the agent names ends the run with a list of the existing ones', async () => {
    const { url } = await http(await fixtureFiles([listed('note'), listed('look')]));
    const rig = await worker([
      mcpServer({ name: 'far', transport: 'http', url, denyTools: ['far__note'] }),
    ]);
    const { outcome } = await run(rig);
    expect(outcome.error).toContain(
      'denyTools names tool "far__note" (nearest: note), which it does not have; available: note, look',
    );
  });
});

describe('the process of a server', () => {
  let files: Awaited<ReturnType<typeof fixtureFiles>>;
  beforeAll(async () => {
    files = await fixtureFiles([listed('look')]);
  });

  const isAlive = (pid: number): boolean => {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  };

  test('ends when its worker is killed', async () => {
    const rig = await newRig();
    const stub = await startStub();
    const child = await workerChild({
      ADDRESS: inject('temporalAddress'),
      QUEUE: rig.taskQueue,
      OPENAI_BASE_URL: stub.baseUrl,
      PERDURE_HOME: rig.home,
      MCP_TOOLS: files.tools,
      MCP_LEDGER: files.ledger,
    });
    stub.script(replyCalls([{ name: 'desk__look', arguments: {} }]), replyText('done'));
    const { outcome } = await rig.end(await rig.start({ agent: 'mcp', message: 'go' }));
    expect(outcome.answer).toBe('done');
    const [{ pid } = { pid: 0 }] = seen(files.ledger);
    expect(isAlive(pid)).toBe(true);
    await child.kill();
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 10_000, interval: 20 });
    await stub.close();
  });

  test('ends with a worker that shuts down, before the shutdown is reported', async () => {
    const rig = await worker([stdioFixture(files, { effects: { look: 'read' } })]);
    await run(rig, replyCall('desk__look', { n: 1 }));
    const pid = seen(files.ledger).at(-1)?.pid ?? 0;
    expect(isAlive(pid)).toBe(true);
    await rig.stopWorkers();
    expect(isAlive(pid)).toBe(false);
  });
});
