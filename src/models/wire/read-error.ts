import { isObject } from '../../core/json.js';
import type { ModelErrorKind } from '../model-error.js';

/** An error as the provider sent it: by HTTP status, in place of an answer, or within a stream. */
export interface ProviderError {
  readonly status?: number;
  readonly headers: Headers;
  /** The JSON that describes the error, or the text of a body that is not JSON. */
  readonly error: unknown;
}

/**
 * Thrown by a client for an error that the provider sent. It carries the provider's text, so it is
 * never shown.
 */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure';
  readonly failure: ProviderError;

  constructor(failure: ProviderError) {
    super('the provider sent an error');
    this.failure = failure;
  }
}

/**
 * Returns the failure for an error of a provider's SDK; the error itself if the provider did not
 * send it. `body`: the provider's description of it.
 */
export function toProviderFailure(
  error: Error & { status: unknown; headers: unknown; error: unknown },
  body: unknown = error.error,
): Error {
  const { status, headers } = error;
  if (!(headers instanceof Headers)) return error;
  const failure = { headers, error: body };
  return new ProviderFailure(typeof status === 'number' ? { ...failure, status } : failure);
}

/** The readable content of a provider's error. */
export interface ErrorReading {
  readonly kind: ModelErrorKind;
  /** A short machine name such as `rate_limit` or `http_502`. */
  readonly type: string;
  /** Undefined for an error within a stream. */
  readonly status: number | undefined;
  /** The provider's own text. */
  readonly text: string;
  /** The request parameter that the error names; empty if none. */
  readonly param: string;
  /** True if the provider's content filter refused the prompt: an outcome, not a failure. */
  readonly isFiltered: boolean;
}

export function readError(failure: ProviderError): ErrorReading {
  const facts = readFacts(failure);
  const kind = classify(facts, failure.headers.get('x-should-retry'));
  const param = isObject(failure.error) ? failure.error['param'] : undefined;
  return {
    kind,
    type: getType(kind, facts),
    status: facts.status,
    text: facts.text,
    param: typeof param === 'string' ? param : '',
    isFiltered: hasCode(facts, FILTER_CODES) || FILTER_TEXT.test(facts.text),
  };
}

/** Returns true if the provider's text means that the prompt does not fit the model. */
export function saysContextTooLong(text: string): boolean {
  return CONTEXT_TEXTS.some((phrase) => phrase.test(text));
}

interface Facts {
  readonly status: number | undefined;
  readonly codes: readonly string[];
  readonly text: string;
}

function readFacts({ status, error }: ProviderError): Facts {
  if (!isObject(error)) return { status, codes: [], text: getMessage(error) };
  const inner = isObject(error['innererror']) ? error['innererror']['code'] : undefined;
  const code = error['code'];
  const numeric = typeof code === 'number' && code >= 400 && code < 600 ? code : undefined;
  return {
    status: status ?? numeric,
    codes: [code, error['type'], inner].filter((item) => typeof item === 'string'),
    text: getMessage(error),
  };
}

function getMessage(error: unknown): string {
  if (typeof error === 'string') return error;
  if (!isObject(error)) return '';
  const message = [error['message'], error['detail']].find((part) => typeof part === 'string');
  // A router wraps the message of the model's own server.
  const metadata = isObject(error['metadata']) ? error['metadata']['raw'] : undefined;
  const text = message ?? JSON.stringify(error);
  return typeof metadata === 'string' ? `${text} ${metadata}` : text;
}

