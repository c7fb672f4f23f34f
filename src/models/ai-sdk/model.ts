import { z } from 'zod';
import { type JsonObject, isJsonObject, isObject, parseJson } from '../../core/text/json.js';
import { type Duration, toMs } from '../../core/text/text.js';
import {
  type OptionSchemas,
  checkOptions,
  duration,
  expected,
} from '../../validation/check-options.js';
import { anthropicApi } from '../anthropic/api.js';
import { type ModelCapabilities, OPTIMISTIC, capabilityOptions } from '../known-models.js';
import {
  MAX_CALL_MS,
  type Model,
  type ModelContext,
  ModelError,
  type ModelErrorKind,
  type ModelReply,
  type ModelRequest,
  type RequestParameter,
  createEmitter,
  emitReply,
  sample,
} from '../model.js';
import { adaptRequest, listAdaptable } from '../wire/adapted-request.js';
import { limitReply } from '../wire/answer.js';
import { type ReplyPlace, refuseComputer, refuseNativeTools } from '../wire/api.js';
import { readAttachments } from '../wire/attachment-parts.js';
import { createTerms } from '../wire/content.js';
import { unusableAnswer } from '../wire/errors.js';
import { getMaker, readStoredItems } from '../wire/opaque-fields.js';
import { ProviderFailure, findError } from '../wire/read-error.js';
import { createKnownRefusals } from '../wire/refusals.js';
import type { CallWatch } from '../wire/reply-limits.js';
import {
  type CallLimits,
  callWithin,
  emitHidden,
  hideArguments,
  mayBeEmpty,
  sendWithoutRefused,
} from '../wire/wire-model.js';
import { type Result, createAssembly, readResult } from './reply.js';
import { type Writing, createCallOptions, isAnthropic, listParameters } from './request.js';

/**
 * A language model of the AI SDK, as its providers create it: `LanguageModelV2`, `LanguageModelV3`,
 * or `LanguageModelV4` of `@ai-sdk/provider`. perdure itself does not depend on the AI SDK.
 */
export interface AiSdkLanguageModel {
  readonly specificationVersion: 'v2' | 'v3' | 'v4';
  /** Such as `openai.responses`. */
  readonly provider: string;
  readonly modelId: string;
  doGenerate(options: never): PromiseLike<object>;
  doStream(options: never): PromiseLike<{ readonly stream: ReadableStream<object> }>;
}

/** Options of `aiSdkModel`. */
export interface AiSdkModelOptions {
  /**
   * Whether to request the reply as a stream, which detects a dead connection early. Default: only
   * if the reply may have readers. False: never, for providers that cannot stream.
   */
  readonly stream?: boolean;
  /**
   * How long a whole call may take, at most an hour. A duration: ms, or words such as '10 minutes',
   * which is the default.
   */
  readonly timeout?: Duration;
  /**
   * The time without a part after which a streamed reply is abandoned, at most an hour; default 60 s.
   * Before the first word, it is five times as long; with the default, as long as the whole call.
   */
  readonly idleTimeout?: Duration;
  /**
   * Options of providers by their names, sent with each call: for providers behind a gateway, and
   * for names that no setting of an agent has. Settings of the agent precede. Default: none.
   */
  readonly providerOptions?: Readonly<Record<string, JsonObject>>;
  /** The model's capabilities; default, field by field: those of a modern model. */
  readonly capabilities?: Partial<ModelCapabilities>;
}

const jsonObject = expected('an object of JSON values', isJsonObject);
const time = duration({ maxMs: MAX_CALL_MS, range: 'at most 1 hour' });
const modelOptions = z.strictObject({
  stream: z.boolean().optional(),
  timeout: time.optional(),
  idleTimeout: time.optional(),
  capabilities: capabilityOptions.optional(),
  providerOptions: z.record(z.string(), jsonObject).optional(),
} satisfies OptionSchemas<AiSdkModelOptions>);

