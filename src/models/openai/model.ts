import { computerHandler } from '../../core/definition/native-tools.js';
import { watchCall, type CallWatch, type Expiry } from '../call-watch.js';
import { capabilitiesOf, type Capabilities } from '../capabilities.js';
import { tellSafely } from '../deltas.js';
import type { Model, ModelContext, ModelReply, ModelRequest } from '../model.js';
import { ModelError } from '../model-error.js';
import { readAnswer, replyToError } from './answer.js';
import type { OpenAiApi } from './api.js';
import { chatApi } from './chat/index.js';
import {
  checkedUrl,
  connect,
  OPENAI_URL,
  sentError,
  shownUrl,
  type OpenAiClient,
} from './client.js';
import type { CallPlace } from './errors.js';
import { nativeSecrets, type Variable } from './native-tools.js';
import { refusedAmong } from './refusals.js';
import { responsesApi } from './responses/index.js';
import { learnSecrets } from '../../secrets/known.js';
import type { Parameter } from '../parameters.js';
import { sample } from '../sample.js';

/** The protocols of `openAiModel`, by the names that a config gives them. */
export type OpenAiApiName = 'chat' | 'responses';

export interface OpenAiModelOptions {
  /** Absent: a placeholder is sent; a server on one's own machine wants none. */
  readonly apiKey?: string;
  /** Default: OpenAI's own. */
  readonly baseUrl?: string;
  /** Which of OpenAI's APIs is spoken; default `chat`. */
  readonly api?: OpenAiApiName;
  /** Milliseconds a whole call may take; default 10 minutes. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds without a byte after which a streamed answer is given up; default 60 s. A model that
   * has not begun to speak, and may be thinking, has five times as long, and with the default as long as
   * the whole call: a call that is given up too early is paid for twice.
   */
  readonly idleMs?: number;
  /**
   * Ask for the answer in pieces, so that a dead connection is noticed early; default: where somebody
   * may watch. False: never, for servers that cannot.
   */
  readonly stream?: boolean;
  /** Looks up the environment variables that `settings.nativeTools` name; default: there are none. */
  readonly variable?: Variable;
  /** What the model takes; default, field by field: what is known of it by its name. */
  readonly capabilities?: Partial<Capabilities>;
}

const APIS: Readonly<Record<OpenAiApiName, OpenAiApi>> = { chat: chatApi, responses: responsesApi };

const DEFAULT_TIMEOUT_MS = 600_000;
const DEFAULT_IDLE_MS = 60_000;
/** How much longer than one that speaks a model that thinks may be silent. */
const THINKING = 5;

function expired(expiry: Expiry, place: CallPlace, watch: CallWatch): ModelError {
  const what = expiry === 'idle' ? 'sent nothing more' : 'did not finish its answer';
  const message = `${place.baseUrl} ${what} within ${watch.limitMs(expiry)} ms`;
  return new ModelError(message, { kind: 'retry', type: expiry });
}

/** What the client threw as a `ModelError`, or as the reply that it amounts to. */
function settle(error: unknown, place: CallPlace): ModelReply {
  if (error instanceof ModelError) throw error;
  const failure = sentError(error);
  if (failure !== undefined) return replyToError(failure, place);
  throw transportError(error, place);
}

interface Call {
  readonly api: OpenAiApi;
  readonly client: OpenAiClient;
  readonly place: CallPlace;
  readonly watch: CallWatch;
  readonly capabilities: Capabilities;
  readonly stream: boolean;
  readonly variable: Variable;
}

/** The request, and where the server refuses a part of it, once more without that part. */
async function ask(
  request: ModelRequest,
  onDelta: ModelContext['onDelta'],
  { api, client, place, watch, capabilities, stream, variable }: Call,
): Promise<ModelReply> {
  const { baseUrl } = place;
  const prepare = await api.preparation(request, { capabilities, baseUrl, variable });
  const tell = tellSafely(onDelta);
  const computer = computerHandler(request.settings);
  const asking: Asking = {
    async ask(asked) {
      const { body } = prepare(asked, { stream });
      const response = await client.post(api.path, { body, signal: watch.signal });
      const source = { headers: response.headers, place, ...(computer !== null && { computer }) };
      const streamed = body.stream ?? false;
      return await readAnswer(response, source, { api, client, streamed, watch, tell });
    },
    refusal(error, asked) {
      const failure = sentError(error);
      if (failure === undefined) return null;
      return refusedAmong(prepare(asked, { stream }).sent(), { failure, place });
    },
  };
  return await askWithout(asking, request);
}

