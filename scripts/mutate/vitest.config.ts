import { readFileSync, writeFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vitest/config';
import { instrument, type Mutant } from './mutants.js';
import { targets } from './targets.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/**
 * Rewrites the modules under test, and replaces `vitest` in the tests with a shim that only
 * collects them.
 */
function mutate(): Plugin {
  const mutants: Mutant[] = [];
  const rewritten = new Map<string, string>();
  for (const file of targets(root)) {
    const made = instrument(file, readFileSync(join(root, file), 'utf8'), mutants.length);
    mutants.push(...made.mutants);
    rewritten.set(join(root, file), made.code);
  }
  const list = join(mkdtempSync(join(tmpdir(), 'mutants-')), 'mutants.json');
  writeFileSync(list, JSON.stringify(mutants));
  process.env['MUTANTS'] = list;
  const shims = new Map([
    ['vitest', here('./vitest-shim.ts')],
    ['fast-check', here('./fast-check-shim.ts')],
  ]);
  return {
    name: 'mutate',
    enforce: 'pre',
    resolveId: (id, importer = '') =>
      importer.startsWith(join(root, 'test')) ? shims.get(id) : undefined,
    load: (id) => rewritten.get(id.split('?')[0] ?? ''),
  };
}

export default defineConfig({
  root,
  plugins: [mutate()],
  test: {
    include: ['scripts/mutate/run-mutants.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 0,
    reporters: ['dot'],
  },
});
