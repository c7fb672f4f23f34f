import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { bundleScripts } from './bundle-script.js';

const exec = promisify(execFile);
const repository = fileURLToPath(new URL('../..', import.meta.url));
/** Below `node_modules`, so that the built code finds its dependencies. */
const cache = join(repository, 'node_modules', '.cache', 'perdure-tests');

/** Scripts that tests start as processes of their own. */
const SCRIPTS = [
  'bench/subject/worker.ts',
  'test/support/ensure-server-process.ts',
  'test/support/erasing-process.ts',
  'test/support/logging-worker.ts',
  'test/support/observed-worker.ts',
  'test/support/worker-process.ts',
  'test/fixtures/mcp/asking-server.ts',
  'test/fixtures/mcp/stdio-server.ts',
];

let building: Promise<string> | undefined;

/**
 * Path of the command, built from the current sources: it starts in a fraction of the time that the
 * sources take, and is what users get. Built once per content.
 */
export async function builtProgram(): Promise<string> {
  return join(await builtTree(), 'bin', 'perdure.js');
}

/** Folder of the compiled sources and the bundled test processes, laid out like the repository. */
export function builtTree(): Promise<string> {
  return (building ??= build());
}

async function build(): Promise<string> {
  const folder = join(cache, await digest());
  if (await exists(folder)) return folder;
  await forgetOthers();
  const draft = `${folder}.${process.pid}`;
  for (const part of ['bin', 'console', 'scripts', 'package.json']) {
    await cp(join(repository, part), join(draft, part), { recursive: true });
  }
  const dist = join(draft, 'dist');
  if (await isCurrent()) await cp(join(repository, 'dist'), dist, { recursive: true });
  else await compile(dist, join(draft, 'scripts', 'bundle-workflows.js'));
  await bundleScripts(SCRIPTS, { repository, draft, folder });
  // Another test process may have been faster; its build is equivalent.
  await rename(draft, folder).catch(() => rm(draft, { recursive: true, force: true }));
  return folder;
}

/** Compiles the sources and bundles the workflow code, as `npm run build` does. */
async function compile(dist: string, bundleWorkflows: string): Promise<void> {
  const tsc = join(repository, 'node_modules', '.bin', 'tsc');
  const project = join(repository, 'tsconfig.build.json');
  // The compiler emits despite type errors, which the type check reports.
  await exec(tsc, ['-p', project, '--outDir', dist]).catch(() => undefined);
  await exec(process.execPath, [bundleWorkflows]);
}

/** Returns whether the last step of `npm run build` is newer than everything that it reads. */
async function isCurrent(): Promise<boolean> {
  const built = join(repository, 'dist', 'workflow-bundle.json');
  const changed = async (path: string): Promise<number> => (await stat(path)).mtimeMs;
  const at = await changed(built).catch(() => 0);
  const sources = ['src', 'scripts/bundle-workflows.js', 'tsconfig.json', 'tsconfig.build.json'];
  const inside = await readdir(join(repository, 'src'), { recursive: true });
  const paths = [...sources, ...inside.map((path) => join('src', path))];
  const times = await Promise.all(paths.map((path) => changed(join(repository, path))));
  return Math.max(...times) < at;
}

/** Hash of everything that the build reads. */
async function digest(): Promise<string> {
  const hash = createHash('sha256');
  const parts = ['tsconfig.json', 'tsconfig.build.json', 'package.json'];
  for (const part of parts) hash.update(await readFile(join(repository, part)));
  for (const part of [
    'bench',
    'bin',
    'console',
    'scripts',
    'src',
    'test/support',
    'test/fixtures/mcp',
  ]) {
    const files = await readdir(join(repository, part), { recursive: true, withFileTypes: true });
    const paths = files
      .filter((file) => file.isFile())
      .map((file) => join(file.parentPath, file.name));
    for (const path of paths.toSorted()) hash.update(path).update(await readFile(path));
  }
  return hash.digest('hex').slice(0, 16);
}

async function forgetOthers(): Promise<void> {
  await mkdir(cache, { recursive: true });
  const hourAgo = Date.now() - 3_600_000;
  for (const name of await readdir(cache)) {
    const path = join(cache, name);
    // A test that is still running may use it.
    if ((await stat(path)).mtimeMs < hourAgo) await rm(path, { recursive: true, force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
