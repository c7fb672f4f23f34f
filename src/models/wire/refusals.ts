import { LRUCache } from 'lru-cache';
import { isObject, sha256Hex } from '../../core/text/json.js';
import type { ModelRequest, RequestParameter } from '../model.js';
import { type ProviderError, readError } from './read-error.js';

/** A parameter of a request, and the patterns by which errors refer to it. */
export interface SentParameter {
  readonly parameter: RequestParameter;
  /** Matches the error's `param`. */
  readonly param: RegExp;
  /** The source of a pattern that matches its names in a sentence. */
  readonly names: string;
  /** Matches texts that refuse it, regardless of their other content. */
  readonly also?: RegExp;
}

/** Describes a parameter that errors call by its name. */
export function namedParameter(parameter: RequestParameter, name: string): SentParameter {
  return { parameter, param: new RegExp(`^${name}$`), names: `\\b${name}\\b` };
}

/** Describes the choice among the tools; servers also refuse its form or its value. */
export function toolChoice(choice: 'auto' | 'required' | 'none'): SentParameter {
  return {
    ...namedParameter(`tool_choice:${choice}`, 'tool_?choice'),
    also: /tool_?choice\W.{0,80}\b(?:invalid|must be|should be|one of|expected|only)|\b(?:invalid|unknown|expected)\b.{0,40}tool_?choice/i,
  };
}

/** Returns the source of a pattern that matches exactly this name. */
export function escapePattern(name: string): string {
  return name.replaceAll(/[^\w]/g, '\\$&');
}

/** Describes a setting of the agent under its own name. */
export function settingParameter(name: string): SentParameter {
  const escaped = escapePattern(name);
  return {
    parameter: `settings.${name}`,
    param: new RegExp(`^${escaped}$`),
    // A bare word could mean anything; `top_p` is unambiguous.
    names:
      name.includes('_') || name === 'temperature' ? `\\b${escaped}\\b` : `['"\`]${escaped}['"\`]`,
  };
}

/** The texts with which servers reject a schema that they cannot enforce. */
export const SCHEMA_FAULT =
  /invalid schema(?! for function)|(?<!_)schema.{0,40}(conversion failed|not (valid|permitted|supported)|too (complex|large))|unrecognized schema|failed to parse grammar/i;

/** Describes the form of a reply's text, as OpenAI's API and the servers that follow it name it. */
export function formatParameter(type: 'json_schema' | 'json_object'): SentParameter {
  return {
    parameter: `response_format:${type}`,
    param: /^response_format/,
    names:
      'response[_ ]?(?:formats?|mime ?type|schema)|json_schema|json_object|json mode|structured outputs?',
    also:
      type === 'json_object'
        ? /response_format\.type\W{1,3}must be|contain the word\W{1,3}json/i
        : new RegExp(`response_format\\.type\\W{1,3}must be|${SCHEMA_FAULT.source}`, 'i'),
  };
}

/** The statuses of refusals. 403 counts only if a model's logprobs are not generally available. */
const STATUSES = new Set([400, 422, 500, 501]);

/** Matches servers' refusals of a parameter, but not of a value out of range. */
const REFUSED =
  "unsupported|(?:cannot|can't|can not|must not|may not) be (?:used|combined|specified|set|sent|enabled)|incompatible|not compatible|mutually exclusive|conflicts? with|at the same time|simultaneously|is not one of|not (?:currently )?(?:supported|allowed|permitted|enabled|available|recogni[sz]ed|implemented)|(?:doesn't|does not|do not|don't|cannot) (?:support|accept|allow|take)|only supports|unrecogni[sz]ed|extra_forbidden|must be verified|is (?:currently )?unavailable|literal_error|(?:unknown|unexpected) (?:name|parameter|argument|keyword|field|key|property|variant|role)";

/**
 * Matches the beginning of a server's hints about a refused parameter: accepted values, or
 * alternatives.
 */
