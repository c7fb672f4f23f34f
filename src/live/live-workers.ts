import { rm } from 'node:fs/promises';
import { type IncomingMessage, get } from 'node:http';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { visible } from '../core/state/summaries.js';
import { isObject, parseJson, textField } from '../core/text/json.js';
import { formatDuration, isLoopback } from '../core/text/text.js';
import { announceIn, announcedIn, readAnnouncement } from '../storage/announcements.js';
import { hasExited } from '../temporal/grpc.js';
import type { Delta, DeltaBatch, LiveAttempt, NodePlace } from './attempts.js';
import { isPolledHere } from './hub.js';
import type { LiveSource } from './live-source.js';
import { type LinesOf, openedLine } from './sealed-lines.js';

/** The address at which a worker serves live deltas, as announced to other processes. */
export interface LiveWorker {
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** The token that readers must send; empty if none is needed. */
  readonly token: string;
  readonly pid: number;
  readonly host: string;
  readonly namespace: string;
  readonly taskQueue: string;
}

/** A worker with the file that announces it. */
interface KnownWorker extends LiveWorker {
  readonly file: string;
}

/** The maximum number of workers to read from. Each costs one connection per run that is read. */
const MAX_WORKERS = 64;

function folderIn(home: string): string {
  return join(home, 'live');
}

/**
 * Announces a worker to processes of the same user: only they may read the file, which holds the
 * token. Returns a function that removes the file. Rejects if the folder is a link or belongs to
 * another user.
 */
export async function announce(home: string, worker: LiveWorker): Promise<() => Promise<void>> {
  return await announceIn(folderIn(home), worker);
}

/**
 * Returns a function that lists the announced workers. Files never change, so each is read only
 * once. Files of other users, and files that came with a repository, are ignored.
 */
export function createWorkerFinder(home: string): () => Promise<readonly KnownWorker[]> {
  const known = new Map<string, KnownWorker | null>();
  return async () => {
    const files = new Set(await announcedIn(folderIn(home)));
    for (const file of known.keys()) if (!files.has(file)) known.delete(file);
    for (const file of files) {
      if (!known.has(file)) known.set(file, parseWorker(file, await readAnnouncement(file)));
    }
    return [...known.values()].filter((worker) => worker !== null).slice(0, MAX_WORKERS);
  };
}

/** Removes the file of a worker that has ended without removing it. */
async function removeFile({ file }: KnownWorker): Promise<void> {
  await rm(file, { force: true }).catch(() => undefined);
}

/** Returns null if the text does not have the form that `announce` writes. */
function parseWorker(file: string, json: unknown): KnownWorker | null {
  if (!isObject(json)) return null;
  const pid = json['pid'];
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1) return null;
  const worker = {
    file,
    url: textField(json, 'url'),
    token: textField(json, 'token'),
    pid,
    host: textField(json, 'host'),
    namespace: textField(json, 'namespace'),
    taskQueue: textField(json, 'taskQueue'),
  };
  const isHeaderSafe = /^[\x21-\x7e]*$/.test(worker.token);
  return isHeaderSafe && URL.canParse(worker.url) ? worker : null;
}

/** Returns PERDURE_LIVE_HOSTS: the machines, besides this one, whose workers may be read. */
export function readLiveHosts(
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  return (env['PERDURE_LIVE_HOSTS'] ?? '')
    .split(',')
    .map((host) => host.trim().toLowerCase())
    .filter((host) => host !== '');
}

/**
 * Returns the URL at which a worker may be read and sent its token: on this machine if the worker
 * reports that it runs here, or on a machine that the user has named. Returns null for any other
 * address.
 */
export function reachableUrl(
  { url, host }: Pick<LiveWorker, 'url' | 'host'>,
  hosts: readonly string[],
): string | null {
  const {
    protocol,
    hostname: name,
    port,
    username,
    password,
    pathname,
    search,
    hash,
  } = new URL(url);
  const rest = `${username}${password}${search}${hash}`;
  if (protocol !== 'http:' || rest !== '' || pathname !== '/') return null;
  const isHere = host === hostname();
  if (isLoopback(name)) return isHere ? new URL(url).origin : null;
  // The worker listens on all addresses of this machine; the loopback address cannot lead
  // elsewhere.
  if (isHere && name === hostname().toLowerCase()) return `http://127.0.0.1:${port || '80'}`;
  return hosts.includes(name) ? new URL(url).origin : null;
}

/** A worker that sends not even a keep-alive for this long is lost. */
const SILENCE_MS = 45_000;
/** A line holds the deltas of 40 ms, or all that is kept of an attempt. */
const MAX_LINE_UNITS = 16 * 1024 * 1024;

/**
 * Reads a worker's deltas of a run until the worker ends the response or the signal aborts. Rejects
 * if the worker cannot be reached; the code `ECONNREFUSED` means that no process listens there.
 */
async function readDeltas(
  { url, token }: Pick<LiveWorker, 'url' | 'token'>,
  of: LinesOf,
  { batch, signal }: { readonly batch: (batch: DeltaBatch) => void; readonly signal: AbortSignal },
): Promise<void> {
  const response = await request(
    new URL(`/runs/${encodeURIComponent(of.id)}/deltas`, url),
    token,
    signal,
  );
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`${url}: expected status 200, got ${response.statusCode}`);
  }
  response.setTimeout(SILENCE_MS, () => {
    response.destroy(
      new Error(`${url}: sent nothing for ${formatDuration(SILENCE_MS, { as: 'exact' })}`),
    );
  });
  let rest = '';
  for await (const text of response.setEncoding('utf8')) {
    const lines = `${rest}${String(text)}`.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_UNITS) throw new Error(`${url}: sent a line without an end`);
    for (const line of lines) {
      const read = line === '' ? null : parseBatch((await openedLine(line, of)) ?? '');
      if (read !== null) batch(read);
    }
  }
}

