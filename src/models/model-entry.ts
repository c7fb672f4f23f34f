import { z } from 'zod';
import type { ModelPrice } from '../core/definition/definition.js';
import { InputError } from '../core/errors.js';
import type { Rate } from '../core/rules/rate.js';
import { isObject } from '../core/text/json.js';
import { type Duration, toMs } from '../core/text/text.js';
import {
  type OptionSchemas,
  anyFunction,
  checkOptions,
  duration,
  expectedHidden,
  timerDurationFrom,
} from '../validation/check-options.js';
import { type ModelCapabilities, capabilityOptions } from './known-models.js';
import { MAX_CALL_MS, type Model } from './model.js';
import type { OpenAiApiName } from './openai/model.js';

/** A model of the config: a custom adapter, or the options for a server with a known API. */
export type ModelEntry = ModelOptions | (Model & ModelFacts);

/** Facts about a model that replace those of perdure's tables. */
export interface ModelFacts {
  /** In US dollars for each million tokens; default: the model's, if known, else the cost is unknown. */
  readonly price?: ModelPrice;
  /**
   * The maximum number of tokens in a prompt; default: the model's, if known. Compaction uses it.
   */
  readonly window?: number;
  /**
   * The model's capabilities; default, field by field: known values, else those of a modern server.
   */
  readonly capabilities?: Partial<ModelCapabilities>;
  /**
   * What the provider allows in a time. All workers of the namespace share it: each call waits for its
   * turn. Default: no limit.
   */
  readonly rate?: ModelRate;
}

/** What a provider allows in a time, at least one of the two. */
export interface ModelRate {
  /** Number of requests. Default: any number. */
  readonly requests?: number;
  /** Number of tokens, of prompts and replies together. Default: any number. */
  readonly tokens?: number;
  /**
   * The time for which both are counted, up to 24 days. A duration: ms, or words such as '1 minute',
   * which is the default.
   */
  readonly per?: Duration;
}

/** Returns a model with other calls. Its facts stay, also those that an instance of a class has as getters. */
export function withCall(
  { price, window, capabilities, rate }: Model & ModelFacts,
  call: Model['call'],
): Model & ModelFacts {
  return {
    ...(price && { price }),
    ...(window !== undefined && { window }),
    ...(capabilities && { capabilities }),
    ...(rate && { rate }),
    call,
  };
}

/** The protocols of built-in adapters, by their names in a config. */
export type ModelApiName = OpenAiApiName | 'anthropic';

/** A model behind one of the APIs that perdure speaks, as an entry of `models` in the configuration. */
export interface ModelOptions extends ModelFacts {
  /** The name at the provider; default: the entry's own. */
  readonly model?: string;
  /**
   * Default: OPENAI_BASE_URL, else OpenAI's; with `api: 'anthropic'`, ANTHROPIC_BASE_URL, else
   * Anthropic's.
   */
  readonly baseUrl?: string;
  /**
   * The name of the environment variable with the key, never the key itself; default
   * OPENAI_API_KEY, with `api: 'anthropic'` ANTHROPIC_API_KEY.
   */
  readonly apiKeyEnv?: string;
  /**
   * The API that the server speaks: `chat` (Chat Completions), `responses`, or `anthropic`
   * (Messages). Default: `chat`; for a name such as `claude-…` without a `baseUrl`, the API that
   * the name implies. Such a name with an `apiKeyEnv` requires `api` if OPENAI_BASE_URL is set.
   */
  readonly api?: ModelApiName;
  /**
   * Whether to request the reply as a stream, which detects a dead connection early. Default: only
   * if the reply may have readers. False: never, for servers that cannot stream.
   */
  readonly stream?: boolean;
  /**
   * How long a whole call may take, at most an hour. A duration: ms, or words such as '10 minutes',
   * which is the default.
   */
  readonly timeout?: Duration;
  /**
   * The time without a byte after which a streamed reply is abandoned, at most an hour. A duration:
   * ms, or words such as '60 seconds', which is the default. Before the first word, it is five times
   * as long; with the default, as long as the whole call.
   */
  readonly idleTimeout?: Duration;
}