const ALTERNATIVES = /expected one of|supported values|must be one of|did you mean|use ['"`]/i;

/**
 * The characters of an error's text that are searched; the rest is mostly a copy of the request.
 */
const TEXT_CHARACTERS = 1_000;

/**
 * Returns which of the sent parameters the server refused; null if the error has another reason, or
 * if the call requires the parameter. A `param` in the error is trusted; in a text, the refusal and
 * the name must be in one sentence.
 */
export function findRefused(
  sent: readonly SentParameter[],
  failure: ProviderError,
): RequestParameter | null {
  const { status = 0 } = failure;
  const { kind, param: named, text: whole, isFiltered } = readError(failure);
  if (isFiltered || kind === 'quota' || kind === 'context_too_long') return null;
  if (kind === 'malformed' || (kind === 'retry' && status < 500)) return null;
  if (!STATUSES.has(status) && status !== 403) return null;
  const text = whole.replaceAll('\\', '').slice(0, TEXT_CHARACTERS);
  const candidates = sent.filter(({ parameter }) => status !== 403 || parameter === 'logprobs');
  const refusal = text.split(ALTERNATIVES, 1)[0] ?? '';
  const isRefused = ({ also, names }: SentParameter): boolean =>
    (also?.test(text) ?? false) || refuses(refusal, names);
  if (named === '' || /^messages?$/.test(named)) {
    return candidates.find(isRefused)?.parameter ?? null;
  }
  const meant = candidates.filter(({ param }) => param.test(named));
  const general = new RegExp(REFUSED, 'i').test(refusal) ? meant.at(-1) : undefined;
  return (meant.find(isRefused) ?? general)?.parameter ?? null;
}

function refuses(text: string, names: string): boolean {
  const between = '[^.;\\n]{0,100}?';
  return new RegExp(
    `(?:${names})${between}(?:${REFUSED})|(?:${REFUSED})${between}(?:${names})`,
    'i',
  ).test(text);
}

/** The keywords that OpenAI's strict mode accepts. */
const KEYWORDS = new Set(
  (
    '$ref $defs anyOf type properties required additionalProperties items enum const description ' +
    'title pattern format multipleOf maximum exclusiveMaximum minimum exclusiveMinimum minItems maxItems'
  ).split(' '),
);

type Node = Record<string, unknown>;

/**
 * Returns true if OpenAI's strict mode accepts the schema: an object at the root, every property
 * required and no others, a type at each place, and no unions but `anyOf`, whose objects differ in
 * their first properties. Any other schema is sent without `strict`, because a server would refuse
 * it, or allow only empty objects where any are meant.
 */
export function isStrictSchema(schema: Node): boolean {
  if (schema['type'] !== 'object' || 'anyOf' in schema) return false;
  const waiting: unknown[] = [schema];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (!isObject(node) || !isStrictNode(node, schema)) return false;
    waiting.push(...listChildren(node));
  }
  return true;
}

function isStrictNode(node: Node, root: Node): boolean {
  if (Object.keys(node).some((keyword) => !KEYWORDS.has(keyword))) return false;
  const { $ref: reference, type, properties, anyOf, items } = node;
  if (reference !== undefined) return Object.keys(node).length === 1;
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (type === undefined && anyOf === undefined) return false;
  if (types.includes('array') && !isObject(items)) return false;
  if (Array.isArray(anyOf) && !areDistinct(anyOf, root)) return false;
  if (!types.includes('object') && properties === undefined) return true;
  const required: readonly unknown[] = Array.isArray(node['required']) ? node['required'] : [];
  const names = isObject(properties) ? Object.keys(properties) : [];
  return node['additionalProperties'] === false && names.every((name) => required.includes(name));
}

/** Whether no two objects of a union begin with the same property, unless it tells them apart. */
function areDistinct(alternatives: readonly unknown[], root: Node): boolean {
  const begins = alternatives.flatMap((one) => beginOf(one, root));
  const open = begins.filter(({ constant }) => constant === undefined).map(({ name }) => name);
  const named = begins.filter(({ constant }) => constant !== undefined);
  return (
    new Set(open).size === open.length &&
    named.every(({ name }) => !open.includes(name)) &&
    new Set(named.map((one) => JSON.stringify(one))).size === named.length
  );
}

