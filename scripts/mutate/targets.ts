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

/** Tests that take long, or that load modules themselves. */
const LEFT_OUT = ['recorded-by-hand', 'guards.property', 'regular-expressions'];

/** Returns the test files that run against each mutant. */
export function testFiles(root: string): readonly string[] {
  const folder = join(root, 'test/core');
  return readdirSync(folder)
    .filter((file) => file.endsWith('.test.ts'))
    .filter((file) => !LEFT_OUT.some((name) => file.startsWith(name)))
    .map((file) => join(folder, file));
}
