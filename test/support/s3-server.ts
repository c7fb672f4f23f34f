import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from 's3rver';

/** A local server that speaks S3's protocol, checks keys, and stores objects as files. */
export interface S3Server {
  readonly endpoint: string;
  readonly bucket: string;
  close(): Promise<void>;
}

/** The keys that the server accepts. */
export const S3_KEYS = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' } as const;

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
