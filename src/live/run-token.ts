import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { toMs, type Duration } from '../core/text/duration.js';
import { show } from '../core/text/format-value.js';
import { RunTokenError } from '../core/errors.js';

/** What a token lets its bearer read. */
export type TokenScope =
  /** Every run: the token is the workers' own, or none is needed. */
  | { readonly type: 'all' }
  | {
      readonly type: 'run';
      readonly id: string;
      /** Unix time in milliseconds. */
      readonly expiresAt: number;
    };

const KIND = 'perdure-run-1';
/** The holder of a run token can guess short secrets offline. */
const MIN_SECRET = 32;
const DEFAULT_MS = 60 * 60_000;
const MAX_MS = 7 * 24 * 60 * 60_000;
const MAX_ID = 1_000;

/** Options of `runToken`: the run, the workers' token, and how long the new token is valid. */
export interface RunTokenOptions {
  /** The id of the run that may be read. */
  readonly run: string;
  /** The workers' own token, at least 32 characters; default PERDURE_LIVE_TOKEN. */
  readonly token?: string;
  /**
   * The time after which the new token expires, at most seven days. A duration: ms, or words such as
   * '1 hour', which is the default.
   */
  readonly expiresIn?: Duration;
}

/**
 * Creates a token that lets its bearer read one run live, and no other, for a limited time. It is derived from
 * the workers' own token, so no worker is involved. Throws a `RunTokenError` (`run_token`) if that token is
 * missing or too short, if the id is invalid, or if the time is out of range.
 *
 * @example
 * ```ts
 * import { runToken } from 'perdure';
 *
 * const run = 'files-20261121-8f3a2c';
 * const token = runToken({ run, expiresIn: '15 minutes' });
 * const headers = { authorization: `Bearer ${token}` };
 * const events = await fetch(`http://127.0.0.1:8090/runs/${run}/events`, { headers });
 * console.log(events.status);
 * ```
 */
export function runToken({
  run,
  token = process.env['PERDURE_LIVE_TOKEN'] ?? '',
  expiresIn = DEFAULT_MS,
  ...others
}: RunTokenOptions): string {
  const [other] = Object.keys(others);
  if (other !== undefined) {
    throw new RunTokenError(
      `${show(other)} is not an option; the options are run, token, expiresIn`,
    );
  }
  if (token.length < MIN_SECRET) {
    throw new RunTokenError(
      `token: expected the workers' token, at least ${MIN_SECRET} characters; got ${token.length}; ` +
        'set PERDURE_LIVE_TOKEN for workers and here, e.g. to the output of: openssl rand -hex 32',
    );
  }
  if (run === '' || run.length > MAX_ID || /\p{Surrogate}/u.test(run)) {
    throw new RunTokenError(`run: expected the id of a run, got ${show(run)}`);
  }
  const expiresInMs = toMs(expiresIn);
  if (!(expiresInMs >= 1_000 && expiresInMs <= MAX_MS)) {
    throw new RunTokenError(
      `expiresIn: expected a whole number of ms or words such as "15 minutes", from 1 second to 7 days, got ${show(expiresIn)}`,
    );
  }
  const expires = String(Math.floor((Date.now() + expiresInMs) / 1_000));
  const id = Buffer.from(run).toString('base64url');
  return [KIND, id, expires, sign(token, id, expires)].join('.');
}

/**
 * Returns what a token allows; null if it is neither the workers' own nor derived from it, or if it
 * has expired. The comparison takes constant time.
 */
export function verifyToken(given: string, token: string, now = Date.now()): TokenScope | null {
  if (isEqual(given, token)) return { type: 'all' };
  const [, id = '', expires = '', signature = ''] =
    /^perdure-run-1\.([\w-]{1,5400})\.(\d{1,12})\.([\w-]{43})$/.exec(given) ?? [];
  if (signature === '' || !isEqual(signature, sign(token, id, expires))) return null;
  const expiresAt = Number(expires) * 1_000;
  if (expiresAt <= now) return null;
  return { type: 'run', id: Buffer.from(id, 'base64url').toString(), expiresAt };
}

/** Returns the signature. No part contains a dot, so the joined text is unambiguous. */
function sign(token: string, id: string, expires: string): string {
  return createHmac('sha256', token).update([KIND, id, expires].join('.')).digest('base64url');
}

function isEqual(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
