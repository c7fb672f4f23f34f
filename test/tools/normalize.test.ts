import { Readable } from 'node:stream';
import * as fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { learnSecrets } from '../../src/secrets/known.js';
import { normalizeResult } from '../../src/tools/result/normalize.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

const cyclic: Record<string, unknown> = { name: 'loop' };
cyclic['self'] = cyclic;

class Vault {
  readonly #gold = 1;
  get weight(): number {
    return this.#gold;
  }
}

class Account {
  readonly owner = 'Ada';
  readonly cents = 5n;
  #secret = 1;
  get twice(): number {
    return this.#secret * 2;
  }
}

describe('normalizeResult', () => {
  it.each([
    ['a text, unchanged', 'a "text"\n', 'a "text"\n'],
    ['an empty text', '', ''],
    ['nothing', undefined, '(no result)'],
    ['null', null, 'null'],
    ['a number', 5, '5'],
    ['NaN', Number.NaN, 'NaN'],
    ['a bigint', 12345678901234567890n, '12345678901234567890'],
    ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['an invalid date', new Date('x'), 'Invalid Date'],
    ['a symbol', Symbol('s'), '[symbol s]'],
    ['a function', normalizeResult, '[function normalizeResult]'],
    ['a function without a name', () => 1, '[function without a name]'],
    ['plain data', { a: [1, null, 'x'], b: { c: true } }, '{"a":[1,null,"x"],"b":{"c":true}}'],
    ['undefined inside', { a: undefined, b: [undefined] }, '{"b":[null]}'],
    ['a bigint inside', { n: 5n }, '{"n":"5"}'],
    [
      'Infinity inside',
      [Number.POSITIVE_INFINITY, -Infinity, Number.NaN],
      '["Infinity","-Infinity","NaN"]',
    ],
    ['a cycle', cyclic, '{"name":"loop","self":"[circular]"}'],
    ['a map', new Map([['a', 1]]), '{"a":1}'],
    [
      'a map with other keys',
      new Map<unknown, unknown>([
        [1, 'x'],
        [{ k: 1 }, 2],
      ]),
      '[[1,"x"],[{"k":1},2]]',
    ],
    ['a set', new Set(['a', new Set([1])]), '["a",[1]]'],
    ['an error', new RangeError('too far'), '{"name":"RangeError","message":"too far"}'],
    ['an error inside', { failed: new Error('no') }, '{"failed":{"name":"Error","message":"no"}}'],
    ['an instance', new Account(), '{"owner":"Ada","cents":"5"}'],
    ['an instance that shows nothing', new Vault(), '[Vault]'],
    ['a weak map', { cache: new WeakMap() }, '{"cache":"[WeakMap]"}'],
    ['a null prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['a regular expression', /a+/g, '/a+/g'],
    ['boxed values', [Object('x'), Object(1n)], '["x","1"]'],
    ['a url', { at: new URL('https://example.org/') }, '{"at":"https://example.org/"}'],
    ['query parameters', new URLSearchParams('a=1'), '[["a","1"]]'],
    ['a promise inside', { later: Promise.resolve(1) }, '{"later":"[promise]"}'],
    ['a stream inside', { body: Readable.from(['x']) }, '{"body":"[stream]"}'],
    ['bytes', Buffer.from([0, 1, 2]), '{"type":"binary","bytes":3,"base64Head":"AAEC"}'],
    [
      'bytes inside',
      { png: new Uint8Array([255]) },
      '{"png":{"type":"binary","bytes":1,"base64Head":"/w=="}}',
    ],
    ['an array buffer', new ArrayBuffer(2), '{"type":"binary","bytes":2,"base64Head":"AAA="}'],
    [
      'a view of a part',
      new Uint8Array([1, 2, 3]).subarray(1, 2),
      '{"type":"binary","bytes":1,"base64Head":"Ag=="}',
    ],
    ['a typed array', new Float64Array([0.5, Number.NaN]), '[0.5,"NaN"]'],
    ['a typed array of bigints', new BigInt64Array([5n]), '["5"]'],
    ['a blob', new Blob(['abc']), '{"type":"binary","bytes":3}'],
    ['a key that is a trap', JSON.parse('{"__proto__":{"a":1}}'), '{"__proto__":{"a":1}}'],
    ['a lone surrogate', 'a\uD800b', 'a\uFFFDb'],
  ])('gives %s', async (_label, value, expected) => {
    expect(await normalizeResult(value)).toBe(expected);
  });

  it('names a getter that throws and continues', async () => {
    const value = {
      a: 1,
      get b(): string {
        throw new Error('closed');
      },
      c: 3,
    };
    expect(await normalizeResult(value)).toBe('{"a":1,"b":"[getter threw: closed]","c":3}');
  });

  it('names objects that cannot be read at all', async () => {
    const hostile = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error('hands off');
        },
      },
    );
    expect(await normalizeResult({ hostile })).toBe('{"hostile":"[unreadable: hands off]"}');
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(await normalizeResult([proxy])).toMatch(/^\["\[unreadable: /);
    const toJson = {
      toJSON: () => {
        throw new Error('no');
      },
    };
    expect(await normalizeResult([toJson])).toBe('["[unreadable: no]"]');
  });

  it('shows an object in two places twice', async () => {
    const shared = { a: 1 };
    expect(await normalizeResult([shared, shared])).toBe('[{"a":1},{"a":1}]');
  });

  it('stops at structures that would never end', async () => {
    let deep: unknown = 'bottom';
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    expect(await normalizeResult(deep)).toContain('[nested too deep]');

    let wide: unknown = ['x'];
    for (let level = 0; level < 40; level += 1) wide = [wide, wide];
    expect(await normalizeResult(wide)).toContain('more omitted]');

    const endless = {
      *[Symbol.iterator]() {
        for (;;) yield 'again';
      },
    };
    expect(await normalizeResult(endless)).toContain('[more omitted]');
    expect(await normalizeResult(Object.assign([], { length: 4_294_967_295 }))).toContain(
      'more omitted]',
    );
  });

  it('truncates a text that appears a thousand times once there is too much of it', async () => {
    const text = 'x'.repeat(1024 * 1024);
    const result = await normalizeResult(Array.from({ length: 1_000 }, () => text));
    expect(result.length).toBeLessThan(66 * 1024 * 1024);
    expect(result).toContain('characters omitted]');
  });

  it('keeps 50 MB of text', async () => {
    const text = 'é'.repeat(25 * 1024 * 1024);
    expect((await normalizeResult(text)) === text).toBe(true);
  });

  it('keeps JSON unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        fc.pre(typeof value !== 'string' && !/\\u[dD]/.test(JSON.stringify(value)));
        expect(await normalizeResult(value)).toBe(JSON.stringify(value));
      }),
    );
  });

  it('never rejects, whatever a tool returns', async () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    await fc.assert(
      fc.asyncProperty(anything, async (value) => {
        expect(typeof (await normalizeResult(value))).toBe('string');
      }),
    );
  });

  it('redacts secrets, even if JSON escapes them', async () => {
    vi.stubEnv('SHOP_API_KEY', 'sk-"quoted"-1234');
    learnSecrets({ env: process.env });
    expect(await normalizeResult('key sk-"quoted"-1234.')).toBe('key [redacted SHOP_API_KEY].');
    expect(await normalizeResult({ key: 'sk-"quoted"-1234' })).toBe(
      '{"key":"[redacted SHOP_API_KEY]"}',
    );
  });
});

