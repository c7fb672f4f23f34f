import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { LiveOptionsError, RunTokenError } from '../core/errors.js';
import { type Duration, isLoopback, show, toMs } from '../core/text/text.js';
import { learnSecrets } from '../secrets/known.js';
import { unknownOption } from '../validation/unknown-option.js';

/**
 * Limits on the resources of a worker that readers may use. Times are durations: ms, or words such
 * as '5 seconds'.
 */
export interface LiveLimits {
  /** Streams open at once, for all clients. */
  readonly streams: number;
  /** Streams open at once per client. A client is an IPv4 address or an IPv6 /64 network. */
  readonly streamsPerClient: number;
  /**
   * Connections that have not requested a stream yet. If there is one more, the oldest is closed.
   */
  readonly waiting: number;
  /** The time within which the headers of a request must arrive. */
  readonly headersTimeout: Duration;
  /** The time within which a whole request must arrive. */
  readonly requestTimeout: Duration;
  /** The time within which the run must be found; otherwise the response is 503. */
  readonly openTimeout: Duration;
  /** The time within which a reader must read what was sent; otherwise it is disconnected. */
  readonly readTimeout: Duration;
}

/** The limits in force; see `LiveLimits`. */
export interface LimitsInForce extends Pick<
  LiveLimits,
  'streams' | 'streamsPerClient' | 'waiting'
> {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly openMs: number;
  readonly stalledMs: number;
}

const TIMES = { headersMs: 5_000, requestMs: 10_000, openMs: 15_000, stalledMs: 60_000 };
const MAX_STREAMS = 512;
const MAX_WAITING = 256;
const MIN_SHARE = 16;

/**
 * Returns the default limits. Readers get at most three eighths of the file descriptors that the
 * process may open; the rest is for Temporal, models, and tools.
 */
export function defaultLimits(descriptors: number = descriptorLimit()): LimitsInForce {
  const streams = share(descriptors / 4, MAX_STREAMS);
  return {
    streams,
    streamsPerClient: Math.ceil(streams / 2),
    waiting: share(descriptors / 8, MAX_WAITING),
    ...TIMES,
  };
}

function share(part: number, max: number): number {
  return Math.max(MIN_SHARE, Math.min(max, Math.floor(part)));
}

/**
 * Returns the maximum number of open files; Infinity if the system does not report it. Node raises
 * its own limit as far as it is allowed to.
 */
function descriptorLimit(): number {
  try {
    const [, soft = ''] =
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === '' ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}

/** How a worker serves live streams. */
export interface LiveOptions {
  /** The port to listen on; default: any free port. */
  readonly port?: number;
  /**
   * The address to listen on; default 127.0.0.1. Any address that is not loopback needs a token.
   */
  readonly host?: string;
  /**
   * The token that readers must send as `Authorization: Bearer …`; default PERDURE_LIVE_TOKEN, else
   * none is needed.
   */
  readonly token?: string;
  /** Limits on readers; by default they get at most three eighths of the file descriptors. */
  readonly limits?: Partial<LiveLimits>;
}

/** `LiveOptions` with all defaults filled in. */
export interface ListenSettings {
  readonly port: number;
  readonly host: string;
  /** The token that readers must send; empty if none is needed. */
  readonly token: string;
  readonly limits?: Partial<LimitsInForce>;
}

/** Fills in defaults. Throws a `LiveOptionsError` with the value and the fix. */
export function resolveLiveOptions(
  { port = 0, host = '127.0.0.1', token, limits = {} }: LiveOptions,
  env: Readonly<Record<string, string | undefined>>,
): ListenSettings {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new LiveOptionsError(
      `live.port: expected 1 to 65535, or 0 for any free port; got ${port}`,
    );
  }
  const secret = token ?? env['PERDURE_LIVE_TOKEN'] ?? '';
  if (!/^[\x21-\x7e]*$/.test(secret)) {
    throw new LiveOptionsError(
      'live.token: expected visible ASCII characters, got others; remove spaces and line breaks',
    );
  }
  if (secret === '' && !isLoopback(host)) {
    throw new LiveOptionsError(
      `live.host: ${host} lets other machines read the runs; set PERDURE_LIVE_TOKEN (or live.token), ` +
        'or omit the host to serve this machine only',
    );
  }
  if (secret !== '') learnSecrets({ values: [secret] });
  return { port, host, token: secret, limits: inForce(limits) };
}

/** Each limit in force, by the option that sets it. */
const LIMITS: Readonly<Record<keyof LiveLimits, keyof LimitsInForce>> = {
  streams: 'streams',
  streamsPerClient: 'streamsPerClient',
  waiting: 'waiting',
  headersTimeout: 'headersMs',
  requestTimeout: 'requestMs',
  openTimeout: 'openMs',
  readTimeout: 'stalledMs',
};

/** Returns the limits that the options set. Throws a `LiveOptionsError` for an invalid one. */
function inForce(limits: Partial<LiveLimits>): Partial<LimitsInForce> {
  const set: { -readonly [Name in keyof LimitsInForce]?: number } = {};
  for (const [option, given] of Object.entries(limits)) {
    if (!isLimit(option)) {
      throw new LiveOptionsError(`live.limits: ${unknownOption(option, Object.keys(LIMITS))}`);
    }
    const value = option.endsWith('Timeout') ? toMs(given) : Number(given);
    if (!(value >= 1 && value < 2 ** 31)) {
      const expected = option.endsWith('Timeout')
        ? 'a whole number of ms or words such as "5 seconds"'
        : 'a number from 1';
      throw new LiveOptionsError(`live.limits.${option}: expected ${expected}, got ${show(given)}`);
    }
    set[LIMITS[option]] = value;
  }
  return set;
}

function isLimit(name: string): name is keyof LiveLimits {
  return Object.hasOwn(LIMITS, name);
}

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
 * import { runToken } from 'perdure/client';
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
    throw new RunTokenError(unknownOption(other, ['run', 'token', 'expiresIn']));
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

/** Why a request is refused. */
export interface Refusal {
  readonly status: 400 | 401 | 403 | 404 | 405 | 410 | 429 | 500 | 503;
  readonly message: string;
  /** Seconds after which a retry may succeed. */
  readonly retryAfter?: number;
}

/**
 * Returns what a request may read, or why it is refused. Checks Host and Origin first: a web page
 * can make a browser send requests to this machine under a name of its own (DNS rebinding) or from
 * its own origin.
 */
export function authorize(
  { headers }: Pick<IncomingMessage, 'headers'>,
  { host, token }: Pick<ListenSettings, 'host' | 'token'>,
): TokenScope | Refusal {
  const requested = headers.host ?? '';
  if (isLoopback(host) && !isLoopback(withoutPort(requested))) {
    return {
      status: 403,
      message: 'Host: expected this machine; send the request to 127.0.0.1 or localhost',
    };
  }
  const { origin } = headers;
  if (origin !== undefined && !isOriginOf(origin, requested)) {
    return {
      status: 403,
      message: 'Origin: expected the origin of this server; pages of other sites may not read runs',
    };
  }
  if (token === '') return { type: 'all' };
  const [, given = ''] = /^Bearer (.*)$/i.exec(headers.authorization ?? '') ?? [];
  return (
    verifyToken(given, token) ?? {
      status: 401,
      message:
        'Authorization: expected "Bearer" with the token of PERDURE_LIVE_TOKEN, or with a token of ' +
        'this run that has not expired',
    }
  );
}

function withoutPort(host: string): string {
  return host.replace(/:\d+$/, '');
}

function isOriginOf(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}
