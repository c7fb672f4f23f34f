import { isObject } from '../../../core/text/json.js';
import type { ModelRequest } from '../../model.js';
import { type WireApi, refuseNativeTools } from '../../wire/api.js';
import { readAttachments } from '../../wire/attachment-parts.js';
import { findUsage, parseUsage } from '../../wire/content.js';
import { getMaker, readStoredItems } from '../../wire/opaque-fields.js';
import {
  SCHEMA_FAULT,
  type SentParameter,
  escapePattern,
  formatParameter,
  namedParameter,
  settingParameter,
  toolChoice,
} from '../../wire/refusals.js';
import { MESSAGE_FIELDS } from './provider-fields.js';
import { acceptOddChunks, isFinalUsage, isWholeCompletion, readCompletion } from './reply.js';
import { type ChatRequest, alternateRoles, createChatRequest } from './request.js';
import { assembleCompletion } from './stream.js';

/**
 * Lists the parameters of a Chat Completions request that a server may refuse, in the order in
 * which an error is searched for them: settings last, because their names may be common words.
 */
export function listChatParameters(
  request: ModelRequest,
  body: ChatRequest,
): readonly SentParameter[] {
  const { tool_choice: choice, logprobs, stream, stream_options: options } = body;
  const settings = Object.keys(request.settings).filter(
    (name) => name in body && name !== 'maxOutputTokens',
  );
  return [
    ...roleOrder(body),
    ...systemRole(body),
    // This precedes the others, because many of them are refused only in combination with
    // streaming.
    ...(stream ? [namedParameter('stream', 'stream(?:ing)?')] : []),
    ...providerFields(body),
    ...unnamedResults(body),
    ...missingContent(body),
    ...responseFormat(body),
    ...(logprobs ? [namedParameter('logprobs', '(?:top_)?log_?probs')] : []),
    ...(choice ? [toolChoice(choice)] : []),
    ...outputLimit(request, body),
    ...(options ? [namedParameter('stream_options', 'stream_options')] : []),
    ...settings.map((name) => settingParameter(name)),
  ];
}

/**
 * Matches errors of chat templates about roles out of turn; if all others alternate, it is the
 * system's.
 */
const OUT_OF_TURN =
  /\b(?:must|should) alternate\b|unexpected role\W{1,3}user\W{1,3}after role|multiple\W{1,3}user\W{1,3}roles in a row/i;

/** The source of a pattern that matches nothing. */
const NOTHING = '(?!)';

function roleOrder({ messages }: ChatRequest): readonly SentParameter[] {
  const isAlternating = alternateRoles(messages).every((one, index) => one === messages[index]);
  if (isAlternating) return [];
  return [{ parameter: 'role_order:any', param: /^messages/, names: NOTHING, also: OUT_OF_TURN }];
}

function systemRole({ messages }: ChatRequest): readonly SentParameter[] {
  const role = messages[0]?.role;
  if (role !== 'system' && role !== 'developer') return [];
  const only = /only user\b.{0,40}\broles are supported/i.source;
  return [
    {
      parameter: `role:${role}`,
      param: /^messages(\[0\]|\.0)(\.role)?$/,
      names: `['"\`]${role}['"\`]|${role} (?:role|message|prompt|instruction)s?|role:? ${role}\\b`,
      also: new RegExp(`${only}|${OUT_OF_TURN.source}`, 'i'),
    },
  ];
}

/** The fields of messages and calls that perdure writes itself. */
const OWN_FIELDS = new Set([...MESSAGE_FIELDS, 'id', 'type', 'function']);

/**
 * Returns the fields that go back to the server that created them; other servers at the same
 * address may not know them. One that an error names is left out alone.
 */
