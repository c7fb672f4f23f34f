import { isObject } from '../../core/text/json.js';
import type { FinishReason, ModelReply, ModelUsage } from '../model.js';
import { type ReplySource, type WireApi, refuseNativeTools } from '../wire/api.js';
import { readAttachments } from '../wire/attachment-parts.js';
import { parseUsage, toArgumentsText, toCount, toText } from '../wire/content.js';
import { emptyReply, getRequestId, missingMessage, unusableAnswer } from '../wire/errors.js';
import { getMaker, readStoredItems } from '../wire/opaque-fields.js';
import {
  SCHEMA_FAULT,
  type SentParameter,
  escapePattern,
  settingParameter,
} from '../wire/refusals.js';
import { extractOpaqueBlocks } from './assistant.js';
import { type MessagesRequest, createMessagesRequest } from './request.js';
import { assembleMessage } from './stream.js';

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
    throw emptyReply(source, value);
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
function parseAnthropicUsage(value: unknown): ModelUsage | undefined {
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

/** Anthropic's Messages API. */
export const anthropicApi: WireApi = {
  path: '/messages',
  propertyNames: /^[a-zA-Z0-9_.-]{1,64}$/,
  async prepare(request, { capabilities, baseUrl }) {
    refuseNativeTools(request, 'perdure does not support provider tools for Anthropic models');
    const from = getMaker({ baseUrl, model: request.model }, 'anthropic');
    const also = request.messages.flatMap((message) =>
      message.role === 'tool' ? (message.attachments ?? []) : [],
    );
    const [data, stored] = await Promise.all([
      readAttachments(request, capabilities, { also }),
      readStoredItems(request, from),
    ]);
    return (attempt, { stream }) => {
      const replay = { from, stored };
      const body = createMessagesRequest(attempt, { stream, capabilities, data, replay });
      return { body, sent: () => listParameters(body) };
    };
  },
  isAnswer: (value) => isObject(value) && Array.isArray(value['content']),
  isWhole: (event) => isObject(event) && Array.isArray(event['content']),
  isEnd: (event) => isObject(event) && event['type'] === 'message_stop',
  readUsage: (value) => (isObject(value) ? parseAnthropicUsage(value['usage']) : undefined),
  read: (value, source) => parseMessage(toMessage(value), source),
  assemble: (emit) => assembleMessage(emit),
};

/** Returns a message in Anthropic's form: some servers wrap it, or send its content as a text. */
function toMessage(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { content, message } = value;
  if (content === undefined && isObject(message)) return toMessage(message);
  return typeof content === 'string'
    ? { ...value, content: [{ type: 'text', text: content }] }
    : value;
}

/** The fields that every request has or that a call requires. */
const NEEDED = new Set(['model', 'max_tokens', 'system', 'messages', 'tools', 'stream']);

/** Matches nothing: errors have no separate field for a parameter, so only their text counts. */
const NO_PARAM = /^$/;

/** Returns the parameters of a request that a model may refuse. */
function listParameters(body: MessagesRequest): readonly SentParameter[] {
  const settings = Object.keys(body)
    .filter((name) => !NEEDED.has(name) && name !== 'tool_choice' && name !== 'output_config')
    .map((name): SentParameter => ({
      ...settingParameter(name),
      ...(name === 'thinking' && { also: REFUSED_THINKING }),
    }));
  const opaque = new Set(
    body.messages.flatMap(({ content }) => content.map(({ type }): string => type)),
  );
  for (const type of WRITTEN) opaque.delete(type);
  const isCached = JSON.stringify(body.system ?? body.messages).includes('"cache_control"');
  return [
    ...(body.output_config?.format ? [FORMAT] : []),
    ...(body.tool_choice?.type === 'any' ? [FORCED_TOOLS] : []),
    ...(opaque.size > 0 ? [createOpaqueBlocks([...opaque])] : []),
    ...(isCached ? [CACHE_CONTROL] : []),
    ...settings,
  ];
}

/** Matches the API's refusals of the setting `thinking`, which name one of its fields. */
const REFUSED_THINKING = /\bthinking\.(?:type|budget_tokens|enabled|adaptive)\b/i;

const FORMAT: SentParameter = {
  parameter: 'response_format:json_schema',
  param: NO_PARAM,
  names: '\\boutput_config\\b|\\bstructured outputs?\\b',
  also: new RegExp(`output_config\\.format|compiled grammar|${SCHEMA_FAULT.source}`, 'i'),
};

const FORCED_TOOLS: SentParameter = {
  parameter: 'tool_choice:required',
  param: NO_PARAM,
  names: '\\btool_choice\\b|\\bforced tool use\\b',
  also: /tool_choice forces tool use/i,
};

const CACHE_CONTROL: SentParameter = {
  parameter: 'cache_control',
  param: NO_PARAM,
  names: '\\bcache_control\\b',
};

/** The types of the blocks that perdure writes itself. */
const WRITTEN = ['text', 'image', 'document', 'tool_use', 'tool_result'];

/** Describes the blocks that go back as the provider made them. */
function createOpaqueBlocks(types: readonly string[]): SentParameter {
  const names = types.map((type) => `\\b${escapePattern(type)}\\b`);
  return {
    parameter: 'provider_items',
    param: NO_PARAM,
    names: ['\\b(?:redacted_)?thinking\\W{0,2} blocks?\\b', ...names.filter(isNamed)].join('|'),
    also: /\bsignature\b.{0,60}\bthinking\b|thinking\W{1,2} blocks?.{0,80}(?:cannot be modified|must remain|does not match|different)/i,
  };
}

/** Whether a name means blocks of a type, and not the setting `thinking`. */
function isNamed(name: string): boolean {
  return !name.includes('bthinking');
}
