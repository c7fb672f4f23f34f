import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Json, type JsonObject, isObject } from '../../src/core/text/json.js';
import { createLineBuffer } from '../../src/mcp/transport.js';
import { mcpServer, type McpServer } from '../../src/mcp/mcp-server.js';
import { callTool, resultText } from '../../src/mcp/call-tool.js';
import { checkBySchema, checkOrSkip, getUncheckedReason } from '../../src/output/schema-check.js';
import { createSession, type McpSession } from '../../src/mcp/session.js';
import { removeAbsentNulls } from '../../src/output/schemas.js';
import { httpServer } from '../support/http-server.js';
import { toolDefinition } from '../support/scripts.js';

const SCRIPT = fileURLToPath(new URL('../fixtures/mcp/hostile-server.js', import.meta.url));
const TOKEN = 'canary-token-5e1';

function sessionOf(server: McpServer): McpSession {
  const session = createSession(server, { TOKEN });
  onTestFinished(() => session.close());
  return session;
}

function hostile(...listing: readonly string[]): McpSession {
  const args = [SCRIPT, ...listing];
  const command = process.execPath;
  return sessionOf(mcpServer({ name: 'bad', transport: 'stdio', command, args }));
}

async function call(session: McpSession, tool: string): Promise<unknown> {
  const { signal } = new AbortController();
  return await session.call(tool, {}, { signal, idempotencyKey: 'k' });
}

const partsOf = (result: unknown): readonly unknown[] =>
  isObject(result) && Array.isArray(result['content']) ? result['content'] : [];

/** Returns how many turns the event loop made while something was awaited. `turn` is called in each. */
async function turnsDuring<T>(work: Promise<T>, turn?: (turns: number) => void): Promise<number> {
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
    turn?.(turns);
  }, 20);
  await work.finally(() => clearInterval(timer));
  return turns;
}

/** Each definition refers to the next one twice. */
function doubling(levels: number, last: JsonObject, key = 'allOf'): JsonObject {
  const names = Array.from({ length: levels }, (_, level) => level);
  const twice = (level: number): JsonObject[] =>
    [0, 1, 2].map(() => ({ $ref: `#/$defs/d${level + 1}` }));
  const $defs = Object.fromEntries([
    ...names.map((level) => [`d${level}`, { [key]: twice(level) }]),
    [`d${levels}`, last],
  ]);
  return { type: 'object', properties: { a: { $ref: '#/$defs/d0' } }, $defs };
}

/** Lets the next check find that it has waited for 16 s. */
function waitsLong(): void {
  const clock = vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValueOnce(16_000);
  onTestFinished(() => clock.mockRestore());
}

const HONEST = { type: 'object', properties: { b: { type: 'string', pattern: '^x$' } } };