const VERSIONS: readonly unknown[] = [
  'v2',
  'v3',
  'v4',
] satisfies readonly AiSdkLanguageModel['specificationVersion'][];

const languageModel = expected(
  'a language model of the AI SDK (specification v2, v3, or v4), such as openai("gpt-5")',
  (value): value is AiSdkLanguageModel =>
    isObject(value) &&
    VERSIONS.includes(value['specificationVersion']) &&
    typeof value['doGenerate'] === 'function',
);

/**
 * Makes a model for `models` of a configuration from a language model of the AI SDK, of any
 * provider. Replies are streamed to readers; thoughts and what else the provider needs back are
 * stored and go back; refused parameters are left out; errors have the same kinds as with perdure's
 * own adapters. The provider makes one attempt per call, because perdure retries. Throws an
 * `InputError` for anything but a language model, and for a wrong option.
 *
 * @example
 * ```ts
 * import { MockLanguageModelV3 } from 'ai/test';
 * import { defineAgent, defineConfig } from 'perdure';
 * import { aiSdkModel } from 'perdure/ai-sdk';
 *
 * // In place of the mock: mistral('mistral-medium-latest') of @ai-sdk/mistral, and the like.
 * const model = aiSdkModel(new MockLanguageModelV3());
 *
 * export default defineConfig({
 *   agents: [defineAgent({ name: 'clerk', instructions: 'Be brief.', model: 'mistral' })],
 *   models: { mistral: { ...model, window: 128_000 } },
 * });
 * ```
 */
export function aiSdkModel(model: AiSdkLanguageModel, options: AiSdkModelOptions = {}): Model {
  checkOptions('aiSdkModel', { schema: z.object({ model: languageModel }), options: { model } });
  checkOptions('aiSdkModel', { schema: modelOptions, options });
  const known = createKnownRefusals();
  const { timeout, idleTimeout, providerOptions = {} } = options;
  const limits: CallLimits = {
    ...(timeout !== undefined && { timeoutMs: toMs(timeout) }),
    ...(idleTimeout !== undefined && { idleMs: toMs(idleTimeout) }),
  };
  const place: ReplyPlace = {
    baseUrl: model.provider,
    model: model.modelId,
    hasKey: true,
    apiKeyEnv: '',
    now: Date.now,
    isConfigured: true,
  };
  const capabilities = getCapabilities(model, options.capabilities);
  return {
    async call(given, { signal, onDelta }) {
      signal.throwIfAborted();
      // The provider's name for the model, so that refusals are known by it.
      const request = { ...given, model: model.modelId };
      const stream = options.stream ?? onDelta !== undefined;
      return await callWithin({ signal, limits, place }, async (watch) => {
        const write = await prepare(request, model, { capabilities, given: providerOptions });
        const call = { model, place, watch, onDelta, write, stream };
        return await sendWithoutRefused(request, known, {
          listSent: (attempt) => [
            ...listParameters(attempt, write(attempt)),
            ...listAdaptable(attempt, propertyNamesOf(model)),
          ],
          send: async (attempt) => await send(attempt, call),
        });
      });
    },
  };
}

function getCapabilities(
  model: AiSdkLanguageModel,
  overrides: Partial<ModelCapabilities> = {},
): ModelCapabilities {
  // Models of `openai-compatible` have this field; without structured outputs, they drop the schema.
  const hasSchemas = !('supportsStructuredOutputs' in model) || model.supportsStructuredOutputs;
  return {
    ...OPTIMISTIC,
    ...(hasSchemas !== true && { responseFormat: 'json_object' }),
    logprobs: false,
    nativeTools: false,
    computerUse: false,
    ...overrides,
  };
}

const propertyNamesOf = (model: AiSdkLanguageModel): { propertyNames: RegExp | undefined } => ({
  propertyNames: isAnthropic(model) ? anthropicApi.propertyNames : undefined,
});

