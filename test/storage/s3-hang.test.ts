import { randomUUID } from 'node:crypto';
import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Stores } from '../../src/storage/tool-lock.js';
import { storesAt } from '../../src/storage/s3-stores.js';
import { archivedHistory, archivedRun as run } from '../support/archived.js';
import { httpServer, type HttpServer } from '../support/http-server.js';
import { S3_KEYS, startS3, type S3Server } from '../support/s3-server.js';

type Answer = (incoming: IncomingMessage, response: ServerResponse) => void;

const neverAnswer: Answer = () => undefined;
const neverEnd: Answer = (_, response) => {
  response.writeHead(200, { 'content-length': '1000' });
  response.write('half');
};

let s3: S3Server;
let front: HttpServer;
let answer: Answer;
beforeAll(async () => {
  for (const [name, value] of Object.entries(S3_KEYS)) vi.stubEnv(name, value);
  s3 = await startS3();
  front = await httpServer((incoming, response) => answer(incoming, response));
});
afterAll(async () => {
  await front.close();
  await s3.close();
  vi.unstubAllEnvs();
});

const passOn: Answer = (incoming, response) => {
  const { method, url, headers } = incoming;
  const passed = request(new URL(url ?? '', s3.endpoint), { method, headers }, (answered) => {
    response.writeHead(answered.statusCode ?? 500, answered.headers);
    answered.pipe(response);
  });
  incoming.pipe(passed);
};

function storesBehind(requestMs: number): Stores {
  const env = { AWS_ENDPOINT_URL_S3: front.url, AWS_REGION: 'us-east-1' };
  return storesAt(`s3://${s3.bucket}/${randomUUID()}`, env, { requestMs });
}

/** More than the number of the SDK's sockets. */
const MANY = Array.from({ length: 60 }, (_, index) => `text ${index}`);

test.each([
  ['never answers', neverAnswer],
  ['never ends its answers', neverEnd],
])('a storage that %s is given up, and used again when it is healthy', async (_, hang) => {
  const { blobs, archive } = storesBehind(1_000);
  answer = passOn;
  const ref = await blobs.put('before');
  answer = hang;
  const reads = await Promise.allSettled(MANY.map(() => blobs.get(ref)));
  const writes = await Promise.allSettled(MANY.map((text) => blobs.put(text)));
  const listed = await Promise.allSettled([archive.list(run)]);
  for (const tried of [...reads, ...writes, ...listed]) {
    expect(tried).toMatchObject({
      status: 'rejected',
      reason: { message: expect.stringContaining('no answer within 1 s') as string },
    });
  }
  answer = passOn;
  expect(await blobs.get(await blobs.put('after'))).toBe('after');
  const history = archivedHistory(1);
  await archive.write(run, history, '{}');
  expect(await archive.list(run)).toEqual([history]);
});

test('an archive that the storage lists on several pages is read completely', async () => {
  const { archive } = storesBehind(10_000);
  const names: string[] = [];
  answer = (incoming, response) => {
    const { pathname, searchParams } = new URL(incoming.url ?? '', s3.endpoint);
    if (incoming.method === 'PUT') {
      names.push(pathname.slice(`/${s3.bucket}/`.length));
      incoming.resume().on('end', () => response.end());
      return;
    }
    const page = Number(searchParams.get('continuation-token') ?? 0);
    const key = `<Contents><Key>${names[page] ?? ''}</Key></Contents>`;
    const isLast = page === names.length - 1;
    const next = isLast ? '' : `<NextContinuationToken>${page + 1}</NextContinuationToken>`;
    response.setHeader('content-type', 'application/xml');
    response.end(
      `<ListBucketResult><IsTruncated>${!isLast}</IsTruncated>${key}${next}</ListBucketResult>`,
    );
  };
  const histories = [archivedHistory(1), archivedHistory(2), archivedHistory(3)];
  for (const history of histories) await archive.write(run, history, '{}');
  expect(await archive.list(run)).toEqual(histories);
});
