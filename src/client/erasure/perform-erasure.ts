import { setTimeout as pause } from 'node:timers/promises';
import { isNotFound } from '../../history/segments.js';
import { describeWorkflow, listWorkflows } from '../../temporal/server-answers.js';
import { queryTerm } from '../run-row.js';
import {
  type ErasureCounts,
  type ErasureRecord,
  readRecords,
  writeRecord,
} from '../../storage/erasure-log.js';
import { type ErasureSources, messageOf, usedBlobs } from './references.js';
import type { ErasedRun } from './targets.js';

/**
 * The server removes a history in the background: of a run that ended just now, only once it has noted
 * that the tasks of its end are done, by default every 30 s.
 */
const GONE_WITHIN_MS = 120_000;
const LOOK_EVERY_MS = 250;

/** Something that an erasure has not removed. */
export interface LeftOver {
  readonly what: 'history' | 'archived' | 'blob' | 'record';
  /** A run id, the hash of a text, or the name of an entry of the erasure log. */
  readonly name: string;
  /**
   * - `grace`: it was stored within the grace period; a later erasure removes it
   * - `used`: something else refers to it
   * - `unknown_use`: not everything that may refer to it could be read; see `unreadable`. A later
   *   erasure that can read it removes it
   * - `unsupported`: the store has no `erasure`
   * - `failed`: it could not be removed; the next erasure tries again
   */
  readonly why: 'grace' | 'used' | 'unknown_use' | 'unsupported' | 'failed';
  readonly message?: string;
}

/** Returns the time of each stored text; none if the store cannot list them. */
export async function listBlobs({ blobs }: ErasureSources): Promise<ReadonlyMap<string, number>> {
  const list = (await blobs.erasure?.list()) ?? [];
  return new Map(list.map(({ sha256, at }) => [sha256, at]));
}

