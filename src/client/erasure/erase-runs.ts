import { z } from 'zod';
import { InputError } from '../../core/errors.js';
import type { Duration } from '../../core/text/text.js';
import { decodeHistory } from '../../temporal/server-answers.js';
import { decodeEvents } from '../../history/decode-event.js';
import { claim } from '../../updates/decide.js';
import {
  type OptionSchemas,
  checkOptions,
  durableDuration,
} from '../../validation/check-options.js';
import { isObject } from '../../core/text/json.js';
import type { PerdureClient } from '../client-types.js';
import type { RunLike } from '../control.js';
import { idOf } from '../given.js';
import { partsOfClient } from '../create-client.js';
import { assertListFilter, readTime } from '../list-filter.js';
import { runsAmong } from '../callers.js';
import { listRuns } from '../list.js';
import { storedIds } from '../run-ids.js';
import {
  type ErasureCounts,
  type ErasureRecord,
  newErasureName,
  readRecords,
} from '../../storage/erasure-log.js';
import {
  type ErasureSources,
  archivedHistory,
  followNames,
  messageOf,
  usedBlobs,
} from './references.js';
import {
  type LeftOver,
  countOf,
  exists,
  listBlobs,
  perform,
  planBlobs,
  unsupported,
} from './perform-erasure.js';
import { type ErasedRun, NO_SUCH_RUN, NOT_ENDED, type RefusedRun, findTargets } from './targets.js';

/** Selects what `eraseRuns` removes, and says who does it. */
export interface EraseOptions {
  /** These runs. An open one is refused. Default: those that `tag`, `agent`, and `before` select. */
  readonly runs?: readonly RunLike<unknown>[];
  /** Runs that have ended and were started with this tag, or with all of these. Default: any tags, or none. */
  readonly tag?: string | readonly string[];
  /**
   * Runs of this agent that have ended and that no other run has called. A run whose agent cannot
   * be read is refused. Default: any agent.
   */
  readonly agent?: string;
  /** Runs that ended before: a Date, ISO 8601, or how long ago, such as `90d`. Default: any time. */
  readonly before?: Date | string;
  /** Also the texts of the blob store to which nothing refers; default false. */
  readonly orphans?: boolean;
  /** Who erases: 1 to 200 characters, recorded in the erasure log and not verified. */
  readonly by: string;
  /** Only count; default false. */
  readonly dryRun?: boolean;
  /**
   * Texts that were stored within this time stay, because a run that has stored one may not have
   * recorded it yet; a later erasure of orphans removes them. Default: a day. 0 is safe only while
   * nothing runs.
   */
  readonly grace?: Duration;
  /**
   * The namespaces whose runs use the same stores, for a server that does not list its namespaces.
   * Default: all of the server.
   */
  readonly namespaces?: readonly string[];
}

/** What an erasure has removed, what is left, and why. */
export interface Erasure {
  readonly dryRun: boolean;
  /** The name of the entry in the erasure log; null if there is none. */
  readonly erasure: string | null;
  readonly runs: readonly ErasedRun[];
  /** Runs of which nothing was removed. */
  readonly refused: readonly RefusedRun[];
  /** Removed, as a second look has shown; of a dry run, what would be removed. */
  readonly removed: ErasureCounts;
  readonly left: readonly LeftOver[];
  /** What could not be read, and may refer to any text. If there is some, no text is removed. */
  readonly unreadable: readonly string[];
  /**
   * Earlier erasures that were interrupted, or had left something, and that this one has continued; of a
   * dry run, that it would continue. Their `endedAt` is null if something is still left.
   */
  readonly continued: readonly ErasureRecord[];
}

const eraseOptions = z.strictObject({
  runs: z.array(z.unknown()).readonly().optional(),
  tag: z.unknown().optional(),
  agent: z.unknown().optional(),
  before: z.unknown().optional(),
  orphans: z.boolean().optional(),
  by: z.string(),
  dryRun: z.boolean().optional(),
  grace: z.union([z.literal(0), durableDuration]).optional(),
  namespaces: z.array(z.string().min(1)).readonly().optional(),
} satisfies OptionSchemas<EraseOptions>);

