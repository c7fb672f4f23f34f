import { readdir } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { createClient } from '../../src/index.js';
import { defineConfig } from '../../src/config.js';
import { NoServerError } from '../../src/core/errors.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { ensureServer } from '../../src/server/ensure-server.js';
import { createWorker } from '../../src/index.js';
import { sourceBundle } from '../support/bundle.js';
import { serverHomes } from '../support/server-homes.js';

const { freshHome } = serverHomes();
const config = defineConfig({
  agents: [defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'm' })],
  models: { m: scriptedModel([replyText('done')]) },
});

test('clients and workers find the running server of PERDURE_HOME', async () => {
  const home = await freshHome();
  await ensureServer({ home, adoptDefault: false });
  const env = { PERDURE_HOME: home, PERDURE_SERVER: 'own' };
  const worker = await createWorker({ config, env, workflowBundle: await sourceBundle() });
  try {
    await using client = await createClient({ env });
    const run = await client.start('clerk', { message: 'hello' });
    expect(await client.result(run)).toMatchObject({ status: 'completed', answer: 'done' });
  } finally {
    await worker.shutdown();
  }
}, 60_000);

test('without a server, the error lists the places that were searched, and none is started', async () => {
  const home = await freshHome();
  const env = { PERDURE_HOME: home, PERDURE_SERVER: 'own' };
  for (const attempt of [() => createClient({ env }), () => createWorker({ config, env })]) {
    const error: unknown = await attempt().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NoServerError);
    expect(String(error)).toContain(
      `TEMPORAL_ADDRESS is not set, no server is running for PERDURE_HOME ${home}`,
    );
    expect(String(error)).toContain('127.0.0.1:7233 is not used (PERDURE_SERVER=own)');
    expect(String(error)).toContain('npx perdure dev');
    expect(String(error)).toContain('const { address, home } = await startTestServer()');
  }
  expect(await readdir(home).catch(() => [])).toEqual([]);
});

test('a named server that does not answer is not replaced by another', async () => {
  const env = { PERDURE_HOME: await freshHome(), TEMPORAL_ADDRESS: '127.0.0.1:1' };
  for (const attempt of [() => createClient({ env }), () => createWorker({ config, env })]) {
    const error: unknown = await attempt().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NoServerError);
    expect(String(error)).toContain('no Temporal server answers at 127.0.0.1:1');
  }
}, 60_000);
