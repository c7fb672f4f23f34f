import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
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
  'bench/subject/worker.js',
  'test/support/ensure-server-process.js',
  'test/support/observed-worker.js',
  'test/support/worker-process.js',
  'test/fixtures/mcp/stdio-server.js',
];

let building: Promise<string> | undefined;

/**
 * Path of the command, built from the current sources: it starts in a fraction of the time that the
 * sources take, and is what users get. Built once per content.
 */
export async function builtProgram(): Promise<string> {
  return join(await builtTree(), 'bin', 'perdure.js');
}

/**
 * Folder of the compiled sources and test processes, laid out like the repository. The compiled
 * sources are also its `dist`.
 */
export function builtTree(): Promise<string> {
  return (building ??= build());
}

async function build(): Promise<string> {
  const folder = join(cache, await digest());
  if (await exists(folder)) return folder;
  await forgetOthers();
  const draft = `${folder}.${process.pid}`;
  for (const part of ['bin', 'scripts', 'package.json']) {
    await cp(join(repository, part), join(draft, part), { recursive: true });
  }
  const tsc = join(repository, 'node_modules', '.bin', 'tsc');
  const project = join(repository, 'test', 'tsconfig.build.json');
  // The compiler emits despite type errors, which the type check reports.
  await exec(tsc, ['-p', project, '--outDir', draft]).catch(() => undefined);
  // `dist` is what gets packed; the test processes expect it where the sources are.
  await rename(join(draft, 'src'), join(draft, 'dist'));
  await symlink('dist', join(draft, 'src'));
  await exec(process.execPath, [join(draft, 'scripts', 'bundle-workflows.js')]);
  const scripts = SCRIPTS.map((script) => join(draft, script));
  await bundleScripts(scripts, { draft, folder });
  // Another test process may have been faster; its build is equivalent.
  await rename(draft, folder).catch(() => rm(draft, { recursive: true, force: true }));
  return folder;
}

/** Hash of everything that the build reads. */
async function digest(): Promise<string> {
  const hash = createHash('sha256');
  const parts = ['tsconfig.json', 'tsconfig.build.json', 'package.json'];
  for (const part of parts) hash.update(await readFile(join(repository, part)));
  for (const part of ['bench', 'bin', 'scripts', 'src', 'test/support', 'test/fixtures/mcp']) {
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