/**
 * A model behind OpenAI's Chat Completions or Responses API, or any server that speaks one of them.
 *
 * Rejects with the reason of `context.signal` when that aborts, else only with `ModelError`. Throws
 * a `TypeError` at once for a base URL or key that cannot be used.
 */
export function openAiModel(options: OpenAiModelOptions = {}): Model {
  const { apiKey, timeoutMs = DEFAULT_TIMEOUT_MS, idleMs = DEFAULT_IDLE_MS } = options;
  const thinkingMs = options.idleMs === undefined ? timeoutMs : options.idleMs * THINKING;
  const baseUrl = checkedUrl(options.baseUrl ?? OPENAI_URL);
  if (apiKey !== undefined) learnSecrets({ values: [apiKey] });
  const client = connect(baseUrl, { apiKey, timeoutMs });
  const api = APIS[options.api ?? 'chat'];
  const { variable = () => undefined } = options;

  return {
    async call(request, { signal, onDelta }) {
      signal.throwIfAborted();
      learnSecrets({ values: nativeSecrets(request, variable) });
      const place: CallPlace = {
        baseUrl: shownUrl(baseUrl),
        model: request.model,
        hasKey: apiKey !== undefined,
        now: Date.now,
      };
      const capabilities = capabilitiesOf(request.model, options.capabilities);
      const stream = options.stream ?? onDelta !== undefined;
      const watch = watchCall(signal, { timeoutMs, idleMs, thinkingMs });
      try {
        const call = { api, client, place, watch, capabilities, stream, variable };
        return await ask(request, onDelta, call);
      } catch (error) {
        signal.throwIfAborted();
        const expiry = watch.expiry();
        if (expiry !== null) throw expired(expiry, place, watch);
        return settle(error, place);
      } finally {
        watch.stop();
      }
    },
  };
}

/** How a request is made, and what its failure says of the request. */
interface Asking {
  ask(request: ModelRequest): Promise<ModelReply>;
  /** The parameter that the server has refused with this error; null when it is about anything else. */
  refusal(error: unknown, request: ModelRequest): Parameter | null;
}

/**
 * Makes a call, and where the server refuses a parameter, once more without it: nothing was paid for
 * yet, and each parameter can be left out only once, so this ends. Any other error is thrown as it is.
 */
async function askWithout(
  asking: Asking,
  request: ModelRequest,
  dropped: readonly Parameter[] = [],
): Promise<ModelReply> {
  try {
    const reply = await asking.ask(request);
    return dropped.length === 0 ? reply : { ...reply, dropped };
  } catch (error) {
    const refused = asking.refusal(error, request);
    const without = request.without ?? [];
    if (refused === null || without.includes(refused)) throw error;
    return await askWithout(asking, { ...request, without: [...without, refused] }, [
      ...dropped,
      refused,
    ]);
  }
}

/** Node's and undici's codes by what they mean to an operator. */
const TYPES: Readonly<Record<string, string>> = {
  ECONNRESET: 'connection_reset',
  EPIPE: 'connection_reset',
  UND_ERR_SOCKET: 'connection_reset',
  ECONNREFUSED: 'connection_refused',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
};

/** Deeper chains do not occur; a cycle must not hang. */
const DEEPEST_CAUSE = 8;

/** The error and its causes, outermost first. */
function chain(error: unknown): readonly Error[] {
  const errors: Error[] = [];
  let next = error;
  while (next instanceof Error && errors.length < DEEPEST_CAUSE) {
    errors.push(next);
    next = next.cause;
  }
  return errors;
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/**
 * The `ModelError` for a request that got no whole answer: refused, reset, name not resolved, cut
 * in mid-body. All of them may pass, so all are `retry`. The causes are told by name and code only
 * in the message: kept as `cause`, they would carry foreign texts into the history.
 */
function transportError(error: unknown, place: CallPlace): ModelError {
  const errors = chain(error);
  const code = errors.map(codeOf).find((item) => item !== undefined);
  const type = (code === undefined ? undefined : TYPES[code]) ?? 'connection';
  const innermost = errors.at(-1)?.message ?? String(error);
  const said = sample(code === undefined ? innermost : `${code} ${innermost}`);
  return new ModelError(`No whole answer from ${place.baseUrl}: ${said}`, { kind: 'retry', type });
}
