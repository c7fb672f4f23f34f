import { isObject } from '../../core/json.js';
import { ModelError, type ModelErrorDetails, type ModelErrorKind } from '../model-error.js';
import { retryAfterMs } from './retry-after.js';
import { redactMessage } from '../../secrets/redact.js';
import { sample } from '../sample.js';

/** Which call an error belongs to, for its message. */
export interface CallPlace {
  readonly baseUrl: string;
  readonly model: string;
  /** False when only a placeholder was sent. */
  readonly hasKey: boolean;
  /** Unix time in milliseconds. */
  readonly now: () => number;
}

/** An error as the provider sent it: by status, in place of an answer, or within a stream. */
export interface ProviderError {
  readonly status?: number;
  readonly headers: Headers;
  /** The JSON that describes the error, or the text of a body that was no JSON. */
  readonly error: unknown;
}

interface Reading {
  readonly status: number | undefined;
  readonly codes: readonly string[];
  readonly text: string;
}

const QUOTA_CODES = new Set([
  'insufficient_quota',
  'billing_hard_limit_reached',
  'billing_not_active',
  'insufficient_balance',
  'insufficient_credits',
]);
const CONTEXT_CODES = new Set(['context_length_exceeded', 'exceed_context_size_error']);
const MODEL_CODES = new Set(['model_not_found', 'model_not_available']);
const KEY_CODES = new Set(['invalid_api_key', 'authentication_error']);
const FILTER_CODES = new Set([
  'content_filter',
  'content_policy_violation',
  'ResponsibleAIPolicyViolation',
  'bio_policy',
  'image_content_policy_violation',
]);

/** An error without a status, by what its code says: the request itself is at fault. */
const REQUEST_CODE =
  /^(invalid_(request_error|prompt|image|base64)|image_|unsupported_|empty_image|failed_to_download_image)/;

const QUOTA_TEXT =
  /insufficient (balance|credits)|credit balance is too low|out of credits|billing hard limit/i;
const KEY_TEXT = /api[ _]key (is )?(not valid|invalid|missing|required)|(invalid|no) api[ _]key/i;
const MODEL_TEXT =
  /invalid model|model\b.{0,80}(not found|does not exist|not exist|is not supported)/i;

const RETRYABLE = new Set([408, 409, 425, 429]);

function isRetryable(status: number): boolean {
  return RETRYABLE.has(status) || status >= 500;
}

function messageOf(error: unknown): string {
  if (typeof error === 'string') return error;
  if (!isObject(error)) return '';
  const message = [error['message'], error['detail']].find((part) => typeof part === 'string');
  // A router wraps what the model's own server said.
  const metadata = isObject(error['metadata']) ? error['metadata']['raw'] : undefined;
  const text = message ?? JSON.stringify(error);
  return typeof metadata === 'string' ? `${text} ${metadata}` : text;
}

function read({ status, error }: ProviderError): Reading {
  if (!isObject(error)) return { status, codes: [], text: messageOf(error) };
  const inner = isObject(error['innererror']) ? error['innererror']['code'] : undefined;
  const code = error['code'];
  const numeric = typeof code === 'number' && code >= 400 && code < 600 ? code : undefined;
  return {
    status: status ?? numeric,
    codes: [code, error['type'], inner].filter((item) => typeof item === 'string'),
    text: messageOf(error),
  };
}

