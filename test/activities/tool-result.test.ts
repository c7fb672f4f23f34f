import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { callArtifacts } from '../../src/activities/tool/call-artifacts.js';
import { checkedEnding } from '../../src/activities/tool/validate-output.js';
import { keepResult, writeResult } from '../../src/activities/tool/tool-result.js';
import { BlobError, type BlobStore } from '../../src/storage/blob-store.js';
import { sha256Hex } from '../../src/core/digest.js';
import type { Effect } from '../../src/core/definition/definition.js';
import { artifact } from '../../src/tools/built-in/artifact.js';
import { ToolError } from '../../src/tools/tool-error.js';

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
  test('that is an artifact is kept whatever its size; the model reads how it begins', async () => {
    const blobs = memory();
    const written = await writeResult(artifact([1], { summary: 's' }), tool('read'));
    const kept = await keepResult({}, written, blobs);
    expect(kept).toEqual({
      text: '[1]',
      artifact: {
        name: 'export_result',
        kind: 'array of 1',
        summary: 's',
        blob: { sha256: sha256Hex('[1]'), bytes: 3 },
      },
    });
  });

  test('of a tool that ends the turn is the answer, and an artifact beside it', async () => {
    const written = await writeResult(artifact({ n: 1 }), tool('read'));
    const kept = await keepResult({ ends: true }, written, memory());
    expect(kept).toMatchObject({ text: '{"n":1}', output: { n: 1 }, artifact: { kind: /keys n/ } });
  });

  test('that no artifact can keep fails a read, and is told as it is where something was done', async () => {
    const bytes = artifact({ file: Buffer.from([1]) });
    await expect(writeResult(bytes, tool('read'))).rejects.toThrow(ToolError);
    const { content, artifact: none } = await writeResult(bytes, tool('once'));
    expect(content).toMatch(
      /^\[no artifact: the value holds 1 bytes.*\]\n\{"file":\{"type":"binary"/,
    );
    expect(none).toBeUndefined();
    expect(warnings.at(-1)).toContain('Export: the value holds 1 bytes');
  });

  test('is told without a name where the store stays down: what was done is done', async () => {
    const down = {
      ...memory(),
      put: () => Promise.reject(new BlobError('unwritable', 'disk full')),
    };
    const kept = await keepResult({}, await writeResult(artifact([1]), tool('once')), down);
    expect(kept).not.toHaveProperty('artifact');
    expect(kept.text).toMatch(/^\[no artifact\]\n.*disk full/s);
  });

  test('that ends the turn and is not what the agent gives fails a read only', async () => {
    const contract = z.object({ n: z.number().default(1) });
    const given = { name: 't', contract, effect: 'read' } as const;
    const warn = (): void => undefined;
    expect(await checkedEnding(given, {}, warn)).toEqual({ n: 1 });
    await expect(checkedEnding(given, { n: 'x' }, warn)).rejects.toThrow('n: expected number');
    const large = { n: 1, more: 'x'.repeat(70_000) };
    const loose = { ...given, contract: z.looseObject({}) };
    await expect(checkedEnding(loose, large, warn)).rejects.toThrow('at most 65536 fit');
    expect(await checkedEnding({ ...given, effect: 'once' }, { n: 'x' }, warn)).toEqual({ n: 'x' });
  });
});

describe('what a call gets of the artifacts', () => {
  const call = { id: 'c', name: 't', arguments: '{}', digest: '' };

  test('is the value as it was, read by a schema where one is given', async () => {
    const blobs = memory();
    const named = [
      { name: 'rows', blob: await blobs.put('[{"at":"2026-11-21"}]') },
      { name: 'note', blob: await blobs.put('[1'), text: true as const },
    ];
    const { names, get } = await callArtifacts({ call, artifacts: { named } }, blobs);
    expect(names).toEqual(['rows', 'note']);
    expect(await get('Rows')).toEqual([{ at: '2026-11-21' }]);
    expect(await get('note')).toBe('[1');
    const rows = await get('rows', z.array(z.object({ at: z.coerce.date() })));
    expect(rows[0]?.at.getUTCFullYear()).toBe(2026);
    const wrong = get('rows', z.object({}));
    await expect(wrong).rejects.toThrow(/^artifact "rows" is not what this tool takes: /);
    await expect(wrong).rejects.toThrow(ToolError);
  });

  test.each([
    [{ call }, 'this run has none; only what a tool has kept as an artifact can be named'],
    [{ call, artifacts: {} }, 'among the arguments of this call; name it there'],
    [{ call, artifacts: { known: ['zzz', 'rows'] } }, 'there are rows, zzz'],
    [
      { call: { ...call, blob: { sha256: '', bytes: 70_000 } }, artifacts: { known: ['rows'] } },
      'among the 70000 bytes of arguments, which are too long to be searched; name it in a shorter',
    ],
  ])('is an error with the cure where there is none: %#', async (input, message) => {
    const missing = callArtifacts(input, memory()).then(({ get }) => get('row'));
    await expect(missing).rejects.toThrow(message);
    await expect(missing).rejects.toThrow('there is no artifact "row"');
  });
});
