import type { Context, Info } from '@temporalio/activity';
import {
  ActivityCancelledError,
  ActivityNotFoundError,
  ActivityPausedError,
  ActivityResetError,
} from '@temporalio/client';
import type { ModelPrice } from '../../core/definition/definition.js';
import type { Payment } from '../../core/interpret/block.js';
import { addTokens, addUsage, toUsage } from '../../core/rules/spending.js';
import { type JsonObject, isObject, parseJson } from '../../core/text/json.js';
import { guard } from '../../core/text/shape.js';
import { replyUsageShape } from '../../core/transcript/message-shapes.js';
import type { BlobRef } from '../../core/transcript/messages.js';
import type { AttemptReport, ReplyUsage, Usage } from '../../core/transcript/outcome.js';
import { parseMarkedCalls } from '../../models/calls-in-markup.js';
import type { ModelReply } from '../../models/model.js';
import { type BlobStore, StoreFault, readFor } from '../../storage/blob-store.js';
import { retryFailure } from '../attempt.js';
import { retryStore } from '../fork-messages.js';
import { INVOKE, callableTools, hasCatalog } from '../../core/transcript/catalog.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import type { AnswerParser } from '../../output/parse-output.js';
import { mayBeSlow } from '../../tools/arguments/check-arguments.js';
import type { CallModelInput } from '../../core/run/contract.js';
import type { PinnedAgent } from '../activity-context.js';
import { ifUnchanged, toPinnedInput } from '../tool/mcp-tool.js';
import type { ModelTurn } from './fallback.js';
import { createAnswerParser } from './answer-formats.js';

/** Maximum reports that are passed on; older ones are dropped. */
const MAX_REPORTS = 10;
/**
 * Maximum bytes of an inline reply. A larger one is offloaded, because a heartbeat may end up in
 * the history.
 */
const INLINE_BYTES = 32 * 1024;
/**
 * The limit of all replies together while the store is down: a large heartbeat is better than a
 * second payment.
 */
const MAX_INLINE_BYTES = 192 * 1024;

/** A reply that has been paid for, recorded before the author's code checks it. */
interface PaidReply {
  /** Number of attempts that have begun to check it. */
  readonly checks: number;
  readonly reply?: ModelReply;
  /** The reply as JSON, if it is too large for a heartbeat. */
  readonly blob?: BlobRef;
}

/**
 * The data that one attempt of a model call passes to the next one in the activity's heartbeat
 * details.
 */
export interface AttemptMemory {
  readonly reports: AttemptReport[];
  paid: PaidReply | null;
  /** Which of the agent's models this attempt calls; null before the first call. */
  turn: ModelTurn | null;
  /** The replies to the requests of a decision function or a node, in the order of arrival. */
  readonly decideReplies: DecideReply[];
}

/**
 * A reply to a request of a decision function or a node. It has neither `reply` nor `blob` if it could not be
 * kept.
 */
export interface DecideReply extends PaidReply {
  /** SHA-256 of the request. */
  readonly digest: string;
  readonly usage: ReplyUsage;
  /** US dollars; null if the price is unknown, absent if it is the price of the run's model. */
  readonly costUsd?: number | null;
  /** The run has counted the usage, which an earlier end of the call reported. */
  readonly counted?: true;
}

/**
 * Reads the memory of earlier attempts. The input's `paid` has the reply of an earlier call, if the
 * run was blocked between the payment and the check, and the replies of a decision function.
 */
export function readMemory(
  { heartbeatDetails }: Pick<Info, 'heartbeatDetails'>,
  { paid: earlier }: { readonly paid?: unknown } = {},
): AttemptMemory {
  const details: unknown = heartbeatDetails;
  const { reports, turn, paid = earlier } = isObject(details) ? details : {};
  const stored: unknown = isObject(paid) ? paid['decideReplies'] : undefined;
  const decideReplies = Array.isArray(stored) ? stored.filter(isDecideReply) : [];
  return {
    reports: Array.isArray(reports) ? reports : [],
    paid: isPaid(paid) ? paid : null,
    turn: isTurn(turn) ? turn : null,
    decideReplies:
      paid === earlier ? decideReplies.map((one) => ({ ...one, counted: true })) : decideReplies,
  };
}

/** Returns the memory as heartbeat details, or undefined if it is empty. */
export function toDetails({
  reports,
  paid,
  turn,
  decideReplies,
}: AttemptMemory): JsonObject | undefined {
  const kept = { ...paid, ...(decideReplies.length > 0 && { decideReplies }) };
  const isPaidFor = Object.keys(kept).length > 0;
  if (reports.length === 0 && !isPaidFor) return undefined;
  return {
    ...(reports.length > 0 && {
      reports: reports.slice(-MAX_REPORTS).map((report) => ({ ...report })),
    }),
    ...(turn !== null && isLater(turn) && { turn: { ...turn } }),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a reply is JSON
    ...(isPaidFor && { paid: kept as unknown as JsonObject }),
  };
}

/**
 * Returns a paid reply in the form that a heartbeat carries. Null if all replies together exceed
 * 192 KiB and the blob store is down; the reply is then not protected.
 */
