import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver, { type S3Middleware } from 's3rver';

/** A local server that speaks S3's protocol, checks keys, and stores objects as files. */
export interface S3Server {
  readonly endpoint: string;
  readonly bucket: string;
  close(): Promise<void>;
}

/** The keys that the server accepts. */
export const S3_KEYS = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' } as const;

/**
 * Adds the condition `If-None-Match: *` of S3, which the server ignores: of several requests that
 * create one object, exactly one succeeds, in whichever process its sender is.
 */
function createOnce(): S3Middleware {
  const created = new Set<string>();
  return async (context, next) => {
    const isNew = context.method === 'PUT' && context.get('if-none-match') === '*';
    if (isNew && created.has(context.path)) {
      context.status = 412;
      context.type = 'application/xml';
      context.body = '<Error><Code>PreconditionFailed</Code></Error>';
      return;
    }
    if (context.method === 'PUT') created.add(context.path);
    if (context.method === 'DELETE') created.delete(context.path);
    await next();
  };
}

export async function startS3(): Promise<S3Server> {
  const directory = await mkdtemp(join(tmpdir(), 'perdure-s3-'));
  const bucket = 'agents';
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: bucket }],
  });
  server.middleware.unshift(createOnce());
  const { port } = await server.run();
  return {
    endpoint: `http://127.0.0.1:${port}`,
    bucket,
    async close() {
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
