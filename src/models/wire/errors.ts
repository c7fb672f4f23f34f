import { redactMessage } from '../../secrets/redact.js';
import {
  type ModelReply,
  ModelError,
  type ModelErrorDetails,
  type ModelErrorKind,
  sample,
} from '../model.js';
import type { ReplyPlace, ReplySource } from './api.js';
import { NO_IMAGES } from './error-table.js';
import { readError, type ErrorReading, type ProviderError } from './read-error.js';

/**
 * Returns the reply if the provider's content filter refused the prompt: a reply with finish
 * `filtered`. Throws a `ModelError` for every other error of the provider.
 */
export function replyToError(failure: ProviderError, place: ReplyPlace): ModelReply {
  if (!readError(failure).isFiltered) {
    throw redirectError(failure, place) ?? providerError(failure, place);
  }
  const requestId = getRequestId(failure.headers);
  return {
    text: '',
    calls: [],
    finish: 'filtered',
    ...(requestId !== undefined && { requestId }),
  };
}

/** Creates the `ModelError` for an error that the provider sent. */
export function providerError(failure: ProviderError, place: ReplyPlace): ModelError {
  const reading = readError(failure, place.now());
  const { kind, type, status, waitMs } = reading;
  const text = sample(reading.text);
  return new ModelError(
    `${status ?? 'Error'} from ${place.baseUrl}: ${getAdvice(reading, place)}${text === '' ? '' : `. Provider's message: ${text}`}`,
    createDetails({ kind, type }, failure.headers, {
      status,
      retryAfterMs: retryAfterMs(failure.headers, place.now()) ?? limitWait(waitMs),
    }),
  );
}

function getAdvice({ kind, type, status }: ErrorReading, place: ReplyPlace): string {
  const { apiKeyEnv, urlVariable = 'OPENAI_BASE_URL', isConfigured = false } = place;
  switch (kind) {
    case 'quota':
      return "the account's quota is used up; add credit, or raise its limit";
    case 'credentials':
      if (isConfigured) return 'the key was refused; give the provider a valid key in the config';
      if (place.hasKey && status === 403) {
        return `access was refused; check what the key in ${apiKeyEnv} may use`;
      }
      return place.hasKey
        ? `the key was refused; set ${apiKeyEnv} for the worker to a valid key`
        : `it requires a key; set ${apiKeyEnv} for the worker, or use the model "demo", which needs none`;
    case 'model':
      if (isConfigured) return `unknown model "${place.model}"; correct its name in the config`;
      return `unknown model "${place.model}"; use one listed by GET ${place.baseUrl}/models, or correct ${urlVariable}`;
    case 'context_too_long':
      return `the prompt does not fit the model "${place.model}"`;
    case 'retry':
      return 'temporarily unavailable';
    case 'malformed':
      return 'the server could not read what the model wrote';
    case 'bad_request':
      return 'the request was refused; change the agent or its entry in `models` of the config, or cancel the turn';
    case 'request':
    case 'empty':
      return type === NO_IMAGES
        ? `the model "${place.model}" does not accept images; use one that does, or remove them`
        : 'the request was refused';
  }
}

/**
 * Creates the `ModelError` for a redirect; returns null for any other status. Redirects are not
 * followed: the key and the conversation are only for the specified provider.
 */
function redirectError({ status, headers }: ProviderError, place: ReplyPlace): ModelError | null {
  if (status === undefined || status < 300 || status > 399) return null;
  const target = getOrigin(headers.get('location') ?? '', place.baseUrl);
  return new ModelError(
    `${status} from ${place.baseUrl}: expected an answer, got a redirect to ${target}, which is not followed; ` +
      `if that is the provider, set ${place.urlVariable ?? 'OPENAI_BASE_URL'} to its address`,
    createDetails({ kind: 'model', type: 'redirected' }, headers, { status }),
  );
}

