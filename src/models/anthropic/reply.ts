import { isObject } from '../../core/json.js';
import type { FinishReason, ModelReply, ModelUsage } from '../model.js';
import type { ReplySource } from '../wire/api.js';
import { parseUsage, toCount } from '../wire/usage.js';
import { toArgumentsText, toText } from '../wire/content.js';
import { getRequestId, missingMessage, unusableAnswer } from '../wire/errors.js';
import { getMaker } from '../wire/replayed-items.js';
import { extractOpaqueBlocks } from './assistant.js';

/**
 * Reads a message as the model's reply; `value` may be any JSON. Throws only a `ModelError`: a
 * value that is no message is of kind `retry`, a message without text or calls is `empty`.
 *
 * The calls of a refused reply are dropped, so they are never executed.
 */
export function parseMessage(value: unknown, source: ReplySource): ModelReply {
  if (!isObject(value) || !Array.isArray(value['content'])) {
    throw missingMessage(source, value, {
      isPaid: isObject(value) && (value['type'] === 'message' || isObject(value['usage'])),
      type: 'no_message',
    });
  }
  const content: readonly unknown[] = value['content'];
  const { stop_reason: reason, stop_details: details } = value;
  const usage = parseAnthropicUsage(value['usage']);
  const requestId = getRequestId(source.headers);
  const optional = {
    ...(usage !== undefined && { usage }),
    ...(requestId !== undefined && { requestId }),
  };
  const text = content.map((block) => readText(block)).join('');
  if (reason === 'refusal') {
    const shown = text === '' && isObject(details) ? toText(details['explanation']) : text;
    return { text: shown, calls: [], finish: 'refused', ...optional };
  }
  const calls = parseCalls(content, source);
  const finish = toFinish(reason, calls.length > 0);
  if (finish === 'stop' && text === '') {
    throw unusableAnswer(source, {
      kind: 'empty',
      type: 'empty_reply',
      what: 'answered with neither text nor calls',
      text: JSON.stringify(value),
    });
  }
  const provider = extractOpaqueBlocks(content, getMaker(source.place, 'anthropic'));
  return { text, calls, finish, ...(provider && { provider }), ...optional };
}

function readText(block: unknown): string {
  return isObject(block) && block['type'] === 'text' ? toText(block['text']) : '';
}

function parseCalls(content: readonly unknown[], source: ReplySource): ModelReply['calls'] {
  return content
    .filter(isObject)
    .filter(({ type }) => type === 'tool_use')
    .map(({ name, input }) => {
      if (typeof name === 'string' && name !== '') {
        return { name, arguments: toArgumentsText(input) };
      }
      throw unusableAnswer(source, {
        kind: 'malformed',
        type: 'bad_call',
        what: 'requested a call without a name',
        text: toArgumentsText(input),
      });
    });
}

/**
 * `pause_turn` is only sent with tools of the provider, which are never requested; its reply is
 * incomplete, like one at a limit. For unknown reasons, the content of the reply decides.
 */
function toFinish(reason: unknown, hasCalls: boolean): FinishReason {
  switch (reason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
    case 'pause_turn':
      return 'length';
    default:
      return hasCalls ? 'calls' : 'stop';
  }
}

/**
 * Reads the usage of a message; returns undefined if it is missing or not in whole numbers.
 * Anthropic counts tokens read from its cache, or written to it, separately from `input_tokens`;
 * here they are part of the input. Some servers of this API use OpenAI's names.
 */
export function parseAnthropicUsage(value: unknown): ModelUsage | undefined {
  if (!isObject(value)) return undefined;
  const fresh = toCount(value['input_tokens']);
  const outputTokens = toCount(value['output_tokens']);
  if (fresh === undefined || outputTokens === undefined) return parseUsage(value);
  const cachedTokens = toCount(value['cache_read_input_tokens']) ?? 0;
  const written = toCount(value['cache_creation_input_tokens']) ?? 0;
  const { output_tokens_details: details } = value;
  const thinking = isObject(details) ? toCount(details['thinking_tokens']) : undefined;
  return {
    inputTokens: fresh + cachedTokens + written,
    outputTokens,
    cachedTokens,
    ...(written > 0 && { cacheWriteTokens: written }),
    ...(thinking !== undefined && { reasoningTokens: Math.min(thinking, outputTokens) }),
  };
}
