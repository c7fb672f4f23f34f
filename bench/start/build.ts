import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { sdkVersion } from '../../src/temporal/sdk.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Builds the package from the current sources into a separate folder, so that no outdated build is
 * measured and the one in the tree does not change.
 * @returns the folder of the built modules
 */
export async function buildPackage(home: string, bundlePath: string): Promise<string> {
  const folder = join(home, 'package');
  const built = join(folder, 'dist');
  await mkdir(built, { recursive: true });
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'dir');
  const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
  const project = ['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', built];
  const failure = await promisify(execFile)(tsc, project).then(
    () => '',
    (error: { readonly stdout?: string }) => error.stdout ?? 'no output',
  );
  // The compiler writes its output even if it finds a type error.
  if (!existsSync(join(built, 'worker.js'))) throw new Error(`the build failed: ${failure}`);
  await cp(bundlePath, join(built, 'workflow-bundle.js'));
  // Without the version of the SDK, a worker would bundle the code again.
  await writeFile(join(built, 'workflow-bundle.json'), JSON.stringify({ sdk: sdkVersion() }));
  return built;
}