/** The first property of an object schema, and its only value, if it has one. */
interface Begin {
  readonly name: string;
  readonly constant: unknown;
}

function beginOf(node: unknown, root: Node): readonly Begin[] {
  const reference = isObject(node) ? node['$ref'] : undefined;
  const name = typeof reference === 'string' ? reference.replace(/^#\/\$defs\//, '') : '';
  const target = isObject(root['$defs']) ? root['$defs'][name] : undefined;
  const whole = reference === '#' ? root : (target ?? node);
  const properties = isObject(whole) ? whole['properties'] : undefined;
  const [begin] = isObject(properties) ? Object.entries(properties) : [];
  if (begin === undefined) return [];
  const { const: constant, enum: values } = isObject(begin[1]) ? begin[1] : {};
  const only: unknown = Array.isArray(values) && values.length === 1 ? values[0] : undefined;
  return [{ name: begin[0], constant: constant ?? only }];
}

function listChildren(node: Node): readonly unknown[] {
  const named = ['properties', '$defs'].flatMap((keyword) => {
    const schemas = node[keyword];
    return isObject(schemas) ? Object.values(schemas) : [];
  });
  const { items, anyOf } = node;
  return [
    ...named,
    ...(items === undefined ? [] : [items]),
    ...(Array.isArray(anyOf) ? anyOf : []),
  ];
}

/** How long a refusal counts: a server may accept the parameter after an update. */
const REMEMBERED_MS = 60 * 60_000;
const MAX_REMEMBERED = 500;

/**
 * What one server has refused, so that the next run does not send it again. Each model of a config
 * has its own, because the answer may also depend on the key.
 */
export interface KnownRefusals {
  /**
   * Returns what the server has refused of this request before, in the order in which it would
   * refuse it. `listSent` returns what a request would send.
   */
  recall(
    request: ModelRequest,
    listSent: (request: ModelRequest) => readonly SentParameter[],
  ): readonly RequestParameter[];
  /** Notes what the server refused of a request that it accepted in another form. */
  learn(request: ModelRequest, refused: readonly RequestParameter[]): void;
}

/** Creates an empty memory. `now`: Unix time in ms; default: the clock. */
export function createKnownRefusals(now: () => number = Date.now): KnownRefusals {
  const refusedAt = new LRUCache<string, number>({ max: MAX_REMEMBERED });
  const isKnown = (key: string): boolean => {
    const at = refusedAt.get(key);
    return at !== undefined && now() - at < REMEMBERED_MS;
  };
  return {
    recall(request, listSent) {
      if (refusedAt.size === 0) return [];
      const keyOf = createKeys(request);
      const recalled: RequestParameter[] = [];
      for (;;) {
        const without = [...(request.without ?? []), ...recalled];
        const next = listSent({ ...request, without }).find(
          ({ parameter }) => !without.includes(parameter) && isKnown(keyOf(parameter)),
        );
        if (next === undefined) return recalled;
        recalled.push(next.parameter);
      }
    },
    learn(request, refused) {
      if (refused.length === 0) return;
      const keyOf = createKeys(request);
      for (const parameter of refused) {
        if (!isOfRun(parameter)) refusedAt.set(keyOf(parameter), now());
      }
    },
  };
}

/** The provider's items belong to one run: another run's may be accepted. */
function isOfRun(parameter: RequestParameter): boolean {
  return parameter.startsWith('provider_items');
}

/**
 * Parameters that a server may refuse for what else is in the request: a setting beside another one,
 * a format beside tools, a certain schema.
 */
const IN_CONTEXT = /^(?:settings\.|response_format|tool_choice|tools:|logprobs|include$|store$)/;

/** Returns a function for the keys under which the refusals of a request are known. */
function createKeys({
  model,
  settings,
  tools,
  toolChoice: choice,
  responseFormat,
}: ModelRequest): (parameter: RequestParameter) => string {
  let context: string | undefined;
  return (parameter) => {
    if (!IN_CONTEXT.test(parameter)) return `${model} ${parameter}`;
    context ??= sha256Hex(JSON.stringify([settings, tools, choice, responseFormat]));
    return `${model} ${parameter} ${context}`;
  };
}
