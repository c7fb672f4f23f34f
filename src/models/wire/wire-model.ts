import { wellFormedJson } from '../../core/text/json.js';
import { computerHandler } from '../../core/input/turn-settings.js';
import { learnSecrets } from '../../secrets/known.js';
import type { ModelCapabilities } from '../known-models.js';
import {
  createEmitter,
  type EmitDelta,
  type Model,
  type ModelContext,
  type ModelReply,
  type ModelRequest,
  ModelError,
  type RequestParameter,
  sample,
} from '../model.js';
import { adaptRequest, listAdaptable } from './adapted-request.js';
import { readAnswer } from './answer.js';
import { type ReplyPlace, type WireApi, getNativeSecrets, type Variable } from './api.js';
import { watchCall, type CallWatch, type Expiry } from './reply-limits.js';
import type { WireClient } from './client.js';
import { replyToError } from './errors.js';
import { ProviderFailure } from './read-error.js';
import {
  createKnownRefusals,
  type KnownRefusals,
  findRefused,
  type SentParameter,
} from './refusals.js';

export interface WireModelOptions {
  /** Milliseconds that a whole call may take; default 10 minutes. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds without a byte after which a streamed answer is abandoned; default 60 s. Before
   * its first word, a model has five times as long, because it may be reasoning; with the default,
   * as long as the whole call. A call that is abandoned too early is paid for twice.
   */
  readonly idleMs?: number;
  /**
   * Whether to request the answer as a stream, which detects a dead connection early. Default: only
   * if the call has `onDelta`. False: never, for servers that cannot stream.
   */
  readonly stream?: boolean;
  /** Looks up the environment variables that `settings.nativeTools` names; default: none is set. */
  readonly variable?: Variable;
}

/** The connection to a model. */
interface Connection {
  readonly api: WireApi;
  readonly place: Omit<ReplyPlace, 'model' | 'now'>;
  /** Resolves to the client, which is created at the first call. */
  readonly connect: () => WireClient | Promise<WireClient>;
  readonly capabilitiesOf: (model: string) => ModelCapabilities;
}

export const DEFAULT_TIMEOUT_MS = 600_000;
const DEFAULT_IDLE_MS = 60_000;
/** The factor by which a model may be silent longer while it reasons. */
const THINKING_FACTOR = 5;

/**
 * Creates a model for an HTTP API. Its calls reject with the reason of `context.signal` if that
 * aborts, else only with a `ModelError`.
 */
export function wireModel(connection: Connection, options: WireModelOptions = {}): Model {
  const { variable = () => undefined } = options;
  const { api } = connection;
  const known = createKnownRefusals();

  return {
    async call(request, { signal, onDelta }) {
      signal.throwIfAborted();
      learnSecrets({ values: getNativeSecrets(request, variable) });
      const place: ReplyPlace = { ...connection.place, model: request.model, now: Date.now };
      const capabilities = connection.capabilitiesOf(request.model);
      const stream = options.stream ?? onDelta !== undefined;
      return await callWithin({ signal, limits: options, place }, async (watch) => {
        const client = await connection.connect();
        const call = { api, client, place, watch, capabilities, stream, variable, known };
        return await performCall(request, onDelta, call);
      });
    },
  };
}

/** How long a call may take; see `WireModelOptions`. */
export type CallLimits = Pick<WireModelOptions, 'timeoutMs' | 'idleMs'>;

/**
 * Performs one call under its clocks. Rejects with the reason of `signal` if that aborts, else only
 * with a `ModelError`.
 */
export async function callWithin(
  call: { readonly signal: AbortSignal; readonly limits: CallLimits; readonly place: ReplyPlace },
  perform: (watch: CallWatch) => Promise<ModelReply>,
): Promise<ModelReply> {
  const { signal, limits, place } = call;
  const { timeoutMs = DEFAULT_TIMEOUT_MS, idleMs = DEFAULT_IDLE_MS } = limits;
  const thinkingMs = limits.idleMs === undefined ? timeoutMs : limits.idleMs * THINKING_FACTOR;
  const watch = watchCall(signal, { timeoutMs, idleMs, thinkingMs });
  try {
    return await perform(watch);
  } catch (error) {
    signal.throwIfAborted();
    const expiry = watch.expiry();
    if (expiry !== null) throw timeoutError(expiry, place, watch);
    return replyOrThrow(error, place);
  } finally {
    watch.stop();
  }
}

interface Call {
  readonly api: WireApi;
  readonly client: WireClient;
  readonly place: ReplyPlace;
  readonly watch: CallWatch;
  readonly capabilities: ModelCapabilities;
  readonly stream: boolean;
  readonly variable: Variable;
  readonly known: KnownRefusals;
}

async function performCall(
  request: ModelRequest,
  onDelta: ModelContext['onDelta'],
  { api, client, place, watch, capabilities, stream, variable, known }: Call,
): Promise<ModelReply> {
  const { baseUrl } = place;
  const write = await api.prepare(request, { capabilities, baseUrl, variable });
  const emit = createEmitter(onDelta);
  const computer = computerHandler(request.settings);
  return await sendWithoutRefused(request, known, {
    listSent: (attempt) => [
      ...write(adaptRequest(attempt, api).request, { stream }).sent(),
      ...listAdaptable(attempt, api),
    ],
    async send(attempt) {
      const { request: adapted, renamed, restore } = adaptRequest(attempt, api);
      const { body } = write(adapted, { stream });
      const response = await client.post(api.path, {
        body: wellFormedJson(body),
        signal: watch.signal,
      });
      const source = {
        headers: response.headers,
        place,
        ...(computer !== null && { computer }),
        mayBeEmpty: mayBeEmpty(request),
      };
      const streamed = body.stream ?? false;
      const reading = { api, client, streamed, watch, emit: hideArguments(emit, renamed) };
      const reply = restore(await readAnswer(response, source, reading));
      emitHidden(reply, renamed, emit);
      return reply;
    },
  });
}

