import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { testFiles } from '../scripts/mutate/targets.js';
import * as shim from '../scripts/mutate/vitest-shim.js';

const files = testFiles(fileURLToPath(new URL('..', import.meta.url)));

/** What a test file takes from `vitest`: imported names, and members such as `test.each`. */
function takenFromVitest(source: string): readonly string[] {
  const [, imported = ''] = /import \{([^}]*)\} from 'vitest'/.exec(source) ?? [];
  const members = [...source.matchAll(/^\s*(?:describe|test)\.\w+/gm)].map(([text]) => text);
  return [...imported.split(','), ...members].map((name) => name.trim()).filter(Boolean);
}

test('`npm run mutate` can load each of its test files', () => {
  const values: Readonly<Record<string, unknown>> = {
    ...shim,
    'describe.each': shim.describe.each,
    'test.each': shim.test.each,
  };
  const lacking = files.flatMap((file) =>
    takenFromVitest(readFileSync(file, 'utf8'))
      .filter((name) => values[name] === undefined)
      .map((name) => `${basename(file)}: ${name}`),
  );
  expect(files.length).toBeGreaterThan(60);
  expect(lacking).toEqual([]);
});
