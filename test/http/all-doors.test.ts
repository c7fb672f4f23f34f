import { createHash, randomUUID } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ThreadAgent } from '../../examples/ag-ui/thread-agent.js';
import { httpClient } from '../../src/http.js';
import { say, textsOf, watch } from '../support/ag-ui.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;

beforeAll(async () => {
  desk = await openHttpDesk(['ann']);
});
afterAll(async () => {
  await desk.close();
});

const headers = { authorization: `Bearer ${keyOf('ann')}` };

async function mcpClient(): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const url = new URL('/mcp', desk.url);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

/** A door whose clients choose the id of a conversation, which begins the run. */
interface Beginning {
  /** The door in the messages that came through it. */
  readonly name: string;
  /** What the id of its runs begins with. */
  readonly prefix: string;
  /** Sends a message, and returns the text of its stream. */
  say(text: string): Promise<string>;
  /** Returns the texts of the conversation, as the door shows it to a new client. */
  shown(): Promise<readonly string[]>;
}

/** A conversation of `useChat`. */
function chatOf(id: string): Beginning {
  return {
    name: 'ui-stream',
    prefix: 'chat',
    async say(text) {
      const messages = [{ id: randomUUID(), role: 'user', parts: [{ type: 'text', text }] }];
      const response = await fetch(`${desk.url}/v1/ui/desk`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ id, messages }),
      });
      return await response.text();
    },
    async shown() {
      const { body } = await desk.send(`/v1/ui/desk/${id}/messages`);
      return body.map(({ parts }: { parts: { text: string }[] }) => parts[0]?.text);
    },
  };
}

/** A thread of AG-UI. */
function threadOf(threadId: string): Beginning {
  const open = () =>
    watch(new ThreadAgent({ url: `${desk.url}/v1/ag-ui/desk`, threadId, headers }));
  const { agent } = open();
  return {
    name: 'ag-ui',
    prefix: 'thread',
    async say(text) {
      const { newMessages } = await say(agent, text);
      return textsOf(newMessages).join('\n');
    },
    async shown() {
      const { agent: fresh } = open();
      await fresh.connectAgent();
      return textsOf(fresh.messages).map((text) => text.replace(/^\w+: /, ''));
    },
  };
}

test.each([
  ['a chat', chatOf],
  ['a thread', threadOf],
])(
  'one run that begins as %s and is driven through all doors at once stays consistent',
  async (_, begin) => {
    const id = randomUUID();
    const own = begin(id);
    expect(await own.say('begin')).toContain('you said: begin');
    const content = JSON.stringify(['ann', 'desk', id]);
    const run = `${own.prefix}-${createHash('sha256').update(content).digest('hex').slice(0, 24)}`;
    const response = `resp_1_${Buffer.from(run).toString('base64url')}`;
    const api = httpClient({ url: desk.url, key: keyOf('ann') });
    const mcp = await mcpClient();
    await Promise.all([
      own.say('of its own door'),
      api.sendMessage({ run, message: 'of HTTP' }),
      desk.send('/v1/responses', {
        body: { model: 'desk', input: 'of OpenAI', previous_response_id: response },
      }),
      mcp.callTool({
        name: 'agent_send',
        arguments: { id: run, message: 'of MCP', operation_id: randomUUID() },
      }),
      desk.client.send(run, 'of a command', { by: 'ann' }),
    ]);
    const { outcome } = await api.getResult({ run, turn: 6 });
    expect(outcome?.status).toBe('completed');
    const { messages } = await desk.client.transcript(run);
    const said = messages.flatMap((one) => (one.role === 'user' ? [one] : []));
    expect(said.map(({ text }) => text).toSorted()).toEqual(
      ['begin', 'of HTTP', 'of MCP', 'of OpenAI', 'of a command', 'of its own door'].toSorted(),
    );
    expect(new Set(said.map(({ door }) => door))).toEqual(
      new Set([own.name, 'http', 'openai', 'mcp', undefined]),
    );
    const answers = messages.filter(({ role }) => role === 'assistant').map(({ text }) => text);
    expect(answers).toEqual(said.map(({ text }) => `you said: ${text}`));
    const texts = messages.map(({ text }) => text);
    // All doors show the same conversation.
    expect(await own.shown()).toEqual(texts);
    expect((await api.getTranscript({ run })).messages.map(({ text }) => text)).toEqual(texts);
    const last = (await desk.send(`/v1/responses/${response.replace('resp_1_', 'resp_6_')}`)).body;
    expect(last.output[0].content[0].text).toBe(texts.at(-1));
    const result = await mcp.callTool({ name: 'agent_result', arguments: { id: run } });
    expect(result.structuredContent).toMatchObject({ done: true, answer: texts.at(-1) });
    const heard: string[] = [];
    for await (const event of api.events(run)) {
      if (event.type === 'model-replied') heard.push(event.message.text);
      if (heard.length === 6) break;
    }
    expect(heard).toEqual(answers);
    await mcp.close();
    await api.closeRun({ run });
  },
);
