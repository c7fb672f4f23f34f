import { type BlobStore, BlobError } from '../../storage/blob-store.js';
import { callableTools } from '../../core/catalog/catalog.js';
import type { Json } from '../../core/json.js';
import type { AskedCall, ProviderItems, SafetyCheck } from '../../core/transcript/messages.js';
import type { ParsedAnswer, RecordedReply, ReplyUsage } from '../../core/reply.js';
import { callsInContent } from '../../models/openai/calls-in-content.js';
import { estimateUsage } from '../../models/estimate.js';
import type { ModelReply, ModelRequest, ReplyCall } from '../../models/model.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import { judgeAnswer } from './answer.js';
import { readClass } from './classification.js';
import type { CallModelInput } from '../../core/contract.js';
import type { PinnedAgent } from '../definitions.js';
import { keepText } from '../offload-text.js';
import { readCall, type ReadCall } from './read-call.js';
import { readDecision } from './schema-decision.js';
import { CHECK_GIVEN_UP, hasSlowParser } from './slow-check.js';
import { setTimeout as pause } from 'node:timers/promises';
import { wellFormed } from '../../tools/utf8.js';

/** Arguments above this size go to the blob store; the model sees a stand-in. */
const INLINE_ARGUMENT_BYTES = 64 * 1024;
/** All inline arguments of one message together: nothing over 256 KiB ever enters the history. */
const INLINE_MESSAGE_BYTES = 128 * 1024;
/** More calls in one message than any provider permits are a fault of the reply. */
const MAX_CALLS = 128;

/** What problems say to the model, all calls of a message together. */
const PROBLEM_CHARACTERS = 24_000;

interface From {
  readonly request: ModelRequest;
  readonly pinned: PinnedAgent;
  readonly blobs: BlobStore;
  readonly input: CallModelInput;
  /** The run's context, for the functions of its author. */
  readonly userContext: Json;
  /** Code that may block was tried often enough: what it would have checked counts as not checkable. */
  readonly givenUp: boolean;
}

/**
 * A model's reply as the history keeps it: calls checked and digested, what is too large by
 * reference, usage estimated where the provider was silent. User functions (refinements,
 * descriptions) run here, beside the reply, all calls at once, and cannot cost it.
 */
export async function recordReply(given: ModelReply, from: From): Promise<RecordedReply> {
  const decision = decided(given, from);
  const answer = decision.parsed ?? (await judged(decision.reply, from));
  // What keeps to the agent's contract is its answer, whatever else it looks like.
  const isAnswer = decision.parsed !== undefined || answer?.ok === true;
  const written = isAnswer ? null : await writtenCalls(decision.reply, from);
  const reply = written === null ? decision.reply : { ...decision.reply, ...CALLS_ONLY };
  const parsed = written === null ? answer : undefined;
  const read = written ?? (await readCalls(reply.calls, from));
  const left = reply.calls.length - read.length;
  const note = left > 0 ? `\n[${left} further calls of this message were dropped]` : '';
  const [fitted, calls, provider] = await Promise.all([
    keepText(reply.text + note, from.blobs),
    recordCalls(read, from),
    // What stands for something else is not what the provider said.
    reply === given && from.input.compact === undefined ? keepItems(given, from.blobs) : undefined,
  ]);
  const { requestId, dropped = [] } = reply;
  return {
    text: fitted.text,
    ...(fitted.blob && { blob: fitted.blob }),
    ...(calls.length > 0 && { calls }),
    ...(provider && { provider }),
    ...(parsed && { parsed }),
    finish: reply.finish,
    usage: usageOf(given, from.request),
    ...(dropped.length > 0 && { dropped }),
    ...(requestId !== undefined && { requestId: requestId.slice(0, 200) }),
  };
}

/** Where a reply stands for something else, a decision in JSON or a class, that. */
function decided(
  reply: ModelReply,
  { pinned: { definition }, input }: From,
): { readonly reply: ModelReply; readonly parsed?: ParsedAnswer } {
  const { output, decide } = definition;
  if (input.compact !== undefined) return { reply };
  if (output?.type === 'classes') return readClass(reply, output);
  return decide === 'schema' ? readDecision(reply, definition) : { reply };
}

/** Only what would end the turn is an answer; user code runs here, bounded, and cannot cost it. */
async function judged(
  { text, calls, finish }: ModelReply,
  { pinned, input, userContext, givenUp }: From,
): Promise<ParsedAnswer | undefined> {
  if (finish !== 'stop' || calls.length > 0 || input.compact !== undefined) return undefined;
  if (givenUp && hasSlowParser(pinned)) {
    return { ok: false, problem: `The answer could not be checked: ${CHECK_GIVEN_UP}.` };
  }
  return await judgeAnswer(pinned, text, userContext);
}

/** What is left of a reply whose text was calls: else a model would read them twice. */
const CALLS_ONLY = { text: '', calls: [], finish: 'calls' } as const;

/**
 * The calls that a model wrote as its answer in place of asking for them, as some small ones do. Only
 * where native calls are how it decides, all of the text is calls, and each of them fits its tool.
 */
async function writtenCalls(
  { text, calls, finish }: ModelReply,
  { pinned, input, givenUp }: From,
): Promise<readonly ReadCall[] | null> {
  const { definition } = pinned;
  const mayCall = definition.decide === undefined && definition.toolChoice !== 'none';
  const isTurn = input.compact === undefined && input.closing === undefined;
  if (!mayCall || !isTurn || finish !== 'stop' || calls.length > 0) return null;
  const asked = callsInContent(text, callableTools(definition));
  if (asked.length === 0 || asked.length > MAX_CALLS) return null;
  const read = await Promise.all(asked.map((call) => readCall(call, pinned, { givenUp })));
  return read.every(({ problem }) => problem === undefined) ? read : null;
}

