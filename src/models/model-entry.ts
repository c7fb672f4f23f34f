import { z } from 'zod';
import type { ModelPrice } from '../core/definition/definition.js';
import { isObject } from '../core/json.js';
import { toMs, type Duration } from '../core/text/duration.js';
import {
  anyFunction,
  checkOptions,
  expectedHidden,
  type OptionSchemas,
} from '../validation/check-options.js';
import { duration } from '../validation/durations.js';
import { capabilityOptions, type ModelCapabilities } from './capabilities.js';
import { MAX_CALL_MS, type Model } from './model.js';
import type { OpenAiApiName } from './openai/model.js';
import type { WireModelOptions } from './wire/wire-model.js';

/** A model of the config: a custom adapter, or the options for a server with a known API. */
export type ModelEntry = ModelOptions | (Model & ModelFacts);

/** Facts about a model that replace those of perdure's tables. */
export interface ModelFacts {
  readonly price?: ModelPrice;
  /**
   * The maximum number of tokens in a prompt; default: the model's, if known. Compaction uses it.
   */
  readonly window?: number;
  /**
   * The model's capabilities; default, field by field: known values, else those of a modern server.
   */
  readonly capabilities?: Partial<ModelCapabilities>;
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
} satisfies OptionSchemas<ModelFacts>;

const adapterOptions = z.looseObject({ ...modelFacts, call: anyFunction });

const modelOptions = z.strictObject({
  ...modelFacts,
  model: z.string().optional(),
  baseUrl: z.string().optional(),
  apiKeyEnv: expectedHidden(
    'the name of an environment variable that holds the key, not the key',
    (value) => typeof value === 'string' && /^[A-Za-z_]\w*$/.test(value),
  ).optional(),
  api: z.enum(['chat', 'responses', 'anthropic']).optional(),
  stream: z.boolean().optional(),
  timeout: callTime.optional(),
  idleTimeout: callTime.optional(),
} satisfies OptionSchemas<ModelOptions>);

/** Throws an `InputError` with a line for each fault of the entry `models.name`. */
export function assertModelEntry(name: string, entry: ModelEntry): void {
  const schema = isObject(entry) && 'call' in entry ? adapterOptions : modelOptions;
  checkOptions(`models.${name}`, { schema, options: entry });
}

/** Returns the entry with its times as adapters take them. */
export function inMilliseconds({
  timeout,
  idleTimeout,
  ...entry
}: ModelOptions): Omit<ModelOptions, 'timeout' | 'idleTimeout'> &
  Pick<WireModelOptions, 'timeoutMs' | 'idleMs'> {
  return {
    ...entry,
    ...(timeout !== undefined && { timeoutMs: toMs(timeout) }),
    ...(idleTimeout !== undefined && { idleMs: toMs(idleTimeout) }),
  };
}
