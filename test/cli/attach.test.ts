import { randomUUID } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { replyCalls, replyError, replyText } from '../../src/testing/replies.js';
import { commandLine } from '../support/command.js';
import { portOf } from '../support/port-of.js';
import { createRig, type Rig } from '../support/rig.js';
import { replayLater } from '../support/replays.js';

const address = inject('temporalAddress');
const command = await commandLine();
let stub: Stub;
let rig: Rig;

beforeAll(async () => {
  stub = await startStub();
  rig = await createRig();
});
afterAll(async () => {
  await rig.close();
  await stub.close();
  stub.assertConsumed();
});

/** Starts a command on a queue without another worker. */
function lonelyPlace() {
  const place = ['--address', address, '--task-queue', `lonely-${randomUUID()}`];
  const env = { OPENAI_BASE_URL: stub.baseUrl };
  return {
    /** In a separate process, in this folder. */
    start: (args: readonly string[], cwd = command.folder) =>
      command.start([...args, ...place], { cwd, env }),
    perdure: (...args: readonly string[]) => command.here([...args, ...place], { env }),
  };
}

async function expectItReplays(id: string): Promise<void> {
  replayLater(await rig.client.workflow.getHandle(id).fetchHistory(), id);
}

describe('attach', () => {
  test('finishes a run whose host was interrupted in a model call, without repeating steps', async () => {
    const { start, perdure } = lonelyPlace();
    stub.scriptFor(
      'Interrupt me',
      replyCalls([{ name: 'list_files', arguments: { path: '.' } }]),
      replyText('never seen', { holdBeforeHeaders: 'interrupt' }),
      replyText('finished'),
    );
    const host = start(['run', 'files', 'Interrupt me', '--json', '--id', 'att-interrupted']);
    await host.until(stub.barrier('interrupt').reached);
    host.child.kill('SIGINT');
    const left = await host.ended;
    expect(left.code).toBe(130);
    expect(JSON.parse(left.stdout)).toEqual({
      id: 'att-interrupted',
      runId: expect.any(String),
      status: 'working',
      reason: 'interrupted',
    });
    expect(left.stderr).toContain('makes no progress without a worker; nothing is lost');
    expect(left.stderr).toContain('attach att-interrupted --address');

    const end = await perdure('attach', 'att-interrupted').ended;
    expect({ code: end.code, stdout: end.stdout }).toEqual({ code: 0, stdout: 'finished\n' });
    expect(end.stderr).toMatch(/^step 1 · list_files/m);
    await expectItReplays('att-interrupted');
  });

  test('finishes a run whose host was killed in a tool', async () => {
    const { start, perdure } = lonelyPlace();
    const { folder, firstHit, answerFrom } = await folderWithTool();
    stub.scriptFor(
      'Use the tool',
      replyCalls([{ name: 'fetch_it', arguments: {} }]),
      replyText('fetched'),
    );
    const host = start(['run', 'fetcher', 'Use the tool', '--json', '--id', 'att-killed'], folder);
    await host.until(firstHit);
    host.child.kill('SIGKILL');
    await host.ended;
    answerFrom(2);
    const config = ['--config', join(folder, 'perdure.config.ts')];
    const end = await perdure('attach', 'att-killed', '--json', ...config).ended;
    expect(JSON.parse(end.stdout)).toMatchObject({
      status: 'completed',
      answer: 'fetched',
      steps: 2,
    });
    expect(end.code).toBe(0);
    await expectItReplays('att-killed');
  });

  test('retries a blocked run at once with its own worker', async () => {
    const { perdure } = lonelyPlace();
    stub.scriptFor(
      'Add credit',
      replyError(402, { message: 'no credit' }),
      replyError(402, { message: 'still none' }),
      replyText('mended'),
    );
    const first = await perdure('run', 'files', 'Add credit', '--id', 'att-blocked').ended;
    expect(first.code).toBe(4);
    expect(first.stderr).toContain('attach att-blocked');
    const second = await perdure('attach', 'att-blocked', '--json').ended;
    expect(second.code).toBe(4);
    expect(JSON.parse(second.stdout)).toMatchObject({ status: 'blocked', reason: 'quota' });
    const third = await perdure('attach', 'att-blocked').ended;
    expect({ code: third.code, stdout: third.stdout }).toEqual({ code: 0, stdout: 'mended\n' });
    await expectItReplays('att-blocked');
  });

  test('prints the outcome of an ended run, and fails for an unknown id', async () => {
    const { perdure } = lonelyPlace();
    await rig.worker([]);
    const gone = await rig.start({ agent: 1 }, 'att-over');
    await gone.result().catch(() => undefined);
    const over = await perdure('attach', 'att-over', '--json').ended;
    expect(over.code).toBe(1);
    expect(JSON.parse(over.stdout)).toMatchObject({ id: 'att-over', reason: 'input' });
    const nobody = await perdure('attach', 'att-nobody').ended;
    expect(nobody.code).toBe(1);
    expect(nobody.stderr).toMatch(/there is no run "att-nobody"; list runs with: .* list/);
  });
});