export async function toPaidReply(
  reply: ModelReply,
  given: {
    readonly checks: number;
    readonly blobs: BlobStore;
    /** A larger reply goes to the blob store. */
    readonly inlineBytes?: number;
    /** Bytes of the limit that other replies use while the store is down. */
    readonly takenBytes?: number;
  },
): Promise<PaidReply | null> {
  const { checks, blobs, inlineBytes = INLINE_BYTES, takenBytes = 0 } = given;
  const json = JSON.stringify(reply);
  const bytes = Buffer.byteLength(json);
  if (bytes <= inlineBytes) return { checks, reply };
  const stored = await retryStore(() => blobs.put(json));
  if ('value' in stored) return { checks, blob: stored.value };
  return bytes <= MAX_INLINE_BYTES - takenBytes ? { checks, reply } : null;
}

/**
 * Returns the paid reply of an earlier attempt. Rejects with a `StoreFault` if the blob store
 * cannot be read; the run is then blocked, and the model is not called again.
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
  throw new StoreFault(message, { kind: 'damaged', sha256 });
}

/** Whether a turn differs from that of an agent with one model that has not failed. */
const isLater = ({ index, failures }: ModelTurn): boolean => index > 0 || failures > 0;

function isTurn(value: unknown): value is ModelTurn {
  return isObject(value) && isCount(value['index']) && isCount(value['failures']);
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

function isPaid(value: unknown): value is PaidReply {
  if (!isObject(value) || typeof value['checks'] !== 'number') return false;
  const { reply, blob } = value;
  return isReply(reply) || (isObject(blob) && typeof blob['sha256'] === 'string');
}

function isDecideReply(value: unknown): value is DecideReply {
  return isObject(value) && typeof value['digest'] === 'string' && isUsage(value['usage']);
}

const isUsage = guard(replyUsageShape);

function isReply(value: unknown): value is ModelReply {
  return isObject(value) && typeof value['text'] === 'string' && Array.isArray(value['calls']);
}

const NO_USAGE: ReplyUsage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };

/** Returns the usage of a decision's model calls that the run has not counted yet. */
export function usedBy({ decideReplies }: AttemptMemory): ReplyUsage {
  return decideReplies.reduce((sum, one) => addTokens(sum, uncounted(one)), NO_USAGE);
}

/**
 * Returns the usage and the cost of the model calls that the run has not counted yet. `price`: of
 * the calls without a cost of their own.
 */
export function spentBy({ decideReplies }: AttemptMemory, price: ModelPrice | null): Usage {
  return decideReplies
    .filter(({ counted }) => counted !== true)
    .map(({ usage, costUsd }) =>
      costUsd === undefined ? toUsage(usage, price) : { ...usage, costUsd },
    )
    .reduce(sumOf, NOTHING_SPENT);
}

const NOTHING_SPENT: Usage = { ...NO_USAGE, costUsd: 0 };

/** Returns the sum of two usages. */
export function sumOf(sum: Usage, { costUsd: cost, ...used }: Usage): Usage {
  return addUsage(sum, { used, cost });
}

/** Returns the payment for an attempt that ends without a decision. */
export function paymentOf(memory: AttemptMemory): Payment {
  const paid = toDetails(memory)?.['paid'];
  const hasReplies = memory.decideReplies.length > 0;
  return { ...(paid !== undefined && { paid }), ...(hasReplies && { used: usedBy(memory) }) };
}

/**
 * Maximum remembered replies, because a function with different requests in each attempt would let
 * the memory grow.
 */
const MAX_DECIDE_REPLIES = 64;

/**
 * Records a call of a decision function as soon as it is paid for. Returns a function that adds its
 * reply.
 */
export function noteDecideCall(
  { decideReplies }: AttemptMemory,
  call: Pick<DecideReply, 'digest' | 'usage' | 'costUsd'>,
): (paid: PaidReply | null) => void {
  const noted: DecideReply = { ...call, checks: 0 };
  decideReplies.push(noted);
  if (decideReplies.length > MAX_DECIDE_REPLIES) {
    const merged = {
      reports: [],
      paid: null,
      turn: null,
      decideReplies: decideReplies.splice(0, 2),
    };
    const isPriced = merged.decideReplies.every(({ costUsd }) => costUsd !== undefined);
    const { costUsd } = spentBy(merged, null);
    const cost = isPriced && { costUsd };
    decideReplies.unshift({ digest: '', usage: usedBy(merged), ...cost, checks: 0 });
  }
  return (paid) => {
    const at = decideReplies.indexOf(noted);
    if (at >= 0 && paid !== null) decideReplies[at] = { ...noted, ...paid };
  };
}

function uncounted({ usage, counted }: DecideReply): ReplyUsage {
  return counted === true ? NO_USAGE : usage;
}

/** Timeout in ms after which the heartbeat is considered lost. */
const HANDOVER_MS = 5_000;

/**
 * Sends the memory to the server, so the next attempt has it even if this process freezes or is
 * killed now. Resolves when the server has it: the SDK delays all but the first heartbeat for up to
 * 80 % of the heartbeat timeout. Rejects if the server has abandoned this attempt. An unreachable
 * server gets the memory with the next heartbeat.
 */