const GRACE_MS = 24 * 60 * 60 * 1_000;

/**
 * Removes runs that have ended, with those of the agents that they have called: their histories, their
 * part of the archive, and the texts, attachments, and artifacts to which nothing else refers. Then looks
 * again, and returns what is gone, what is left, and why. An erasure log beside the archive records who
 * erased which runs and when, without content. Memory that agents keep beyond a run is not touched.
 *
 * If it is interrupted, the next one completes it. Rejects with an `InputError` for an invalid option,
 * and with an `ArchiveError` or a `BlobError` if a store cannot be read.
 *
 * @example
 * ```ts
 * import { createClient, eraseRuns } from 'perdure/client';
 *
 * const client = await createClient();
 * const { removed, left } = await eraseRuns(client, { before: '90d', by: 'retention' });
 * console.log(removed.histories, left.length);
 * ```
 */
export async function eraseRuns(client: PerdureClient, options: EraseOptions): Promise<Erasure> {
  const { runs, ...rest } = options;
  const parts = partsOfClient(client);
  const ids = runs && (await storedIds(parts.client, runs, parts.archive));
  return await eraseFrom(parts, { ...rest, ...(ids && { runs: ids }) });
}

/**
 * Like `eraseRuns`, for a program that has the client and the stores themselves. `now`: the time from
 * which durations count back, in Unix time in ms; `taskQueue`: filters match only the runs of this one.
 */
export async function eraseFrom(
  given: ErasureSources,
  options: EraseOptions,
  { now = Date.now(), taskQueue }: { readonly now?: number; readonly taskQueue?: string } = {},
): Promise<Erasure> {
  assertOptions(options);
  const { by, dryRun = false, orphans = false, namespaces } = options;
  const sources = { ...given, namespaces };
  const before = now - (options.grace === undefined ? GRACE_MS : graceMs(options.grace));
  const { namespace } = sources.client.options;
  const log = sources.archive.erasure;
  const { records, damaged } = log ? await readRecords(log, namespace) : NO_RECORDS;
  const open = records.filter(({ endedAt }) => endedAt === null);
  const continued = dryRun ? open : await continueErasures(sources, open, before);

  const stored = await listBlobs(sources);
  const names = new Set(stored.keys());
  const selected = await selectRuns(sources, { ...options, taskQueue }, { stored: names, now });
  const { runs } = selected;
  const refused = selected.refused.flatMap((one) => explained(one, { records, continued }));
  const blobs = new Set((await followNames(sources.blobs, selected.names, names)).names);
  const unreadable: string[] = [];
  if (orphans) {
    const erased = new Set(runs.flatMap(({ segments }) => segments));
    const used = await usedBlobs(sources, { stored: names, erased });
    unreadable.push(...used.unreadable);
    for (const [name, at] of used.unreadable.length > 0 ? [] : stored)
      if (at < before && !used.names.has(name)) blobs.add(name);
  }
  const record: ErasureRecord = {
    version: 1,
    erasure: newErasureName(now),
    namespace,
    by,
    startedAt: new Date(now).toISOString(),
    endedAt: null,
    runs: runs.map(({ id, segments }) => ({ id, segments: [...segments] })),
    blobs: [...blobs],
    planned: { ...(await countOf(sources, runs)), blobs: blobs.size },
    removed: null,
    left: 0,
  };
  const damages = damaged.map((name): LeftOver => {
    return { what: 'record', name, why: 'failed', message: 'the entry of the log is damaged' };
  });
  const base = { dryRun, runs, refused, continued };
  const isEmpty = runs.length === 0 && blobs.size === 0;
  if (isEmpty || dryRun) {
    const plan = await planBlobs(sources, [record], before);
    const removed = { ...record.planned, blobs: blobs.size - plan.keep.length };
    const left = [...damages, ...plan.keep, ...unsupported(sources, record)];
    const all = [...new Set([...unreadable, ...plan.unreadable])];
    return { ...base, erasure: null, removed, left, unreadable: all };
  }
  const done = await perform(sources, record, { before });
  return {
    ...base,
    erasure: log ? record.erasure : null,
    removed: done.record.removed ?? record.planned,
    left: [...damages, ...done.left],
    unreadable: [...new Set([...unreadable, ...done.unreadable])],
  };
}

