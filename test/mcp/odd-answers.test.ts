import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { callTool, resultText } from '../../src/mcp/call-tool.js';
import { usableTool } from '../../src/mcp/listed-tool.js';
import { mcpServer, type McpServer } from '../../src/mcp/mcp-server.js';
import { describeOdd, serverTools } from '../../src/mcp/lock-tools.js';
import { createSession, type McpSession } from '../../src/mcp/session.js';
import { CallFault } from '../../src/tools/arguments/check-arguments.js';
import { ToolError } from '../../src/tools/errors.js';
import { httpServer } from '../support/http-server.js';

const SCRIPT = fileURLToPath(new URL('../fixtures/mcp/odd-server.js', import.meta.url));
const blobs = {
  put: () => Promise.reject(new Error('none')),
  get: () => Promise.reject(new Error('none')),
};

/** How a server answers, as text: for each method, a message with ID for the id of the request. */
type Answers = Readonly<Record<string, string>>;

const INIT =
  '{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"odd","version":"1"},"capabilities":{"tools":{}}}}';
const resultOf = (result: unknown): string =>
  `{"jsonrpc":"2.0","id":ID,"result":${JSON.stringify(result)}}`;
const UNKNOWN = '{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no such method"}}';
const LIST = resultOf({ tools: [{ name: 'x', inputSchema: { type: 'object' } }] });

function open(server: McpServer): McpSession {
  const session = createSession(server, {});
  onTestFinished(() => session.close());
  return session;
}

interface Reply {
  readonly status?: number;
  readonly type?: string;
  readonly body?: string;
}

/** A server over HTTP that answers by `reply`, and else with what `answers` has for the method. */
async function overHttp(
  answers: Answers,
  reply: (method: string) => Reply | null = () => null,
): Promise<McpSession> {
  const server = await httpServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const { id, method = '' } = JSON.parse(text || '{}') as { id?: unknown; method?: string };
      if (id === undefined) return void response.writeHead(method === '' ? 405 : 202).end();
      const known = { initialize: INIT, 'tools/list': LIST, ...answers }[method] ?? UNKNOWN;
      const { status = 200, type = 'application/json', body = known } = reply(method) ?? {};
      response
        .writeHead(status, { 'content-type': type })
        .end(body.replaceAll('ID', JSON.stringify(id)));
    });
  });
  onTestFinished(() => server.close());
  return open(mcpServer({ name: 'far', transport: 'http', url: server.url }));
}

const overEvents = (answers: Answers): Promise<McpSession> =>
  overHttp(answers, (method) => {
    const body = { initialize: INIT, 'tools/list': LIST, ...answers }[method] ?? UNKNOWN;
    return { type: 'text/event-stream', body: `event: message\ndata: ${body}\n\n` };
  });

const overStdio = async (answers: Answers): Promise<McpSession> => {
  const args = [SCRIPT, JSON.stringify(answers)];
  return open(mcpServer({ name: 'far', transport: 'stdio', command: process.execPath, args }));
};

async function call(session: McpSession): Promise<unknown> {
  const { signal } = new AbortController();
  return await session.call('x', {}, { signal, idempotencyKey: 'k' });
}

/** What the model reads of the answer to a call. */
async function read(session: McpSession): Promise<string> {
  const { isError, text } = await resultText(await call(session), blobs);
  return isError ? `failed: ${text}` : text;
}

