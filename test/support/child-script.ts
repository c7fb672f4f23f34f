import { existsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Arguments of `node` that run a script of the tests, given by its URL, in a process of its own: the
 * bundled one where the test run has built it (a process starts in a fraction of the CPU time), else the source.
 */
export function childScript(source: URL): readonly string[] {
  const path = fileURLToPath(source);
  const built = process.env['PERDURE_TEST_BUILD'];
  const script = path.replace(/\.ts$/, '.bundle.mjs');
  const compiled = built === undefined ? script : resolve(built, relative(repository, script));
  return existsSync(compiled) ? [compiled] : ['--import', 'tsx', path];
}

/**
 * Lets the SDK run workflow code in the main thread: a process starts 0.8 s of CPU time earlier. The
 * tests of the installed package run it in its thread, as users do.
 */
export const NO_THREAD = { TEMPORAL_DEBUG: '1' };
