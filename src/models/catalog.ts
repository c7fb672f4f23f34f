import type { Price } from '../core/definition/definition.js';
import { capabilitiesOf, type Capabilities } from './capabilities.js';
import { checkCapabilities } from './capability-overrides.js';
import { demoModel } from './demo/model.js';
import type { Model } from './model.js';
import { openAiModelFromEnvironment } from './openai/environment.js';
import { openAiModel, type OpenAiApiName } from './openai/model.js';
import { priceOf } from './prices.js';
import { windowOf } from './windows.js';

/** A model of the config: an adapter of one's own, or where and how OpenAI's API is spoken. */
export type ModelEntry = ModelOptions | (Model & OwnFacts);

/** What the config may know better than the tables. */
interface OwnFacts {
  readonly price?: Price;
  /** Tokens that a prompt may have; default: the model's, where it is known. Compaction goes by it. */
  readonly window?: number;
  /** What the model takes; default, field by field: what is known of it, else all that a modern server has. */
  readonly capabilities?: Partial<Capabilities>;
}

export interface ModelOptions extends OwnFacts {
  /** The name at the provider; default: the entry's own. */
  readonly model?: string;
  /** Default: OPENAI_BASE_URL, else OpenAI's. */
  readonly baseUrl?: string;
  /** Name of the environment variable that holds the key; default OPENAI_API_KEY. Never the key itself. */
  readonly apiKeyEnv?: string;
  /** Which of OpenAI's APIs the server is spoken to in: `chat` (Chat Completions, default) or `responses`. */
  readonly api?: OpenAiApiName;
  /**
   * Ask for the reply as a stream, so that a dead connection is noticed early; default: where somebody
   * may watch. False: never, for servers that cannot.
   */
  readonly stream?: boolean;
  /** Milliseconds a whole call may take; default 10 minutes. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds without a byte after which a streamed reply is given up; default 60 s. Before its first word
   * five times as long, with the default as long as the whole call.
   */
  readonly idleMs?: number;
}

/** A model ready to be called. */
export interface ResolvedModel {
  readonly model: Model;
  /** The name at the provider. */
  readonly name: string;
  /** Null where nobody knows it. */
  readonly price: Price | null;
  /** Tokens that a prompt may have; null where nobody knows. */
  readonly window: number | null;
  /** What it takes, as far as anybody knows before it is asked. */
  readonly capabilities: Capabilities;
}

export interface ModelCatalog {
  /** The named entry, else `demo`, else the name goes verbatim to the OpenAI adapter. */
  resolve(name: string): ResolvedModel;
}

/** Throws at once for an entry that cannot work. */
export function createModelCatalog(
  entries: Readonly<Record<string, ModelEntry>>,
  environment: Readonly<Record<string, string | undefined>>,
): ModelCatalog {
  const named = new Map(
    Object.entries(entries).map(([name, entry]) => [name, resolveEntry(name, entry, environment)]),
  );
  const standard = openAiModelFromEnvironment(environment);
  const delayMs = Number(environment['PERDURE_DEMO_DELAY_MS'] ?? 0);
  const demo = demoModel({ delayMs });
  return {
    resolve(name) {
      const own = named.get(name);
      if (own !== undefined) return own;
      if (name === 'demo') {
        return { model: demo, name, price: FREE, window: null, capabilities: DEMO };
      }
      const capabilities = capabilitiesOf(name);
      return { model: standard, name, price: priceOf(name), window: windowOf(name), capabilities };
    },
  };
}

const FREE: Price = { input: 0, cachedInput: 0, output: 0 };

/** Code that reads texts and calls tools, and nothing else. */
const DEMO: Capabilities = capabilitiesOf('demo', {
  responseFormat: 'none',
  logprobs: false,
  images: false,
  files: false,
  nativeTools: false,
  computerUse: false,
});

function resolveEntry(
  name: string,
  entry: ModelEntry,
  environment: Readonly<Record<string, string | undefined>>,
): ResolvedModel {
  refuseOddNumbers(name, entry);
  if (entry.capabilities !== undefined) {
    checkCapabilities(entry.capabilities, `models.${name}.capabilities`);
  }
  if ('call' in entry) {
    return {
      model: entry,
      name,
      price: entry.price ?? null,
      window: entry.window ?? null,
      capabilities: capabilitiesOf(name, entry.capabilities),
    };
  }
  const { model = name, apiKeyEnv = 'OPENAI_API_KEY', price, window, ...options } = entry;
  const apiKey = environment[apiKeyEnv]?.trim() ?? '';
  const baseUrl = options.baseUrl ?? environment['OPENAI_BASE_URL']?.trim() ?? '';
  const known = {
    name: model,
    price: price ?? priceOf(model),
    window: window ?? windowOf(model),
    capabilities: capabilitiesOf(model, entry.capabilities),
  };
  if (apiKey === '' && baseUrl === '') {
    return { model: openAiModelFromEnvironment({}), ...known };
  }
  const made = openAiModel({
    ...options,
    variable: (variable) => environment[variable],
    ...(apiKey !== '' && { apiKey }),
    ...(baseUrl !== '' && { baseUrl }),
  });
  return { model: made, ...known };
}

const LONGEST_CALL_MS = 60 * 60_000;

function refuseOddNumbers(name: string, entry: ModelEntry): void {
  for (const [key, value] of Object.entries(entry.price ?? {})) {
    if (!Number.isFinite(value) || value < 0) {
      throw new Error(
        `models.${name}.price.${key}: ${value} is no price; give US dollars per million tokens`,
      );
    }
  }
  const { window } = entry;
  if (window !== undefined && !(Number.isSafeInteger(window) && window > 0)) {
    throw new Error(
      `models.${name}.window: ${JSON.stringify(window)} is no window; give the tokens that a prompt ` +
        'may have as a whole number from 1, such as 128000, or leave it out',
    );
  }
  if ('call' in entry) return;
  const { api } = entry;
  if (api !== undefined && api !== 'chat' && api !== 'responses') {
    throw new Error(`models.${name}.api: ${JSON.stringify(api)}; give chat or responses`);
  }
  for (const key of ['timeoutMs', 'idleMs'] as const) {
    const value = entry[key];
    if (value !== undefined && !(value > 0 && value <= LONGEST_CALL_MS)) {
      throw new Error(
        `models.${name}.${key}: ${value}; give milliseconds up to ${LONGEST_CALL_MS} (an hour)`,
      );
    }
  }
}