function request(url: URL, token: string, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
    get(url, { headers, signal, agent: false }, resolve).on('error', reject);
  });
}

/** Parses a line. Returns null for a keep-alive, and for anything that is not a batch. */
function parseBatch(line: string): DeltaBatch | null {
  const json = line === '' ? undefined : parseJson(line);
  if (!isObject(json) || !isObject(json['attempt']) || !Array.isArray(json['deltas'])) return null;
  const attempt = parseAttempt(json['attempt']);
  const deltas = json['deltas'].map((delta) => parseDelta(delta)).filter((delta) => delta !== null);
  if (attempt === null || deltas.length < json['deltas'].length) return null;
  return { attempt, deltas, ...(json['isVoid'] === true && { isVoid: true }) };
}

function parseAttempt(json: Record<string, unknown>): LiveAttempt | null {
  const [attempt, turn, step] = [json['attempt'], json['turn'], json['step']];
  if (!isCount(attempt) || !isCount(turn) || !isCount(step)) return null;
  const node = json['node'] === undefined ? undefined : parseNode(json['node']);
  if (node === null) return null;
  return {
    segment: textField(json, 'segment'),
    activity: textField(json, 'activity'),
    attempt,
    turn,
    step,
    ...(node && { node }),
  };
}

function parseNode(json: unknown): NodePlace | null {
  if (!isObject(json) || !isCount(json['reply'])) return null;
  const { item, reply } = json;
  if (item !== undefined && !isCount(item)) return null;
  return { name: textField(json, 'name'), reply, ...(item !== undefined && { item }) };
}

function parseDelta(json: unknown): Delta | null {
  if (!isObject(json) || !isCount(json['offset'])) return null;
  const { offset, kind, index, name } = json;
  const text = textField(json, 'text');
  if (kind === 'text' || kind === 'reasoning') return { kind, text, offset };
  if (kind !== 'call' || !isCount(index)) return null;
  return { kind, text, index, ...(typeof name === 'string' && { name }), offset };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** A new worker is found within this time. It then sends what it has received meanwhile. */
const SCAN_EVERY_MS = 500;
/**
 * The number of scans before a notice: a run that is over, or a worker that is starting, needs
 * none.
 */
const SCANS_BEFORE_NOTICE = 4;

/**
 * The source that reads from all workers announced in PERDURE_HOME, except the one at URL `except`:
 * those of this machine, and those of the machines in `hosts`, which the user has named.
 */
export function liveWorkers(
  home: string,
  {
    except,
    hosts = [],
    codecs = [],
  }: {
    readonly except?: string;
    readonly hosts?: readonly string[];
    /** Those of the client, which decode what a worker has encoded. */
    readonly codecs?: LinesOf['codecs'];
  } = {},
): LiveSource {
  const findWorkers = createWorkerFinder(home);
  return ({ id, taskQueue, namespace }, { batch, unreachable, signal }) => {
    const reading = new Set<string>();
    const read = async (worker: KnownWorker, url: string): Promise<void> => {
      reading.add(worker.file);
      try {
        await readDeltas(
          { url, token: worker.token },
          { codecs, namespace, id },
          { batch, signal },
        );
      } catch (error) {
        if (isRefused(error) && worker.host === hostname()) await removeFile(worker);
      } finally {
        // The next scan tries it again if its file is still there.
        reading.delete(worker.file);
      }
    };
    const scan = async (): Promise<void> => {
      for (let scans = 1; !signal.aborted; scans += 1) {
        const announced = (await findWorkers()).filter(
          (worker) => worker.taskQueue === taskQueue && worker.namespace === namespace,
        );
        const isServed = announced.some((worker) => reachableUrl(worker, hosts) !== null);
        if (scans === SCANS_BEFORE_NOTICE && !isServed && !isPolledHere({ taskQueue, namespace })) {
          unreachable(reason(announced, { id, home }));
        }
        for (const worker of announced) {
          if (reading.has(worker.file) || worker.url === except) continue;
          const url = reachableUrl(worker, hosts);
          if (url === null) continue;
          // Only files of this user are read.
          if (hasExited(worker, { ranAsThisUser: true })) await removeFile(worker);
          else void read(worker, url);
        }
        await pause(SCAN_EVERY_MS, undefined, { signal });
      }
    };
    // Rejects only when the signal aborts.
    scan().catch(() => undefined);
  };
}

/** Returns why no worker can be read. */
function reason(
  announced: readonly KnownWorker[],
  { id, home }: { readonly id: string; readonly home: string },
): string {
  const [worker] = announced;
  const lost = `replies of run ${visible(id)} in progress are not shown until they are complete`;
  if (worker === undefined) {
    return (
      `${lost}: no worker of its task queue announces a live stream in ${home}: none runs now, or it has ` +
      'another PERDURE_HOME, or it was created without `live` (commands have it)'
    );
  }
  return (
    `${lost}: its worker is on ${visible(worker.host)}; name that machine in PERDURE_LIVE_HOSTS, and let the ` +
    'worker listen there (--live-host)'
  );
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}
