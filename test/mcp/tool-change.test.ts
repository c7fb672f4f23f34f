import { describe, expect, test } from 'vitest';
import { argumentsOf, resultText } from '../../src/mcp/call-tool.js';
import { serverEnvironment } from '../../src/mcp/connection.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { describeToolChange } from '../../src/mcp/lock-tools.js';
import { BlobError } from '../../src/storage/blob-store.js';
import { redact } from '../../src/secrets/redact.js';
import { toolDefinition } from '../support/scripts.js';

const blobs = {
  put: () => Promise.reject(new BlobError('disk is full', { kind: 'unwritable' })),
  get: () => Promise.reject(new BlobError('none', { kind: 'missing' })),
};

describe('the difference between two versions of a tool', () => {
  const before = toolDefinition('a', 'read', { description: 'one\ntwo\nthree' });

  test('lists removed and added lines', () => {
    const now = { ...before, description: 'one\n2\nthree\nfour' };
    expect(describeToolChange(before, now)).toBe('description:\n- two\n+ 2\n+ four');
  });

  test('also covers arguments and effect, and is bounded', () => {
    const now = {
      ...before,
      effect: 'once',
      parameters: { type: 'object', required: ['x'] },
    } as const;
    const text = describeToolChange(before, now);
    expect(text).toContain('arguments:\n');
    expect(text).toContain('effect:\n- read\n+ once');
    const huge = { ...before, description: 'y'.repeat(9_000) };
    expect(describeToolChange(before, huge)).toMatch(/… \d+ more characters$/);
  });

  test('is named if models do not see it', () => {
    expect(describeToolChange(before, before)).toContain('only in parts that models do not see');
  });
});

describe('the result of an MCP tool', () => {
  test('that is missing or unreadable becomes a text', async () => {
    expect(await resultText({ isError: true, content: [] }, blobs)).toEqual({
      isError: true,
      text: 'the tool failed and gave no reason',
    });
  });

  test('keeps its texts if its picture cannot be stored', async () => {
    const content = [
      { type: 'text', text: 'sent' },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
    ];
    const { text } = await resultText({ content }, blobs);
    expect(text).toBe('sent\n[image image/png that could not be stored: disk is full]');
  });

  test('that failed with structured content still has the reason', async () => {
    const result = {
      isError: true,
      content: [{ type: 'text', text: 'no such order' }],
      structuredContent: { code: 7 },
    };
    expect((await resultText(result, blobs)).text).toBe('no such order\n{"code":7}');
  });
});

describe('the arguments of an MCP tool', () => {
  const schema = {
    type: 'object',
    definitions: { Unit: { enum: ['m', 'ft'] } },
    $schema: 'http://json-schema.org/draft-07/schema#',
    properties: { n: { type: 'integer' }, unit: { $ref: '#/definitions/Unit' } },
    required: ['n'],
  };

  test.each([
    [{ n: 1, unit: 'm' }, true],
    [{ n: 1, unit: null }, true],
    [{ n: 1, unit: 'mile' }, false],
    [{ unit: 'm' }, false],
  ])('%j are validated by the whole schema', async (value, fits) => {
    const { success, data } = await argumentsOf(schema).safeParseAsync(value);
    expect(success).toBe(fits);
    // What is checked, judged, and shown is what is sent.
    if (success) expect(Object.values(data)).not.toContain(null);
  });

  test('pass if the schema is unusable: the server checks them', async () => {
    const odd = { type: 'object', properties: { a: { pattern: '(' } } };
    expect((await argumentsOf(odd).safeParseAsync({ a: 'x' })).success).toBe(true);
  });
});

test('variables of a server are redacted raw, trimmed, and as JSON, but short words are not', () => {
  const server = mcpServer({ name: 'a', transport: 'stdio', command: 'x', env: ['A', 'B'] });
  serverEnvironment(server, { A: 'ab"cdef\n', B: 'true' });
  expect(redact('is ab"cdef true')).toBe('is [redacted A] true');
  expect(redact(JSON.stringify({ x: 'ab"cdef\n' }))).toBe('{"x":"[redacted A]\\n"}');
});