const SEVEN = [{ type: 'text', text: '{"id":7}' }];
/** Answers to an executed call, and what the model reads. */
const EXECUTED: readonly (readonly [string, string, string])[] = [
  ['a list as structured content', resultOf({ content: SEVEN, structuredContent: [7] }), '[7]'],
  ['a text as structured content', resultOf({ content: [], structuredContent: 'ok' }), '"ok"'],
  ['null as structured content', resultOf({ content: SEVEN, structuredContent: null }), '{"id":7}'],
  ['structured content only', resultOf({ structuredContent: { id: 7 } }), '{"id":7}'],
  ['a part of type json', resultOf({ content: [{ type: 'json', json: { id: 7 } }] }), '{"id":7}'],
  [
    'a part of an unknown type',
    resultOf({ content: [{ type: 'table', rows: [7] }] }),
    '{"type":"table","rows":[7]}',
  ],
  ['a part without a type', resultOf({ content: [{ text: 'seven' }] }), 'seven'],
  ['a part that is a text', resultOf({ content: ['seven'] }), 'seven'],
  ['a part that is null', resultOf({ content: [null, ...SEVEN] }), '{"id":7}\nnull'],
  [
    'a text that is an object',
    resultOf({ content: [{ type: 'text', text: { id: 7 } }] }),
    '{"id":7}',
  ],
  ['isError: null', resultOf({ content: SEVEN, isError: null }), '{"id":7}'],
  ['isError: "false"', resultOf({ content: SEVEN, isError: 'false' }), '{"id":7}'],
  ['_meta: null', resultOf({ content: SEVEN, _meta: null }), '{"id":7}'],
  ['annotations: null', resultOf({ content: [{ ...SEVEN[0], annotations: null }] }), '{"id":7}'],
  ['the old toolResult', resultOf({ toolResult: { id: 7 } }), '{"id":7}'],
  ['a toolResult beside null', resultOf({ toolResult: 'seven', content: null }), '"seven"'],
  ['no known field', resultOf({ id: 7 }), '{"id":7}'],
  ['content that is a text', resultOf({ content: 'seven' }), 'seven'],
  ['content that is an object', resultOf({ content: { type: 'text', text: 'seven' } }), 'seven'],
  ['no content', resultOf({}), '(no result)'],
  ['a result that is null', resultOf(null), '(no result)'],
  ['a result that is a list', resultOf([{ id: 7 }]), '[{"id":7}]'],
  ['a result that is a list of parts', resultOf(SEVEN), '{"id":7}'],
  ['a result that is a text', resultOf('seven'), 'seven'],
  ['a result that is a number', resultOf(7), '7'],
  [
    'a result of a newer protocol',
    resultOf({ resultType: 'complete', content: SEVEN }),
    '{"id":7}',
  ],
  ['an unknown result type', resultOf({ resultType: 'done', content: SEVEN }), '{"id":7}'],
  ['an error that is null', '{"jsonrpc":"2.0","id":ID,"result":{"id":7},"error":null}', '{"id":7}'],
  ['a result beside an error', '{"id":ID,"result":{"id":7},"error":{"code":0}}', '{"id":7}'],
  ['no version', '{"id":ID,"result":{"content":"seven"}}', 'seven'],
  ['an id that is a text', '{"jsonrpc":"2.0","id":"ID","result":{"content":"seven"}}', 'seven'],
  ['further fields', '{"jsonrpc":"2.0","id":ID,"result":{"content":"seven"},"took":3}', 'seven'],
  ['neither result nor error', '{"jsonrpc":"2.0","id":ID}', '(no result)'],
  ['a list of messages', '[{"jsonrpc":"2.0","id":ID,"result":{"content":"seven"}}]', 'seven'],
];

describe.each([
  ['JSON over HTTP', overHttp],
  ['events over HTTP', overEvents],
  ['stdio', overStdio],
])('an executed call (%s)', (transport, connect) => {
  const cases = EXECUTED.filter(
    ([what]) => !transport.startsWith('events') || what !== 'a list of messages',
  );
  test.each(cases)('is read if its answer has %s', async (_, answer, text) => {
    expect(await read(await connect({ 'tools/call': answer }))).toBe(text);
  });
});

