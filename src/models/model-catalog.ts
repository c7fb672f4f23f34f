import type { ModelPrice } from '../core/definition/definition.js';
import { toMs } from '../core/text/text.js';
import { getAnthropicCapabilities } from './anthropic/assistant.js';
import {
  anthropicModel,
  isForAnthropic,
  isOwnedByAnthropic,
  toModelName,
} from './anthropic/model.js';
import { demoModel } from './demo/model.js';
import {
  type ModelCapabilities,
  findPrice,
  findWindow,
  getCapabilities,
  meantModel,
} from './known-models.js';
import type { Model } from './model.js';
import {
  type ModelEntry,
  type ModelFacts,
  type ModelOptions,
  assertModelEntry,
  isDemoEntry,
} from './model-entry.js';
import { DEFAULT_KEY_ENV, openAiModel, openAiModelFromEnvironment } from './openai/model.js';
import type { WireModelOptions } from './wire/wire-model.js';

/** Returns the entry with its times as adapters take them, without its rate, which is the worker's. */
function inMilliseconds({
  timeout,
  idleTimeout,
  rate: _rate,
  ...entry
}: ModelOptions): Omit<ModelOptions, 'timeout' | 'idleTimeout' | 'rate'> &
  Pick<WireModelOptions, 'timeoutMs' | 'idleMs'> {
  return {
    ...entry,
    ...(timeout !== undefined && { timeoutMs: toMs(timeout) }),
    ...(idleTimeout !== undefined && { idleMs: toMs(idleTimeout) }),
  };
}

type Environment = Readonly<Record<string, string | undefined>>;

/** A model that is ready to be called. */
export interface ResolvedModel {
  readonly model: Model;
  /** The name at the provider. */
  readonly name: string;
  /**
   * The provider's name in telemetry: `anthropic`, `openai` for every server that speaks OpenAI's
   * API, `demo`, or `custom`.
   */
  readonly provider: string;
  /** Null if it is unknown. */
  readonly price: ModelPrice | null;
  /** The maximum number of tokens in a prompt; null if unknown. */
  readonly window: number | null;
  /** The model's capabilities, as known before the first call. */
  readonly capabilities: ModelCapabilities;
}

/** Returns a model under its name at the provider, with its facts, whatever name a request has. */
export function standInFor({
  model,
  name,
  price,
  window,
  capabilities,
}: ResolvedModel): Model & ModelFacts {
  return {
    ...model,
    ...(price !== null && { price }),
    ...(window !== null && { window }),
    capabilities,
    call: async (request, context) => await model.call({ ...request, model: name }, context),
  };
}

export interface ModelCatalog {
  /**
   * Returns the entry of that name, else the demo model for `demo`, else the adapter for the name:
   * names such as `claude-…` belong to Anthropic's API, unless only a server for OpenAI's API is
   * set.
   */
  resolve(name: string): ResolvedModel;
  /** Whether a name has an entry, or is that of a provider's model, which needs none. */
  knows(name: string): boolean;
  /** Returns the entry, or `demo`, that a name which it does not know is almost; else undefined. */
  meant(name: string): string | undefined;
}

/**
 * Creates the catalog of a config. Throws an `InputError` for an entry with an unusable option, and a
 * `TypeError` for a base URL or key that cannot be used.
 */
export function createModelCatalog(
  entries: Readonly<Record<string, ModelEntry>>,
  environment: Environment,
): ModelCatalog {
  const delayMs = Number(environment['PERDURE_DEMO_DELAY_MS'] ?? 0);
  const demo: ResolvedModel = { model: demoModel({ delayMs }), ...DEMO };
  const named = new Map(
    Object.entries(entries).map(([name, entry]) => {
      assertModelEntry(name, entry);
      const facts = { ...demo, price: entry.price ?? FREE, window: entry.window ?? null };
      return [name, isDemoEntry(entry) ? facts : resolveEntry(name, entry, environment)];
    }),
  );
  const standard = openAiModelFromEnvironment(environment);
  const anthropic = createAnthropic({}, environment);
  return {
    knows: (name) =>
      named.has(name) || name === 'demo' || findPrice(name) !== null || findWindow(name) !== null,
    meant: (name) => meantModel(name, [...named.keys()]),
    resolve(name) {
      const entry = named.get(name);
      if (entry !== undefined) return entry;
      if (name === 'demo') return demo;
      if (isOwnedByAnthropic(name, environment))
        return { model: anthropic, ...anthropicFacts(name, {}) };
      return { model: standard, provider: 'openai', ...resolveFacts(name, {}, NO_NATIVE_TOOLS) };
    },
  };
}

