import type { Context, MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { LRUCache } from 'lru-cache';
import type { ServeOptions } from '../config.js';
import { isLoopback, show, toMs } from '../core/text/text.js';
import { HttpError } from './errors.js';
import type { Authenticate, Principal } from './principals.js';

/** What the guard adds to the context of a request. */
export interface Guarded {
  readonly Variables: { principal: Principal };
}

export type GuardedContext = Context<Guarded>;

const BODY_BYTES = 1024 * 1024;
const REQUESTS_PER_MINUTE = 600;
const STREAMS = 100;
const READ_MS = 60_000;

/** The limits of `serve` in force. */
export interface GuardLimits {
  readonly requestsPerMinute: number;
  readonly streams: number;
  readonly bodyBytes: number;
  readonly readMs: number;
}

/** Returns the limits of `serve`, with their defaults. */
export function limitsInForce({ limits = {} }: ServeOptions): GuardLimits {
  const { requestsPerMinute, streams, bodyBytes, readTimeout } = limits;
  return {
    requestsPerMinute: requestsPerMinute ?? REQUESTS_PER_MINUTE,
    streams: streams ?? STREAMS,
    bodyBytes: bodyBytes ?? BODY_BYTES,
    readMs: readTimeout === undefined ? READ_MS : toMs(readTimeout),
  };
}

/**
 * Refuses requests that a page of another site makes a browser send: without keys, one that names this
 * server by a host name of its own (DNS rebinding); and any from a foreign origin. Pages of the
 * configured origins may use the server.
 */
export function checkSite(
  { origins = [] }: ServeOptions,
  { isOpen }: { readonly isOpen: boolean },
): MiddlewareHandler<Guarded> {
  return async (context, next) => {
    const host = context.req.header('host') ?? new URL(context.req.url).host;
    if (isOpen && !isLoopback(host.replace(/:\d{1,5}$/, ''))) {
      throw new HttpError(403, 'host', `Host: expected this machine, got ${show(host)}`, {
        fix: 'send the request to 127.0.0.1 or localhost; for other names, set PERDURE_SERVE_KEYS',
      });
    }
    const origin = context.req.header('origin');
    if (origin === undefined) return await next();
    if (isOriginOf(origin, host)) return await next();
    if (!origins.includes(origin)) {
      throw new HttpError(403, 'origin', `Origin: ${show(origin)} may not use this server`, {
        fix: 'add it to `serve.origins` in the configuration',
      });
    }
    if (context.req.method === 'OPTIONS') return preflight(origin);
    await next();
    for (const [name, value] of Object.entries(corsHeaders(origin))) {
      context.res.headers.set(name, value);
    }
  };
}

function isOriginOf(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}

function corsHeaders(origin: string): Readonly<Record<string, string>> {
  return {
    'access-control-allow-origin': origin,
    'access-control-expose-headers':
      'x-vercel-ai-ui-message-stream, retry-after, x-should-retry, last-event-id',
    vary: 'Origin',
  };
}

function preflight(origin: string): Response {
  return new Response(null, {
    status: 204,
    headers: {
      ...corsHeaders(origin),
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': 'authorization, content-type, idempotency-key, last-event-id',
      'access-control-max-age': '600',
    },
  });
}

/** The most principals of which the server remembers the rate; of others, it begins anew. */
const MAX_REMEMBERED = 10_000;

/** Finds out the principal of a request, and counts the request against its rate. `clock`: in milliseconds. */
export function checkPrincipal(
  authenticate: Authenticate,
  { requestsPerMinute }: GuardLimits,
  clock: () => number,
): MiddlewareHandler<Guarded> {
  const buckets = new LRUCache<string, { left: number; at: number }>({ max: MAX_REMEMBERED });
  return async (context, next) => {
    const principal = await authenticate(context.req.header('authorization'));
    const now = clock();
    const bucket = buckets.get(principal.name) ?? { left: requestsPerMinute, at: now };
    const refilled = bucket.left + ((now - bucket.at) / 60_000) * requestsPerMinute;
    const left = Math.min(requestsPerMinute, refilled) - 1;
    if (left < 0) {
      throw new HttpError(
        429,
        'rate_limited',
        `expected at most ${requestsPerMinute} requests in a minute`,
        {
          fix: 'wait; or raise `serve.limits.requestsPerMinute` in the configuration',
          headers: { 'retry-after': String(Math.ceil((-left / requestsPerMinute) * 60)) },
        },
      );
    }
    buckets.set(principal.name, { left, at: now });
    context.set('principal', principal);
    await next();
  };
}

/** Refuses bodies that are too large, or no JSON. A form of a foreign page can send no JSON. */
export function checkBody({ bodyBytes }: GuardLimits): MiddlewareHandler<Guarded> {
  const limit = bodyLimit({
    maxSize: bodyBytes,
    onError: () => {
      throw new HttpError(413, 'too_large', `body: expected at most ${bodyBytes} bytes`, {
        fix: 'send less, or raise `serve.limits.bodyBytes` in the configuration',
      });
    },
  });
  return async (context, next) => {
    if (context.req.method !== 'POST') return await next();
    const type = context.req.header('content-type') ?? '';
    const isEmpty =
      Number(context.req.header('content-length') ?? 0) === 0 &&
      context.req.header('transfer-encoding') === undefined;
    if (type === '' && isEmpty) return await next();
    if (!/^application\/json(?:;|$)/i.test(type)) {
      throw new HttpError(
        415,
        'unsupported',
        `Content-Type: expected application/json, got ${type === '' ? 'none' : show(type)}`,
        { fix: 'send JSON, with the header Content-Type: application/json' },
      );
    }
    const encoding = context.req.header('content-encoding') ?? '';
    if (!/^(?:identity)?$/i.test(encoding)) {
      throw new HttpError(
        415,
        'unsupported',
        `Content-Encoding: expected none, got ${show(encoding)}`,
        { fix: 'send the body as it is' },
      );
    }
    return await limit(context, next);
  };
}

/** Counts the streams that principals have open. */
export interface StreamCounter {
  /** Counts a stream until the signal aborts. Throws an `HttpError` (429) if it is one too many. */
  add(principal: Principal, over: AbortSignal): void;
}

export function streamCounter({ streams }: GuardLimits): StreamCounter {
  const open = new Map<string, number>();
  return {
    add({ name }, over) {
      const count = (open.get(name) ?? 0) + 1;
      if (count > streams) {
        throw new HttpError(429, 'rate_limited', `expected at most ${streams} streams at once`, {
          fix: 'close some; or raise `serve.limits.streams` in the configuration',
          headers: { 'retry-after': '5' },
        });
      }
      open.set(name, count);
      over.addEventListener(
        'abort',
        () => {
          const left = (open.get(name) ?? 1) - 1;
          if (left > 0) open.set(name, left);
          else open.delete(name);
        },
        { once: true },
      );
    },
  };
}
