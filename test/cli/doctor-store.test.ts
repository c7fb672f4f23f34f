import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { doctor } from '../../src/cli/commands/doctor.js';
import type { Finding } from '../../src/cli/doctor/finding.js';
import { type Place, runInProcess } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';
import { S3_KEYS, startS3, type S3Server } from '../support/s3-server.js';

let rig: Rig;
let s3: S3Server;
beforeAll(async () => {
  [rig, s3] = [await createRig(), await startS3()];
});
afterAll(async () => {
  await rig.close();
  await s3.close();
  vi.unstubAllEnvs();
});

async function findingOf(wanted: string, place: Partial<Place>): Promise<Finding | undefined> {
  const { home, taskQueue } = rig;
  const here = { home, taskQueue, address: inject('temporalAddress'), json: true };
  const { stdout } = await runInProcess(doctor, { model: false }, { ...here, ...place });
  const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] };
  return findings.find(({ name }) => name === wanted);
}

async function storeFinding(
  store: string | undefined,
  keys: Readonly<Record<string, string>> = S3_KEYS,
): Promise<Finding | undefined> {
  for (const [name, value] of Object.entries(keys)) vi.stubEnv(name, value);
  const env = {
    AWS_REGION: 'us-east-1',
    AWS_ENDPOINT_URL_S3: s3.endpoint,
    ...(store !== undefined && { PERDURE_STORE: store }),
  };
  return await findingOf('store', { env });
}

test('doctor writes to and reads from an S3 store, and names each error with its fix', async () => {
  expect(await storeFinding(undefined)).toBeUndefined();
  expect(await storeFinding(`s3://${s3.bucket}/p`)).toMatchObject({
    level: 'ok',
    text: `s3://${s3.bucket}/p: blobs can be written and read, the archive can be listed`,
  });
  expect(await storeFinding('s3://no-such-bucket')).toMatchObject({
    level: 'problem',
    text: expect.stringContaining('create the bucket, or correct its name'),
  });
  expect(await storeFinding('/a/folder')).toMatchObject({
    level: 'problem',
    text: expect.stringContaining('expected s3://BUCKET'),
  });
  const keys = { ...S3_KEYS, AWS_ACCESS_KEY_ID: 'other' };
  expect(await storeFinding(`s3://${s3.bucket}/p`, keys)).toMatchObject({
    level: 'problem',
    text: expect.stringContaining('set AWS_ACCESS_KEY_ID'),
    fix: expect.stringContaining('correct PERDURE_STORE'),
  });
});

test('doctor names the agents whose retention the server would not wait for', async () => {
  const config = join(rig.home, 'kept.config.mjs');
  await writeFile(
    config,
    `
    import { defineAgent, defineConfig } from 'perdure';
    const kept = (name, retention) => defineAgent({ name, instructions: 'x', model: 'demo', retention });
    export default defineConfig({ agents: [kept('long', '90 days'), kept('short', '30 days')] });
    `,
  );
  expect(await findingOf('namespace', { config })).toMatchObject({
    level: 'note',
    text: 'default, keeps closed runs for 30 days',
    fix: expect.stringMatching(
      /before the `retention` of long \(90 days\), unless archived; .* --retention 2160h$/,
    ),
  });
});