/** Reads the data to which a request refers, once, and returns how each attempt is written. */
async function prepare(
  request: ModelRequest,
  model: AiSdkLanguageModel,
  { capabilities, given }: Pick<Writing, 'given'> & { readonly capabilities: ModelCapabilities },
): Promise<(attempt: ModelRequest) => Writing> {
  refuseNativeTools(request, 'give the tools of a provider by the AI SDK itself');
  refuseComputer(request, capabilities);
  const from = makerOf(model);
  const also = request.messages.flatMap((message) =>
    message.role === 'tool' ? (message.attachments ?? []) : [],
  );
  const [data, stored] = await Promise.all([
    readAttachments(request, capabilities, { also }),
    readStoredItems(request, from),
  ]);
  return (attempt) => ({
    specification: model.specificationVersion,
    provider: model.provider.split('.', 1)[0] ?? '',
    given,
    terms: createTerms(attempt, capabilities),
    data,
    replay: { from, stored },
  });
}

function makerOf({ provider, modelId }: AiSdkLanguageModel): string {
  return getMaker({ baseUrl: provider, model: modelId }, 'ai-sdk');
}

interface Call {
  readonly model: AiSdkLanguageModel;
  readonly place: ReplyPlace;
  readonly watch: CallWatch;
  readonly onDelta: ModelContext['onDelta'];
  readonly write: (attempt: ModelRequest) => Writing;
  readonly stream: boolean;
}

async function send(request: ModelRequest, call: Call): Promise<ModelReply> {
  const { model, place, watch, write } = call;
  const emit = createEmitter(call.onDelta);
  const { request: adapted, renamed, restore } = adaptRequest(request, propertyNamesOf(model));
  const given = { ...createCallOptions(adapted, write(request)), abortSignal: watch.signal };
  const streamed = call.stream && request.without?.includes('stream') !== true;
  const failing = (error: unknown): unknown => toFailure(error, place);
  let headers = new Headers();
  const source = { place, headers, mayBeEmpty: mayBeEmpty(request) };
  const reply = await limitReply(source, async () => {
    const shown = hideArguments(emit, renamed);
    const assembly = createAssembly(shown, watch, failing);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- options of the model's version
    const own = given as never;
    try {
      // Some providers wait for the first part, so the clock starts here.
      if (streamed) watch.progress();
      const answer = await unlessAborted(
        watch.signal,
        streamed ? model.doStream(own) : model.doGenerate(own),
      );
      headers = readHeaders(answer);
      const stream = 'stream' in answer ? answer.stream : undefined;
      if (stream instanceof ReadableStream) await readStream(stream, assembly, watch);
      const isStream = stream !== undefined;
      const result = isStream ? assembly.result() : toResult(answer);
      const isCacheBeside = model.specificationVersion === 'v2' && isAnthropic(model);
      const reading = { source: { ...source, headers }, from: makerOf(model), streamed: isStream };
      const read = readResult(result, { ...reading, isCacheBeside });
      if (!isStream) emitReply(read, shown);
      return withDropped(read, { request, result });
    } catch (error) {
      throw failing(error);
    }
  });
  const restored = restore(reply);
  emitHidden(restored, renamed, emit);
  return restored;
}

function readHeaders(answer: object): Headers {
  const response = 'response' in answer && isObject(answer.response) ? answer.response : {};
  return toHeaders(response['headers']);
}

function toHeaders(value: unknown): Headers {
  const headers = new Headers();
  for (const [name, text] of Object.entries(isObject(value) ? value : {})) {
    if (typeof text === 'string' && /^[\w-]+$/.test(name))
      headers.set(name, text.replaceAll(/[^\t\x20-\x7e]/g, ''));
  }
  return headers;
}

function toResult(answer: object): Result {
  const { content, finishReason, usage, warnings }: Record<string, unknown> = { ...answer };
  return { content: Array.isArray(content) ? content : [], finishReason, usage, warnings };
}

