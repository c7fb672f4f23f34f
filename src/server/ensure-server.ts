import { randomInt, randomUUID } from 'node:crypto';
import { link, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NoServerError } from '../core/errors.js';
import { MIN_FREE_BYTES, PRIVATE, freeSpace, makeFolder } from '../storage/files.js';
import {
  addressOf,
  probeOwnServer,
  spawnDevServer,
  waitUntilReady,
  foreignServer,
  namedServer,
  ownHandle,
  ownProcess,
} from './dev-server.js';
import { isListening, prepareNamespace, withConnection } from './namespace.js';
import { type ServerProcess, endProcess, processLife } from './processes.js';
import {
  type ServerHome,
  assertWritable,
  hasDatabase,
  locateHome,
  prepareHome,
} from './server-home.js';
import {
  DEFAULT_NAMESPACE,
  LOOPBACK,
  type ServerHandle,
  type ServerOptions,
  type ServerRecord,
  UI_PORT_OFFSET,
  defaultPort,
  messageOf,
  ownerPid,
  readRecord,
  writeRecord,
} from './server-settings.js';
import { type TemporalCli, compareVersions, findTemporalCli } from './temporal-cli.js';

const LOCK_POLL_MS = 50;
/** Commands that only look for the server hold the lock for a shorter time. */
const MOMENT_MS = 1_000;
/** Long enough for the holder to download the server over a slow connection. */
const WAIT_LIMIT_MS = 300_000;

interface LockOptions {
  /** Called once with the pid of the holder if other running processes hold the lock for more than a moment. */
  readonly onWait?: (pid: string) => Promise<void>;
  readonly waitLimitMs?: number;
}

/**
 * Runs `work` while no other process on this machine does so for the same folder. Throws a
 * `NoServerError` if the lock stays held for too long.
 *
 * The lock is a series of numbered files. The highest one names the holder. A file is created in
 * one step, only its creator replaces it, and the highest one is never deleted. A process takes
 * over the lock of a dead holder by creating the next number, which only one process can do.
 */
export async function withStartLock<T>(
  folder: string,
  work: () => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  await makeFolder(folder);
  const place = await acquire(folder, options);
  try {
    return await work();
  } finally {
    await publish(place, RELEASED, rename);
  }
}

const RELEASED = 'released';

async function acquire(folder: string, options: LockOptions): Promise<string> {
  const self = (await processLife(process.pid)) ?? String(process.pid);
  const begun = performance.now();
  const deadline = begun + (options.waitLimitMs ?? WAIT_LIMIT_MS);
  let isNoted = false;
  for (;;) {
    const highest = (await generations(folder))[0] ?? 0;
    const holder = await liveHolder(join(folder, String(highest)));
    if (holder === null) {
      const place = await claim(folder, highest + 1, self);
      if (place !== null) return place;
      continue;
    }
    if (!isNoted && performance.now() - begun > MOMENT_MS) {
      isNoted = true;
      await options.onWait?.(pidOf(holder));
    }
    if (performance.now() > deadline) {
      throw new NoServerError(
        `Process ${pidOf(holder)} has been starting the Temporal server for too long ` +
          `(lock ${folder}). End that process, or delete the lock folder if the process is not perdure.`,
      );
    }
    await sleep(LOCK_POLL_MS);
  }
}

/** Returns the path of the new generation; null if another process was faster. */
async function claim(folder: string, generation: number, owner: string): Promise<string | null> {
  const place = join(folder, String(generation));
  if (!(await publish(place, owner, link))) return null;
  const all = await generations(folder);
  if (all.some((other) => other > generation)) {
    // Our number was free only because a later holder had deleted the older files.
    await rm(place, { force: true });
    return null;
  }
  const older = all.filter((other) => other < generation);
  await Promise.all(older.map((other) => rm(join(folder, String(other)), { force: true })));
  return place;
}

/** Returns the numbers of the lock files, newest first. */
async function generations(folder: string): Promise<readonly number[]> {
  const names = (await readdir(folder)).filter((name) => /^\d+$/.test(name));
  return names.map(Number).toSorted((a, b) => b - a);
}

async function liveHolder(file: string): Promise<string | null> {
  const holder = await readFile(file, 'utf8').catch(() => RELEASED);
  const pid = Number(pidOf(holder));
  if (!Number.isInteger(pid) || pid < 1) return null;
  return (await processLife(pid)) === holder ? holder : null;
}

function pidOf(holder: string): string {
  return holder.split('@')[0] ?? '';
}

/**
 * Puts a complete file in place in one step. Returns false if `put` fails because the file exists.
 */