const DOLLARS = 'expected US dollars per million tokens, 0 or more';
const dollars = z.number(DOLLARS).nonnegative(DOLLARS);

const TOKENS = 'expected a whole number of tokens from 1, such as 128000; or omit it';

const callTime = duration({ maxMs: MAX_CALL_MS, range: 'at most 1 hour' });

const PER_MS = 60_000;
const allowed = z.number('expected a number above 0').positive('expected a number above 0');
const modelRate = z
  .strictObject({
    requests: allowed.optional(),
    tokens: allowed.optional(),
    per: timerDurationFrom(1_000, '1 second').optional(),
  } satisfies OptionSchemas<ModelRate>)
  .refine(
    ({ requests, tokens }) => requests !== undefined || tokens !== undefined,
    "expected `requests`, `tokens`, or both, such as { requests: 60, per: '1 minute' }",
  );

/** Returns what an entry allows; null if it has no limit. */
export function rateOf({ rate }: ModelEntry): Rate | null {
  if (rate === undefined) return null;
  const { requests, tokens, per = PER_MS } = rate;
  return {
    ...(requests !== undefined && { requests }),
    ...(tokens !== undefined && { tokens }),
    perMs: toMs(per),
  };
}

const modelFacts = {
  price: z
    .strictObject({
      input: dollars,
      cachedInput: dollars,
      cacheWrite: dollars.optional(),
      output: dollars,
    } satisfies OptionSchemas<ModelPrice>)
    .optional(),
  window: z.int(TOKENS).positive(TOKENS).optional(),
  capabilities: capabilityOptions.optional(),
  rate: modelRate.optional(),
} satisfies OptionSchemas<ModelFacts>;

const adapterOptions = z.looseObject({ ...modelFacts, call: anyFunction });

const modelOptions = z.strictObject({
  ...modelFacts,
  model: z.string().optional(),
  baseUrl: expectedHidden(
    'an http(s) address without a user name or password, such as "http://127.0.0.1:11434/v1"',
    isAddress,
  ).optional(),
  apiKeyEnv: expectedHidden(
    'the name of an environment variable that holds the key, not the key',
    (value) => typeof value === 'string' && /^[A-Za-z_]\w*$/.test(value),
  ).optional(),
  api: z.enum(['chat', 'responses', 'anthropic']).optional(),
  stream: z.boolean().optional(),
  timeout: callTime.optional(),
  idleTimeout: callTime.optional(),
} satisfies OptionSchemas<ModelOptions>);

function isAddress(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && username === '' && password === '';
}

/** Throws an `InputError` with a line for each fault of the entry `models.name`. */
export function assertModelEntry(name: string, entry: ModelEntry): void {
  if (!isObject(entry)) {
    const expected = `models.${name}: expected a model, or an object with its options`;
    throw new InputError(`${expected}, got ${notAnEntry(entry)}`);
  }
  const schema = isObject(entry) && 'call' in entry ? adapterOptions : modelOptions;
  checkOptions(`models.${name}`, { schema, options: entry });
}

/** Whether an entry is the demo model under another name, such as with a price to try limits of the cost. */
export function isDemoEntry(entry: ModelEntry): boolean {
  return !('call' in entry) && entry.model === 'demo' && entry.baseUrl === undefined;
}

/** Returns what an entry is that is not an object, without its value: a text may be a key. */
function notAnEntry(entry: unknown): string {
  if (Array.isArray(entry)) {
    return 'a list; a list of replies becomes a model with scriptedModel([…]) of perdure/testing';
  }
  if (typeof entry === 'string')
    return "a text; write { model: '…' } with the provider's name of it";
  return entry === null ? 'null' : `a ${typeof entry}`;
}