describe('a schema of an MCP server', () => {
  test.each<[string, JsonObject, Json]>([
    [
      'a pattern that backtracks without end',
      { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } },
      `${'a'.repeat(60)}!`,
    ],
    ['references that multiply', doubling(30, { type: 'string' }), 'x'],
  ])('with %s stops no other work, and is left out from then on', async (_, schema, a) => {
    // The thread runs, so that only the time limit of the check is on the clock.
    await checkBySchema(HONEST, { b: 'x' });
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const check = checkBySchema(schema, { a });
    const next = checkBySchema(HONEST, { b: 'y' });
    const turns = await turnsDuring(check, (count) => {
      if (count > 20) vi.advanceTimersByTime(5_000);
    });
    expect(turns).toBeGreaterThan(20);
    expect(await next).toMatch('expected a string that matches /^x$/');
    expect(await check).toBeNull();
    expect(getUncheckedReason(schema)).toMatch(/takes longer than 5 s|takes more memory/);
    expect(await turnsDuring(checkBySchema(schema, { a }))).toBeLessThan(2);
  });

  test('that no engine understands is skipped, with the reason', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string', pattern: '(' } } };
    expect(await checkBySchema(schema, { a: 'x' })).toBeNull();
    expect(getUncheckedReason(schema)).toMatch(/regular expression/);
  });

  test('that is harmless is checked as before, lookarounds included', async () => {
    const pattern = '^(?=x)x+$';
    const schema = { type: 'object', properties: { a: { type: 'string', pattern } } };
    expect(await checkBySchema(schema, { a: 'xx' })).toBeNull();
    expect(await checkBySchema(schema, { a: 'y' })).toBe(
      'a: expected a string that matches /^(?=x)x+$/, got "y"',
    );
    expect(getUncheckedReason(schema)).toBeUndefined();
  });

  test('whose check waits for others for too long is skipped, and the result and the log say so', async () => {
    const why = 'checks by other schemas took longer than 15 s';
    waitsLong();
    expect(await checkOrSkip(HONEST, { b: 'y' })).toEqual({ fault: null, skipped: why });
    expect(getUncheckedReason(HONEST)).toBeUndefined();
    expect((await checkOrSkip(HONEST, { b: 'y' })).fault).toContain(
      'expected a string that matches',
    );
    const logged: string[] = [];
    const session = { call: async () => ({ content: [{ type: 'text', text: 'sent' }] }) };
    const blobs = { put: async () => '', get: async () => '' };
    const pinned = { ...toolDefinition('bad__send', 'read'), parameters: HONEST };
    const tool = callTool(pinned, { session: session as never, blobs: blobs as never });
    const send = async (given: JsonObject) => {
      const { success } = await tool.input.safeParseAsync(given);
      const context = {
        signal: new AbortController().signal,
        log: (text: string) => logged.push(text),
      };
      return success && (await tool.executeParsed(given, context as never));
    };
    waitsLong();
    expect(await send({ b: 'y' })).toBe(
      `sent\n[the arguments were sent unchecked, because ${why}]`,
    );
    expect(logged).toEqual([`the arguments were sent unchecked, because ${why}`]);
    expect([await send({ b: 'y' }), await send({ b: 'x' })]).toEqual([false, 'sent']);
  });

  test('with multiplying references does not delay the search for absent nulls', () => {
    const schema = doubling(19, { type: 'string' }, 'anyOf');
    expect(removeAbsentNulls({ a: null }, schema)).toEqual({ a: null });
  });
});

describe('a result of an MCP server', () => {
  test('with 200,000 parts is truncated, with a note', async () => {
    const parts = partsOf(await call(hostile(), 'parts'));
    expect(parts).toHaveLength(1_001);
    expect(parts.at(-1)).toEqual({
      type: 'text',
      text: '[199000 of 200000 parts of this result were omitted]',
    });
  });

  test('stores its pictures one after the other', async () => {
    let [open, most] = [0, 0];
    const blobs = {
      put: async () => {
        most = Math.max(most, (open += 1));
        await new Promise(setImmediate);
        open -= 1;
        return { sha256: '0'.repeat(64), bytes: 4 };
      },
      get: () => Promise.reject(new Error('none')),
    };
    const picture = { type: 'image', mimeType: 'image/png', data: 'AAAA' };
    await resultText({ content: Array.from({ length: 50 }, () => picture) }, blobs);
    expect(most).toBe(1);
  });

  test('with too much text is truncated, with a note', async () => {
    const blobs = {
      put: () => Promise.reject(new Error()),
      get: () => Promise.reject(new Error()),
    };
    const text = 'x'.repeat(9_000_000);
    const result = await resultText({ content: [{ type: 'text', text }] }, blobs);
    expect(result.text).toMatch(/x\n\[611392 characters were omitted\]$/);
  });

  test('is read in time proportional to its lines, up to the longest allowed line', () => {
    const lines = createLineBuffer();
    for (const byte of Buffer.from('a\r\nb\n\nc')) lines.append(Buffer.of(byte));
    expect([lines.next(), lines.next(), lines.next(), lines.next()]).toEqual(['a', 'b', '', null]);
    const piece = Buffer.alloc(1024 * 1024, 0x78);
    expect(() => {
      for (let n = 0; n < 40; n += 1) lines.append(piece);
    }).toThrow('more than 33554432 bytes');
    lines.clear();
    expect(() => lines.append(Buffer.from(`[${'[],'.repeat(1_100_000)}0]\n`))).toThrow(
      'more than 2000000 values',
    );
  });
});

