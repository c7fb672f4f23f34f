import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { ensureServer } from '../../src/server/ensure-server.js';
import { stopServer } from '../../src/server/dev-server.js';
import { replyCalls, replyError, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { artifact } from '../../src/tools/built-in/artifact.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { ToolError } from '../../src/tools/errors.js';
import { CANARIES, canariesIn, formsOf } from '../support/canaries.js';
import { expectNoLeaks, watch, watchFiles } from '../support/canary-watch.js';
import { blocked } from '../support/conversation.js';
import { clientOf } from '../support/clerk.js';
import { fixtureFiles, listed, stdioFixture } from '../support/mcp-agent.js';
import { createRig, type Rig } from '../support/rig.js';
import { serverHomes } from '../support/server-homes.js';

const KEY = CANARIES['CANARY_API_KEY'] ?? '';
/** Each canary in each form, as a program would print them. */
const ALL = Object.values(CANARIES)
  .flatMap((value) => Object.values(formsOf(value)))
  .join('\n');

const homes = serverHomes();
let home: string;
let rig: Rig;
let stub: Stub;
let client: PerdureClient;

/** What a careless tool does with its environment, by way of disclosure. */
const WAYS: Readonly<Record<string, () => unknown>> = {
  text: () => ALL,
  object: () => ({ [KEY]: [{ said: ALL }], env: CANARIES }),
  artifact: () => artifact({ [KEY]: ALL }, { summary: ALL }),
  stream: async function* () {
    yield ALL.slice(0, 1_000);
    yield ALL.slice(1_000);
  },
  large: () => 'x'.repeat(100_000) + ALL,
  returned: () => ({ error: ALL }),
  told: () => {
    throw new ToolError(ALL);
  },
  thrown: () => {
    const error = new Error(`no ${KEY}`, { cause: new Error(ALL) });
    error.name = KEY;
    error.stack = ALL;
    throw error;
  },
  failure: () => {
    throw ApplicationFailure.create({ message: ALL, type: KEY, details: [{ env: CANARIES }] });
  },
};

const leak = defineTool({
  name: 'leak',
  description: `does what it must not do, with ${KEY}`,
  input: z.object({ way: z.string(), said: z.string().optional() }),
  effect: 'keyed',
  retry: { attempts: 2 },
  describe: () => ALL,
  async execute({ way }, context) {
    context.log(ALL, { env: CANARIES });
    context.heartbeat({ env: CANARIES, all: ALL.slice(0, 1_500) });
    return await WAYS[way]?.();
  },
});

beforeAll(async () => {
  home = await homes.freshHome();
  const server = await ensureServer({ home, adoptDefault: false });
  [rig, stub] = [await createRig(server.address), await startStub()];
  const files = await fixtureFiles([
    listed('environment', { description: `knows ${KEY}` }),
    listed('failing_environment'),
    listed('stored_environment'),
  ]);
  const agent = defineAgent({
    name: 'leaky',
    instructions: `Use ${ALL}`,
    model: 'm',
    tools: [leak],
    mcp: [stdioFixture(files, { env: Object.keys(CANARIES) })],
    retrieve: () => [{ text: ALL, id: KEY, source: ALL }],
  });
  await rig.worker([agent], { models: { m: { baseUrl: stub.baseUrl } }, live: {} });
  client = await clientOf(rig, { address: server.address });
}, 120_000);
afterAll(async () => {
  await client.disconnect();
  await rig.close();
  await stub.close();
});

test('no secret leaves a worker through models, tools, servers, and errors', async () => {
  const headers = { 'x-request-id': KEY };
  const mcp = ['environment', 'failing_environment', 'stored_environment'];
  stub.script(
    replyError(500, { message: ALL, code: KEY }, { headers }),
    replyCalls(
      [
        ...Object.keys(WAYS).map((way) => ({ name: 'leak', arguments: { way, said: ALL } })),
        ...mcp.map((name) => ({ name: `desk__${name}`, arguments: {} })),
        { name: KEY, arguments: { [KEY]: ALL } },
        { name: 'leak', arguments: `{"way": ${ALL}` },
      ],
      { text: ALL, reasoning: ALL, headers, sse: { charactersPerEvent: 7 } },
    ),
    // A spent quota is not probed again before `resume`.
    replyError(402, { message: ALL }),
    replyText(`Done. ${ALL} marker-9b1d marker-9b1d`, {
      headers,
      sse: { charactersPerEvent: 1_000 },
    }),
  );
  const run = await client.start('leaky', { message: 'go' });
  const seen: unknown[] = [];
  const reading = (async () => {
    for await (const event of client.stream(run)) seen.push(event);
  })();
  const handle = rig.client.workflow.getHandle(run.id);
  seen.push(await blocked(handle));
  const { memo, searchAttributes } = await handle.describe();
  seen.push(memo, searchAttributes);
  await handle.executeUpdate('resume');
  const { outcome, history } = await rig.end(handle);
  await reading;
  seen.push(outcome, await client.transcript(run.id));
  watch('what clients read', JSON.stringify(seen));
  expectNoLeaks();

  expect(outcome.status).toBe('completed');
  expect(outcome.answer).toContain('[redacted CANARY_API_KEY]');
  expect(JSON.stringify(seen)).toContain('"delta"');
  expect(JSON.stringify(history.events).length).toBeGreaterThan(10_000);
  // The stub has seen the worker's own key, and no secret that it was not given.
  expect(canariesIn(stub.requests.map(({ text }) => text).join())).toEqual([]);
});

test('no secret is in the error of a failed run, or in the database of the server', async () => {
  stub.script(replyError(400, { message: `Invalid image: ${ALL}`, code: 'cnry_code', param: KEY }));
  const run = await client.start('leaky', { message: 'fail' });
  const { outcome } = await rig.end(rig.client.workflow.getHandle(run.id));
  expect(outcome.status).toBe('failed');
  expect(outcome.error).toContain('[redacted CANARY_');
  await rig.stopWorkers();
  rig.exempt('the test stops its server');
  await stopServer(home);
  await watchFiles(home);
  expectNoLeaks();
  // A page of the database may end within one of the markers.
  const files = (await readdir(home)).filter((name) => name.startsWith('temporal.db'));
  const stored = await Promise.all(files.map(async (name) => await readFile(join(home, name))));
  expect(stored.some((bytes) => bytes.includes('marker-9b1d'))).toBe(true);
});
