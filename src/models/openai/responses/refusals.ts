import { isObject } from '../../../core/json.js';
import type { ModelRequest } from '../../model.js';
import {
  namedParameter,
  SCHEMA_FAULT,
  settingParameter,
  toolChoice,
  type SentParameter,
} from '../../wire/refusals.js';
import type { ResponsesRequest } from './request.js';

/**
 * Lists the parameters of a Responses request that a server may refuse, in the order of the search.
 */
export function listResponsesParameters(
  request: ModelRequest,
  body: ResponsesRequest,
): readonly SentParameter[] {
  const { tool_choice: choice, include, store, stream, top_logprobs: logprobs } = body;
  const settings = Object.keys(request.settings).filter(
    (name) => !['maxOutputTokens', 'nativeTools', 'include'].includes(name),
  );
  const isEncrypted = include?.includes('reasoning.encrypted_content') ?? false;
  const encrypted: SentParameter = {
    ...namedParameter('include', 'include'),
    names: '\\binclude\\b|encrypted content',
  };
  return [
    ...(stream ? [namedParameter('stream', 'stream(?:ing)?')] : []),
    ...(isEncrypted ? [encrypted] : []),
    ...providerItems(request),
    ...responseFormat(body),
    ...(logprobs === undefined ? [] : [namedParameter('logprobs', '(?:top_)?log_?probs')]),
    ...(choice ? [toolChoice(choice)] : []),
    ...(body.tools?.some(({ strict }) => strict !== undefined) ? [STRICT_TOOLS] : []),
    ...(store === false ? [namedParameter('store', 'store')] : []),
    ...settings.map((name): SentParameter => ({ ...settingParameter(name), ...OWN_NAMES[name] })),
  ];
}

const STRICT_TOOLS: SentParameter = {
  parameter: 'tools:strict',
  param: /^tools\b.*\bstrict$/,
  names: '\\bstrict\\b',
};

/** Settings that this API calls by another name. */
const OWN_NAMES: Readonly<Record<string, { param: RegExp; names: string }>> = {
  reasoning_effort: { param: /^reasoning(\.effort)?$/, names: 'reasoning[._]effort' },
  verbosity: { param: /^text\.verbosity$/, names: '\\bverbosity\\b' },
};

/**
 * Returns replayed items, which are refused, for example, after the key's organization has changed.
 */
function providerItems({ messages }: ModelRequest): readonly SentParameter[] {
  const hasItems = messages.some((one) => one.role === 'assistant' && one.provider !== undefined);
  if (!hasItems) return [];
  return [
    {
      parameter: 'provider_items',
      param: /^input(\[\d+\]|\.\d+)?/,
      names: 'reasoning items?|encrypted[_ ]content',
      also: /encrypted content.{0,80}(could not be|cannot be|not be) (verified|decrypted|parsed)|item '?rs_\w+'?.{0,60}(not found|was provided without)|invalid_encrypted_content/i,
    },
  ];
}

function responseFormat({ text }: ResponsesRequest): readonly SentParameter[] {
  const format = text?.['format'];
  if (!isObject(format)) return [];
  const type = format['type'] === 'json_object' ? 'json_object' : 'json_schema';
  const param = /^text(\.format)?/;
  const whole: SentParameter = {
    parameter: `response_format:${type}`,
    param,
    names:
      'text\\.format|response[_ ]?formats?|json_schema|json_object|json mode|structured outputs?',
    also: type === 'json_object' ? /contain the word\W{1,3}json/i : SCHEMA_FAULT,
  };
  if (format['strict'] !== true) return [whole];
  const strict: SentParameter = {
    parameter: 'response_format:strict',
    param,
    names: '\\bstrict\\b',
    also: SCHEMA_FAULT,
  };
  return [strict, whole];
}
