import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { builtTree } from '../support/built-program.js';
import { exportedDeclarations, unexportedTypes } from '../support/declarations.js';

const manifest: { readonly exports: Readonly<Record<string, unknown>> } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
);

/** The declaration files of the entry points. */
async function entryFiles(): Promise<readonly string[]> {
  const built = await builtTree();
  const entries = Object.values(manifest.exports).flatMap((entry) =>
    typeof entry === 'object' && entry !== null && 'types' in entry ? [String(entry.types)] : [],
  );
  expect(entries).toHaveLength(5);
  return entries.map((path) => join(built, path));
}

test('every type that an exported signature mentions is exported by an entry point', async () => {
  expect(unexportedTypes(await entryFiles())).toEqual([]);
});

test('everything that an entry point exports has a doc comment', async () => {
  const declared = (await entryFiles()).flatMap(exportedDeclarations);
  expect(declared.length).toBeGreaterThan(200);
  expect(declared.filter(({ comment }) => comment === '').map(({ name }) => name)).toEqual([]);
});
