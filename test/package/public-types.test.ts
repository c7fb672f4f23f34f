import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { builtTree } from '../support/built-program.js';
import { unexportedTypes } from '../support/declarations.js';

const manifest: { readonly exports: Readonly<Record<string, unknown>> } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
);

test('every type that an exported signature mentions is exported by an entry point', async () => {
  const built = await builtTree();
  const entries = Object.values(manifest.exports).flatMap((entry) =>
    typeof entry === 'object' && entry !== null && 'types' in entry ? [String(entry.types)] : [],
  );
  expect(entries).toHaveLength(5);
  expect(unexportedTypes(entries.map((path) => join(built, path)))).toEqual([]);
});
