import { isObject } from '../../core/text/json.js';
import { MALFORMED, type ModelErrorKind } from '../model.js';
import { type ErrorFacts, readFacts } from './error-facts.js';
import { NO_IMAGES, findRow } from './error-table.js';

/** An error as the provider sent it: by HTTP status, in place of an answer, or within a stream. */
export interface ProviderError {
  readonly status?: number;
  readonly headers: Headers;
  /** The body, or the part of it that describes the error: JSON, or a text that is not JSON. */
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
 * send it.
 */
export function toProviderFailure(
  error: Error & { status: unknown; headers: unknown; error: unknown },
): Error {
  const { status, headers, error: body } = error;
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
  /** Milliseconds that the body asks to wait; undefined if it does not. */
  readonly waitMs: number | undefined;
  /** True if the provider's content filter refused the prompt: an outcome, not a failure. */
  readonly isFiltered: boolean;
}

/** Reads an error by the table of `error-table.ts`. */
export function readError(failure: ProviderError, now = Date.now()): ErrorReading {
  const facts = readFacts(failure, now);
  const row = findRow(facts);
  const isFiltered = row?.meaning === 'filtered';
  const found = row === null || row.meaning === 'filtered' ? getDefault(facts) : row.meaning;
  const kind = heedRetryHeader(found, failure.headers.get('x-should-retry'));
  const status = failure.status ?? facts.status;
  const type = row?.name === NO_IMAGES ? NO_IMAGES : getType(kind, { ...facts, status });
  const { text, param, waitMs } = facts;
  return { kind, type, status, text, param, waitMs, isFiltered };
}

/**
 * Returns the error in a successful body or an event of a stream; undefined if it holds none. It may
 * stand in place of the answer, beside it, or in a choice.
 */
export function findError(value: unknown): unknown {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.length === 1 ? findError(value[0]) : undefined;
  if (!isObject(value)) return undefined;
  const { error, choices, base_resp: base, type, object } = value;
  if (isStated(error)) return isObject(error) ? error : value;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (isObject(choice) && isStated(choice['error'])) return choice['error'];
  if (isObject(base) && Number(base['status_code'] ?? 0) !== 0) return base;
  if (type === 'error' || object === 'error' || value['success'] === false) return value;
  const text = value['message'] ?? value['msg'] ?? value['detail'];
  const isAlone = choices === undefined && type === undefined && object === undefined;
  return isAlone && typeof text === 'string' ? value : undefined;
}

/** Whether a field holds an error: servers also send null, false, '', or an object of nulls. */
function isStated(error: unknown): boolean {
  if (!isObject(error)) return Boolean(error);
  return Object.values(error).some((field) => field !== null && field !== '' && field !== 0);
}

/** Returns true if the provider's text means that the prompt does not fit the model. */
export function saysContextTooLong(text: string): boolean {
  const facts = readFacts({ status: 400, error: { message: text } }, 0);
  return findRow(facts)?.meaning === 'context_too_long';
}

/** Codes of errors without a status that no retry can help. */
const REQUEST_CODE = /^(?:invalidrequest|invalidargument|unsupported)/;

/** Returns the kind of an error that no row of the table matches. */
function getDefault({ status, codes }: ErrorFacts): ModelErrorKind {
  if (status !== undefined) return status >= 500 ? 'retry' : 'bad_request';
  return codes.some((code) => REQUEST_CODE.test(code)) ? 'bad_request' : 'retry';
}

/** The provider's advice decides where only a status, a key, or a model was at fault. */
function heedRetryHeader(kind: ModelErrorKind, shouldRetry: string | null): ModelErrorKind {
  if (shouldRetry === 'false' && kind === 'retry') return 'bad_request';
  const mayPass = kind === 'model' || kind === 'credentials' || kind === 'bad_request';
  return shouldRetry === 'true' && mayPass ? 'retry' : kind;
}

const RATE = /rate[ _-]?limit|too ?many ?requests|throttl/i;

function getType(kind: ModelErrorKind, { status, codes, code, text }: ErrorFacts): string {
  switch (kind) {
    case 'quota':
      return 'insufficient_quota';
    case 'context_too_long':
      return 'context_length_exceeded';
    case 'model':
      return 'model_not_found';
    case 'credentials':
      return status === 403 ? 'forbidden' : 'unauthorized';
    case 'malformed':
      return MALFORMED;
    case 'retry': {
      const isRate = status === 429 || RATE.test(codes.join(' '));
      if (isRate || (status !== undefined && status < 500 && RATE.test(text))) return 'rate_limit';
      return status === undefined ? 'stream_error' : `http_${status}`;
    }
    case 'request':
    case 'bad_request':
    case 'empty':
      return code === '' ? `http_${status ?? 400}` : code;
  }
}