async function readStream(
  stream: ReadableStream<unknown>,
  assembly: ReturnType<typeof createAssembly>,
  watch: CallWatch,
): Promise<void> {
  const reader = stream.getReader();
  watch.progress();
  try {
    for (;;) {
      const { done, value } = await unlessAborted(watch.signal, reader.read());
      if (done) return;
      watch.progress();
      assembly.add(value);
    }
  } catch (error) {
    reader.cancel().catch(() => undefined);
    // A failure after the end does not invalidate a paid answer.
    if (!assembly.isFinished()) throw error;
  }
}

/** Resolves as the promise does, or rejects when the signal aborts, which a provider may ignore. */
async function unlessAborted<T>(signal: AbortSignal, promise: PromiseLike<T>): Promise<T> {
  const over = new AbortController();
  const aborted = new Promise<never>((_resolve, reject) => {
    const stop = (): void => reject(new Error('aborted'));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true, signal: over.signal });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    over.abort();
  }
}

/**
 * Adds the parameters that the provider's package itself left out, according to its warnings: the
 * next call gives the schema in words, or demands a call in words.
 */
function withDropped(
  reply: ModelReply,
  { request, result }: { readonly request: ModelRequest; readonly result: Result },
): ModelReply {
  const warnings: readonly unknown[] = Array.isArray(result.warnings) ? result.warnings : [];
  const names = warnings.filter(isObject).map(({ feature, setting }) => feature ?? setting);
  const dropped: RequestParameter[] = [];
  const { responseFormat: format, toolChoice, tools, without = [] } = request;
  if (names.includes('responseFormat') && format) dropped.push('response_format:json_schema');
  if (names.includes('toolChoice') && toolChoice === 'required' && tools.length > 0) {
    dropped.push('tool_choice:required');
  }
  const fresh = dropped.filter((name) => !without.includes(name));
  return fresh.length === 0 ? reply : { ...reply, dropped: fresh };
}

/** Errors of the AI SDK that come from no server, by their names. */
const OWN_ERRORS: Readonly<Record<string, ModelErrorKind>> = {
  AI_LoadAPIKeyError: 'credentials',
  AI_LoadSettingError: 'credentials',
  AI_NoSuchModelError: 'model',
  AI_UnsupportedFunctionalityError: 'request',
  AI_InvalidPromptError: 'request',
  AI_InvalidArgumentError: 'request',
};

/**
 * Returns what a call throws for an error of the AI SDK or of its provider. Its causes could contain
 * the prompt, so they are left out.
 */
function toFailure(error: unknown, place: ReplyPlace): unknown {
  if (error instanceof ModelError || error instanceof ProviderFailure) return error;
  if (error instanceof Error && error.name === 'ReplyTooLargeError') return error;
  const fields: Record<string, unknown> = isObject(error) ? error : {};
  const { statusCode: status, responseHeaders, responseBody, name } = fields;
  const headers = toHeaders(responseHeaders);
  const kind = typeof name === 'string' ? OWN_ERRORS[name] : undefined;
  if (kind !== undefined && error instanceof Error) {
    const message = `${place.baseUrl}: ${sample(error.message)}`;
    return new ModelError(message, { kind, type: String(name).replace(/^AI_/, '') });
  }
  const isError = error instanceof Error;
  if (typeof status !== 'number') {
    return isError ? error : new ProviderFailure({ headers, error });
  }
  const text = typeof responseBody === 'string' ? responseBody : '';
  const body = parseJson(text) ?? (text === '' ? { message: isError ? error.message : '' } : text);
  if (status >= 300) return new ProviderFailure({ status, headers, error: body });
  const found = isObject(body) ? findError(body) : undefined;
  if (found !== undefined && text !== '') return new ProviderFailure({ headers, error: found });
  // An answer with a usage has been paid for.
  const isPaid = isObject(body) && isObject(body['usage']);
  const problem = isPaid
    ? ({ kind: 'malformed', type: 'no_message' } as const)
    : { type: 'bad_json' };
  const what = 'sent an answer that the AI SDK cannot read';
  return unusableAnswer({ headers, place }, { ...problem, what, text });
}
