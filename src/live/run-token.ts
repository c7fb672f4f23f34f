import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { show } from '../core/text/format-value.js';
import { RunTokenError } from '../core/errors.js';

/** What a token lets its bearer read. */
export type TokenScope =
  /** Every run: the worker's own token, or none is asked for. */
  | { readonly type: 'all' }
  | {
      readonly type: 'run';
      readonly id: string;
      /** Unix time in milliseconds. */
      readonly expiresAt: number;
    };

const KIND = 'perdure-run-1';
/** Whoever has a run's token can try out short secrets without asking anybody. */
const LEAST_SECRET = 32;
const DEFAULT_MS = 60 * 60_000;
const LONGEST_MS = 7 * 24 * 60 * 60_000;
const LONGEST_ID = 1_000;

export interface RunTokenOptions {
  /** Id of the run that may be read. */
  readonly run: string;
  /** The workers' own token, of at least 32 characters; default PERDURE_LIVE_TOKEN. */
  readonly token?: string;
  /** Milliseconds for which the new token is good, up to seven days; default one hour. */
  readonly expiresInMs?: number;
}

/**
 * Makes a token by which one run can be read live, and no other, for a limited time. It is derived from
 * the workers' own token, so no worker has to be asked. Throws a `RunTokenError` where the secret is
 * missing or too short, or the time is out of range.
 *
 * @example
 * const token = runToken({ run: 'files-20261121-8f3a2c', expiresInMs: 15 * 60_000 });
 * await fetch(`${workerUrl}/runs/${run}/events`, { headers: { authorization: `Bearer ${token}` } });
 */
export function runToken({
  run,
  token = process.env['PERDURE_LIVE_TOKEN'] ?? '',
  expiresInMs = DEFAULT_MS,
}: RunTokenOptions): string {
  if (token.length < LEAST_SECRET) {
    throw new RunTokenError(
      `token: expected the workers' token, at least ${LEAST_SECRET} characters; got ${token.length}; ` +
        'set PERDURE_LIVE_TOKEN for workers and here, e.g. to the output of: openssl rand -hex 32',
    );
  }
  if (run === '' || run.length > LONGEST_ID || /\p{Surrogate}/u.test(run)) {
    throw new RunTokenError(`run: expected the id of a run, got ${show(run)}`);
  }
  if (!(expiresInMs >= 1_000 && expiresInMs <= LONGEST_MS)) {
    throw new RunTokenError(
      `expiresInMs: expected 1000 to ${LONGEST_MS} (seven days), got ${show(expiresInMs)}`,
    );
  }
  const expires = String(Math.floor((Date.now() + expiresInMs) / 1_000));
  const id = Buffer.from(run).toString('base64url');
  return [KIND, id, expires, sealOf(token, id, expires)].join('.');
}

/**
 * What a token that was given allows; null where it is neither the worker's own nor one derived from it,
 * or has expired. How long the comparison takes tells nothing about either.
 */
export function verifyToken(given: string, token: string, now = Date.now()): TokenScope | null {
  if (isEqual(given, token)) return { type: 'all' };
  const [, id = '', expires = '', seal = ''] =
    /^perdure-run-1\.([\w-]{1,5400})\.(\d{1,12})\.([\w-]{43})$/.exec(given) ?? [];
  if (seal === '' || !isEqual(seal, sealOf(token, id, expires))) return null;
  const expiresAt = Number(expires) * 1_000;
  if (expiresAt <= now) return null;
  return { type: 'run', id: Buffer.from(id, 'base64url').toString(), expiresAt };
}

/** No part holds a dot, so none can be taken for a part of another. */
function sealOf(token: string, id: string, expires: string): string {
  return createHmac('sha256', token).update([KIND, id, expires].join('.')).digest('base64url');
}

function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
