import { setImmediate as nextTick } from 'node:timers/promises';
import type { Context, Info } from '@temporalio/activity';
import { isObject, parseJson, type JsonObject } from '../../core/json.js';
import type { BlobRef } from '../../core/transcript/messages.js';
import type { AttemptReport } from '../../core/report.js';
import type { ReplyUsage } from '../../core/reply.js';
import { replyUsageShape } from '../../core/guards/outcome.js';
import { guard } from '../../core/guards/shape.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { readFor, StoreFault } from '../../storage/worker-store.js';
import type { ModelReply } from '../../models/model.js';
import { retryStore } from '../offload-text.js';

/** Only the newest reports are passed on. */
const MAX_REPORTS = 10;
/** A larger reply goes to the blob store, because a heartbeat may end up in the history. */
const INLINE_BYTES = 32 * 1024;
/** The limit while the store is down: a large heartbeat is better than a second payment. */
const MAX_INLINE_BYTES = 192 * 1024;

/** A reply that has been paid for, recorded before the author's code checks it. */
export interface PaidReply {
  /** How many attempts have begun to check it. */
  readonly checks: number;
  readonly reply?: ModelReply;
  /** The reply as JSON, if it is too large for a heartbeat. */
  readonly blob?: BlobRef;
}

/** What one attempt of a model call passes to the next one in the activity's heartbeat details. */
export interface AttemptMemory {
  readonly reports: AttemptReport[];
  paid: PaidReply | null;
  /** The replies that a decision function has asked for, in the order in which they came. */
  readonly asked: AskedReply[];
}

/** A reply that a decision function has asked for. Without `reply` and `blob`, it could not be kept. */
export interface AskedReply extends PaidReply {
  /** SHA-256 of the request. */
  readonly digest: string;
  readonly usage: ReplyUsage;
}

/**
 * Reads what earlier attempts have passed on. The input's `paid` is the reply that an earlier call has paid
 * for, if the run was blocked between the payment and the check.
 */
export function readMemory(
  { heartbeatDetails }: Pick<Info, 'heartbeatDetails'>,
  { paid: earlier }: { readonly paid?: unknown } = {},
): AttemptMemory {
  const details: unknown = heartbeatDetails;
  const { reports, paid = earlier } = isObject(details) ? details : {};
  const asked: unknown = isObject(paid) ? paid['asked'] : undefined;
  return {
    reports: Array.isArray(reports) ? reports : [],
    paid: isPaid(paid) ? paid : null,
    asked: Array.isArray(asked) ? asked.filter(isAsked) : [],
  };
}

/** Returns the memory as heartbeat details, or undefined if it is empty. */
export function toDetails({ reports, paid, asked }: AttemptMemory): JsonObject | undefined {
  const kept = { ...paid, ...(asked.length > 0 && { asked }) };
  const isPaidFor = Object.keys(kept).length > 0;
  if (reports.length === 0 && !isPaidFor) return undefined;
  return {
    ...(reports.length > 0 && {
      reports: reports.slice(-MAX_REPORTS).map((report) => ({ ...report })),
    }),
    // The compiler does not know that a reply is JSON.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    ...(isPaidFor && { paid: kept as unknown as JsonObject }),
  };
}

/**
 * Returns a paid reply in the form that a heartbeat carries. Null if the reply is over 192 KiB and the blob
 * store is down: then the check is not protected.
 */
export async function toPaidReply(
  reply: ModelReply,
  given: {
    readonly checks: number;
    readonly blobs: BlobStore;
    /** A larger reply goes to the blob store, and is never inline; default: 32 KiB, or 192 KiB if the store is down. */
    readonly inlineBytes?: number;
  },
): Promise<PaidReply | null> {
  const { checks, blobs, inlineBytes } = given;
  const json = JSON.stringify(reply);
  const bytes = Buffer.byteLength(json);
  if (bytes <= (inlineBytes ?? INLINE_BYTES)) return { checks, reply };
  const stored = await retryStore(() => blobs.put(json));
  if ('value' in stored) return { checks, blob: stored.value };
  return bytes <= (inlineBytes ?? MAX_INLINE_BYTES) ? { checks, reply } : null;
}

/**
 * Returns the reply that an earlier attempt has paid for. Rejects with a `StoreFault` if the blob store
 * cannot be read: then the run is blocked, and the model is not called again.
 */
export async function readPaidReply(
  { reply, blob }: PaidReply,
  blobs: BlobStore,
): Promise<ModelReply> {
  if (reply !== undefined) return reply;
  const { sha256 = '' } = blob ?? {};
  const stored = parseJson(await readFor('a reply that was paid for', { sha256 }, blobs));
  if (isReply(stored)) return stored;
  const message = `a reply that was paid for cannot be read: blob ${sha256} is not a reply; restore it from a backup`;
  throw new StoreFault('damaged', message, { sha256 });
}

function isPaid(value: unknown): value is PaidReply {
  if (!isObject(value) || typeof value['checks'] !== 'number') return false;
  const { reply, blob } = value;
  return isReply(reply) || (isObject(blob) && typeof blob['sha256'] === 'string');
}

function isAsked(value: unknown): value is AskedReply {
  return isObject(value) && typeof value['digest'] === 'string' && isUsage(value['usage']);
}

const isUsage = guard(replyUsageShape);

function isReply(value: unknown): value is ModelReply {
  return isObject(value) && typeof value['text'] === 'string' && Array.isArray(value['calls']);
}

/** Event loop turns until the SDK has passed a heartbeat to its core, which sends it from its own thread. */
const HANDOVER_TICKS = 3;

/** Sends the memory to the server, so that the next attempt has it even if this process freezes now. */
export async function handOver(context: Context, memory: AttemptMemory): Promise<void> {
  context.heartbeat(toDetails(memory));
  for (let tick = 0; tick < HANDOVER_TICKS; tick += 1) await nextTick();
}