/** Throws at the place of an error. */
async function* yielding(...values: unknown[]): AsyncGenerator {
  for (const value of values) {
    if (value instanceof Error) throw value;
    yield value;
  }
}

async function* ones(): AsyncGenerator<number> {
  for (;;) yield 1;
}

describe('normalizeResult of streams', () => {
  it('joins the text of a stream, even if chunks split a character', async () => {
    const bytes = Buffer.from('grüße');
    const stream = Readable.from([bytes.subarray(0, 3), bytes.subarray(3)]);
    expect(await normalizeResult(stream)).toBe('grüße');
    expect(await normalizeResult(Readable.from(['a', 'b']))).toBe('ab');
  });

  it('reads web streams and generators', async () => {
    expect(await normalizeResult(new Response('from the web').body)).toBe('from the web');
    expect(await normalizeResult(yielding(1, { two: 2n }))).toBe('[1,{"two":"2"}]');
    expect(await normalizeResult(Readable.from([]))).toBe('');
  });

  it('notes bytes that are not text', async () => {
    const stream = Readable.from([Buffer.from([0xff, 0xd8]), Buffer.from([0])]);
    expect(await normalizeResult(stream)).toBe('{"type":"binary","bytes":3,"base64Head":"/9gA"}');
  });

  it('keeps the content before a stream failed', async () => {
    expect(await normalizeResult(yielding('half ', new Error('disk on fire')))).toBe(
      'half \n[the stream failed here: disk on fire]',
    );
  });

  it('stops an endless stream and lets it clean up', async () => {
    let isClosed = false;
    async function* endless(): AsyncGenerator<string> {
      try {
        for (;;) yield 'x'.repeat(1024 * 1024);
      } finally {
        isClosed = true;
      }
    }
    const text = await normalizeResult(endless());
    expect(text).toContain('[the stream continues; reading stopped after 8388608 bytes]');
    await vi.waitFor(() => expect(isClosed).toBe(true), { timeout: 40_000, interval: 50 });
  });

  it('stops a stream of endlessly many small values', async () => {
    expect(await normalizeResult(ones())).toContain('"[the stream continues; reading stopped');
  });

  it('stops at the abort of its signal, even while the stream is silent', async () => {
    const cancel = new AbortController();
    async function* silent(): AsyncGenerator<string> {
      yield 'first';
      cancel.abort();
      await new Promise(() => {});
    }
    expect(await normalizeResult(silent(), { signal: cancel.signal })).toBe(
      'first\n[the stream was canceled here]',
    );
  });
});
