import type { Client } from '@temporalio/client';
import { Runtime } from '@temporalio/worker';
import type { Agent } from '../agents/agent.js';
import type { Erasure } from '../client/erasure/erase-runs.js';
import { formatCount } from '../core/text/text.js';
import { redactMessage } from '../secrets/redact.js';
import type { Archive, BlobStore } from '../storage/blob-store.js';
import { type ErasureRecord, readRecords, writeRecord } from '../storage/erasure-log.js';
import { type Build, isSame, readQueueState } from '../temporal/pollers.js';

const HOUR_MS = 3_600_000;
/** The first pass begins within this time after the start: the workers of a deploy start together. */
const [FIRST_FROM_MS, FIRST_UNTIL_MS] = [1_000, 60_000];
/** An erasure that another worker began within this time counts as its work of this hour. */
const RECENT_MS = HOUR_MS / 2;
/** The beginning of `by` in the erasure log. */
const BY = 'retention of agent ';

/** What a worker needs to erase ended runs by the retention of its agents. */
interface RetentionParts {
  readonly agents: readonly Pick<Agent, 'name' | 'retentionMs'>[];
  readonly archive: Archive;
  readonly blobs: BlobStore;
  /** Only runs of this task queue are erased. */
  readonly taskQueue: string;
  /** The build of the worker, which erases only while it gets the new runs; null without versioning. */
  readonly build: Build | null;
  /** Ends it: what it has begun is continued by the next erasure. */
  readonly signal: AbortSignal;
}

/** Does work after this many milliseconds, and keeps no process alive for it. Returns what cancels it. */
export type Later = (work: () => void, ms: number) => () => void;

const later: Later = (work, ms) => {
  const timer = setTimeout(work, ms).unref();
  return () => clearTimeout(timer);
};

/**
 * Erases ended runs by the retention of the agents soon after the start, and then about every hour,
 * until the signal. It fails nothing, and keeps no process alive.
 */
export function startRetention(
  parts: RetentionParts,
  clientOf: () => Client | undefined,
  doLater: Later = later,
): void {
  const { agents, archive, blobs, signal } = parts;
  if (signal.aborted || agents.every(({ retentionMs }) => retentionMs === undefined)) return;
  const lacking = Object.entries({ archive, 'blob store': blobs }).find(
    ([, { erasure }]) => erasure === undefined,
  );
  if (lacking !== undefined) {
    // Once the histories are gone, nothing leads to what that store has of them.
    log('warn', `\`retention\` of agents erases nothing: the ${lacking[0]} has no \`erasure\``);
    return;
  }
  let cancel: (() => void) | undefined;
  const passBetween = (fromMs: number, untilMs: number): void => {
    cancel = doLater(() => void pass(), fromMs + Math.random() * (untilMs - fromMs));
  };
  const pass = async (): Promise<void> => {
    const client = clientOf();
    if (client !== undefined) await eraseOld(parts, client);
    // Workers that have started together drift apart.
    if (!signal.aborted) passBetween(0.9 * HOUR_MS, 1.1 * HOUR_MS);
  };
  passBetween(FIRST_FROM_MS, FIRST_UNTIL_MS);
  signal.addEventListener('abort', () => cancel?.(), { once: true });
}

/**
 * Erases the runs that ended before the retention of their agent, one agent after the other. Leaves an
 * agent out if another worker has just erased its runs, and all of them while another one is at work. Never
 * rejects: it logs one line for each agent of which something was erased, or could not be.
 */
export async function eraseOld(
  parts: RetentionParts,
  client: Client,
  now: number = Date.now(),
): Promise<void> {
  const { agents, archive, blobs, taskQueue, build, signal } = parts;
  const { namespace } = client.options;
  /** Returns null if it has failed. */
  const orLog = async <T>(by: string, work: () => Promise<T>): Promise<T | null> => {
    try {
      return await work();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (!signal.aborted) log('warn', `${by} has failed, and is tried again in an hour: ${why}`);
      return null;
    }
  };
  const recent = await orLog('retention of agents', async () => {
    const isCurrent =
      build === null ||
      isSame((await readQueueState(client, { namespace, taskQueue })).current, build);
    return isCurrent ? await recentErasures(archive, namespace, now) : null;
  });
  if (recent === null || recent.some(({ endedAt }) => endedAt === null)) return;
  const { eraseFrom } = await import('../client/erasure/erase-runs.js');
  for (const { name, retentionMs } of agents) {
    const by = `${BY}${name} on ${taskQueue}`;
    if (signal.aborted) return;
    if (retentionMs === undefined || recent.some((record) => record.by === by)) continue;
    await orLog(by, async () => {
      await announce(archive, { namespace, by, now });
      const options = { agent: name, before: new Date(now - retentionMs), by };
      const sources = { client, archive, blobs, signal };
      report(by, await eraseFrom(sources, options, { now, taskQueue }));
    });
  }
}

/** Returns what workers have begun to erase by retention a short time ago. */
async function recentErasures(
  { erasure }: Archive,
  namespace: string,
  now: number,
): Promise<readonly ErasureRecord[]> {
  if (erasure === undefined) return [];
  const { records } = await readRecords(erasure, namespace);
  return records.filter(({ by, startedAt }) => {
    return by.startsWith(BY) && Math.abs(now - Date.parse(startedAt)) < RECENT_MS;
  });
}

/**
 * Records that a worker looks, in place of the last time, since most often there is nothing to erase, and
 * then the log would not show it.
 */
async function announce(
  { erasure: store }: Archive,
  { namespace, by, now }: { readonly namespace: string; readonly by: string; readonly now: number },
): Promise<void> {
  const at = new Date(now).toISOString();
  const nothing = { histories: 0, archived: 0, blobs: 0 };
  const work = { runs: [], blobs: [], planned: nothing, removed: nothing, left: 0 };
  const erasure = `${by} in ${namespace}`;
  const record = { erasure, namespace, by, startedAt: at, endedAt: at, ...work };
  if (store) await writeRecord(store, { version: 1, ...record });
}

function report(by: string, { runs, refused, left, unreadable }: Erasure): void {
  const erased = `${by} has erased ${formatCount(runs.length, 'run')}`;
  const problems = [
    ...refused.map(({ id, why }) => `run ${id}: ${why}`),
    ...unreadable,
    ...left.flatMap(({ what, name, why, message = 'it could not be removed' }) =>
      why === 'used' || why === 'grace' ? [] : [`${what} ${name}: ${message}`],
    ),
  ];
  const [first] = problems;
  if (first !== undefined) {
    const more = problems.length > 1 ? `; and ${problems.length - 1} more` : '';
    log('warn', `${erased}, but not everything: ${first}${more}`);
  } else if (runs.length > 0) log('info', erased);
}

function log(level: 'info' | 'warn', message: string): void {
  Runtime.instance().logger[level](redactMessage(message));
}
