import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { referencePages } from '../../scripts/write-reference.js';
import { builtTree } from '../support/built-program.js';

const folder = fileURLToPath(new URL('../../docs/reference/', import.meta.url));

test('the reference says what the declarations say; otherwise: npm run build && npm run reference', async () => {
  const pages = await referencePages(await builtTree());
  const written = readdirSync(folder).map((name) => [
    name,
    readFileSync(join(folder, name), 'utf8'),
  ]);
  expect(Object.fromEntries(written)).toEqual(pages);
});