async function readCalls(
  asked: ModelReply['calls'],
  { pinned, givenUp }: From,
): Promise<readonly ReadCall[]> {
  return await Promise.all(
    asked.slice(0, MAX_CALLS).map(async (call) => ({
      ...(await readCall(call, pinned, { givenUp })),
      ...keptSafety(call),
    })),
  );
}

async function recordCalls(
  checked: readonly ReadCall[],
  from: From,
): Promise<readonly AskedCall[]> {
  const calls: AskedCall[] = [];
  let inline = INLINE_MESSAGE_BYTES;
  let said = PROBLEM_CHARACTERS;
  for (const { canonical, ...call } of checked) {
    const problem = call.problem && {
      ...call.problem,
      message: call.problem.message.slice(0, Math.max(said, 120)),
    };
    said -= problem?.message.length ?? 0;
    const kept = await keepArguments(canonical, { room: inline, blobs: from.blobs });
    inline -= Buffer.byteLength(kept.arguments);
    calls.push({ ...call, ...(problem && { problem }), ...kept });
  }
  return calls;
}

/** Arguments that are too large go to the store; where it fails, the call cannot be made. */
async function keepArguments(
  canonical: string,
  { room, blobs }: { room: number; blobs: BlobStore },
): Promise<Pick<AskedCall, 'arguments' | 'blob' | 'problem'>> {
  const bytes = Buffer.byteLength(canonical);
  if (bytes <= Math.min(INLINE_ARGUMENT_BYTES, room)) return { arguments: canonical };
  try {
    const blob = await blobs.put(canonical);
    const standIn = JSON.stringify({ omitted: `${blob.bytes} bytes, kept as ${blob.sha256}` });
    return { arguments: standIn, blob };
  } catch (error) {
    const message = `not executed: its ${bytes} bytes of arguments could not be kept: ${normalizeError(error).message}`;
    const standIn = JSON.stringify({ omitted: `${bytes} bytes` });
    return { arguments: standIn, problem: { type: 'truncated', message } };
  }
}

/** A custom model may count what it likes; only whole numbers are taken for counts. */
function usageOf(reply: ModelReply, request: ModelRequest): ReplyUsage {
  const { usage } = reply;
  const counts = usage && [usage.inputTokens, usage.outputTokens, usage.cachedTokens];
  if (!counts?.every((count) => Number.isInteger(count) && count >= 0)) {
    return { ...estimateUsage(request, reply), estimated: true };
  }
  const [inputTokens = 0, outputTokens = 0, cachedTokens = 0] = counts;
  const reasoningTokens = usage?.reasoningTokens ?? 0;
  const reasoned = Number.isInteger(reasoningTokens) && reasoningTokens > 0;
  return { inputTokens, outputTokens, cachedTokens, ...(reasoned && { reasoningTokens }) };
}

/** More goes to the blob store: nothing over 256 KiB enters the history with the rest of a reply. */
const INLINE_BYTES = 32 * 1024;
/** No honest reply has as much; it would be sent again with every request. */
const MOST_BYTES = 8 * 1024 * 1024;
/** Waits before the store is asked again, in milliseconds. */
const AGAIN_MS = [100, 500, 1_500];

/**
 * What the provider wants back with a reply, as the history keeps it. The reply has been paid for: what
 * cannot be kept is left out, and later requests are made without it.
 */
async function keepItems(
  { provider }: ModelReply,
  blobs: BlobStore,
): Promise<ProviderItems | undefined> {
  if (provider === undefined || provider.items.length === 0) return undefined;
  const { from, items } = provider;
  const json = JSON.stringify(items);
  const bytes = Buffer.byteLength(json);
  if (bytes <= INLINE_BYTES) return { from, items };
  if (bytes > MOST_BYTES) return undefined;
  for (const waitMs of [0, ...AGAIN_MS]) {
    if (waitMs > 0) await pause(waitMs);
    try {
      return { from, blob: await blobs.put(json) };
    } catch (error) {
      if (!(error instanceof BlobError)) throw error;
    }
  }
  return undefined;
}

/** Of one call; the provider gets its own words back whole, these are for people. */
const MOST = 10;
const WORD_CHARACTERS = 200;
const MESSAGE_CHARACTERS = 600;

/** A provider's doubts as the history keeps them. They are never dropped: a call with doubts stays one. */
function keptSafety({ safety = [] }: ReplyCall): { safety?: readonly SafetyCheck[] } {
  if (safety.length === 0) return {};
  const shown = safety.slice(0, MOST).map(({ id, code, message }) => ({
    id: cut(id, WORD_CHARACTERS),
    ...(code !== undefined && { code: cut(code, WORD_CHARACTERS) }),
    ...(message !== undefined && { message: cut(message, MESSAGE_CHARACTERS) }),
  }));
  const left = safety.length - shown.length;
  const more = { id: 'more', message: `and ${left} further checks` };
  return { safety: left > 0 ? [...shown, more] : shown };
}

function cut(text: string, characters: number): string {
  return text.length <= characters ? wellFormed(text) : `${wellFormed(text.slice(0, characters))}…`;
}
