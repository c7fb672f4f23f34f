import { createHash, timingSafeEqual } from 'node:crypto';
import type { Payload, PayloadCodec } from '@temporalio/common';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { cors } from 'hono/cors';
import { z } from 'zod';
import { isLoopback } from '../core/text/text.js';

/** What a codec server encodes with, and who may use it. */
interface CodecServerOptions {
  readonly codec: PayloadCodec;
  /** What each request proves that it knows, as a bearer token or as the first part of its path. */
  readonly token: string;
  /** Origins of pages that may use it, in addition to those of this machine. */
  readonly origins: readonly string[];
}

/** A UI decodes whole histories at once, of up to 50 MB. */
const MAX_BYTES = 64 * 1024 * 1024;

const base64 = z.base64().transform((text) => Buffer.from(text, 'base64'));
/** The body of requests and answers: payloads as the JSON form of their message. */
const body = z.object({
  payloads: z.array(
    z.object({
      metadata: z.record(z.string(), base64).exactOptional(),
      data: base64.exactOptional(),
    }),
  ),
});

/**
 * Returns the fetch handler of a codec server: Temporal's UI and CLI send payloads to `/encode` and
 * `/decode` and show what comes back. A UI has no place for a token of its own, so the path may begin
 * with it.
 */
export function codecServer({
  codec,
  token,
  origins,
}: CodecServerOptions): (request: Request) => Promise<Response> {
  const app = new Hono();
  const isAllowed = (origin: string): boolean =>
    origins.includes(origin) || (URL.canParse(origin) && isLoopback(new URL(origin).hostname));
  app.use(
    cors({
      origin: (origin) => (isAllowed(origin) ? origin : null),
      allowMethods: ['POST'],
      allowHeaders: ['authorization', 'content-type', 'x-namespace'],
    }),
  );
  app.use(async (c, next) => {
    const origin = c.req.header('origin');
    if (origin !== undefined && !isAllowed(origin)) {
      return c.text(`${origin} may not use this codec; name it with --origin`, 403);
    }
    return await next();
  });
  // Only whoever has the token makes this process read a body.
  const limit = bodyLimit({
    maxSize: MAX_BYTES,
    onError: (c) => c.text('the body is too large', 413),
  });
  for (const work of ['encode', 'decode'] as const) {
    const paths = [`/${work}`, `/:token/${work}`];
    app.on('POST', paths, async (c, next) => {
      const bearer = /^Bearer (.+)$/i.exec(c.req.header('authorization') ?? '')?.[1];
      if (!isSame(bearer ?? c.req.param('token') ?? '', token)) {
        return c.text(
          'the token is missing or wrong; use the whole URL that `perdure codec` prints',
          401,
        );
      }
      return await next();
    });
    app.on('POST', paths, limit, async (c) => {
      const json: unknown = await c.req.json().catch(() => null);
      const given = body.safeParse(json);
      if (!given.success) {
        return c.text('expected { "payloads": [{ "metadata": {…}, "data": base64 }] }', 400);
      }
      try {
        return c.json({ payloads: (await codec[work](given.data.payloads)).map(toJson) });
      } catch (error) {
        return c.text(error instanceof Error ? error.message : String(error), 400);
      }
    });
  }
  return async (request) => await app.fetch(request);
}

function isSame(given: string, token: string): boolean {
  return timingSafeEqual(digestOf(given), digestOf(token));
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function toJson({ metadata, data }: Payload): object {
  const fields: Record<string, string> = {};
  for (const [name, bytes] of Object.entries(metadata ?? {})) fields[name] = textOf(bytes);
  return { metadata: fields, ...(data && { data: textOf(data) }) };
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
