// Writes the walls into the lint configuration and into ARCHITECTURE.md: `npm run walls`.
import { readFileSync, writeFileSync } from 'node:fs';
import { format } from 'oxfmt';
import { withTable, withWalls } from './walls/generate.js';

const root = new URL('../', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, root), 'utf8');

/** Returns the updated content of the two files, by name. */
export async function wallFiles(): Promise<Readonly<Record<string, string>>> {
  const lint = JSON.stringify(withWalls(JSON.parse(read('.oxlintrc.json'))));
  const { code } = await format('.oxlintrc.json', lint, JSON.parse(read('.oxfmtrc.json')));
  return {
    '.oxlintrc.json': code,
    'ARCHITECTURE.md': withTable(read('ARCHITECTURE.md')),
  };
}

if (process.argv[1] === import.meta.filename) {
  for (const [name, text] of Object.entries(await wallFiles())) {
    writeFileSync(new URL(name, root), text);
  }
}