describe('an executed call', () => {
  const answer = '{"jsonrpc":"2.0","id":ID,"result":{"content":"seven"}}';
  test.each<[string, Reply]>([
    ['no content type', { type: '' }],
    ['plain text', { type: 'text/plain; charset=utf-8' }],
    ['status 202', { status: 202 }],
    ['status 500', { status: 500 }],
    ['status 404', { status: 404 }],
    ['the id of another request', { body: answer.replace('ID', '999') }],
    ['no id', { body: answer.replace('"id":ID,', '') }],
    ['id null', { body: answer.replace('ID', 'null') }],
    ['a byte order mark', { body: `\uFEFF${answer}` }],
    ['events as plain text', { type: 'text/plain', body: `data: ${answer}\n\n` }],
    [
      'an event with a name',
      { type: 'text/event-stream', body: `event: result\ndata: ${answer}\n\n` },
    ],
    ['an unfinished event', { type: 'text/event-stream', body: `data: ${answer}` }],
    [
      'an event without an id',
      { type: 'text/event-stream', body: `data: ${answer.replace('"id":ID,', '')}\n\n` },
    ],
  ])('is read if its answer over HTTP has %s', async (_, reply) => {
    const session = await overHttp({}, (method) =>
      method === 'tools/call' ? { body: answer, ...reply } : null,
    );
    expect(await read(session)).toBe('seven');
  });

  test.each<[string, Reply]>([
    ['is a page', { type: 'text/html', body: '<html>502</html>' }],
    ['is a page that claims to be JSON', { body: '<html>' }],
    ['is empty', { body: '' }],
    ['has no body', { status: 204, body: '' }],
    ['is cut', { body: '{"jsonrpc":"2.0","id":ID,"result":{"con' }],
    ['is a cut event', { type: 'text/event-stream', body: 'data: {"jsonrpc":"2.0","id":ID,"res' }],
    ['is status 500', { status: 500, body: 'oops' }],
    ['is status 408', { status: 408, body: '' }],
    ['is status 409', { status: 409, body: '' }],
    ['is status 303', { status: 303, body: '' }],
    ['says that the session has ended', { status: 404, body: 'no such session' }],
    [
      'says so as JSON',
      { status: 404, body: '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"gone"}}' },
    ],
    [
      'refuses the result of the tool',
      {
        body: '{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"Output validation error: x"}}',
      },
    ],
  ])('has an unknown outcome if its answer over HTTP %s', async (_, reply) => {
    const session = await overHttp({}, (method) => (method === 'tools/call' ? reply : null));
    await expect(call(session)).rejects.toMatchObject({ name: 'CallFault', kind: 'unanswered' });
  });

  test('has an unknown outcome, for every effect but read, if its server refuses the result', async () => {
    const refused = {
      isError: true,
      content: [{ type: 'text', text: "Output validation error: 'id' is a required property" }],
    };
    const session = await overHttp({ 'tools/call': resultOf(refused) });
    const execute = async (effect: 'read' | 'once'): Promise<unknown> => {
      const server = mcpServer({
        name: 'far',
        transport: 'http',
        url: 'http://127.0.0.1:1',
        effects: { x: effect },
      });
      const { tools } = await session.listing({ maxAgeMs: 60_000 });
      const usable = tools[0] && usableTool(server, tools[0]);
      if (usable?.ok !== true) throw new Error('no tool');
      const tool = callTool(usable.definition, { session, blobs });
      const context = { idempotencyKey: 'k', signal: new AbortController().signal };
      return await tool.executeParsed({}, context as never);
    };
    await expect(execute('once')).rejects.toThrow(CallFault);
    await expect(execute('read')).rejects.toThrow(ToolError);
  });

  test('shows hidden characters as escapes', async () => {
    const hidden = `a\u202Eb${String.fromCodePoint(0xe0041)}`;
    const structuredContent = { [`k\u200B`]: hidden };
    expect((await resultText({ structuredContent }, blobs)).text).toBe(
      String.raw`{"k\u200b":"a\u202eb\udb40\udc41"}`,
    );
    const content = [
      { type: 'text', text: hidden },
      { type: 'note', text: hidden },
      { type: 'resource', resource: { uri: 'x', text: hidden } },
    ];
    expect((await resultText({ content }, blobs)).text.split('\n')).toEqual([
      String.raw`a\u202eb\u{e0041}`,
      String.raw`{"type":"note","text":"a\u202eb\udb40\udc41"}`,
      '[resource x]',
      String.raw`a\u202eb\u{e0041}`,
    ]);
  });
});

