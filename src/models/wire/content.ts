import { isObject } from '../../core/text/json.js';
import { type ModelCapabilities, reduceCapabilities } from '../known-models.js';
import type {
  ModelRequest,
  ModelUsage,
  RequestParameter,
  ResponseSchema,
  TokenAlternative,
  TokenLogprob,
} from '../model.js';

/**
 * Returns the text of content that is a text or a list of parts; parts of other kinds are skipped.
 */
export function joinText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part: unknown) => {
      if (typeof part === 'string') return part;
      return isObject(part) && typeof part['text'] === 'string' ? part['text'] : '';
    })
    .join('');
}

/**
 * Replaces arguments that are nested too deeply to serialize. They are invalid, but the reply is
 * paid for.
 */
const TOO_DEEP = '[nested too deeply]';

/**
 * Returns a call's arguments as JSON text; servers send them as a string, as an object, or not at
 * all.
 */
export function toArgumentsText(value: unknown): string {
  if (value === undefined || value === null) return '{}';
  if (typeof value === 'string') return isNothing(value) ? '{}' : value;
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return TOO_DEEP;
    throw error;
  }
}

export function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function isNothing(text: string): boolean {
  return text.length <= 16 && ['', 'null'].includes(text.trim());
}

/** Sent for a tool's empty result, because some servers refuse empty texts. */
export const EMPTY_RESULT = '(no output)';
/** Sent for a message of a person without text or attachments. */
export const EMPTY_MESSAGE = '(empty message)';

/**
 * Reads the usage of a completion or a response; returns undefined if it is missing or not in whole
 * numbers. Servers name the counts differently, send them as texts, or omit one that follows from
 * the total.
 */
export function parseUsage(value: unknown): ModelUsage | undefined {
  if (!isObject(value)) return undefined;
  const total = readCount(value, TOTAL);
  const given = {
    input: readCount(value, INPUT),
    output: readCount(value, OUTPUT),
  };
  const input = given.input ?? rest(total, given.output);
  const completion = given.output ?? rest(total, given.input);
  if (input === undefined || completion === undefined) return undefined;
  const cached = readCount(value, CACHED) ?? 0;
  const written = readCount(value, WRITTEN) ?? 0;
  const reasoning = readCount(value, REASONING);
  const listed = input + completion;
  // Some gateways count the cached tokens beside the prompt.
  const isBeside = cached > 0 && reasoning === undefined && total === listed + cached;
  const inputTokens = isBeside ? input + cached : input;
  const added = isBeside || total === undefined ? 0 : countUnlisted(total - listed, reasoning);
  const outputTokens = completion + added;
  const reasoningTokens = reasoning ?? (added > 0 ? added : undefined);
  const cachedTokens = Math.min(cached, inputTokens);
  const cacheWriteTokens = Math.min(written, inputTokens - cachedTokens);
  const costUsd = readCost(value);
  return {
    inputTokens,
    outputTokens,
    cachedTokens,
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    ...(reasoningTokens !== undefined && {
      reasoningTokens: Math.min(reasoningTokens, outputTokens),
    }),
    ...(costUsd !== undefined && { costUsd }),
  };
}

/** A place in a usage: a field, or a field of its details. */
type CountPlace = readonly [name: string, detail?: string];

const INPUT: readonly CountPlace[] = [['prompt_tokens'], ['input_tokens']];
const OUTPUT: readonly CountPlace[] = [['completion_tokens'], ['output_tokens']];
const TOTAL: readonly CountPlace[] = [['total_tokens']];

/** Where servers report the tokens that they read from their cache. */
const CACHED: readonly CountPlace[] = [
  ['prompt_tokens_details', 'cached_tokens'],
  ['input_tokens_details', 'cached_tokens'],
  // Moonshot, Together
  ['cached_tokens'],
  // DeepSeek
  ['prompt_cache_hit_tokens'],
  // Gateways to Claude
  ['cache_read_input_tokens'],
  ['prompt_tokens_details', 'cache_read_input_tokens'],
  ['num_cached_tokens'],
];

/** Where servers report the tokens that they wrote to their cache. */
const WRITTEN: readonly CountPlace[] = [
  ['prompt_tokens_details', 'cache_write_tokens'],
  ['prompt_tokens_details', 'cache_creation_tokens'],
  ['prompt_tokens_details', 'cache_creation_input_tokens'],
  ['cache_creation_input_tokens'],
];

const REASONING: readonly CountPlace[] = [
  ['completion_tokens_details', 'reasoning_tokens'],
  ['output_tokens_details', 'reasoning_tokens'],
  ['reasoning_tokens'],
];

/** Returns the largest count at these places; undefined if there is none. */
function readCount(
  usage: Record<string, unknown>,
  places: readonly CountPlace[],
): number | undefined {
  const counts = places
    .map(([name, detail]) => {
      const value = usage[name];
      if (detail === undefined) return toCount(value);
      return isObject(value) ? toCount(value[detail]) : undefined;
    })
    .filter((count) => count !== undefined);
  return counts.length === 0 ? undefined : Math.max(...counts);
}

/** Returns a whole number from 0, which may be written as a text; undefined for anything else. */
export function toCount(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}

function rest(total: number | undefined, part: number | undefined): number | undefined {
  return total === undefined || part === undefined || part > total ? undefined : total - part;
}

/** Returns the cost in US dollars that a router reports; undefined if it reports none. */
function readCost({ cost }: Record<string, unknown>): number | undefined {
  const dollars = isObject(cost) ? cost['total_cost'] : cost;
  const isCost = typeof dollars === 'number' && Number.isFinite(dollars) && dollars >= 0;
  return isCost ? dollars : undefined;
}

