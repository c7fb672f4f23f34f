import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../core/text/json.js';
import type { ArchiveErasure } from './blob-store.js';

const count = z.int().min(0);
const removedCounts = z.strictObject({ histories: count, archived: count, blobs: count });

const erasureRecord = z.strictObject({
  version: z.literal(1),
  /** The name of the entry. */
  erasure: z.string(),
  namespace: z.string(),
  by: z.string(),
  startedAt: z.string(),
  endedAt: z.string().nullable(),
  runs: z.array(z.strictObject({ id: z.string(), segments: z.array(z.string()) })),
  blobs: z.array(z.string()),
  planned: removedCounts,
  removed: removedCounts.nullable(),
  /** How much could not be removed; texts that others use are not part of it. */
  left: count,
});

/** How much was found, or removed. `archived`: histories in the archive. */
export type ErasureCounts = Readonly<z.infer<typeof removedCounts>>;

/**
 * An entry of the erasure log. It holds ids, hashes, and counts, and no content. `endedAt` is null, and
 * `blobs` has the hashes of the texts, until everything is removed: the next erasure continues.
 */
export type ErasureRecord = Readonly<z.infer<typeof erasureRecord>>;

/** Returns a name for a new entry. Names are in order of time. */
export function newErasureName(now: number): string {
  return `${String(now).padStart(15, '0')}-${randomUUID()}`;
}

/** Returns when an entry got its name: Unix time in ms; 0 if the name is not of this form. */
export function erasureTime(name: string): number {
  return Number(/^\d{15}(?=-)/.exec(name)?.[0] ?? 0);
}

export async function writeRecord(log: ArchiveErasure, record: ErasureRecord): Promise<void> {
  await log.record(record.erasure, JSON.stringify(record));
}

/** Returns the entries of a namespace, oldest first, and the names of those that cannot be read. */
export async function readRecords(
  log: ArchiveErasure,
  namespace: string,
): Promise<{ readonly records: readonly ErasureRecord[]; readonly damaged: readonly string[] }> {
  const records: ErasureRecord[] = [];
  const damaged: string[] = [];
  const texts = [...(await log.records())].toSorted(([one], [other]) => (one < other ? -1 : 1));
  for (const [name, text] of texts) {
    const { data } = erasureRecord.safeParse(parseJson(text));
    if (data === undefined) damaged.push(name);
    else if (data.namespace === namespace) records.push(data);
  }
  return { records, damaged };
}
