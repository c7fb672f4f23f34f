import { afterEach, describe, expect, it, vi } from 'vitest';
import { normalizeError } from '../../src/tools/result/plain.js';
import { learnSecrets } from '../../src/secrets/known.js';
import { ToolError } from '../../src/tools/errors.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

const cyclic: Record<string, unknown> = { reason: 'loop' };
cyclic['self'] = cyclic;

const withCyclicCause = new Error('outer');
withCyclicCause.cause = withCyclicCause;

describe('normalizeError', () => {
  it.each([
    ['an error', new RangeError('too far'), 'RangeError', 'too far'],
    ['a ToolError', new ToolError('no such order'), 'ToolError', 'no such order'],
    ['a text', 'boom', 'Error', 'boom'],
    ['an empty text', '', 'Error', 'it threw an empty text'],
    ['undefined', undefined, 'Error', 'it threw undefined'],
    ['null', null, 'Error', 'it threw null'],
    ['a number', 7, 'Error', '7'],
    ['a symbol', Symbol('s'), 'Error', '[symbol s]'],
    ['an object with a message', { message: 'inside' }, 'Error', 'inside'],
    ['an object', { code: 5n }, 'Error', '{"code":"5"}'],
    ['a cyclic object', cyclic, 'Error', '{"reason":"loop","self":"[circular]"}'],
    ['an error without a message', new TypeError(), 'TypeError', 'TypeError'],
    ['a cyclic cause', withCyclicCause, 'Error', 'outer'],
    [
      'causes',
      new TypeError('fetch failed', {
        cause: new Error('connect ECONNREFUSED', { cause: 'port 1' }),
      }),
      'TypeError',
      'fetch failed: connect ECONNREFUSED: port 1',
    ],
    [
      'many errors',
      new AggregateError([new Error('first')], 'all failed'),
      'AggregateError',
      'all failed: first',
    ],
  ])('gives %s', (_label, thrown, type, message) => {
    expect(normalizeError(thrown)).toEqual({ type, message });
  });

  it('survives errors with hostile properties', () => {
    const odd = Object.assign(new Error('x'), { name: 5, message: { deep: 1n } });
    expect(normalizeError(odd)).toEqual({ type: 'Error', message: '{"deep":"1"}' });
    const trap = new Proxy(new Error('x'), {
      get: () => {
        throw new Error('trapped');
      },
    });
    expect(normalizeError(trap)).toEqual({
      type: 'Error',
      message: 'it threw an object that cannot be read',
    });
  });

  it('truncates 300,000 characters to 4 KiB of UTF-8, with a note', () => {
    const { message } = normalizeError(new Error('ü'.repeat(300_000)));
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(4096);
    expect(Buffer.byteLength(message)).toBeGreaterThan(4000);
    expect(message).toMatch(/^ü+… \[cut, 600000 bytes in all\]$/);
    expect(
      normalizeError(Object.assign(new Error('x'), { name: 'N'.repeat(9_000) })).type,
    ).toHaveLength(100);
  });

  it('redacts a secret before it truncates, so that no part of one remains', () => {
    vi.stubEnv('SHOP_TOKEN', 'abcdefgh-12345678');
    learnSecrets({ env: process.env });
    const thrown = new Error(`${'x'.repeat(4_050)}abcdefgh-12345678${'y'.repeat(100)}`);
    expect(normalizeError(thrown).message).not.toContain('abcd');
    expect(normalizeError('401 for abcdefgh-12345678').message).toBe(
      '401 for [redacted SHOP_TOKEN]',
    );
  });
});
