import OpenAI, { APIError } from 'openai';
import { Stream } from 'openai/streaming';
import { isObject } from '../core/json.js';
import { askWithout, type Asking } from './ask-without.js';
import { readAttachments } from './attachments.js';
import { watchCall, type Expiry } from './call-watch.js';
import { capabilitiesOf, type Capabilities } from './capabilities.js';
import type { Model, ModelReply, ModelRequest } from './model.js';
import { ModelError } from './model-error.js';
import { readAnswer, replyToError } from './openai-answer.js';
import type { CallPlace, ProviderError } from './openai-errors.js';
import { refusedParameter } from './openai-refusals.js';
import { wireRequest, type WireRequest } from './openai-request.js';
import type { Parameter } from './parameters.js';
import { patientDispatcher } from './patient-dispatcher.js';
import { transportError } from './transport-errors.js';

export interface OpenAiModelOptions {
  /** Absent: a placeholder is sent; a server on one's own machine wants none. */
  readonly apiKey?: string;
  /** Default: OpenAI's own. */
  readonly baseUrl?: string;
  /** Milliseconds a whole call may take; default 10 minutes. */
  readonly timeoutMs?: number;
  /** Milliseconds without a byte after which a streamed answer is given up; default 60 s. */
  readonly idleMs?: number;
  /** Ask for the answer in pieces, so that a dead connection is noticed early; default false. */
  readonly stream?: boolean;
  /** What the model takes; default, field by field: what is known of it by its name. */
  readonly capabilities?: Partial<Capabilities>;
}

const OPENAI_URL = 'https://api.openai.com/v1';
const PLACEHOLDER_KEY = 'none';
const DEFAULT_TIMEOUT_MS = 600_000;
const DEFAULT_IDLE_MS = 60_000;

/** The client drops the text of an error body that is not in OpenAI's form; this keeps it. */
class Client extends OpenAI {
  protected override makeStatusError(
    status: number,
    error: object | undefined,
    message: string | undefined,
    headers: Headers,
  ): APIError {
    const body = isObject(error) && error['error'] ? error : { error: error ?? message };
    return super.makeStatusError(status, body, undefined, headers);
  }
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.username || url?.password) {
    throw new TypeError(
      'The base URL of the model provider holds a user name or password; give the key as OPENAI_API_KEY.',
    );
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(
      `The base URL of the model provider, "${text}", is no http(s) URL; write for example OPENAI_BASE_URL=http://127.0.0.1:11434/v1.`,
    );
  }
  return text.replace(/\/+$/, '');
}

function checkedKey(key: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new TypeError(
    'The API key of the model provider is empty or holds characters that no HTTP header can carry (a space, a line break?); correct OPENAI_API_KEY.',
  );
}

function shownUrl(baseUrl: string): string {
  const { origin, pathname } = new URL(baseUrl);
  return `${origin}${pathname.replace(/\/$/, '')}`;
}

function expired(expiry: Expiry, place: CallPlace, limits: Record<Expiry, number>): ModelError {
  const what = expiry === 'idle' ? 'sent nothing more' : 'did not finish its answer';
  const message = `${place.baseUrl} ${what} within ${limits[expiry]} ms`;
  return new ModelError(message, { kind: 'retry', type: expiry });
}

/** What the provider sent, when that is what the client threw. */
function sentError(error: unknown): ProviderError | undefined {
  if (!(error instanceof APIError) || !(error.headers instanceof Headers)) return undefined;
  const status: unknown = error.status;
  const failure = { headers: error.headers, error: error.error };
  return typeof status === 'number' ? { ...failure, status } : failure;
}

/** What the client threw as a `ModelError`, or as the reply that it amounts to. */
function settle(error: unknown, place: CallPlace): ModelReply {
  if (error instanceof ModelError) throw error;
  const failure = sentError(error);
  if (failure !== undefined) return replyToError(failure, place);
  throw transportError(error, place);
}

function refusal(error: unknown, call: Parameters<typeof refusedParameter>[1]): Parameter | null {
  const failure = sentError(error);
  return failure === undefined ? null : refusedParameter(failure, call);
}

function connect(options: OpenAiModelOptions, baseUrl: string, timeoutMs: number): Client {
  const dispatcher = patientDispatcher();
  return new Client({
    apiKey: options.apiKey === undefined ? PLACEHOLDER_KEY : checkedKey(options.apiKey),
    baseURL: baseUrl,
    // Temporal retries; nothing else does.
    maxRetries: 0,
    timeout: timeoutMs,
    // The client would write bodies and broken streams to the console.
    logLevel: 'off',
    ...(dispatcher !== undefined && { fetchOptions: { dispatcher } }),
  });
}

/**
 * A model behind OpenAI's Chat Completions API, or any server that speaks it.
 *
 * Rejects with the reason of `context.signal` when that aborts, else only with `ModelError`. Throws
 * a `TypeError` at once for a base URL or key that cannot be used.
 */
export function openAiModel(options: OpenAiModelOptions = {}): Model {
  const baseUrl = checkedUrl(options.baseUrl ?? OPENAI_URL);
  const limits = {
    timeout: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    idle: options.idleMs ?? DEFAULT_IDLE_MS,
  };
  const client = connect(options, baseUrl, limits.timeout);
  const post = (body: WireRequest, signal: AbortSignal): Promise<Response> =>
    client.post('/chat/completions', { body, signal }).asResponse();
  const events = (response: Response): AsyncIterable<unknown> =>
    Stream.fromSSEResponse(response, new AbortController(), client);

  return {
    async call(request, { signal }) {
      signal.throwIfAborted();
      const place: CallPlace = {
        baseUrl: shownUrl(baseUrl),
        model: request.model,
        keys: options.apiKey === undefined ? [] : [options.apiKey],
        hasKey: options.apiKey !== undefined,
        now: Date.now,
      };
      const capabilities = capabilitiesOf(request.model, options.capabilities);
      const stream = options.stream ?? false;
      const watch = watchCall(signal, { timeoutMs: limits.timeout, idleMs: limits.idle });
      try {
        const data = await readAttachments(request, capabilities);
        const wired = (asked: ModelRequest): WireRequest =>
          wireRequest(asked, { stream, capabilities, data });
        const asking: Asking = {
          async ask(asked) {
            const wire = wired(asked);
            const response = await post(wire, watch.signal);
            const source = { headers: response.headers, place };
            return await readAnswer(response, source, {
              streamed: wire.stream ?? false,
              watch,
              events,
            });
          },
          refusal: (error, asked) => refusal(error, { request: asked, wire: wired(asked), place }),
        };
        return await askWithout(asking, request);
      } catch (error) {
        signal.throwIfAborted();
        const expiry = watch.expiry();
        if (expiry !== null) throw expired(expiry, place, limits);
        return settle(error, place);
      } finally {
        watch.stop();
      }
    },
  };
}
