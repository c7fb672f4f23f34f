import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  openArtifacts,
  plainFault,
  recordResult,
  serializeResult,
  validateResult,
} from '../../src/activities/tool/tool-result.js';
import { BlobError, type BlobStore } from '../../src/storage/blob-store.js';
import { sha256Hex } from '../../src/core/text/json.js';
import type { Effect } from '../../src/core/definition/tool-definition.js';
import { artifact } from '../../src/tools/built-in/artifact.js';
import { ToolError } from '../../src/tools/errors.js';

const { signal } = new AbortController();
const warnings: string[] = [];
const tool = (effect: Effect) => ({
  name: 'Export',
  effect,
  signal,
  warn: (message: string) => void warnings.push(message),
});

function memory(): BlobStore {
  const texts = new Map<string, string>();
  return {
    async put(text) {
      const sha256 = sha256Hex(text);
      texts.set(sha256, text);
      return { sha256, bytes: Buffer.byteLength(text) };
    },
    get: async ({ sha256 }) => texts.get(sha256) ?? '',
  };
}

describe('a result', () => {
  test('that is an artifact is stored at any size, and the model reads its beginning', async () => {
    const blobs = memory();
    const serialized = await serializeResult(artifact([1], { summary: 's' }), tool('read'));
    const recorded = await recordResult({ name: 't' }, serialized, blobs);
    expect(recorded).toEqual({
      text: '[1]',
      artifact: {
        name: 'export_result',
        kind: 'array of 1',
        summary: 's',
        blob: { sha256: sha256Hex('[1]'), bytes: 3 },
      },
    });
  });

  test('of a tool that ends the turn is both the answer and an artifact', async () => {
    const serialized = await serializeResult(artifact({ n: 1 }), tool('read'));
    const recorded = await recordResult({ name: 't', ends: true }, serialized, memory());
    expect(recorded).toMatchObject({
      text: '{"n":1}',
      output: { n: 1 },
      artifact: { kind: /keys n/ },
    });
  });

  test('that cannot be an artifact fails a read, and is an ordinary result of any other tool', async () => {
    const bytes = artifact({ file: Buffer.from([1]) });
    await expect(serializeResult(bytes, tool('read'))).rejects.toThrow(ToolError);
    const { content, artifact: none } = await serializeResult(bytes, tool('once'));
    expect(content).toMatch(
      /^\[no artifact: the value holds 1 bytes.*\]\n\{"file":\{"type":"binary"/,
    );
    expect(none).toBeUndefined();
    expect(warnings.at(-1)).toContain('Export: the value holds 1 bytes');
  });

  test('has no name if the store stays down, because the tool has already run', async () => {
    const down = {
      ...memory(),
      put: () => Promise.reject(new BlobError('disk full', { kind: 'unwritable' })),
    };
    const recorded = await recordResult(
      { name: 't' },
      await serializeResult(artifact([1]), tool('once')),
      down,
    );
    expect(recorded).not.toHaveProperty('artifact');
    expect(recorded.text).toBe('[no artifact: it could not be stored: disk full]\n[1]');
  });

  test('that ends the turn and does not match the agent’s output fails only a read', async () => {
    const warn = (): void => undefined;
    const contract = z.object({ n: z.number().default(1) });
    const read = { name: 't', effect: 'read' } as const;
    expect(await validateResult(read, {}, { contract, warn })).toEqual({ n: 1 });
    const wrong = validateResult(read, { n: 'x' }, { contract, warn });
    await expect(wrong).rejects.toThrow('n: expected number');
    const large = { n: 1, more: 'x'.repeat(70_000) };
    const tooLarge = validateResult(read, large, { contract: z.looseObject({}), warn });
    await expect(tooLarge).rejects.toThrow('at most 65536 fit');
    const once = { name: 't', effect: 'once' } as const;
    expect(await validateResult(once, { n: 'x' }, { contract, warn })).toEqual({ n: 'x' });
  });
});

describe('the artifacts of a call', () => {
  const call = { id: 'c', name: 't', arguments: '{}', digest: '' };

  test('return the stored value, parsed by a schema if one is given', async () => {
    const blobs = memory();
    const named = [
      { name: 'rows', blob: await blobs.put('[{"at":"2026-11-21"}]') },
      { name: 'note', blob: await blobs.put('[1'), text: true as const },
    ];
    const { names, get } = await openArtifacts({ call, artifacts: { named } }, { blobs, run: 'r' });
    expect(names).toEqual(['rows', 'note']);
    expect(await get('Rows')).toEqual([{ at: '2026-11-21' }]);
    expect(await get('note')).toBe('[1');
    const rows = await get('rows', z.array(z.object({ at: z.coerce.date() })));
    expect(rows[0]?.at.getUTCFullYear()).toBe(2026);
    const wrong = get('rows', z.object({}));
    await expect(wrong).rejects.toThrow(/^artifact "rows" does not fit this tool: /);
    await expect(wrong).rejects.toThrow(ToolError);
  });

  test.each([
    [
      { call },
      'this run has no artifacts, and only values that a tool has returned as an artifact have a name',
    ],
    [{ call, artifacts: {} }, 'the arguments of this call do not name it; name it there'],
    [{ call, artifacts: { known: ['zzz', 'rows'] } }, 'available: rows, zzz'],
    [
      { call: { ...call, blob: { sha256: '', bytes: 70_000 } }, artifacts: { known: ['rows'] } },
      'the 70000 bytes of arguments are too long to search, so name it in a shorter',
    ],
  ])('throw an error with the fix if the name is unknown: %#', async (input, message) => {
    const missing = openArtifacts(input, { blobs: memory(), run: 'r' }).then(({ get }) =>
      get('row'),
    );
    await expect(missing).rejects.toThrow(message);
    await expect(missing).rejects.toThrow('unknown artifact "row"');
  });
});

describe('a result that is not plain JSON', () => {
  class Account {
    #balance = 5;
    get balance(): number {
      return this.#balance;
    }
  }
  class Row {
    readonly id = 1;
  }
  const cycle: Record<string, unknown> = {};
  cycle['self'] = [cycle];
  const warn = (message: string): void => void warnings.push(message);

  test.each<[string, unknown, string]>([
    ['a Map', { items: new Map([['a', 1]]) }, 'a Map at $.items'],
    ['a Set', [1, { ids: new Set([1]) }], 'a Set at $[1].ids'],
    ['a function', { run: () => 1 }, 'a function at $.run'],
    ['a symbol', Symbol('x'), 'a symbol at $'],
    ['a BigInt', { rows: [{ id: 5n }] }, 'a BigInt at $.rows[0].id'],
    ['a number that JSON lacks', { rate: Number.NaN }, 'NaN at $.rate'],
    ['a promise', { later: Promise.resolve(1) }, 'a Promise at $.later'],
    ['a cycle', cycle, 'a cycle at $.self[0]'],
    [
      'an instance whose data are private',
      { of: new Account() },
      'an instance of Account without fields of its own at $.of',
    ],
    ['an artifact with a Map', artifact({ byName: new Map() }), 'a Map at $.byName'],
  ])('fails a read, and is noted for any other tool: %s', (_, value, part) => {
    const message = `the result of Export is not plain JSON: got ${part}; let the tool return plain JSON`;
    expect(() => plainFault(tool('read'), value, warn)).toThrow(new ToolError(message));
    for (const effect of ['keyed', 'once'] as const) {
      expect(plainFault(tool(effect), value, warn)).toBe(`[the call was executed; ${message}]`);
      expect(warnings.at(-1)).toBe(`Export was executed, but ${message}`);
    }
  });

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['fields without a value', { a: undefined, b: null }],
    ['dates and URLs', { at: new Date(0), url: new URL('https://example.com') }],
    ['an error', { error: new Error('x') }],
    ['rows of a database', [new Row()]],
    ['the same object twice', ((one) => [one, one])({ a: 1 })],
    ['bytes', Buffer.from('x')],
  ])('does not include %s', (_, value) => {
    expect(plainFault(tool('read'), value, warn)).toBeNull();
  });
});