async function continueErasures(
  sources: ErasureSources,
  open: readonly ErasureRecord[],
  before: number,
): Promise<readonly ErasureRecord[]> {
  if (open.length === 0) return [];
  const plan = await planBlobs(sources, open, before);
  const continued: ErasureRecord[] = [];
  for (const one of open) continued.push((await perform(sources, one, { before, plan })).record);
  return continued;
}

/** Returns why a run is refused, in the light of earlier erasures; empty if one was continued. */
function explained(
  refused: RefusedRun,
  {
    records,
    continued,
  }: { readonly records: readonly ErasureRecord[]; readonly continued: readonly ErasureRecord[] },
): readonly RefusedRun[] {
  const isOf = ({ runs }: ErasureRecord): boolean => runs.some(({ id }) => id === refused.id);
  if (refused.why !== NO_SUCH_RUN) return [refused];
  if (continued.some(isOf)) return [];
  const { startedAt: at } = records.findLast(isOf) ?? {};
  return [at === undefined ? refused : { ...refused, why: `it was erased at ${at}` }];
}

const NO_RECORDS = { records: [], damaged: [] };

/** Throws an `InputError` for invalid options. */
export function assertOptions(options: EraseOptions): void {
  checkOptions('eraseRuns', { schema: eraseOptions, options }, (text) => new InputError(text));
  claim(options.by);
  const { runs = [], tag, agent, before, orphans = false } = options;
  assertListFilter({ tag, agent, before });
  const hasFilter = isFiltered(options);
  if (runs.length > 0 && hasFilter) {
    throw new InputError(
      'runs: expected runs, or a tag, an agent, or a time, got both; omit one of them',
    );
  }
  if (runs.length > 0 || hasFilter || orphans) return;
  throw new InputError(
    'runs: expected runs, a tag, an agent, a time, or orphans, got none; name what to erase',
  );
}

function isFiltered({
  tag,
  agent,
  before,
}: Pick<EraseOptions, 'tag' | 'agent' | 'before'>): boolean {
  return tag !== undefined || agent !== undefined || before !== undefined;
}

function graceMs(grace: Duration): number {
  return z.union([z.literal(0), durableDuration]).parse(grace);
}

interface Selected {
  readonly runs: readonly ErasedRun[];
  readonly refused: readonly RefusedRun[];
  readonly names: ReadonlySet<string>;
}

/** Which runs to erase. */
interface Selection extends Pick<EraseOptions, 'runs' | 'tag' | 'agent' | 'before'> {
  readonly taskQueue: string | undefined;
}

async function selectRuns(
  sources: ErasureSources,
  options: Selection,
  { stored, now }: { readonly stored: ReadonlySet<string>; readonly now: number },
): Promise<Selected> {
  const runs = new Map<string, ErasedRun>();
  const refused: RefusedRun[] = [];
  const names = new Set<string>();
  const isNamed = !isFiltered(options);
  const ids = !isNamed
    ? await matchingIds(sources, options, { now, refused })
    : (options.runs ?? []).map(idOf);
  for (const id of new Set(ids)) {
    if (runs.has(id)) continue;
    const found = await findTargets(sources, id, { stored, isNamed });
    if ('why' in found) refused.push(found);
    else {
      for (const run of found.runs) runs.set(run.id, run);
      for (const name of found.names) names.add(name);
    }
  }
  return { runs: [...runs.values()], refused, names };
}