describe.each([
  ['JSON over HTTP', overHttp],
  ['stdio', overStdio],
])('a refused call (%s)', (_, connect) => {
  test.each([
    ['an error without a code', '{"jsonrpc":"2.0","id":ID,"error":{"message":"no such key"}}'],
    ['an error with a text as code', '{"id":ID,"error":{"code":"E1","message":"no such key"}}'],
    ['an error that is a text', '{"jsonrpc":"2.0","id":ID,"error":"no such key"}'],
    [
      'a result that is null',
      '{"id":ID,"result":null,"error":{"code":-1,"message":"no such key"}}',
    ],
  ])('with %s is a failure that the model reads', async (_what, answer) => {
    const session = await connect({ 'tools/call': answer });
    await expect(call(session)).rejects.toThrow(ToolError);
    await expect(call(session)).rejects.toThrow('no such key');
  });
});

const GOOD = { name: 'lookup', inputSchema: { type: 'object' } };
const server = (rest: object = {}): McpServer =>
  mcpServer({ name: 'far', transport: 'http', url: 'http://127.0.0.1:1', ...rest });

/** The names of the tools that an agent gets, and those that are left out with the reasons. */
async function listed(
  tools: unknown,
  options: object = {},
): Promise<{ names: readonly string[]; odd: string }> {
  const session = await overHttp({ 'tools/list': resultOf(tools) });
  const found = serverTools(server(options), await session.listing({ maxAgeMs: 0 }));
  const names = found.used.map(({ definition }) => definition.name);
  return { names, odd: found.odd.length === 0 ? '' : describeOdd(found.odd) };
}

describe('an odd tool', () => {
  const deep = JSON.parse(`${'{"a":'.repeat(900)}1${'}'.repeat(900)}`) as object;
  test.each<[string, unknown, string]>([
    ['that is null', null, '#2'],
    ['that is a list', [], '#2'],
    ['without a name', { inputSchema: { type: 'object' } }, '#2'],
    ['with a name that is null', { ...GOOD, name: null }, '#2'],
    ['with an empty name', { ...GOOD, name: ' ' }, '#2'],
    ['with a hidden name', { ...GOOD, name: 'od\u200Bd' }, 'hidden'],
    ['with an endless name', { ...GOOD, name: 'x'.repeat(5_000) }, '5000 characters'],
    ['without an inputSchema', { name: 'odd' }, '"odd"'],
    ['with a null inputSchema', { name: 'odd', inputSchema: null }, '"odd"'],
    ['with an inputSchema that is a text', { name: 'odd', inputSchema: '{}' }, '"odd"'],
    ['with a schema of no type', { name: 'odd', inputSchema: {} }, '"odd"'],
    ['with an unknown type', odd({ properties: { a: { type: 'str' } } }), '"type" is not a type'],
    ['with properties that are a list', odd({ properties: [] }), '"properties" is not an object'],
    ['with required: true', odd({ required: true }), '"required"'],
    ['with an empty anyOf', odd({ properties: { a: { anyOf: [] } } }), '"anyOf" is not a list'],
    ['with a property that is null', odd({ properties: { a: null } }), '"a" is no schema'],
    ['with a lost reference', odd({ properties: { a: { $ref: '#/$defs/A' } } }), '#/$defs/A'],
    ['with a gigantic schema', odd({ description: 'x'.repeat(9_000_000) }), '9000'],
    ['with a deep schema', odd({ properties: deep }), 'deep'],
    ['with the name of another', { ...GOOD, description: 'x' }, 'another tool has its name'],
  ])('%s is left out, by name, and the others stay', async (_, tool, reason) => {
    const { names, odd: left } = await listed({ tools: [GOOD, tool] });
    expect(names).toEqual(['far__lookup']);
    expect(left).toContain(reason);
  });

  test.each<[string, object]>([
    ['allowed', { allowTools: ['lookup'] }],
    ['denied', { denyTools: ['odd', 'odd\u200B'] }],
  ])('that is not %s is not even mentioned', async (_, options) => {
    const tools = [GOOD, { name: 'odd' }, { ...GOOD, name: 'odd\u200B' }];
    expect(await listed({ tools }, options)).toEqual({ names: ['far__lookup'], odd: '' });
  });
});

