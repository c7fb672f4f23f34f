import type { ModelRequest } from '../../model.js';
import {
  namedParameter,
  SCHEMA_FAULT,
  settingParameter,
  type SentParameter,
} from '../../wire/refusals.js';
import { alternateRoles } from './alternate-roles.js';
import type { ChatRequest } from './request.js';

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
    ...responseFormat(body),
    ...(logprobs ? [namedParameter('logprobs', '(?:top_)?log_?probs')] : []),
    ...(choice ? [namedParameter(`tool_choice:${choice}`, 'tool_?choice')] : []),
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

/**
 * Returns the fields that go back to the server that created them; other servers at the same
 * address may not know them.
 */
function providerFields({ messages }: ChatRequest): readonly SentParameter[] {
  const hasFields = messages.some(
    (one) =>
      one.role === 'assistant' &&
      (one.reasoning_content !== undefined ||
        one.tool_calls?.some((call) => call.extra_content !== undefined)),
  );
  if (!hasFields) return [];
  const names = 'reasoning_content|extra_content|thought_signature';
  return [{ parameter: 'provider_items', param: new RegExp(names), names }];
}

function responseFormat({ response_format: format }: ChatRequest): readonly SentParameter[] {
  if (format === undefined) return [];
  const isStrict = format.type === 'json_schema' && format.json_schema.strict === true;
  const whole: SentParameter = {
    parameter: `response_format:${format.type}`,
    param: /^response_format/,
    names: 'response[_ ]?formats?|json_schema|json_object|json mode|structured outputs?',
    also:
      format.type === 'json_object'
        ? /response_format\.type\W{1,3}must be|contain the word\W{1,3}json/i
        : new RegExp(`response_format\\.type\\W{1,3}must be|${SCHEMA_FAULT.source}`, 'i'),
  };
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
