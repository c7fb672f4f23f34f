// Packs the package as it would be published, and checks what its users would get: `npm run package:check`. The two
// checkers have dependencies that nothing else needs, such as a TypeScript compiler of their own, so npx brings them.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CHECKERS = [
  ['publint@0.3.25', '--strict'],
  // Programs are ES modules; `require` of Node 20.19 loads them, too.
  ['@arethetypeswrong/cli@0.18.5', '--profile', 'esm-only'],
];

const folder = mkdtempSync(join(tmpdir(), 'perdure-package-'));
try {
  execFileSync('npm', ['pack', '--pack-destination', folder], { stdio: 'inherit' });
  const [tarball = ''] = readdirSync(folder);
  for (const [checker, ...options] of CHECKERS) {
    execFileSync('npx', ['--yes', checker, ...options, join(folder, tarball)], {
      stdio: 'inherit',
    });
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
