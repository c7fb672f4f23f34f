import type { RequestParameter } from '../parameters.js';
import { readError, type ProviderError } from './read-error.js';

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
