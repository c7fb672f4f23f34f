import { createHash, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openStores } from '../../src/storage/file-stores.js';
import { s3Stores } from '../../src/storage/s3-stores.js';
import { archiveContract } from '../support/archive-contract.js';
import { archivedHistory, archivedRun as run } from '../support/archived.js';
import { S3_KEYS, startS3, type S3Server } from '../support/s3-server.js';

let s3: S3Server;
beforeAll(async () => {
  for (const [name, value] of Object.entries({ ...S3_KEYS, AWS_REGION: 'us-east-1' })) {
    vi.stubEnv(name, value);
  }
  s3 = await startS3();
});
afterAll(async () => {
  await s3.close();
  vi.unstubAllEnvs();
});

const stores = (prefix: string = randomUUID()) =>
  s3Stores({ bucket: s3.bucket, endpoint: s3.endpoint, prefix });

archiveContract('S3', () => Promise.resolve(stores().archive));

describe('blobs on S3', () => {
  it('are readable as stored, by every worker', async () => {
    const prefix = randomUUID();
    const text = 'grüße 🙂\r\n\0'.repeat(50_000);
    const ref = await stores(prefix).blobs.put(text);
    expect(ref).toEqual({
      sha256: createHash('sha256').update(text).digest('hex'),
      bytes: Buffer.byteLength(text),
    });
    expect(await stores(prefix).blobs.put(text)).toEqual(ref);
    expect(await stores(prefix).blobs.get(ref)).toBe(text);
    await expect(stores().blobs.get(ref)).rejects.toMatchObject({ kind: 'missing' });
    await expect(stores().blobs.get({ sha256: '../x' })).rejects.toMatchObject({ kind: 'invalid' });
  });

  it('are checked by their hash, and repaired by the next put', async () => {
    const { blobs } = stores('damaged');
    const { sha256 } = await blobs.put('whole');
    const Key = `damaged/blobs/${sha256.slice(0, 2)}/${sha256.slice(2, 4)}/${sha256}`;
    const client = new S3Client({ endpoint: s3.endpoint, forcePathStyle: true });
    await client.send(new PutObjectCommand({ Bucket: s3.bucket, Key, Body: 'half' }));
    await expect(blobs.get({ sha256 })).rejects.toMatchObject({
      kind: 'damaged',
      message: expect.stringMatching(
        /^blob .* in s3:\/\/agents\/damaged\/blobs is damaged/,
      ) as string,
    });
    await blobs.put('whole');
    expect(await blobs.get({ sha256 })).toBe('whole');
  });
});

describe('an error of the storage', () => {
  const missing = { sha256: '0'.repeat(64) };

  it('names the fix if the bucket does not exist', async () => {
    const { blobs, archive } = s3Stores({ bucket: 'nobody', endpoint: s3.endpoint });
    const fix = expect.stringContaining('create the bucket, or correct its name') as string;
    await expect(blobs.put('x')).rejects.toMatchObject({ kind: 'unwritable', message: fix });
    await expect(blobs.get(missing)).rejects.toMatchObject({ kind: 'unreadable', message: fix });
    await expect(archive.list(run)).rejects.toMatchObject({ kind: 'unreadable', message: fix });
    await expect(archive.write(run, archivedHistory(1), 'x')).rejects.toMatchObject({
      kind: 'unwritable',
      message: fix,
    });
  });

  it('names the fix if the server does not answer', async () => {
    const { blobs } = s3Stores({ bucket: 'agents', endpoint: 'http://127.0.0.1:1' });
    await expect(blobs.get(missing)).rejects.toMatchObject({
      kind: 'unreadable',
      message: expect.stringContaining('check that the storage can be reached') as string,
    });
  });

  it('names the fix if the server refuses the key', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'NOBODY');
    const { blobs } = stores();
    await expect(blobs.put('x')).rejects.toMatchObject({
      kind: 'unwritable',
      message: expect.stringContaining(
        `set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to keys of this storage in the environment of process ${process.pid}@${hostname()}`,
      ) as string,
    });
    vi.stubEnv('AWS_ACCESS_KEY_ID', S3_KEYS.AWS_ACCESS_KEY_ID);
  });
});

describe('PERDURE_STORE', () => {
  it('selects the storage of workers, clients, and the command', async () => {
    const env = { PERDURE_STORE: `s3://${s3.bucket}/by/env`, AWS_ENDPOINT_URL_S3: s3.endpoint };
    const { blobs } = openStores('unused', env);
    const ref = await blobs.put('by env');
    expect(await stores('by/env').blobs.get(ref)).toBe('by env');
  });

  it.each([
    ['s3:/agents', 'PERDURE_STORE: expected s3://BUCKET or s3://BUCKET/PREFIX; omit it'],
    ['gs://agents', 'PERDURE_STORE: expected s3://BUCKET'],
    ['s3://KEY:hunter2@agents', /^(?!.*hunter2).*bucket: expected 3 to 63/s],
    ['https://KEY:hunter2@agents', /^(?!.*hunter2).*expected s3:/s],
    ['s3://AGENTS', 'bucket: expected 3 to 63 lowercase letters'],
    ['s3://agents//x', 'prefix: expected no "/" at its ends, got "/x"'],
  ])('is refused if it is %s', (address, problem) => {
    expect(() => openStores('unused', { PERDURE_STORE: address })).toThrow(problem);
  });
});
