import { isObject } from '../../../core/json.js';
import type { ModelRequest } from '../../model.js';
import { named, SCHEMA_FAULT, setting, type Sent } from '../refusals.js';
import type { ResponsesRequest } from './request.js';

function sentFormat({ text }: ResponsesRequest): readonly Sent[] {
  const format = text?.['format'];
  if (!isObject(format)) return [];
  const type = format['type'] === 'json_object' ? 'json_object' : 'json_schema';
  const param = /^text(\.format)?/;
  const whole: Sent = {
    parameter: `response_format:${type}`,
    param,
    names:
      'text\\.format|response[_ ]?formats?|json_schema|json_object|json mode|structured outputs?',
    also: type === 'json_object' ? /contain the word\W{1,3}json/i : SCHEMA_FAULT,
  };
  if (format['strict'] !== true) return [whole];
  const strict: Sent = {
    parameter: 'response_format:strict',
    param,
    names: '\\bstrict\\b',
    also: SCHEMA_FAULT,
  };
  return [strict, whole];
}

/** What only replays what the model thought; refused where the key's organisation has changed, say. */
function sentItems({ messages }: ModelRequest): readonly Sent[] {
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

/** What this API calls otherwise. */
const OWN_NAMES: Readonly<Record<string, { param: RegExp; names: string }>> = {
  reasoning_effort: { param: /^reasoning(\.effort)?$/, names: 'reasoning[._]effort' },
  verbosity: { param: /^text\.verbosity$/, names: '\\bverbosity\\b' },
};

/** What of a request to the Responses API a server may refuse, in the order in which it is looked for. */
export function sentInResponses(request: ModelRequest, wire: ResponsesRequest): readonly Sent[] {
  const { tool_choice: choice, include, store, stream, top_logprobs: logprobs } = wire;
  const settings = Object.keys(request.settings).filter(
    (name) => !['maxOutputTokens', 'nativeTools', 'include'].includes(name),
  );
  const encrypted = include?.includes('reasoning.encrypted_content') ?? false;
  return [
    ...(stream ? [named('stream', 'stream(?:ing)?')] : []),
    ...(encrypted
      ? [
          {
            ...named('include', 'include'),
            names: '\\binclude\\b|encrypted content',
          } satisfies Sent,
        ]
      : []),
    ...sentItems(request),
    ...sentFormat(wire),
    ...(logprobs === undefined ? [] : [named('logprobs', '(?:top_)?log_?probs')]),
    ...(choice ? [named(`tool_choice:${choice}`, 'tool_?choice')] : []),
    ...(store === false ? [named('store', 'store')] : []),
    ...settings.map((name): Sent => ({ ...setting(name), ...OWN_NAMES[name] })),
  ];
}
