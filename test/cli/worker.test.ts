import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { replyText } from '../../src/testing/replies.js';
import { startProxy } from '../support/proxy.js';
import { commandLine } from '../support/command.js';

const address = inject('temporalAddress');
const command = await commandLine();
let stub: Stub;

beforeAll(async () => {
  stub = await startStub();
});
afterAll(async () => {
  await stub.close();
  stub.assertConsumed();
});

function queue() {
  const place = ['--address', address, '--task-queue', `worker-${randomUUID()}`];
  const env = { OPENAI_BASE_URL: stub.baseUrl };
  return {
    /** In a process of its own. */
    start: (args: readonly string[]) => command.start([...args, ...place], { env }),
    here: (args: readonly string[]) => command.here([...args, ...place], { env }),
  };
}

describe('worker', () => {
  test('serves runs of other commands until it is stopped, and lets a call in flight end', async () => {
    const { start, here } = queue();
    stub.scriptFor('Work for me', replyText('worked', { holdBeforeHeaders: 'work' }));
    const worker = start(['worker', '--max-cached', '10', '--json']);
    await worker.prints('with 1 agent: files');
    const run = here(['run', 'files', 'Work for me', '--id', 'wrk-run']);
    await run.until(stub.barrier('work').reached);
    worker.child.kill('SIGTERM');
    await worker.prints('The worker stops');
    stub.barrier('work').release();
    const end = await worker.ended;
    expect(end.code).toBe(0);
    expect(JSON.parse(end.stdout)).toMatchObject({
      address,
      namespace: 'default',
      agents: ['files'],
    });
    // The run repeats whatever the worker no longer recorded.
    const { code, stdout } = await run.ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'worked\n' });
    expect(stub.requestCount).toBe(1);
  });

  test('serves live streams, to other machines only with a token, or not at all', async () => {
    const { here } = queue();
    const open = await here(['worker', '--live-host', '0.0.0.0']).ended;
    expect(open.code).toBe(2);
    expect(open.stderr).toContain('--live-host: 0.0.0.0 lets other machines read the runs');
    const both = await here(['worker', '--no-live', '--live-port', '0']).ended;
    expect([both.code, both.stderr]).toEqual([
      2,
      expect.stringContaining('--no-live: expected no --live-port'),
    ]);
    const worker = here(['worker', '--json']);
    await worker.prints('"live":"http://127.0.0.1:');
    worker.interrupt();
    expect((await worker.ended).stderr).toContain('Live stream: GET http://127.0.0.1:');
    const mute = here(['worker', '--no-live', '--json']);
    await mute.prints('"live":null');
    mute.interrupt();
    expect((await mute.ended).stderr).not.toContain('Live stream');
  });

  test('waits for a server that does not answer yet, but not for one that refuses it', async () => {
    const free = await startProxy(address);
    const late = free.address;
    await free.close();
    const here = (...args: readonly string[]) =>
      command.here(['worker', '--no-live', '--task-queue', `worker-${randomUUID()}`, ...args]);
    const worker = here('--json', '--address', late);
    await worker.prints(`No Temporal server answers at ${late}`);
    expect(worker.stderr()).toContain('The worker waits for it');
    const proxy = await startProxy(address, Number(late.split(':')[1]));
    await worker.prints(`"address":"${late}"`);
    worker.interrupt();
    expect((await worker.ended).code).toBe(0);
    await proxy.close();
    // An interrupt also ends the wait.
    const other = here('--address', late);
    await other.prints('The worker waits for it');
    other.interrupt();
    expect((await other.ended).code).toBe(0);
    const wrong = await here('--address', address, '--namespace', 'none').ended;
    expect([wrong.code, wrong.stderr]).toEqual([5, expect.stringContaining('none')]);
  });

  test('is stopped at once by a second signal', async () => {
    const { start, here } = queue();
    stub.scriptFor('Hang on', replyText('never', { holdBeforeHeaders: 'hang' }));
    const worker = start(['worker']);
    await worker.prints('with 1 agent: files');
    const run = await here(['run', 'files', 'Hang on', '--detach', '--id', 'wrk-hang']).ended;
    expect(run.code).toBe(0);
    await worker.until(stub.barrier('hang').reached);
    worker.child.kill('SIGINT');
    await worker.prints('The worker stops');
    worker.child.kill('SIGINT');
    expect((await worker.ended).code).toBe(130);
  });

  test('registers a build of a deployment and promotes it, or shows the command', async () => {
    const { here } = queue();
    const name = `cli-${randomUUID()}`;
    const first = here(['worker', '--deployment', name, '--json']);
    await first.prints(': current; new runs start on it');
    const args = ['worker', '--deployment', name, '--build-id', 'next', '--no-promote', '--json'];
    const second = here(args);
    await second.prints(
      `deployment ${name}, build next: not current; promote it to start new runs on it: temporal worker deployment set-current-version --address ${address} --namespace default --deployment-name ${name} --build-id next --yes`,
    );
    stub.scriptFor('Who works', replyText('a build'));
    const run = await here(['run', 'files', 'Who works', '--id', `run-${name}`]).ended;
    expect(run.stdout).toBe('a build\n');
    for (const each of [first, second]) each.interrupt();
    const [one, two] = await Promise.all([first.ended, second.ended]);
    expect(JSON.parse(one.stdout)).toMatchObject({
      deployment: { name, buildId: expect.stringMatching(/^[0-9a-f]{12}$/) },
    });
    expect(JSON.parse(two.stdout)).toMatchObject({ deployment: { name, buildId: 'next' } });
  });

  test.each([
    [['--deployment', 'my.agents'], 'for example my-agents'],
    [['--build-id', 'x'], '--build-id: expected --deployment NAME, got none'],
    [['--no-promote'], '--no-promote: expected --deployment NAME, got none'],
  ])('refuses %j as usage', async (args, reason) => {
    const end = await queue().here(['worker', ...args]).ended;
    expect(end.stderr).toContain(reason);
    expect(end.code).toBe(2);
  });

  test('refuses an invalid cache size', async () => {
    const end = await queue().here(['worker', '--max-cached', '-3']).ended;
    expect(end.code).toBe(2);
    expect(end.stderr).toContain('--max-cached: expected a whole number from 0, got -3');
  });
});
