// Writes docs/reference from the declarations in `dist` and from the commands: `npm run reference`.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'oxfmt';
import { isObject, textField } from '../src/core/text/json.js';
import { commandsPage } from './reference/commands.js';
import { referencePage } from './reference/pages.js';

const root = new URL('../', import.meta.url).pathname;

/**
 * Returns the pages of the reference by name: one of all commands, and one of each entry point from the
 * declarations in a folder that is laid out like the repository.
 */
export async function referencePages(built: string): Promise<Readonly<Record<string, string>>> {
  const manifest: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const exported = isObject(manifest) ? manifest['exports'] : undefined;
  const style = JSON.parse(readFileSync(join(root, '.oxfmtrc.json'), 'utf8'));
  const commands = (await format('commands.md', await commandsPage(), style)).code;
  const pages: Record<string, string> = { 'commands.md': commands };
  for (const [entry, target] of Object.entries(isObject(exported) ? exported : {})) {
    const types = isObject(target) ? textField(target, 'types') : '';
    if (types === '') continue;
    const name = `perdure${entry.slice(1)}`;
    const page = `${entry === '.' ? 'perdure' : entry.slice(2)}.md`;
    const text = referencePage(name, join(built, types));
    pages[page] = (await format(page, text, style)).code;
  }
  return pages;
}

if (process.argv[1] === import.meta.filename) {
  const folder = join(root, 'docs', 'reference');
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(await referencePages(root))) {
    writeFileSync(join(folder, name), text);
  }
}