describe('an MCP server over stdio', () => {
  test('loses the connection if it never ends a line, and is named', async () => {
    await expect(call(hostile(), 'endless')).rejects.toMatchObject({
      kind: 'unanswered',
      message:
        'MCP server "bad": it sent a message of more than 33554432 bytes; the connection was ended',
    });
  });

  test.each([
    ['notifications', 'chatters'],
    ['answers to no request', 'answers'],
    ['lines that are not messages', 'babbles'],
  ])('loses it too if it floods its client with %s', async (_, tool) => {
    await expect(call(hostile(), tool)).rejects.toMatchObject({
      kind: 'unanswered',
      message: expect.stringContaining(
        'more than 10000 unsolicited messages within a minute',
      ) as string,
    });
  });

  test('may write to its standard error endlessly', async () => {
    const result = await call(hostile(), 'complains');
    expect(partsOf(result)).toEqual([{ type: 'text', text: 'there' }]);
  });

  test('that requests a model gets none', async () => {
    const [part] = partsOf(await call(hostile(), 'asks'));
    expect(part).toMatchObject({ text: expect.stringContaining('-32601') as string });
  });

  test.each([
    ['many', /it lists 1001 tools at once; at most 1000 are read/],
    ['pages', /its list of tools has over 20 pages/],
  ])('whose list has no end (%s) is refused', async (listing, reason) => {
    await expect(hostile(listing).listing({ maxAgeMs: 0 })).rejects.toThrow(reason);
  });
});

test('an MCP server that repeats its page under new cursors lists each tool once', async () => {
  const { tools, odd } = await hostile('repeats').listing({ maxAgeMs: 0 });
  expect(tools.map(({ name }) => name)).toEqual(['x']);
  expect(odd).toEqual([]);
});

test('twelve large calls at once over stdio cause no warning', async () => {
  const warnings: string[] = [];
  const warn = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', warn);
  onTestFinished(() => void process.off('warning', warn));
  const session = hostile();
  const args = { pad: 'x'.repeat(200_000) };
  const large = async (): Promise<unknown> => {
    const { signal } = new AbortController();
    return await session.call('answered', args, { signal, idempotencyKey: 'k' });
  };
  await Promise.all(Array.from({ length: 12 }, large));
  await new Promise(setImmediate);
  expect(warnings).toEqual([]);
});

describe('an MCP server over HTTP', () => {
  const far = (url: string): McpServer =>
    mcpServer({ name: 'far', transport: 'http', url, authEnv: 'TOKEN', connectTimeout: 10_000 });

  test.each([
    ['application/json', ' '],
    ['text/event-stream', 'data: x'],
  ])('is given up if its answer (%s) has no end', async (type, piece) => {
    const server = await httpServer((_, answer) => {
      answer.writeHead(200, { 'content-type': type });
      const more = (): void => {
        while (answer.write(piece.repeat(65_536)));
        answer.once('drain', more);
      };
      more();
    });
    onTestFinished(() => server.close());
    await expect(sessionOf(far(server.url)).listing({ maxAgeMs: 0 })).rejects.toThrow(
      /cannot be reached: .*more than 33554432 bytes/,
    );
  });

  test.each([301, 302, 307, 308])('that redirects (%i) is not followed', async (status) => {
    const other = await httpServer((_, answer) => void answer.end('{}'));
    const server = await httpServer((_, answer) => {
      answer.writeHead(status, { location: `${other.url}/mcp?key=canary` }).end();
    });
    onTestFinished(async () => void (await Promise.all([other.close(), server.close()])));
    const listing = sessionOf(far(server.url)).listing({ maxAgeMs: 0 });
    await expect(listing).rejects.toThrow(`Redirect to ${other.url}/mcp not followed`);
    await expect(listing).rejects.not.toThrow('canary');
    expect(other.requests).toBe(0);
  });
});