/** The price of a script. */
export const FREE: ModelPrice = { input: 0, cachedInput: 0, output: 0 };

/** The facts of the demo model, which only reads texts and calls tools. */
const DEMO: Omit<ResolvedModel, 'model'> = {
  name: 'demo',
  provider: 'demo',
  price: FREE,
  window: null,
  capabilities: getCapabilities('demo', {
    responseFormat: 'none',
    logprobs: false,
    images: false,
    files: false,
    nativeTools: false,
    computerUse: false,
  }),
};

function resolveEntry(name: string, entry: ModelEntry, environment: Environment): ResolvedModel {
  if ('call' in entry) {
    return {
      model: entry,
      name,
      provider: 'custom',
      price: entry.price ?? null,
      window: entry.window ?? null,
      capabilities: getCapabilities(name, entry.capabilities),
    };
  }
  const { model = name, price: _, window: __, api, ...options } = inMilliseconds(entry);
  if (api === 'anthropic' || isForAnthropic(name, entry, environment)) {
    return { model: createAnthropic(entry, environment), ...anthropicFacts(model, entry) };
  }
  const { apiKeyEnv = DEFAULT_KEY_ENV } = options;
  const apiKey = environment[apiKeyEnv]?.trim() ?? '';
  const baseUrl = options.baseUrl ?? environment['OPENAI_BASE_URL']?.trim() ?? '';
  const facts = resolveFacts(model, entry, api === 'responses' ? {} : NO_NATIVE_TOOLS);
  if (apiKey === '' && baseUrl === '') {
    const without = openAiModelFromEnvironment({}, { apiKeyEnv });
    return { model: without, provider: 'openai', ...facts };
  }
  const adapter = openAiModel({
    ...options,
    apiKeyEnv,
    ...(api !== undefined && { api }),
    variable: (variable) => environment[variable],
    ...(apiKey !== '' && { apiKey }),
    ...(baseUrl !== '' && { baseUrl }),
  });
  return { model: adapter, provider: 'openai', ...facts };
}

function createAnthropic(
  { apiKeyEnv = 'ANTHROPIC_API_KEY', ...entry }: ModelOptions,
  environment: Environment,
): Model {
  const { model: _, api: __, price: ___, window: ____, ...options } = inMilliseconds(entry);
  const apiKey = environment[apiKeyEnv]?.trim() ?? '';
  const baseUrl = options.baseUrl ?? environment['ANTHROPIC_BASE_URL']?.trim() ?? '';
  return anthropicModel({
    ...options,
    apiKeyEnv,
    ...(apiKey !== '' && { apiKey }),
    ...(baseUrl !== '' && { baseUrl }),
  });
}

function anthropicFacts(name: string, given: ModelFacts): Omit<ResolvedModel, 'model'> {
  const own = toModelName(name);
  const capabilities = getAnthropicCapabilities(own, given.capabilities);
  return { ...resolveFacts(own, given), provider: 'anthropic', capabilities };
}

/** Only the Responses API has tools that the provider executes. */
const NO_NATIVE_TOOLS = { nativeTools: false, computerUse: false };

function resolveFacts(
  name: string,
  given: ModelFacts,
  without: Partial<ModelCapabilities> = {},
): Omit<ResolvedModel, 'model' | 'provider'> {
  return {
    name,
    price: given.price ?? findPrice(name),
    window: given.window ?? findWindow(name),
    capabilities: getCapabilities(name, { ...given.capabilities, ...without }),
  };
}