function providerFields({ messages }: ChatRequest): readonly SentParameter[] {
  const assistants = messages.filter((one) => one.role === 'assistant');
  const fields = new Set(
    [...assistants, ...assistants.flatMap(({ tool_calls: calls = [] }) => calls)].flatMap((one) =>
      Object.keys(one).filter((key) => !OWN_FIELDS.has(key)),
    ),
  );
  const parts = assistants.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const types = new Set(parts.map(({ type }) => (typeof type === 'string' ? type : 'content')));
  if (fields.size === 0 && types.size === 0) return [];
  const names = 'thought_signature';
  const listed = [...types, 'content'].map(escapePattern).join('|');
  const content: SentParameter = {
    parameter: 'provider_items.content',
    param: /\bcontent\b/,
    names: listed,
  };
  return [
    ...(types.size > 0 ? [content] : []),
    ...[...fields].map((field): SentParameter => {
      const { param: _, ...own } = namedParameter(`provider_items.${field}`, escapePattern(field));
      return { ...own, param: new RegExp(`\\b${escapePattern(field)}\\b`) };
    }),
    { parameter: 'provider_items', param: /thought_signature/, names },
  ];
}

/** Returns the form of a message of calls without a text, which servers take differently. */
function missingContent({ messages }: ChatRequest): readonly SentParameter[] {
  const written = messages.find(
    (one) => one.role === 'assistant' && one.tool_calls !== undefined && !one.content,
  );
  if (written === undefined) return [];
  const form = !('content' in written) ? 'absent' : written.content === null ? 'null' : 'empty';
  const wrong =
    'null|<?nil>?|none|empty|non-?empty|blank|required|missing|must|should|string|invalid|expected';
  return [
    {
      parameter: `content:${form}`,
      param: /\bcontent\b/,
      names: '\\bcontent\\b',
      also: new RegExp(`\\bcontent\\b.{0,80}(?:${wrong})|(?:${wrong}).{0,60}\\bcontent\\b`, 'i'),
    },
  ];
}

/** Returns results without the names of their tools, which Gemini's own servers require. */
function unnamedResults({ messages }: ChatRequest): readonly SentParameter[] {
  if (!messages.some((one) => one.role === 'tool' && one.name === undefined)) return [];
  return [
    {
      parameter: 'tool_results:unnamed',
      param: /\bname$/,
      names: NOTHING,
      also: /function_?response\.?\w{0,10}name|\bname\b.{0,40}(?:cannot be empty|is required|required|missing).{0,60}|(?:missing|requires?).{0,40}\bname\b/i,
    },
  ];
}

function responseFormat({ response_format: format }: ChatRequest): readonly SentParameter[] {
  if (format === undefined) return [];
  const isStrict = format.type === 'json_schema' && format.json_schema.strict === true;
  const whole = formatParameter(format.type);
  if (!isStrict) return [whole];
  // A schema that only strict mode refuses is still better than none.
  const strict: SentParameter = {
    parameter: 'response_format:strict',
    param: /^response_format/,
    names: '\\bstrict\\b',
    also: SCHEMA_FAULT,
  };
  return [strict, whole];
}

/**
 * Returns the output limit. It is never dropped, only sent under its other name, because budgets
 * rely on it.
 */
function outputLimit(
  { settings, without = [] }: ModelRequest,
  body: ChatRequest,
): readonly SentParameter[] {
  if (settings.maxOutputTokens === undefined) return [];
  const names = ['max_completion_tokens', 'max_tokens'] as const;
  if (names.some((name) => without.includes(name))) return [];
  return names.filter((name) => name in body).map((name) => namedParameter(name, name));
}

/** Chat Completions, which nearly every server speaks. */
export const chatApi: WireApi = {
  path: '/chat/completions',
  propertyNames: undefined,
  async prepare(request, { capabilities, baseUrl }) {
    refuseNativeTools(request, "set api: 'responses' at its entry in `models` of the config");
    const from = getMaker({ baseUrl, model: request.model }, 'chat');
    const [data, stored] = await Promise.all([
      readAttachments(request, capabilities),
      readStoredItems(request, from),
    ]);
    return (attempt, { stream }) => {
      const replay = { from, stored };
      const body = createChatRequest(attempt, { stream, capabilities, data, replay });
      return { body, sent: () => listChatParameters(attempt, body) };
    };
  },
  isAnswer: (value) => isObject(value) && Array.isArray(value['choices']),
  isWhole: isWholeCompletion,
  isEnd: isFinalUsage,
  readUsage: (value) => (isObject(value) ? parseUsage(findUsage(value)) : undefined),
  read: readCompletion,
  assemble: (emit) => acceptOddChunks(assembleCompletion(emit)),
};
