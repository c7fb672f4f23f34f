import type { BlobStore } from '../blobs/blob-store.js';
import { sha256Hex } from '../core/digest.js';
import { canonicalJson, type JsonObject } from '../core/json.js';
import type { AskedCall, CallProblem } from '../core/messages.js';
import type { RecordedReply, ReplyUsage } from '../core/reply.js';
import { estimateUsage } from '../models/estimate.js';
import type { ModelReply, ModelRequest } from '../models/model.js';
import { parseArguments, unknownTool } from '../tools/arguments.js';
import { checkArguments } from '../tools/check-arguments.js';
import { fitText } from '../tools/cut.js';
import { describeCall } from '../tools/describe-call.js';
import type { PinnedAgent } from './definitions.js';
import { pinnedInput } from './pinned-input.js';

/** Arguments above this size go to the blob store; the model sees a stand-in. */
const INLINE_ARGUMENT_BYTES = 64 * 1024;
/** All inline arguments of one message together: nothing over 256 KiB ever enters the history. */
const INLINE_MESSAGE_BYTES = 128 * 1024;
/** More calls in one message than any provider permits are a fault of the reply. */
const MAX_CALLS = 128;

/**
 * A model's reply as the history keeps it: calls checked and digested, what is too large by
 * reference, usage estimated where the provider was silent. User functions (refinements,
 * descriptions) run here, beside the reply, and cannot cost it.
 */
export async function recordReply(
  reply: ModelReply,
  from: { request: ModelRequest; pinned: PinnedAgent; blobs: BlobStore },
): Promise<RecordedReply> {
  const fitted = await fitText(reply.text, from.blobs);
  const calls: AskedCall[] = [];
  let inline = 0;
  for (const asked of reply.calls.slice(0, MAX_CALLS)) {
    const call = await recordCall(asked, { ...from, room: INLINE_MESSAGE_BYTES - inline });
    inline += Buffer.byteLength(call.arguments);
    calls.push(call);
  }
  const { requestId } = reply;
  return {
    text: fitted.text,
    ...(fitted.blob && { blob: fitted.blob }),
    ...(calls.length > 0 && { calls }),
    finish: reply.finish,
    usage: usageOf(reply, from.request),
    ...(requestId !== undefined && { requestId }),
  };
}

async function recordCall(
  asked: { readonly name: string; readonly arguments: string },
  from: { pinned: PinnedAgent; blobs: BlobStore; room: number },
): Promise<AskedCall> {
  const name = asked.name.slice(0, 200);
  const parsed = parseArguments(asked.arguments);
  if (!parsed.ok) {
    // What is no JSON would be refused by servers that read it back; so it travels as a text.
    const kept = JSON.stringify({ unreadable: asked.arguments.slice(0, 2_000) });
    return { name, arguments: kept, digest: sha256Hex(asked.arguments), problem: parsed.problem };
  }
  const canonical = canonicalJson(parsed.value);
  const digest = sha256Hex(canonical);
  const large = Buffer.byteLength(canonical) > Math.min(INLINE_ARGUMENT_BYTES, from.room);
  const blob = large ? await from.blobs.put(canonical) : undefined;
  const checked = await checkCall(name, parsed.value, from.pinned);
  return {
    name,
    arguments: blob
      ? JSON.stringify({ omitted: `${blob.bytes} bytes, kept as ${blob.sha256}` })
      : canonical,
    digest,
    ...(blob && { blob }),
    ...checked,
  };
}

/** Judged by what the model was told: the pinned definition, whatever this worker has by now. */
async function checkCall(
  name: string,
  value: JsonObject,
  pinned: PinnedAgent,
): Promise<{ readonly problem?: CallProblem; readonly summary?: string }> {
  const { definition, tools, current } = pinned;
  const known = definition.tools.find((tool) => tool.name === name);
  if (known === undefined) {
    return {
      problem: unknownTool(
        name,
        definition.tools.map((tool) => tool.name),
      ),
    };
  }
  const tool = current ? tools.get(name) : undefined;
  const checked = await checkArguments(tool ?? { name, input: pinnedInput(known) }, value);
  if (!checked.ok) return { problem: checked.problem };
  const summary = tool && (await describeCall(tool, checked.value));
  return summary === undefined ? {} : { summary };
}

function usageOf(reply: ModelReply, request: ModelRequest): ReplyUsage {
  if (reply.usage === undefined) return { ...estimateUsage(request, reply), estimated: true };
  const { inputTokens, outputTokens, cachedTokens } = reply.usage;
  return { inputTokens, outputTokens, cachedTokens };
}