function odd(schema: object): object {
  return { name: 'odd', inputSchema: { type: 'object', ...schema } };
}

describe('a list of tools', () => {
  test('may have nulls in place of absent fields', async () => {
    const tool = {
      ...GOOD,
      title: null,
      description: null,
      outputSchema: null,
      annotations: { readOnlyHint: null, title: null },
      _meta: null,
      icons: null,
      execution: null,
      inputSchema: {
        type: 'object',
        properties: { key: { type: 'string', description: null, enum: null, default: null } },
        required: null,
        $defs: null,
        additionalProperties: null,
        anyOf: null,
      },
    };
    const session = await overHttp({ 'tools/list': resultOf({ tools: [tool], nextCursor: null }) });
    const { used } = serverTools(
      server({ effects: { lookup: 'read' } }),
      await session.listing({ maxAgeMs: 0 }),
    );
    expect(used).toMatchObject([{ definition: { name: 'far__lookup', effect: 'read' } }]);
    expect(used[0]?.definition.parameters).toEqual({
      type: 'object',
      properties: { key: { type: 'string', default: null } },
    });
    expect((await listed({ tools: [odd({ properties: null })] })).names).toEqual(['far__odd']);
  });

  test.each<[string, unknown, readonly string[]]>([
    ['that is null', { tools: null }, []],
    ['that is absent', {}, []],
    ['that is the result itself', [GOOD], ['far__lookup']],
    ['with an empty cursor', { tools: [GOOD], nextCursor: '' }, ['far__lookup']],
    ['with a cursor that is an object', { tools: [GOOD], nextCursor: {} }, ['far__lookup']],
    ['with a cursor that repeats', { tools: [GOOD], nextCursor: 'a' }, ['far__lookup']],
  ])('%s is read', async (_, result, names) => {
    expect(await listed(result)).toEqual({ names, odd: '' });
  });

  test('is read again when it is due, although the clock was set back', async () => {
    const answers = { 'tools/list': LIST };
    const session = await overHttp(answers);
    expect((await session.listing({ maxAgeMs: 0 })).tools).toMatchObject([{ name: 'x' }]);
    answers['tools/list'] = resultOf({ tools: [GOOD] });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 86_400_000 });
    onTestFinished(() => void vi.useRealTimers());
    expect((await session.listing({ maxAgeMs: 0 })).tools).toMatchObject([{ name: 'lookup' }]);
  });

  test('is read from a server whose handshake has nulls, or which denies having tools', async () => {
    const initialize = resultOf({
      protocolVersion: '2025-06-18',
      serverInfo: { name: 'odd', version: '1', title: null, websiteUrl: null },
      capabilities: { tools: null, prompts: null, experimental: null },
      instructions: null,
      _meta: null,
    });
    const session = await overStdio({ initialize });
    expect((await session.listing({ maxAgeMs: 0 })).tools).toHaveLength(1);
    const none = await overHttp({
      initialize,
      'tools/list': UNKNOWN,
    });
    expect((await none.listing({ maxAgeMs: 0 })).tools).toEqual([]);
  });
});