/** Hides the arguments of calls whose properties have other names at the server. */
export function hideArguments(emit: EmitDelta, renamed: ReadonlySet<string>): EmitDelta {
  if (renamed.size === 0) return emit;
  const hidden = new Set<number>();
  return (delta) => {
    if (delta.kind !== 'call') return emit(delta);
    if (delta.name !== undefined && renamed.has(delta.name)) hidden.add(delta.index);
    if (!hidden.has(delta.index)) return emit(delta);
    if (delta.name !== undefined) emit({ ...delta, text: '' });
  };
}

/** Emits the hidden arguments, under the names that the tools' authors wrote. */
export function emitHidden(
  { calls }: ModelReply,
  renamed: ReadonlySet<string>,
  emit: EmitDelta,
): void {
  for (const [index, call] of calls.entries()) {
    if (renamed.has(call.name)) emit({ kind: 'call', index, text: call.arguments });
  }
}

/**
 * Whether the model may end its turn in silence: it has the results of its calls, and no answer in a
 * certain form is demanded.
 */
export function mayBeEmpty({ messages, toolChoice, responseFormat }: ModelRequest): boolean {
  const isAnswered = messages.at(-1)?.role === 'tool';
  return isAnswered && toolChoice !== 'required' && responseFormat === undefined;
}

interface Exchange {
  /** Lists what a request would send that a server may refuse. */
  listSent(request: ModelRequest): readonly SentParameter[];
  send(request: ModelRequest): Promise<ModelReply>;
}

/**
 * Sends a request without what the server has refused before, and notes what it refuses now. The
 * reply names all of it as `dropped`.
 */
export async function sendWithoutRefused(
  request: ModelRequest,
  known: KnownRefusals,
  exchange: Exchange,
): Promise<ModelReply> {
  const recalled = known.recall(request, (attempt) => exchange.listSent(attempt));
  const { without = [] } = request;
  const first =
    recalled.length === 0 ? request : { ...request, without: [...without, ...recalled] };
  const reply = await retryWithoutParameter(exchange, first, recalled);
  known.learn(request, (reply.dropped ?? []).slice(recalled.length));
  return reply;
}

/**
 * Sends a request, and if the server refuses a parameter, sends it again without that parameter.
 * The refused request cost nothing, and each parameter is omitted only once, so this terminates.
 * Any other error is rethrown.
 */
async function retryWithoutParameter(
  exchange: Exchange,
  request: ModelRequest,
  dropped: readonly RequestParameter[] = [],
): Promise<ModelReply> {
  try {
    const reply = await exchange.send(request);
    const all = [...dropped, ...(reply.dropped ?? [])];
    return all.length === 0 ? reply : { ...reply, dropped: all };
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error;
    const refused = findRefused(exchange.listSent(request), error.failure);
    const without = request.without ?? [];
    if (refused === null || without.includes(refused)) throw error;
    return await retryWithoutParameter(exchange, { ...request, without: [...without, refused] }, [
      ...dropped,
      refused,
    ]);
  }
}

function timeoutError(expiry: Expiry, place: ReplyPlace, watch: CallWatch): ModelError {
  const what = expiry === 'idle' ? 'sent nothing more' : 'did not finish its answer';
  const message = `${place.baseUrl} ${what} within ${watch.limitMs(expiry)} ms`;
  return new ModelError(message, { kind: 'retry', type: expiry });
}

/**
 * Returns the reply for a provider's error that counts as one; throws a `ModelError` for any other
 * error.
 */
function replyOrThrow(error: unknown, place: ReplyPlace): ModelReply {
  if (error instanceof ModelError) throw error;
  if (error instanceof ProviderFailure) return replyToError(error.failure, place);
  throw transportError(error, place);
}

/**
 * Creates the `ModelError` for a request without a complete answer: refused, reset, name not
 * resolved, cut in mid-body. All of them may be transient, so all are `retry`. The causes appear
 * only in the message, by code and text: as `cause`, they would add foreign texts to the history.
 */
function transportError(error: unknown, place: ReplyPlace): ModelError {
  const errors = causeChain(error);
  const code = errors.map(getCode).find((item) => item !== undefined);
  const type = (code === undefined ? undefined : TYPES[code]) ?? 'connection';
  const innermost = errors.at(-1)?.message ?? String(error);
  const reason = sample(code === undefined ? innermost : `${code} ${innermost}`);
  const message = `Incomplete answer from ${place.baseUrl}: ${reason}`;
  return new ModelError(message, { kind: 'retry', type });
}

/** The error codes of Node and undici, by what they mean to an operator. */
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

/** Maximum depth of causes, in case they form a cycle. */
const MAX_CAUSE_DEPTH = 8;

/** Returns the error and its causes, outermost first. */
function causeChain(error: unknown): readonly Error[] {
  const errors: Error[] = [];
  let next = error;
  while (next instanceof Error && errors.length < MAX_CAUSE_DEPTH) {
    errors.push(next);
    next = next.cause;
  }
  return errors;
}

function getCode(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