const QUOTA_CODES = new Set([
  'insufficient_quota',
  'billing_hard_limit_reached',
  'billing_not_active',
  'insufficient_balance',
  'insufficient_credits',
  'billing_error',
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

/** The text of Anthropic's filter, which has no separate code. */
const FILTER_TEXT = /output blocked by content filtering policy/i;

/** Codes of errors without a status that no retry can help. */
const REQUEST_CODE =
  /^(invalid_(request_error|prompt|image|base64)|image_|unsupported_|empty_image|failed_to_download_image)/;

const QUOTA_TEXT =
  /insufficient (balance|credits)|credit balance is too low|out of credits|billing hard limit/i;
const KEY_TEXT = /api[ _]key (is )?(not valid|invalid|missing|required)|(invalid|no) api[ _]key/i;
const MODEL_TEXT =
  /invalid model|model\b.{0,80}(not found|does not exist|not exist|is not supported)/i;

/** Sent by servers whose model cannot see; some send it with a status that would be retried. */
const NO_IMAGES_TEXT =
  /images? (input|url)s? (is |are )?(not supported|unsupported)|image_url\W.{0,40}(not supported|only supported)|unsupported content part type\W{1,4}image_url|(does not|doesn't|that) support (image|vision)|not a multimodal model/i;

/** Only OpenAI and a few others send a code when the prompt is larger than the model's window. */
const CONTEXT_TEXTS: readonly RegExp[] = [
  /maximum (context|prompt) length/i,
  /context[_ ](length|window|size)[_ ]exceeded/i,
  /(exceed|overflow|larger than|greater than|longer than).{0,60}context[_ ](window|length|size)/i,
  /context[_ ](window|length|size).{0,60}(exceed|overflow|too (long|small))/i,
  /(prompt|input) is too long/i,
  /(prompt|input).{0,60}exceeds the maximum/i,
  /reduce the length of (the|your) (messages|prompt)/i,
  /too many (input |prompt )?tokens(?! per)/i,
  /exceed context limit/i,
  /token limit exceeded|exceed\w{0,9} (the )?(model )?token limit/i,
];

/**
 * Sent with 429 if a single request is larger than the allowance of a minute: waiting does not
 * help.
 */
const TOO_LARGE_TEXT = /request (entity )?too large/i;

function classify(facts: Facts, shouldRetry: string | null): ModelErrorKind {
  const { status, codes, text } = facts;
  if (isQuota(facts)) return 'quota';
  if (isContextTooLong(facts)) return 'context_too_long';
  if (saysNoImages(facts)) return 'request';
  if (shouldRetry === 'true') return 'retry';
  if (hasCode(facts, MODEL_CODES) || status === 404) return 'model';
  if (hasCode(facts, KEY_CODES) || status === 401 || status === 403) return 'credentials';
  if (status === undefined) {
    return codes.some((code) => REQUEST_CODE.test(code)) ? 'request' : 'retry';
  }
  if (isRetryable(status)) return shouldRetry === 'false' ? 'request' : 'retry';
  if (status === 400 && KEY_TEXT.test(text)) return 'credentials';
  if (status === 400 && MODEL_TEXT.test(text)) return 'model';
  return 'request';
}

function isQuota(facts: Facts): boolean {
  const { status = 429, text } = facts;
  if (hasCode(facts, QUOTA_CODES) || status === 402) return true;
  return (status === 400 || status === 403 || status === 429) && QUOTA_TEXT.test(text);
}

function isContextTooLong(facts: Facts): boolean {
  const { status = 400, text } = facts;
  if (hasCode(facts, CONTEXT_CODES) || status === 413) return true;
  if (status === 429) return TOO_LARGE_TEXT.test(text);
  return (status === 400 || status === 422 || status >= 500) && saysContextTooLong(text);
}

function saysNoImages({ status = 400, text }: Facts): boolean {
  return status >= 400 && NO_IMAGES_TEXT.test(text);
}

function isRetryable(status: number): boolean {
  return [408, 409, 425, 429].includes(status) || status >= 500;
}

function hasCode({ codes }: Facts, wanted: ReadonlySet<string>): boolean {
  return codes.some((code) => wanted.has(code));
}

const RATE_CODE = /^rate_limit_(exceeded|error)$/;

function getType(kind: ModelErrorKind, facts: Facts): string {
  const { status, codes } = facts;
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
        return codes.some((code) => RATE_CODE.test(code)) ? 'rate_limit' : 'stream_error';
      }
      return status === 429 ? 'rate_limit' : `http_${status}`;
    case 'request':
    case 'empty':
      if (saysNoImages(facts)) return NO_IMAGES;
      return codes.find((code) => /^\w{1,40}$/.test(code)) ?? `http_${status ?? 400}`;
  }
}

/** The type of a refusal of images. */
export const NO_IMAGES = 'no_images';
