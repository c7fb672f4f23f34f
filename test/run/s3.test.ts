import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { createClient, type PerdureClient } from '../../src/index.js';
import { s3Stores } from '../../src/storage/s3-stores.js';
import { clerk } from '../support/clerk.js';
import { obedientModel } from '../support/conversation.js';
import { forgetSegments } from '../support/forget-run.js';
import { createRig, type Rig } from '../support/rig.js';
import { S3_KEYS, startS3, type S3Server } from '../support/s3-server.js';
import { segmentsOf } from '../support/segments.js';

let rig: Rig;
let s3: S3Server;
let client: PerdureClient;
beforeAll(async () => {
  for (const [name, value] of Object.entries({ ...S3_KEYS, AWS_REGION: 'us-east-1' })) {
    vi.stubEnv(name, value);
  }
  [rig, s3] = [await createRig(), await startS3()];
  const stores = s3Stores({ bucket: s3.bucket, endpoint: s3.endpoint });
  await rig.worker([clerk()], {
    ...stores,
    models: { m: obedientModel() },
    segment: { steps: 3, bytes: 2_000_000 },
  });
  client = await createClient({
    ...stores,
    address: inject('temporalAddress'),
    taskQueue: rig.taskQueue,
  });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
  await s3.close();
  vi.unstubAllEnvs();
});

test('a run on S3 stores its segments, context, and artifacts there, and is readable after its deletion', async () => {
  const id = `s3-${randomUUID()}`;
  const context = { large: 'x'.repeat(40_000) };
  const start = { agent: 'clerk', context };
  for (const [turn, text] of ['first', 'second'].entries()) {
    await client.send(id, { message: `steps 2 ${text}`, artifacts: { [text]: [text] } }, { start });
    expect(await client.result(id, { turn: turn + 1 })).toMatchObject({ status: 'completed' });
  }
  await client.close(id);
  await client.result(id);
  const before = await client.transcript(id);
  const segments = await segmentsOf(rig.client, id);
  expect(segments.length).toBeGreaterThan(1);
  rig.exempt('the test deletes it', id);
  await forgetSegments(
    rig.client,
    id,
    segments.map(({ runId }) => runId),
  );
  expect(await client.transcript(id)).toEqual(before);
  // On a loaded machine, the run does not wait for the archive of its end.
  expect((await client.status(id)).archived).toMatchObject({ at: expect.any(Number) as number });
}, 120_000);