async function publish(
  place: string,
  text: string,
  put: (draft: string, place: string) => Promise<void>,
): Promise<boolean> {
  const draft = `${place}.${randomUUID()}`;
  await writeFile(draft, text, { mode: PRIVATE.file });
  try {
    await put(draft, place);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

const PREPARE_LIMIT_MS = 30_000;
const PORT_ATTEMPTS = 3;

/**
 * Returns a Temporal server that answers and has the namespace: the named one, else the running one
 * of this home, else one at the default port. Otherwise it starts the embedded server on the home's
 * database. Commands that call it at the same time share one server. Throws a `NoServerError`.
 */
export async function ensureServer(options: ServerOptions): Promise<ServerHandle> {
  if (options.address) return await namedServer(options, options.address);
  try {
    return await adoptOrStart(options);
  } catch (error) {
    const { folder, logFile } = await locateHome(options.home);
    const free = await freeSpace(folder);
    const isFull = free !== null && free < MIN_FREE_BYTES;
    if (isFull && !messageOf(error).includes('the disk is full')) {
      // A server that cannot commit may end as it starts, or during a call.
      const message = `The disk of ${folder} is full; free space and try again.`;
      throw new NoServerError(message, { cause: error });
    }
    if (error instanceof NoServerError) throw error;
    throw new NoServerError(
      `The Temporal server of ${folder} could not be prepared (${messageOf(error)}). ` +
        `Check ${logFile} and the free space on the disk, and try again.`,
      { cause: error },
    );
  }
}

async function adoptOrStart(options: ServerOptions): Promise<ServerHandle> {
  const home = await prepareHome(options.home, { note: options.note });
  const own = await ownProcess(home);
  if (own && (await hasDatabase(home)) && (await probeOwnServer(own)).alive) {
    return await prepareServer(options, home, own);
  }
  await assertWritable(home);
  return await withStartLock(
    home.lockFolder,
    async () => {
      const started = await adoptStarted(options, home);
      return started ?? (await foreignServer(options, home)) ?? (await start(options, home));
    },
    { onWait: (pid) => noteStart(options, home, pid) },
  );
}

/** Notes which process starts the server. It may only look for one, beside other commands: that needs no note. */
async function noteStart(
  { note, ...quiet }: ServerOptions,
  home: ServerHome,
  pid: string,
): Promise<void> {
  const own = await ownProcess(home);
  if (own !== null) {
    if (!(await probeOwnServer(own)).alive) note?.(waitingText(own));
  } else if ((await foreignServer(quiet, home)) === null) {
    note?.(`Process ${pid} is starting the Temporal server …`);
  }
}

function waitingText({ pid }: ServerProcess): string {
  return `Waiting for the Temporal server (process ${pid}) to answer …`;
}

/**
 * Adopts a server whose starter has died, or which is slow to answer. Returns null if it has ended.
 */
async function adoptStarted(
  options: ServerOptions,
  home: ServerHome,
): Promise<ServerHandle | null> {
  const server = await ownProcess(home);
  if (!server) return null;
  if (!(await hasDatabase(home))) {
    // The server would serve no purpose, but occupy the ports of this home.
    options.note?.(`The database ${server.databaseFile} was deleted; its server restarts.`);
    await endProcess(server.pid);
    // Before it ended, the server may have created an empty file, which is not a new database.
    const files = ['', '-wal', '-shm'].map((suffix) => `${home.databaseFile}${suffix}`);
    await Promise.all(files.map((file) => rm(file, { force: true })));
    return null;
  }
  try {
    if (!(await probeOwnServer(server)).alive) options.note?.(waitingText(server));
    return await prepareServer(options, home, server);
  } catch (error) {
    if ((await processLife(server.pid)) === null) return null;
    throw error;
  }
}

async function start(options: ServerOptions, home: ServerHome): Promise<ServerHandle> {
  if (process.platform === 'win32') {
    throw new NoServerError(
      'The embedded Temporal server does not run on Windows; use WSL, or name a server in TEMPORAL_ADDRESS.',
    );
  }
  const fresh = !(await hasDatabase(home));
  const record = await readRecord(home.recordFile);
  const cli = await findTemporalCli(home, options);
  if (record && !fresh) refuseOlder(cli, record, home);
  const createdBy = fresh ? cli.serverVersion : (record?.createdBy ?? null);
  for (let attempt = 1; ; attempt += 1) {
    const server = await launch(options, home, { cli, record, createdBy });
    try {
      const handle = await prepareServer(options, home, server);
      return { ...handle, how: 'started', ...(fresh && { isNew: true }) };
    } catch (error) {
      if (attempt < PORT_ATTEMPTS && (await lostItsPort(server))) continue;
      throw fresh ? error : withVersions(error, cli, record);
    }
  }
}

async function launch(
  options: ServerOptions,
  home: ServerHome,
  setup: {
    readonly cli: TemporalCli;
    readonly record: ServerRecord | null;
    readonly createdBy: string | null;
  },
): Promise<ServerProcess> {
  const { cli, record, createdBy } = setup;
  // Reuses the former ports, so that running workers and open pages find the server again.
  const port = record ? await waitForPort(record.port) : await findFreePort(defaultPort(options));
  const same = record?.port === port;
  const uiPort = same
    ? await waitForPort(record.uiPort)
    : await findFreePort(port + UI_PORT_OFFSET);
  if (record && !same) {
    options.note?.(
      `Port ${record.port} of this folder's server is taken; the server listens on ${port}.`,
    );
  }
  const pid = await spawnDevServer({
    home,
    cli: cli.path,
    port,
    uiPort,
    namespace: options.namespace ?? DEFAULT_NAMESPACE,
    durability: options.durability ?? 'normal',
    ownerPid: ownerPid(options),
  });
  const startedAt = new Date().toISOString();
  const version = cli.serverVersion;
  await writeRecord(home.recordFile, { pid, port, uiPort, version, createdBy, startedAt });
  return { pid, port, uiPort, databaseFile: home.databaseFile };
}

/**
 * Waits until the server is ready, prepares its namespace, and repairs the record if it was lost.
 */
async function prepareServer(
  options: ServerOptions,
  home: ServerHome,
  server: ServerProcess,
): Promise<ServerHandle> {
  const version = await waitUntilReady(home, server);
  const found = { version, how: 'adopted' } as const;
  const handle = ownHandle(options, server, found);
  await withConnection(handle.address, { timeoutMs: PREPARE_LIMIT_MS }, (connection) =>
    prepareNamespace(connection, handle.namespace),
  );
  const record = await readRecord(home.recordFile);
  if (record?.pid !== server.pid || record.port !== server.port) {
    const { pid, port, uiPort } = server;
    const createdBy = record?.createdBy ?? null;
    await writeRecord(home.recordFile, { pid, port, uiPort, version, createdBy, startedAt: null });
  }
  return handle;
}

async function lostItsPort(server: ServerProcess): Promise<boolean> {
  if ((await processLife(server.pid)) !== null) return false;
  const ui = addressOf({ port: server.uiPort });
  return (await isListening(addressOf(server))) || (await isListening(ui));
}

function withVersions(error: unknown, cli: TemporalCli, record: ServerRecord | null): unknown {
  const before = record?.version;
  if (!before || before === cli.serverVersion) return error;
  return new NoServerError(
    `${messageOf(error)}\nIts database was last opened by server ${before}, and ${cli.path} contains ` +
      `server ${cli.serverVersion}, which may be unable to open it; name the former program in TEMPORAL_CLI_PATH.`,
  );
}

/** Throws if the program is older than the database, which it could misread. */
function refuseOlder(cli: TemporalCli, record: ServerRecord, home: ServerHome): void {
  if (!record.version || compareVersions(cli.serverVersion, record.version) >= 0) return;
  throw new NoServerError(
    `${home.databaseFile} was written by Temporal server ${record.version}, and ${cli.path} ` +
      `(source: ${cli.source}) contains the older ${cli.serverVersion}, which may misread it. ` +
      'Update that program, name a newer one in TEMPORAL_CLI_PATH, or set PERDURE_HOME to another folder.',
  );
}

/**
 * The range of our ports. It is below the ports of outgoing connections, so that a restarted server
 * finds its port free.
 */
const OWN_PORTS = { from: 20_000, to: 30_000 } as const;

const RELEASE_LIMIT_MS = 2000;
const POLL_MS = 20;

/** Returns `preferred` if it is free on the loopback interface, else any free port of our range. */
export async function findFreePort(preferred: number | null): Promise<number> {
  if (preferred !== null && (await isFree(preferred))) return preferred;
  for (;;) {
    const port = randomInt(OWN_PORTS.from, OWN_PORTS.to);
    if (await isFree(port)) return port;
  }
}

/**
 * Waits for the port of our former server: the system releases it shortly after a killed process
 * has left the process table. Returns another free port if it stays taken.
 */
async function waitForPort(port: number): Promise<number> {
  const deadline = performance.now() + RELEASE_LIMIT_MS;
  while (!(await isFree(port)) && performance.now() < deadline) await sleep(POLL_MS);
  return await findFreePort(port);
}

async function isFree(port: number): Promise<boolean> {
  // On some systems binding succeeds although a server listens on all addresses.
  if (await isListening(`${LOOPBACK}:${port}`)) return false;
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, LOOPBACK, () => server.close(() => resolve(true)));
  });
}
