import type { BlobStore } from '../blobs/blob-store.js';
import { sha256Hex } from '../core/digest.js';
import { canonicalJson, type JsonObject } from '../core/json.js';
import type { AskedCall, CallProblem } from '../core/messages.js';
import type { ParsedAnswer, RecordedReply, ReplyUsage } from '../core/reply.js';
import { estimateUsage } from '../models/estimate.js';
import type { ModelReply, ModelRequest } from '../models/model.js';
import { parseArguments, unknownTool } from '../tools/arguments.js';
import { checkArguments } from '../tools/check-arguments.js';
import { describeCall } from '../tools/describe-call.js';
import { normaliseError } from '../tools/normalise-error.js';
import { wellFormed } from '../tools/utf8.js';
import { judgeAnswer } from './answer.js';
import { readClass } from './classification.js';
import type { CallModelInput } from './contract.js';
import type { PinnedAgent } from './definitions.js';
import { keepText } from './kept-text.js';
import { pinnedInput, unchanged } from './pinned-input.js';
import { runContext } from './run-context.js';
import { readDecision } from './schema-decision.js';

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
}

/**
 * A model's reply as the history keeps it: calls checked and digested, what is too large by
 * reference, usage estimated where the provider was silent. User functions (refinements,
 * descriptions) run here, beside the reply, all calls at once, and cannot cost it.
 */
export async function recordReply(given: ModelReply, from: From): Promise<RecordedReply> {
  const { reply, parsed: read } = decided(given, from);
  const asked = reply.calls.slice(0, MAX_CALLS);
  const left = reply.calls.length - asked.length;
  const note = left === 0 ? '' : `\n[${left} further calls of this message were dropped]`;
  const [fitted, calls, parsed] = await Promise.all([
    keepText(reply.text + note, from.blobs),
    recordCalls(asked, from),
    read ?? judged(reply, from),
  ]);
  const { requestId, dropped = [] } = reply;
  return {
    text: fitted.text,
    ...(fitted.blob && { blob: fitted.blob }),
    ...(calls.length > 0 && { calls }),
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
  { pinned, input, blobs }: From,
): Promise<ParsedAnswer | undefined> {
  if (finish !== 'stop' || calls.length > 0 || input.compact !== undefined) return undefined;
  return await judgeAnswer(pinned, text, await runContext(input, blobs).catch(() => null));
}

async function recordCalls(asked: ModelReply['calls'], from: From): Promise<readonly AskedCall[]> {
  const checked = await Promise.all(asked.map((call) => readCall(call, from.pinned)));
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

type ReadCall = Omit<AskedCall, 'arguments'> & { readonly canonical: string };

async function readCall(
  asked: ModelReply['calls'][number],
  pinned: PinnedAgent,
): Promise<ReadCall> {
  // A name that no provider would take back must not spoil every later request.
  const name = asked.name.replaceAll(/[^\w-]/g, '_').slice(0, 64) || '_';
  const parsed = parseArguments(asked.arguments);
  if (!parsed.ok) {
    // What is no JSON would be refused by servers that read it back; so it travels as a text.
    const canonical = JSON.stringify({ unreadable: wellFormed(asked.arguments.slice(0, 2_000)) });
    return {
      name,
      canonical,
      digest: sha256Hex(wellFormed(asked.arguments)),
      problem: parsed.problem,
    };
  }
  const canonical = canonicalJson(parsed.value);
  const checked = await checkCall(asked.name, parsed.value, pinned);
  return { name, canonical, digest: sha256Hex(canonical), ...checked };
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
    const message = `not executed: its ${bytes} bytes of arguments could not be kept: ${normaliseError(error).message}`;
    const standIn = JSON.stringify({ omitted: `${bytes} bytes` });
    return { arguments: standIn, problem: { type: 'truncated', message } };
  }
}

/** Judged by what the model was told: the pinned definition, whatever this worker has by now. */
async function checkCall(
  name: string,
  value: JsonObject,
  { definition, tools }: PinnedAgent,
): Promise<{ readonly problem?: CallProblem; readonly summary?: string }> {
  const known = definition.tools.find((tool) => tool.name === name);
  if (known === undefined) {
    return {
      problem: unknownTool(
        name,
        definition.tools.map((tool) => tool.name),
      ),
    };
  }
  const tool = unchanged(known, tools.get(name));
  const checked = await checkArguments(tool ?? { name, input: pinnedInput(known) }, value);
  if (!checked.ok) return { problem: checked.problem };
  const summary = tool && (await describeCall(tool, checked.value));
  return summary === undefined ? {} : { summary };
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