/** Returns the origin of a location, without path and query, which may contain a token. */
function getOrigin(location: string, base: string): string {
  if (!URL.canParse(location, base)) return 'nowhere';
  const { origin, protocol } = new URL(location, base);
  return origin === 'null' ? protocol : origin;
}

/** Creates the `ModelError` for an unusable answer, with a sample of the provider's `text`. */
export function unusableAnswer(
  source: ReplySource,
  problem: {
    readonly kind?: ModelErrorKind;
    readonly type: string;
    /** The provider's fault, as text that follows its address. */
    readonly what: string;
    readonly text: string;
  },
): ModelError {
  const { kind = 'retry', type, what } = problem;
  const text = sample(problem.text);
  return new ModelError(
    `${source.place.baseUrl} ${what}${text === '' ? '' : `: ${text}`}`,
    createDetails({ kind, type }, source.headers),
  );
}

/**
 * Creates the `ModelError` for a value without a message. If it has parts of an answer (`isPaid`), it may
 * have been paid for, so it is requested only a few times; anything else may come from a proxy.
 */
export function missingMessage(
  source: ReplySource,
  value: unknown,
  { isPaid, type }: { readonly isPaid: boolean; readonly type: string },
): ModelError {
  return unusableAnswer(source, {
    ...(isPaid ? { kind: 'malformed', type } : { type: 'no_answer' }),
    what: 'answered without a message',
    text: JSON.stringify(value) ?? 'undefined',
  });
}

function createDetails(
  details: Pick<ModelErrorDetails, 'kind' | 'type'>,
  headers: Headers,
  optional: { status?: number | undefined; retryAfterMs?: number | undefined } = {},
): ModelErrorDetails {
  const requestId = getRequestId(headers);
  return {
    ...details,
    ...(optional.status !== undefined && { status: optional.status }),
    ...(optional.retryAfterMs !== undefined && { retryAfterMs: optional.retryAfterMs }),
    ...(requestId !== undefined && { requestId }),
  };
}

export function getRequestId(headers: Headers): string | undefined {
  const id = headers.get('x-request-id') ?? headers.get('request-id') ?? undefined;
  return id === undefined ? undefined : redactMessage(id).slice(0, 200);
}

/** The longest wait that a provider can impose. */
export const MAX_WAIT_MS = 600_000;

/**
 * Returns the milliseconds that the provider asks to wait, at most `MAX_WAIT_MS`:
 * `retry-after-ms`, else `retry-after` in seconds or as a date. Returns undefined if neither can be
 * read.
 */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  return limitWait(readRetryAfter(headers, now));
}

function limitWait(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.min(Math.ceil(ms), MAX_WAIT_MS);
}

const NUMBER = /^\d+(\.\d+)?$/;
/** The forms of HTTP and of ISO 8601; `Date.parse` alone would find a date in nearly any text. */
const DATE = /GMT$|^\d{4}-\d{2}-\d{2}T/;

function readRetryAfter(headers: Headers, now: number): number | undefined {
  const milliseconds = headers.get('retry-after-ms')?.trim() ?? '';
  if (NUMBER.test(milliseconds)) return Number(milliseconds);
  const text = headers.get('retry-after')?.trim() ?? '';
  if (NUMBER.test(text)) return Number(text) * 1000;
  const until = DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(until)) return undefined;
  // Uses the provider's own clock if it sends it: the local one may be minutes off.
  const sent = Date.parse(headers.get('date') ?? '');
  return Math.max(0, until - (Number.isNaN(sent) ? now : sent));
}

/** Creates the `ModelError` for a complete reply without text and calls. `value`: where they are missing. */
export function emptyReply(source: ReplySource, value: unknown): ModelError {
  return unusableAnswer(source, {
    kind: 'empty',
    type: 'empty_reply',
    what: 'answered with neither text nor calls',
    text: JSON.stringify(value) ?? 'undefined',
  });
}
