// The published manifest has no `prepare`: it builds a fresh clone at `npm ci`, and npm would warn people who
// install the package about a script of theirs to review. `npm pack` runs this before and after.
//
//   node scripts/pack-manifest.js without-prepare | with-prepare
import { readFile, writeFile } from 'node:fs/promises';

const PREPARE = '    "prepare": "npm run build",\n';
const [, , form] = process.argv;
const path = new URL('../package.json', import.meta.url);
const text = await readFile(path, 'utf8');
const without = text.replace(PREPARE, '');
const before = '    "prepack": ';
await writeFile(
  path,
  form === 'with-prepare' ? without.replace(before, PREPARE + before) : without,
);
