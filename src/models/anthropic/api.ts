import { isObject } from '../../core/json.js';
import type { WireApi } from '../wire/api.js';
import { readAttachments } from '../wire/attachment-parts.js';
import { refuseNativeTools } from '../wire/native-tools.js';
import type { SentParameter } from '../wire/refusals.js';
import { escapePattern, SCHEMA_FAULT, settingParameter } from '../wire/refusals.js';
import { getMaker, readStoredItems } from '../wire/replayed-items.js';
import { parseAnthropicUsage, parseMessage } from './reply.js';
import { createMessagesRequest, type MessagesRequest } from './request.js';
import { assembleMessage } from './stream.js';

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
