import type { Info } from '@temporalio/activity';
import { isObject, parseJson, type JsonObject } from '../../core/json.js';
import type { BlobRef } from '../../core/transcript/messages.js';
import type { AttemptReport } from '../../core/report.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { readFor, StoreFault } from '../../storage/worker-store.js';
import type { ModelReply } from '../../models/model.js';
import { patiently } from '../offload-text.js';

const KEPT_REPORTS = 10;
/** A larger reply lies in the blob store: a heartbeat may end up in the history. */
const INLINE_BYTES = 32 * 1024;
/** The same where the store is down: better a large heartbeat than a second payment. */
const INLINE_AT_MOST_BYTES = 192 * 1024;

/** A reply that has been paid for, recorded before the author's code checks it. */
export interface PaidReply {
  /** How many attempts have begun to check it. */
  readonly checks: number;
  readonly reply?: ModelReply;
  /** The reply as JSON, where it is too large for a heartbeat. */
  readonly blob?: BlobRef;
}

/** What one attempt of a model call passes to the next one in the activity's heartbeat details. */
export interface AttemptMemory {
  readonly reports: AttemptReport[];
  paid: PaidReply | null;
}

/**
 * What the attempts before this one have left. `given`: the reply that a call before this one has paid
 * for, where a block came between the payment and the check.
 */
export function memoryOf(
  { heartbeatDetails: details }: Pick<Info, 'heartbeatDetails'>,
  { paid: given }: { readonly paid?: unknown } = {},
): AttemptMemory {
  const left: unknown = details;
  const { reports, paid = given } = isObject(left) ? left : {};
  return { reports: Array.isArray(reports) ? reports : [], paid: isPaid(paid) ? paid : null };
}

/** The memory as heartbeat details; undefined where there is nothing to remember. */
export function asDetails({ reports, paid }: AttemptMemory): JsonObject | undefined {
  if (reports.length === 0 && paid === null) return undefined;
  return {
    ...(reports.length > 0 && {
      reports: reports.slice(-KEPT_REPORTS).map((report) => ({ ...report })),
    }),
    // A reply is JSON by its type, but not to the compiler.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    ...(paid && { paid: paid as unknown as JsonObject }),
  };
}

/**
 * A paid reply in the form that a heartbeat carries. Null where the blob store does not take it and it
 * is too large to do without: then the check is not protected.
 */
export async function paidReply(
  reply: ModelReply,
  { checks, blobs }: { readonly checks: number; readonly blobs: BlobStore },
): Promise<PaidReply | null> {
  const json = JSON.stringify(reply);
  const bytes = Buffer.byteLength(json);
  if (bytes <= INLINE_BYTES) return { checks, reply };
  const kept = await patiently(() => blobs.put(json));
  if ('done' in kept) return { checks, blob: kept.done };
  return bytes <= INLINE_AT_MOST_BYTES ? { checks, reply } : null;
}

/**
 * The reply that an earlier attempt has paid for. Rejects with a `StoreFault` while the blob store cannot
 * be read: the run is blocked then, and the model is not asked again for the sake of a disk.
 */
export async function readPaid({ reply, blob }: PaidReply, blobs: BlobStore): Promise<ModelReply> {
  if (reply !== undefined) return reply;
  const { sha256 = '' } = blob ?? {};
  const known = parseJson(await readFor('a reply that was paid for', { sha256 }, blobs));
  if (isReply(known)) return known;
  const message = `a reply that was paid for cannot be read: blob ${sha256} is not a reply; restore it from a backup`;
  throw new StoreFault('damaged', message, { sha256 });
}

function isPaid(value: unknown): value is PaidReply {
  if (!isObject(value) || typeof value['checks'] !== 'number') return false;
  const { reply, blob } = value;
  return isReply(reply) || (isObject(blob) && typeof blob['sha256'] === 'string');
}

function isReply(value: unknown): value is ModelReply {
  return isObject(value) && typeof value['text'] === 'string' && Array.isArray(value['calls']);
}