describe('two concurrent runs without another worker', () => {
  test('both end', async () => {
    const { perdure } = lonelyPlace();
    const ids = ['par-one', 'par-two'];
    for (const id of ids) {
      stub.scriptFor(
        id,
        replyCalls([{ name: 'list_files', arguments: { path: '.' } }]),
        replyText(`answer of ${id}`),
      );
    }
    const runs = ids.map((id) => perdure('run', 'files', `This is ${id}`, '--json', '--id', id));
    const ends = await Promise.all(runs.map(({ ended }) => ended));
    expect(ends.map(({ stdout }) => JSON.parse(stdout))).toMatchObject(
      ids.map((id) => ({ id, status: 'completed', answer: `answer of ${id}` })),
    );
    expect(ends.map(({ code }) => code)).toEqual([0, 0]);
  });

  test('one hosts a worker when the other, whose worker it used, has ended', async () => {
    const { perdure } = lonelyPlace();
    stub.scriptFor('first', replyText('one', { holdBeforeHeaders: 'first' }));
    stub.scriptFor(
      'second',
      replyCalls([{ name: 'list_files', arguments: { path: '.' } }], {
        holdBeforeHeaders: 'second',
      }),
      replyCalls([{ name: 'list_files', arguments: { path: '.' } }]),
      replyText('two'),
    );
    const first = perdure('run', 'files', 'This is first');
    await first.until(stub.barrier('first').reached);
    const second = perdure('run', 'files', 'This is second');
    await second.until(stub.barrier('second').reached);
    stub.barrier('first').release();
    expect((await first.ended).stdout).toBe('one\n');
    stub.barrier('second').release();
    expect((await second.ended).stdout).toBe('two\n');
  });
});

/** Creates a configuration whose tool calls a server that does not answer at first. */
async function folderWithTool() {
  let count = 0;
  let answered = Infinity;
  const server = createServer((_, response) => {
    count += 1;
    if (count >= answered) response.end('it');
    server.emit('hit');
  });
  const firstHit = once(server, 'hit');
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = await mkdtemp(join(command.folder, 'config-'));
  await writeFile(
    join(folder, 'perdure.config.ts'),
    `import { defineAgent, defineConfig, defineTool } from 'perdure';
import { z } from 'zod';

const fetchIt = defineTool({
  name: 'fetch_it',
  description: 'fetches it',
  input: z.object({}),
  effect: 'read',
  heartbeat: 1_000,
  execute: async (_input: object, { signal }): Promise<string> => {
    const response = await fetch('http://127.0.0.1:${portOf(server)}', { signal });
    return await response.text();
  },
});

export default defineConfig({
  agents: [defineAgent({ name: 'fetcher', instructions: 'fetch', model: 'stub', tools: [fetchIt] })],
});
`,
  );
  afterAll(() => server.close().closeAllConnections());
  return {
    folder,
    firstHit,
    answerFrom: (number: number) => {
      answered = number;
    },
  };
}