export async function handOver(context: Context, memory: AttemptMemory): Promise<void> {
  const { client, info, log } = context;
  const details = toDetails(memory);
  // A delayed heartbeat would replace these details with older ones.
  context.heartbeat(details);
  try {
    await client.withDeadline(
      Date.now() + HANDOVER_MS,
      async () => await client.activity.heartbeat(info.taskToken, details),
    );
  } catch (error) {
    if (error instanceof ActivityNotFoundError) {
      throw retryFailure('the server has abandoned this attempt');
    }
    // The SDK also learns of it and aborts the signal.
    if (isInterruption(error)) return;
    log.warn('the server has not confirmed a reply that was paid for', { error });
  }
}

function isInterruption(error: unknown): boolean {
  return (
    error instanceof ActivityCancelledError ||
    error instanceof ActivityPausedError ||
    error instanceof ActivityResetError
  );
}

/**
 * Maximum attempts that may begin to check a reply: each check that did not end has frozen a
 * worker.
 */
const MAX_CHECKS = 2;

/** The text for the model and people about an abandoned check. */
export const CHECK_GIVEN_UP = `the check took too long and was abandoned after ${MAX_CHECKS} attempts`;

/**
 * Records a reply in a heartbeat before the author's code checks it, so a check that blocks this
 * process does not cause a second payment. For a check that is provably cheap, it does nothing.
 *
 * Returns false if earlier attempts have begun the check too often; it must not be run again.
 */
export async function beginCheck(
  reply: ModelReply,
  memory: AttemptMemory,
  on: {
    readonly pinned: PinnedAgent;
    readonly input: CallModelInput;
    readonly context: Context;
    readonly blobs: BlobStore;
  },
): Promise<boolean> {
  const { pinned, input, context, blobs } = on;
  if (!needsSlowCheck(reply, pinned, input)) return true;
  const checks = (memory.paid?.checks ?? 0) + 1;
  if (checks > MAX_CHECKS) {
    context.log.warn(`${CHECK_GIVEN_UP}; find what blocks in the agent's output or tools`);
    return false;
  }
  memory.paid =
    memory.paid === null ? await toPaidReply(reply, { checks, blobs }) : { ...memory.paid, checks };
  if (memory.paid === null) {
    context.log.warn(
      'the blob store is down and the reply is too large for a heartbeat: its check is not protected',
    );
    return true;
  }
  await handOver(context, memory);
  return true;
}

/** Returns whether the author's code, or a pattern, will check this reply. */
function needsSlowCheck(
  { calls, text, finish }: ModelReply,
  pinned: PinnedAgent,
  { compact }: CallModelInput,
): boolean {
  if (compact !== undefined) return false;
  const { tools, decide } = pinned.definition;
  if (calls.length > 0 && decide !== 'schema') {
    const isAny = hasCatalog(pinned.definition) && calls.some(({ name }) => name === INVOKE);
    const names = new Set(calls.map(({ name }) => name));
    return tools.some((tool) => (isAny || names.has(tool.name)) && mayBlock(tool, pinned));
  }
  if (finish !== 'stop' && finish !== 'calls') return false;
  if (isSlowAnswer(pinned)) return true;
  // The text may consist of calls, or end with them.
  const mayCall =
    decide === 'schema' ||
    /^\s*(?:`|[{[])/.test(text) ||
    parseMarkedCalls(text, callableTools(pinned.definition)) !== null;
  return mayCall && tools.some((tool) => mayBlock(tool, pinned));
}

/**
 * Returns whether reading an answer can block: by a function of the author, or by a type that is
 * not plain.
 */
export function isSlowAnswer(pinned: PinnedAgent): boolean {
  const parser = findParser(pinned);
  return parser?.type === 'function' || (parser?.type === 'zod' && mayBeSlow(parser.schema));
}

/**
 * Returns the parser of answers. Also null if the pinned schema cannot be read, which the check
 * reports.
 */
function findParser(pinned: PinnedAgent): AnswerParser | null {
  try {
    return createAnswerParser(pinned);
  } catch {
    return null;
  }
}

/** Returns whether the author's code may block this process for a call of this tool. */
function mayBlock(known: ToolDefinition, pinned: PinnedAgent): boolean {
  const { approval } = pinned.tools.get(known.name) ?? {};
  return typeof approval === 'function' || isSlowTool(known, pinned);
}

/**
 * Returns whether checking or describing a call of this tool can block this process. The schema of
 * an MCP server or of the run's caller cannot: it is checked in another thread.
 */
export function isSlowTool(known: ToolDefinition, pinned: PinnedAgent): boolean {
  if (known.mcp !== undefined || known.caller) return false;
  const tool = ifUnchanged(known, pinned.tools.get(known.name));
  if (tool?.kind !== undefined && tool.kind !== 'client') return false;
  if (tool?.describe !== undefined) return true;
  return mayBeSlow(tool?.input ?? toPinnedInput(known));
}