/** Said by servers whose model cannot see; some of them with a status that would be tried again. */
const NO_IMAGES_TEXT =
  /images? (input|url)s? (is |are )?(not supported|unsupported)|image_url\W.{0,40}(not supported|only supported)|unsupported content part type\W{1,4}image_url|(does not|doesn't|that) support (image|vision)|not a multimodal model/i;

function saysNoImages({ status = 400, text }: Reading): boolean {
  return status >= 400 && NO_IMAGES_TEXT.test(text);
}

function has(reading: Reading, codes: ReadonlySet<string>): boolean {
  return reading.codes.some((code) => codes.has(code));
}

function isQuota(reading: Reading): boolean {
  const { status = 429, text } = reading;
  if (has(reading, QUOTA_CODES) || status === 402) return true;
  return (status === 400 || status === 403 || status === 429) && QUOTA_TEXT.test(text);
}

function isContextTooLong(reading: Reading): boolean {
  const { status = 400, text } = reading;
  if (has(reading, CONTEXT_CODES) || status === 413) return true;
  if (status === 429) return saysRequestTooLarge(text);
  return (status === 400 || status === 422 || status >= 500) && saysContextTooLong(text);
}

function kindOf(reading: Reading, shouldRetry: string | null): ModelErrorKind {
  const { status, text } = reading;
  if (isQuota(reading)) return 'quota';
  if (isContextTooLong(reading)) return 'context_too_long';
  if (saysNoImages(reading)) return 'request';
  if (shouldRetry === 'true') return 'retry';
  if (has(reading, MODEL_CODES) || status === 404) return 'model';
  if (has(reading, KEY_CODES) || status === 401 || status === 403) return 'credentials';
  if (status === undefined) {
    return reading.codes.some((code) => REQUEST_CODE.test(code)) ? 'request' : 'retry';
  }
  if (isRetryable(status)) return shouldRetry === 'false' ? 'request' : 'retry';
  if (status === 400 && KEY_TEXT.test(text)) return 'credentials';
  if (status === 400 && MODEL_TEXT.test(text)) return 'model';
  return 'request';
}

function typeOf(kind: ModelErrorKind, reading: Reading): string {
  const { status, codes } = reading;
  switch (kind) {
    case 'quota':
      return 'insufficient_quota';
    case 'context_too_long':
      return 'context_length_exceeded';
    case 'model':
      return 'model_not_found';
    case 'credentials':
      return status === 403 ? 'forbidden' : 'unauthorized';
    case 'retry':
      if (status === undefined) {
        return codes.includes('rate_limit_exceeded') ? 'rate_limit' : 'stream_error';
      }
      return status === 429 ? 'rate_limit' : `http_${status}`;
    case 'request':
    case 'empty':
      if (saysNoImages(reading)) return 'no_images';
      return codes.find((code) => /^\w{1,40}$/.test(code)) ?? `http_${status ?? 400}`;
  }
}

function advice(
  kind: ModelErrorKind,
  { place, reading }: { place: CallPlace; reading: Reading },
): string {
  switch (kind) {
    case 'quota':
      return 'the account has no quota left; add credit there';
    case 'credentials':
      return place.hasKey
        ? 'the key was refused; set OPENAI_API_KEY for the worker to one that is valid there'
        : 'it wants a key; set OPENAI_API_KEY for the worker';
    case 'model':
      return `no model "${place.model}" there; name one of GET ${place.baseUrl}/models, or correct OPENAI_BASE_URL`;
    case 'context_too_long':
      return `the prompt does not fit the model "${place.model}"`;
    case 'retry':
      return 'no answer for now';
    case 'request':
    case 'empty':
      return saysNoImages(reading)
        ? `the model "${place.model}" takes no images; name one that does, or leave them out`
        : 'the request was refused';
  }
}

export function requestIdOf(headers: Headers): string | undefined {
  const id = headers.get('x-request-id') ?? headers.get('request-id') ?? undefined;
  return id === undefined ? undefined : redactMessage(id).slice(0, 200);
}

/** What the provider said in words, and the parameter that it names, if any. */
export function saidBy({ error }: ProviderError): {
  readonly text: string;
  readonly param: string;
} {
  const param = isObject(error) ? error['param'] : undefined;
  return { text: messageOf(error), param: typeof param === 'string' ? param : '' };
}

/** True when the provider's filter refused the prompt: an outcome, not an error. */
export function isContentFilter(failure: ProviderError): boolean {
  return has(read(failure), FILTER_CODES);
}

/** Details with the optional ones left out where unknown. */
export function detailsFrom(
  details: Pick<ModelErrorDetails, 'kind' | 'type'>,
  headers: Headers,
  rest: { status?: number | undefined; retryAfterMs?: number | undefined } = {},
): ModelErrorDetails {
  const requestId = requestIdOf(headers);
  return {
    ...details,
    ...(rest.status !== undefined && { status: rest.status }),
    ...(rest.retryAfterMs !== undefined && { retryAfterMs: rest.retryAfterMs }),
    ...(requestId !== undefined && { requestId }),
  };
}

/** The `ModelError` for an error that the provider sent. */
export function providerError(failure: ProviderError, place: CallPlace): ModelError {
  const reading = read(failure);
  const kind = kindOf(reading, failure.headers.get('x-should-retry'));
  const status = reading.status === undefined ? 'Error' : String(reading.status);
  const said = sample(reading.text);
  return new ModelError(
    `${status} from ${place.baseUrl}: ${advice(kind, { place, reading })}${said === '' ? '' : `. It said: ${said}`}`,
    detailsFrom({ kind, type: typeOf(kind, reading) }, failure.headers, {
      status: reading.status,
      retryAfterMs: retryAfterMs(failure.headers, place.now()),
    }),
  );
}

/**
 * How servers say in free text that the prompt is larger than the model's window; only OpenAI and
 * a few others send a code for it.
 */
const PHRASES: readonly RegExp[] = [
  /maximum (context|prompt) length/i,
  /context[_ ](length|window|size)[_ ]exceeded/i,
  /(exceed|overflow|larger than|greater than|longer than).{0,60}context[_ ](window|length|size)/i,
  /context[_ ](window|length|size).{0,60}(exceed|overflow|too (long|small))/i,
  /(prompt|input) is too long/i,
  /(prompt|input).{0,60}exceeds the maximum/i,
  /reduce the length of (the|your) (messages|prompt)/i,
  /too many (input |prompt )?tokens(?! per)/i,
  /token limit exceeded|exceed\w{0,9} (the )?(model )?token limit/i,
];

/** Said with 413, and with 429 when a single request is larger than a minute's allowance: waiting does not help. */
const TOO_LARGE = /request (entity )?too large/i;

/** True when the provider's text says that the prompt does not fit the model. */
export function saysContextTooLong(text: string): boolean {
  return PHRASES.some((phrase) => phrase.test(text));
}

function saysRequestTooLarge(text: string): boolean {
  return TOO_LARGE.test(text);
}