/**
 * Finds the usage in a completion or a chunk of a stream: usually at the top level, for Moonshot in
 * the choice, for Groq in `x_groq`. Returns undefined if there is none that can be read.
 */
export function findUsage(chunk: Record<string, unknown>): unknown {
  const { choices, x_groq: groq } = chunk;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return [chunk, choice, groq]
    .filter(isObject)
    .map(({ usage }) => usage)
    .find((usage) => parseUsage(usage) !== undefined);
}

/**
 * Returns the output tokens that are in the total, but in neither the prompt nor the completion.
 * OpenAI has none: reasoning is a part of the completion. xAI and Gemini count it separately and
 * bill it as output.
 */
function countUnlisted(unlisted: number, reasoning: number | undefined): number {
  if (unlisted <= 0) return 0;
  if (reasoning === undefined) return unlisted;
  return unlisted >= reasoning ? reasoning : 0;
}

/** The parameters that the server accepts in this request, regardless of the API. */
export interface Terms {
  readonly accepts: ModelCapabilities;
  /** The parameters that it has refused. */
  readonly without: readonly RequestParameter[];
}

export function createTerms(
  { without = [] }: ModelRequest,
  capabilities: ModelCapabilities,
): Terms {
  return { accepts: reduceCapabilities(capabilities, without), without };
}

/** Returns true for a setting that the model does not accept or its server has refused. */
export function isLeftOut(setting: string, { accepts, without }: Terms): boolean {
  if (without.includes(`settings.${setting}`)) return true;
  if (setting === 'temperature' || setting === 'top_p') return !accepts.temperature;
  return setting === 'parallel_tool_calls' && !accepts.parallelTools;
}

/**
 * Returns the tools to send with the choice among them. Tools that must not be called are omitted
 * if the server refuses `tool_choice: 'none'`.
 */
export function selectTools<Tool>(
  tools: readonly Tool[],
  { toolChoice }: ModelRequest,
  { accepts, without }: Terms,
): { readonly tools?: readonly Tool[]; readonly tool_choice?: 'auto' | 'required' | 'none' } {
  const choice = toolChoice === 'required' && !accepts.requiredToolChoice ? 'auto' : toolChoice;
  const isRefused = without.includes(`tool_choice:${choice}`);
  if (tools.length === 0 || (choice === 'none' && isRefused)) return {};
  return { tools, ...(!isRefused && { tool_choice: choice }) };
}

const DEMAND =
  'You must call one of the tools in every reply; a reply in text alone is not accepted. To answer, ' +
  'call the tool that gives the answer.';

/**
 * Returns the instructions, with the schema in words if the schema itself cannot be sent, and with
 * a demand for a call if the server does not accept `required`.
 */
export function composeInstructions(
  { instructions, responseFormat, toolChoice, tools, demandCall = DEMAND }: ModelRequest,
  { accepts }: Terms,
): string {
  const isSent = accepts.responseFormat === 'json_schema';
  const inWords = isSent ? undefined : responseFormat?.instruction;
  const isDemanded = toolChoice === 'required' && !accepts.requiredToolChoice && tools.length > 0;
  return [instructions, inWords, isDemanded ? demandCall : undefined]
    .filter((text) => text !== undefined && text !== '')
    .join('\n\n');
}

/** Returns the name of a schema in the characters and length that servers accept. */
export function toSchemaName({ name }: ResponseSchema): string {
  return name.replaceAll(/[^\w-]/g, '_').slice(0, 64) || 'answer';
}

/** Maximum tokens whose logprobs are kept, because decisions are at the beginning of a reply. */
export const MAX_LOGPROBS = 256;
/** Maximum alternatives per token; no server returns more. */
export const MAX_TOP_LOGPROBS = 20;
const MAX_TOKEN_CHARACTERS = 100;
/** The value that servers send for a probability that rounds to zero. */
const IMPOSSIBLE = -9_999;

/**
 * Reads the `logprobs` of a choice; returns undefined if there are none. A token without a usable
 * number (minus infinity is sent as null) keeps its place with -9999, so positions stay correct.
 */
export function parseLogprobs(value: unknown): readonly TokenLogprob[] | undefined {
  const content = isObject(value) ? value['content'] : undefined;
  if (!Array.isArray(content) || content.length === 0) return undefined;
  return content.slice(0, MAX_LOGPROBS).map((item: unknown) => {
    const entry = isObject(item) ? item : {};
    const token = typeof entry['token'] === 'string' ? entry['token'] : '';
    const own = parseAlternative(token, entry['logprob']) ?? { token, logprob: IMPOSSIBLE };
    return { ...own, top: parseAlternatives(entry['top_logprobs']) };
  });
}

/**
 * Reads the alternatives. OpenAI sends a list; some servers send an object from token to number.
 */
function parseAlternatives(value: unknown): readonly TokenAlternative[] {
  const pairs: readonly (readonly [unknown, unknown])[] = Array.isArray(value)
    ? value.filter(isObject).map(({ token, logprob }) => [token, logprob] as const)
    : Object.entries(isObject(value) ? value : {});
  return pairs
    .map(([token, logprob]) => parseAlternative(token, logprob))
    .filter((item) => item !== undefined)
    .slice(0, MAX_TOP_LOGPROBS);
}

function parseAlternative(token: unknown, logprob: unknown): TokenAlternative | undefined {
  if (typeof token !== 'string' || typeof logprob !== 'number' || !Number.isFinite(logprob)) {
    return undefined;
  }
  // Rounding makes some servers return values slightly above 0.
  return { token: token.slice(0, MAX_TOKEN_CHARACTERS), logprob: Math.min(logprob, 0) };
}
