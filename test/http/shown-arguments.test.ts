import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HttpAgent } from '@ag-ui/client';
import {
  Client,
  InMemoryTransport,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { runsServer } from '../../src/cli/mcp/runs-server.js';
import { defineConfig } from '../../src/config.js';
import { createServer, listen } from '../../src/http.js';
import { openStores } from '../../src/storage/file-stores.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { errorsOf, say, watch } from '../support/ag-ui.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';
import { UiChat, uiCall } from '../support/ui-chat.js';

/** What the doors show of a call before a person decides about it: all that its tool will get. */
let desk: HttpDesk;

const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ euros: z.number(), tip: z.number().default(5), note: z.string().default('') }),
  effect: 'keyed',
  execute: async () => 'paid',
});
/** Pays what it is told to. A long note goes to the blob store. */
const tipper = defineAgent({
  name: 'tipper',
  instructions: 'x',
  tools: [pay],
  rules: [{ tool: 'pay', then: 'ask' }],
  decide: async ({ messages }) => {
    const text = messages.at(-1)?.text ?? '';
    const note = text === 'long' ? { note: LONG } : {};
    return { calls: [{ name: 'pay', arguments: { euros: 17, ...note } }] };
  },
});
const LONG = `to Bob ${'x'.repeat(100_000)}`;

beforeAll(async () => {
  desk = await openHttpDesk(
    ['ann', 'dan'],
    {
      mcp: { decide: true },
      principals: { ann: { rights: { '*': 'all' } }, dan: { rights: { tipper: ['decide'] } } },
    },
    { agents: [tipper] },
  );
});
afterAll(() => desk.close());

/** Starts a run that asks, and returns its id. */
async function asking(message: string): Promise<string> {
  const { id } = await desk.client.start('tipper', { message, id: `tip-${randomUUID()}` });
  await vi.waitFor(async () => expect((await desk.client.status(id)).pending).toHaveLength(1), {
    timeout: 20_000,
    interval: 50,
  });
  return id;
}

/** Returns the first request that `list_requests` of a client shows. */
async function listed(client: Client, id: string): Promise<Readonly<Record<string, unknown>>> {
  const { structuredContent } = await client.callTool({ name: 'list_requests', arguments: { id } });
  const answer = z.object({ requests: z.array(z.looseObject({})) }).parse(structuredContent);
  return answer.requests[0] ?? {};
}

async function mcpClient(as: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const headers = { authorization: `Bearer ${keyOf(as)}` };
  const url = new URL('/mcp', desk.url);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  onTestFinished(() => client.close());
  return client;
}

describe('arguments that a schema completes', () => {
  test('are shown to a client of the AI SDK as the tool gets them', async () => {
    const chat = new UiChat(desk.url, { agent: 'tipper', id: randomUUID(), key: keyOf('ann') });
    await chat.sendMessage({ text: 'pay' });
    const input = { euros: 17, tip: 5, note: '' };
    expect(uiCall(chat.lastMessage)).toMatchObject({ state: 'approval-requested', input });
  });
});

describe('arguments that are too large for the history', () => {
  test('are shown whole to a client of the AI SDK', async () => {
    const chat = new UiChat(desk.url, { agent: 'tipper', id: randomUUID(), key: keyOf('ann') });
    await chat.sendMessage({ text: 'long' });
    const input = { euros: 17, tip: 5, note: LONG };
    expect(uiCall(chat.lastMessage)).toMatchObject({ state: 'approval-requested', input });
  });

  test('are whole in an interrupt of AG-UI', async () => {
    const headers = { authorization: `Bearer ${keyOf('ann')}` };
    const url = `${desk.url}/v1/ag-ui/tipper`;
    const { agent } = watch(new HttpAgent({ url, threadId: randomUUID(), headers }));
    await say(agent, 'long');
    const [interrupt] = agent.pendingInterrupts;
    const { perdure } = z
      .object({ perdure: z.object({ arguments: z.string() }) })
      .parse(interrupt?.metadata);
    expect(JSON.parse(perdure.arguments)).toEqual({ euros: 17, tip: 5, note: LONG });
  });

  test('end the stream with an error if the server cannot read them', async () => {
    const lines: string[] = [];
    const home = await mkdtemp(join(tmpdir(), 'perdure-empty-'));
    onTestFinished(() => rm(home, { recursive: true }));
    const address = inject('temporalAddress');
    const config = defineConfig({ agents: [tipper], taskQueue: desk.rig.taskQueue });
    const env = { PERDURE_SERVE_KEYS: `ann:${keyOf('ann')}` };
    const log = (line: string): void => void lines.push(line);
    await using server = await createServer({ address, home, config, env, log });
    const elsewhere = await listen(server);
    const chat = new UiChat(elsewhere.url, {
      agent: 'tipper',
      id: randomUUID(),
      key: keyOf('ann'),
    });
    await chat.sendMessage({ text: 'long' });
    const message = expect.stringMatching(/^request: the server cannot read the arguments of /);
    expect([chat.status, chat.error?.message]).toEqual(['error', message]);
    const headers = { authorization: `Bearer ${keyOf('ann')}` };
    const url = `${elsewhere.url}/v1/ag-ui/tipper`;
    const thread = watch(new HttpAgent({ url, threadId: randomUUID(), headers }));
    await say(thread.agent, 'long');
    expect(errorsOf(thread)).toMatchObject([{ code: 'blob', message }]);
    expect(lines).toEqual(Array.from({ length: 2 }, () => expect.stringContaining('BlobError')));
    await elsewhere.close();
  });

  test('are listed by the tools of MCP, also for a principal that may only decide', async () => {
    const id = await asking('long');
    for (const as of ['ann', 'dan']) {
      const { arguments: given, parsed } = await listed(await mcpClient(as), id);
      // A model reads the beginning of them, and where the rest is.
      expect([given, parsed]).toEqual([
        expect.stringMatching(/^\{"euros":17,"note":"to Bob x+… \d+ more characters; /),
        expect.stringMatching(/to Bob x+… \d+ more characters; /),
      ]);
    }
    const { decisions: _, ...other } = await listed(await mcpClient('dan'), id);
    expect(other).toMatchObject({ id: 'r1', tool: 'pay' });
  });

  test('are listed by the server of the command', async () => {
    const id = await asking('long');
    const { rig } = desk;
    const server = runsServer({
      options: {},
      env: {},
      agents: [],
      taskQueue: rig.taskQueue,
      client: async () => rig.client,
      ...openStores(rig.home),
      ensureWorker: async () => false,
      owner: async () => 'me',
      allRuns: true,
      canDecide: true,
    });
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: 'test', version: '1' });
    await Promise.all([server.connect(theirs), client.connect(ours)]);
    onTestFinished(() => client.close());
    expect((await listed(client, id))['arguments']).toMatch(/to Bob x+… \d+ more characters; /);
  });
});