/** Returns the ids of ended runs that match, on the server and in the archive. */
async function matchingIds(
  { client, archive }: ErasureSources,
  options: Selection,
  { now, refused }: { readonly now: number; readonly refused: RefusedRun[] },
): Promise<readonly string[]> {
  const { tag, agent, taskQueue } = options;
  const isTimed = options.before !== undefined;
  const before = readTime(options.before, now) ?? Number.POSITIVE_INFINITY;
  const ids = new Set<string>();
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof listRuns>> = await listRuns(client, {
      limit: 1_000,
      ...(tag !== undefined && { tag }),
      ...(agent !== undefined && { agent }),
      ...(options.before !== undefined && { status: 'ended', before: options.before }),
      ...(cursor !== null && { cursor }),
    });
    for (const { id, taskQueue: queue, closedAt, unreadable } of page.rows) {
      const hasEnded = closedAt !== null && Date.parse(closedAt) < before;
      if (!hasEnded && isTimed) continue;
      if (taskQueue !== undefined && queue !== taskQueue) continue;
      // A row that cannot be read matches any tag, and any agent unless it names another one.
      if (unreadable !== undefined) refused.push({ id, why: unreadable });
      else if (hasEnded) ids.add(id);
      else refused.push({ id, why: `it ${NOT_ENDED}` });
    }
    ({ cursor } = page);
  } while (cursor !== null);
  const archived = await archivedRuns({ client, archive }, options);
  const isRun = async (caller: string): Promise<boolean> =>
    archived.has(caller) || (await runsAmong(client, [caller])).size > 0;
  for (const [id, { at, caller, isSelected, unreadable }] of archived) {
    if (at >= before || ids.has(id) || (!isSelected && unreadable === null)) continue;
    if (await exists(client, id)) continue;
    // It goes with its caller.
    if (agent !== undefined && caller !== null && (await isRun(caller))) continue;
    if (isSelected) ids.add(id);
    else refused.push({ id, why: unreadable ?? '' });
  }
  return [...ids];
}

/** A run in the archive. */
interface InArchive {
  /** The time of its last event there: Unix time in ms. */
  readonly at: number;
  /** The id of the workflow that has called it, of any type; null if none has. */
  readonly caller: string | null;
  /** Whether it has the tags and the agent. */
  readonly isSelected: boolean;
  /** Why that is unknown; null if it could be read. */
  readonly unreadable: string | null;
}

/** Returns the runs of the archive by their ids. */
async function archivedRuns(
  { client, archive }: Pick<ErasureSources, 'client' | 'archive'>,
  filter: Selection,
): Promise<ReadonlyMap<string, InArchive>> {
  const found = new Map<string, InArchive>();
  for await (const { history, json } of archive.erasure?.all(client.options.namespace) ?? []) {
    const read = archivedHistory(json);
    if (read === null) continue;
    const known = found.get(read.id) ?? { at: 0, isSelected: false, unreadable: null };
    const selected = known.isSelected || (await matches(client, read, filter));
    found.set(read.id, {
      at: Math.max(known.at, history.at),
      caller: startOf(read)?.parentWorkflowExecution?.workflowId ?? null,
      isSelected: selected === true,
      unreadable: typeof selected === 'string' ? selected : known.unreadable,
    });
  }
  return found;
}

type Archived = NonNullable<ReturnType<typeof archivedHistory>>;

function startOf({ history }: Pick<Archived, 'history'>) {
  return history.events?.[0]?.workflowExecutionStartedEventAttributes;
}

/** Returns whether a run has all these tags and this agent, or why that is unknown. */
async function matches(
  client: ErasureSources['client'],
  { id, history }: Archived,
  { tag = [], agent, taskQueue }: Selection,
): Promise<boolean | string> {
  if (taskQueue !== undefined && startOf({ history })?.taskQueue?.name !== taskQueue) return false;
  if (agent === undefined && tag.length === 0) return true;
  try {
    const { events } = await decodeHistory(client, id, history);
    const [started] = decodeEvents(id, events?.slice(0, 1));
    const input = started?.type === 'started' && isObject(started.input) ? started.input : {};
    const { tags, agent: of } = input;
    if (agent !== undefined && typeof of !== 'string') return 'its agent cannot be read';
    const isTagged = [tag].flat().every((one) => Array.isArray(tags) && tags.includes(one));
    return isTagged && (agent === undefined || of === agent);
  } catch (error) {
    return messageOf(error);
  }
}
