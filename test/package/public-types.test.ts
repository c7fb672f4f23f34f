import { join } from 'node:path';
import { expect, test } from 'vitest';
import { builtTree } from '../support/built-program.js';
import { exportedDeclarations, unexportedTypes } from '../../scripts/reference/declarations.js';
import { ENTRIES } from '../support/entries.js';

/** The declaration files of the entry points. */
async function entryFiles(): Promise<readonly string[]> {
  const built = await builtTree();
  return ENTRIES.map((name) => join(built, 'dist', `${name}.d.ts`));
}

test('every type that an exported signature mentions is exported by an entry point', async () => {
  expect(unexportedTypes(await entryFiles())).toEqual([]);
});

test('everything that an entry point exports has a doc comment', async () => {
  const declared = (await entryFiles()).flatMap(exportedDeclarations);
  expect(declared.length).toBeGreaterThan(200);
  expect(declared.filter(({ comment }) => comment === '').map(({ name }) => name)).toEqual([]);
});
