import type { ModelRequest } from '../model.js';
import { providerError, saidBy, type CallPlace, type ProviderError } from './errors.js';
import type { WireRequest } from './chat/request.js';
import type { Parameter } from '../parameters.js';
import { alternating } from './chat/alternate-roles.js';

/** A parameter of a request, and how an error speaks of it. */
export interface Sent {
  readonly parameter: Parameter;
  /** Fits the error's `param`. */
  readonly param: RegExp;
  /** Its names in a sentence, as the source of a pattern. */
  readonly names: string;
  /** Refused in so many words, whatever else the text says. */
  readonly also?: RegExp;
}

/** Refusals come with these; 403 only where a model's logprobs are not for everybody. */
const STATUSES = new Set([400, 422, 500, 501]);

/** The words by which servers refuse a parameter. A value that is out of range is another thing. */
const REFUSED =
  "unsupported|not (?:currently )?(?:supported|allowed|permitted|enabled|available|recogni[sz]ed|implemented)|(?:doesn't|does not|do not|don't|cannot) (?:support|accept|allow|take)|only supports|unrecogni[sz]ed|extra_forbidden|must be verified|is (?:currently )?unavailable|(?:unknown|unexpected) (?:name|parameter|argument|keyword|field|key|property|variant|role)";

/** What a server names beside what it refuses: the values it takes, what to use instead. */
const BESIDE = /expected one of|supported values|must be one of|did you mean|use ['"`]/i;

/** Of the text of an error; what follows is mostly a copy of the request. */
const TEXT_CHARACTERS = 1_000;

/** A server's words for a schema that it cannot keep to. */
export const SCHEMA_FAULT =
  /invalid schema(?! for function)|(?<!_)schema.{0,40}(conversion failed|not (valid|permitted|supported)|too (complex|large))|unrecognized schema|failed to parse grammar/i;

function saysRefused(text: string, names: string): boolean {
  const between = '[^.;\\n]{0,100}?';
  return new RegExp(
    `(?:${names})${between}(?:${REFUSED})|(?:${REFUSED})${between}(?:${names})`,
    'i',
  ).test(text);
}

/** A template that counts roles finds one out of turn: where all others take turns, the system's. */
const OUT_OF_TURN =
  /\b(?:must|should) alternate\b|unexpected role\W{1,3}user\W{1,3}after role|multiple\W{1,3}user\W{1,3}roles in a row/i;

/** The source of a pattern that fits nothing. */
const NOTHING = '(?!)';

function sentOrder({ messages }: WireRequest): readonly Sent[] {
  const isInTurn = alternating(messages).every((message, index) => message === messages[index]);
  if (isInTurn) return [];
  return [{ parameter: 'role_order:any', param: /^messages/, names: NOTHING, also: OUT_OF_TURN }];
}

function sentRole(wire: WireRequest): readonly Sent[] {
  const role = wire.messages[0]?.role;
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

function sentFormat({ response_format: format }: WireRequest): readonly Sent[] {
  if (format === undefined) return [];
  const isStrict = format.type === 'json_schema' && format.json_schema.strict === true;
  const whole: Sent = {
    parameter: `response_format:${format.type}`,
    param: /^response_format/,
    names: 'response[_ ]?formats?|json_schema|json_object|json mode|structured outputs?',
    also:
      format.type === 'json_object'
        ? /response_format\.type\W{1,3}must be|contain the word\W{1,3}json/i
        : new RegExp(`response_format\\.type\\W{1,3}must be|${SCHEMA_FAULT.source}`, 'i'),
  };
  if (!isStrict) return [whole];
  // A schema that only strict mode refuses is still worth more than none.
  const strict = '\\bstrict\\b';
  return [
    {
      parameter: 'response_format:strict',
      param: /^response_format/,
      names: strict,
      also: SCHEMA_FAULT,
    },
    whole,
  ];
}

/** A limit that was asked for is never dropped, only put under its other name: budgets rely on it. */
function sentLimit({ settings, without = [] }: ModelRequest, wire: WireRequest): readonly Sent[] {
  if (settings.maxOutputTokens === undefined) return [];
  const names = ['max_completion_tokens', 'max_tokens'] as const;
  if (names.some((name) => without.includes(name))) return [];
  return names.filter((name) => name in wire).map((name) => named(name, name));
}

/** A parameter that errors call by its name. */
export function named(parameter: Parameter, name: string): Sent {
  return { parameter, param: new RegExp(`^${name}$`), names: `\\b${name}\\b` };
}

/** What only goes back to its maker; other servers behind one address may not know it. */
function sentEchoes({ messages }: WireRequest): readonly Sent[] {
  const hasEchoes = messages.some(
    (one) =>
      one.role === 'assistant' &&
      (one.reasoning_content !== undefined ||
        one.tool_calls?.some((call) => call.extra_content !== undefined)),
  );
  if (!hasEchoes) return [];
  const names = 'reasoning_content|extra_content|thought_signature';
  return [{ parameter: 'provider_items', param: new RegExp(names), names }];
}

/** In the order in which they are looked for; settings last, since their names may be common words. */
export function sentBy(request: ModelRequest, wire: WireRequest): readonly Sent[] {
  const { tool_choice: choice, logprobs, stream, stream_options: options } = wire;
  const settings = Object.keys(request.settings).filter(
    (name) => name in wire && name !== 'maxOutputTokens',
  );
  return [
    ...sentOrder(wire),
    ...sentRole(wire),
    // First of the rest: much is refused only together with it.
    ...(stream ? [named('stream', 'stream(?:ing)?')] : []),
    ...sentEchoes(wire),
    ...sentFormat(wire),
    ...(logprobs ? [named('logprobs', '(?:top_)?log_?probs')] : []),
    ...(choice ? [named(`tool_choice:${choice}`, 'tool_?choice')] : []),
    ...sentLimit(request, wire),
    ...(options ? [named('stream_options', 'stream_options')] : []),
    ...settings.map((name) => setting(name)),
  ];
}

/** A setting of the agent under its own name. */
export function setting(name: string): Sent {
  const escaped = name.replaceAll(/[^\w]/g, '\\$&');
  return {
    parameter: `settings.${name}`,
    param: new RegExp(`^${escaped}$`),
    // A bare word could mean anything; `top_p` means only one thing.
    names:
      name.includes('_') || name === 'temperature' ? `\\b${escaped}\\b` : `['"\`]${escaped}['"\`]`,
  };
}

/**
 * The parameter that a server has refused, of those that were sent; null when the error is about
 * anything else, or when the call cannot do without it. An error that names its parameter is
 * believed in that; in a text the refusal must stand in one sentence with the name.
 */
export function refusedAmong(
  all: readonly Sent[],
  { failure, place }: { readonly failure: ProviderError; readonly place: CallPlace },
): Parameter | null {
  const { status = 0 } = failure;
  const { kind } = providerError(failure, place).details;
  if (kind === 'quota' || kind === 'context_too_long') return null;
  if (!STATUSES.has(status) && status !== 403) return null;
  const said = saidBy(failure);
  const text = said.text.replaceAll('\\', '').slice(0, TEXT_CHARACTERS);
  const sent = all.filter(({ parameter }) => status !== 403 || parameter === 'logprobs');
  const refusing = text.split(BESIDE, 1)[0] ?? '';
  const inWords = ({ also, names }: Sent): boolean =>
    (also?.test(text) ?? false) || saysRefused(refusing, names);
  if (said.param === '' || /^messages?$/.test(said.param)) {
    return sent.find(inWords)?.parameter ?? null;
  }
  const meant = sent.filter(({ param }) => param.test(said.param));
  const general = new RegExp(REFUSED, 'i').test(refusing) ? meant.at(-1) : undefined;
  return (meant.find(inWords) ?? general)?.parameter ?? null;
}