/** Returns whether the server has a segment; without a run id, any of the run. */
export async function exists(
  client: ErasureSources['client'],
  id: string,
  runId?: string,
): Promise<boolean> {
  try {
    await describeWorkflow(client, id, runId);
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** Counts the segments of runs on the server, and their histories in the archive. */
export async function countOf(
  { client, archive }: ErasureSources,
  runs: readonly ErasedRun[],
): Promise<Pick<ErasureCounts, 'histories' | 'archived'>> {
  let [histories, archived] = [0, 0];
  for (const { id, segments } of runs) {
    for (const runId of segments) if (await exists(client, id, runId)) histories += 1;
    const entries = await archive.list({ namespace: client.options.namespace, id });
    archived += entries.filter(({ runId }) => segments.includes(runId)).length;
  }
  return { histories, archived };
}

/** Which texts of erasures stay, and why. */
interface BlobPlan {
  readonly keep: readonly LeftOver[];
  /** What could not be read, and may refer to any text. */
  readonly unreadable: readonly string[];
}

const NO_RECORDS = { records: [] };

/** Decides which texts of erasures stay. */
export async function planBlobs(
  sources: ErasureSources,
  records: readonly ErasureRecord[],
  before: number,
): Promise<BlobPlan> {
  const stored = await listBlobs(sources);
  const { erasure: log } = sources.archive;
  const logged = log ? await readRecords(log, sources.client.options.namespace) : NO_RECORDS;
  // Runs that another erasure is removing do not keep a text; otherwise, each would leave it to the other.
  const all = [...records, ...logged.records.filter(({ endedAt }) => endedAt === null)];
  const erased = new Set(all.flatMap(({ runs }) => runs.flatMap(({ segments }) => segments)));
  const named = new Set(records.flatMap(({ blobs }) => blobs));
  const found = [...named].filter((name) => stored.has(name));
  if (found.length === 0) return { keep: [], unreadable: [] };
  const used = await usedBlobs(sources, { stored: new Set(stored.keys()), erased });
  const keep = found.flatMap((name): readonly LeftOver[] => {
    const left = (why: LeftOver['why']): readonly LeftOver[] => [{ what: 'blob', name, why }];
    if (used.names.has(name)) return left('used');
    if (used.unreadable.length > 0) return left('unknown_use');
    return (stored.get(name) ?? 0) >= before ? left('grace') : [];
  });
  return { keep, unreadable: used.unreadable };
}

interface Performed {
  readonly record: ErasureRecord;
  readonly left: readonly LeftOver[];
  readonly unreadable: readonly string[];
}

/**
 * Records what is to be removed, removes it with the histories last, since only they lead to the rest,
 * looks again, and records the counts. It continues an erasure that was interrupted anywhere.
 */
export async function perform(
  sources: ErasureSources,
  record: ErasureRecord,
  { before, plan }: { readonly before: number; readonly plan?: BlobPlan },
): Promise<Performed> {
  const { archive, blobs, signal } = sources;
  const { namespace } = record;
  if (archive.erasure) await writeRecord(archive.erasure, record);
  const { keep: all, unreadable } = plan ?? (await planBlobs(sources, [record], before));
  const keep = all.filter(({ name }) => record.blobs.includes(name));
  const kept = new Set(keep.map(({ name }) => name));
  const failures = new Map<string, string>();
  const attempt = async (name: string, act: () => Promise<unknown>): Promise<void> => {
    await act().catch((error: unknown) => failures.set(name, messageOf(error)));
  };
  const fresh: LeftOver[] = [];
  for (const { id, segments } of record.runs) {
    for (const entry of await archive.list({ namespace, id })) {
      if (!segments.includes(entry.runId)) continue;
      signal?.throwIfAborted();
      await attempt(`archived ${entry.runId}`, async () => {
        await archive.erasure?.remove({ namespace, id }, entry);
      });
    }
  }
  for (const sha256 of record.blobs) {
    if (kept.has(sha256)) continue;
    signal?.throwIfAborted();
    await attempt(`blob ${sha256}`, async () => {
      const isRemoved = await blobs.erasure?.remove({ sha256 }, before);
      if (isRemoved === false) fresh.push({ what: 'blob', name: sha256, why: 'grace' });
    });
  }
  const isBlocked = failures.size > 0;
  for (const { id, segments } of record.runs) {
    // The newest segment last: it leads to the others.
    for (const runId of segments.toReversed()) {
      signal?.throwIfAborted();
      await attempt(`history ${runId}`, async () => {
        if (isBlocked) throw new Error('it stays until the rest is removed');
        await removeHistory(sources, id, runId);
      });
    }
  }
  const seen = await lookAgain(sources, record, failures);
  const rest = seen.filter(
    ({ name }) => !kept.has(name) && fresh.every((one) => one.name !== name),
  );
  const left = [...keep, ...fresh, ...rest];
  const leftOf = (what: LeftOver['what']): number =>
    left.filter((one) => one.what === what && one.name !== '*').length;
  const isOver = left.every(({ why }) => why === 'used' || why === 'unsupported');
  const { planned } = record;
  const done: ErasureRecord = {
    ...record,
    endedAt: isOver ? new Date().toISOString() : null,
    // A hash of a short text may betray it.
    blobs: isOver ? [] : record.blobs,
    removed: {
      histories: Math.max(0, planned.histories - leftOf('history')),
      archived: archive.erasure ? Math.max(0, planned.archived - leftOf('archived')) : 0,
      blobs: Math.max(0, planned.blobs - leftOf('blob')),
    },
    left: left.filter(({ why }) => why !== 'used').length,
  };
  if (archive.erasure) await writeRecord(archive.erasure, done);
  return { record: done, left, unreadable };
}

/** Deletes a segment on the server, if it has ended: the server would terminate an open one. */
async function removeHistory({ client }: ErasureSources, id: string, runId: string): Promise<void> {
  const { namespace } = client.options;
  try {
    const { closeTime } = await describeWorkflow(client, id, runId);
    if (closeTime === undefined) throw new Error('it has not ended; close or cancel it first');
    const workflowExecution = { workflowId: id, runId };
    await client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** Returns what is still there of what was to be removed. */
async function lookAgain(
  { client, archive, blobs, signal }: ErasureSources,
  record: ErasureRecord,
  failures: ReadonlyMap<string, string>,
): Promise<readonly LeftOver[]> {
  const { namespace } = record;
  const left: LeftOver[] = [];
  const note = (one: Pick<LeftOver, 'what' | 'name' | 'why'>): void => {
    const message = failures.get(`${one.what} ${one.name}`);
    left.push({ ...one, ...(message !== undefined && { message }) });
  };
  const until = Date.now() + GONE_WITHIN_MS;
  for (const { id, segments } of record.runs) {
    const entries = archive.erasure ? await archive.list({ namespace, id }) : [];
    for (const { runId: name } of entries)
      if (segments.includes(name)) note({ what: 'archived', name, why: 'failed' });
    for (const runId of segments) {
      const isGone = async (): Promise<boolean> =>
        !(await exists(client, id, runId)) && !(await isListed(client, id, runId));
      while (!failures.has(`history ${runId}`) && !(await isGone()) && Date.now() < until)
        await pause(LOOK_EVERY_MS, undefined, { ...(signal && { signal }) });
      if (!(await isGone())) note({ what: 'history', name: runId, why: 'failed' });
    }
  }
  left.push(...unsupported({ client, archive, blobs }, record));
  const stored = await listBlobs({ client, archive, blobs });
  for (const name of record.blobs)
    if (stored.has(name)) note({ what: 'blob', name, why: 'failed' });
  return left;
}

/** Returns whether a list of the server, whose memos have content, still shows a segment. */
async function isListed(
  client: ErasureSources['client'],
  id: string,
  runId: string,
): Promise<boolean> {
  for await (const { info } of listWorkflows(client, queryTerm('WorkflowId', id)))
    if (info.runId === runId) return true;
  return false;
}

/** Returns what the stores, or Temporal's external storage, keep because they cannot remove it. */
export function unsupported(
  { client, archive, blobs }: ErasureSources,
  { runs, planned }: ErasureRecord,
): readonly LeftOver[] {
  const left: LeftOver[] = [];
  if (runs.length === 0) return left;
  if (archive.erasure === undefined && planned.archived > 0) {
    const message = 'the archive has no `erasure`; remove the histories of these runs yourself';
    left.push({ what: 'archived', name: '*', why: 'unsupported', message });
  }
  if (blobs.erasure === undefined) {
    const message = 'the blob store has no `erasure`; remove the texts of these runs yourself';
    left.push({ what: 'blob', name: '*', why: 'unsupported', message });
  }
  if (client.options.loadedDataConverter.externalStorage !== undefined) {
    const message = "payloads in Temporal's external storage stay; remove them there";
    left.push({ what: 'history', name: '*', why: 'unsupported', message });
  }
  return left;
}
