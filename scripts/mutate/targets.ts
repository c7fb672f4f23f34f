import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const FILES = ['run/next-action', 'run/reduce', 'rules/limits', 'calls/batch'];

/**
 * Returns the modules whose mutants the tests have to detect, as paths from the root. The
 * environment variable `MUTATE`, a regular expression, selects some of them.
 */
export function targets(root: string): readonly string[] {
  const rules = readdirSync(join(root, 'src/core/interpret')).map((name) => `interpret/${name}`);
  const all = [...FILES.map((name) => `${name}.ts`), ...rules].map((name) => `src/core/${name}`);
  const only = process.env['MUTATE'];
  return only === undefined ? all : all.filter((file) => new RegExp(only).test(file));
}
