import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { replyText } from '../../src/testing/replies.js';
import { type Stub, startStub } from '../../src/testing/stub-server.js';
import { type RunningCommand, commandLine } from '../support/command.js';
import { freePort } from '../support/free-port.js';
import { portOf } from '../support/port-of.js';

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

/** Returns functions that start commands on a task queue of their own. */
function queue(more: Readonly<Record<string, string>> = {}) {
  const place = ['--address', address, '--task-queue', `metrics-${randomUUID()}`];
  const env = { OPENAI_BASE_URL: stub.baseUrl, ...more };
  return {
    start: (...args: readonly string[]): RunningCommand =>
      command.start([...args, ...place], { env }),
    here: (...args: readonly string[]) => command.here([...args, ...place], { env: more }),
  };
}

async function scrape(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  return await answer.text();
}

async function stop({ child, ended }: RunningCommand): Promise<string> {
  child.kill('SIGTERM');
  const { code, stderr, stdout } = await ended;
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return stdout;
}

describe('metrics of a worker', () => {
  test('`worker --metrics PORT` exports those of the SDK and of perdure, on this machine only', async () => {
    const port = await freePort();
    const { start } = queue();
    stub.scriptFor('Count me', replyText('counted'));
    const worker = start('worker', '--json', '--metrics', String(port));
    await worker.prints('with 1 agent: files');
    expect(worker.stderr()).toContain(`Metrics: GET http://127.0.0.1:${port}/metrics`);
    expect((await start('run', 'files', 'Count me').ended).stdout).toBe('counted\n');
    const text = await scrape(port);
    expect(text).toMatch(/^temporal_workflow_task_execution_latency_bucket\{/m);
    expect(text).toMatch(/^perdure_model_calls\{.*agent="files".*\} 1$/m);
    expect(text).toMatch(/^perdure_turns\{.*status="completed".*\} 1$/m);
    // In seconds and tokens: the SDK's own buckets begin at 50.
    expect(text).toMatch(/^gen_ai_client_operation_duration_bucket\{.*le="0.32"\} [01]$/m);
    expect(text).toMatch(/^gen_ai_client_token_usage_bucket\{.*le="65536"\} 1$/m);
    expect(JSON.parse(await stop(worker))).toMatchObject({
      metrics: `http://127.0.0.1:${port}/metrics`,
    });
  });

  test('`serve` and `dev` export them too, by PERDURE_METRICS and by the option', async () => {
    const [one, other] = [await freePort(), await freePort()];
    const serve = queue({ PERDURE_METRICS: `localhost:${one}` }).start('serve', '--port', '0');
    const dev = queue().start('dev', '--port', '0', '--metrics', `127.0.0.1:${other}`);
    await serve.prints('A worker runs in this process.');
    await dev.prints('with 1 agent: files');
    expect(serve.stderr()).toContain(`Metrics: GET http://127.0.0.1:${one}/metrics`);
    for (const port of [one, other]) expect(await scrape(port)).toMatch(/^temporal_/m);
    await stop(serve);
    await stop(dev);
  });

  test('a place where nothing can listen is a usage error, which names what was set', async () => {
    const refused = async (args: readonly string[], set: string | null = null): Promise<string> => {
      const { here } = queue(set === null ? {} : { PERDURE_METRICS: set });
      const { code, stderr } = await here(...args).ended;
      expect({ code, stderr }).toMatchObject({ code: 2 });
      return stderr;
    };
    const expected = 'expected a port from 1 to 65535, or an address with a port such as';
    for (const name of ['worker', 'dev', 'serve']) {
      expect(await refused([name, '--metrics', 'soon'])).toContain(`--metrics: ${expected}`);
      expect(await refused([name], '127.0.0.1')).toContain(`PERDURE_METRICS: ${expected}`);
    }
    for (const port of ['0', '65536', '9464/metrics', 'http://127.0.0.1:9464', '::1:9464', '']) {
      expect(await refused(['worker', '--metrics', port])).toContain(`got "${port}"`);
    }
    expect(await refused(['worker', '--metrics', 'host.invalid:9464'])).toContain(
      'got "host.invalid", which has no address',
    );
    expect(await refused(['serve', '--no-worker', '--metrics', '9464'])).toContain(
      '--no-worker: expected no --metrics',
    );
  });

  test('a port that is taken, and the address of another machine, are usage errors', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const port = portOf(taken);
    const { start } = queue({ PERDURE_METRICS: String(port) });
    const [busy, far] = await Promise.all([
      start('worker').ended,
      start('worker', '--metrics', '192.0.2.7:9464').ended,
    ]);
    taken.close();
    expect(busy).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        `PERDURE_METRICS: expected a free port, got 127.0.0.1:${port}, at which another program listens; stop it, or choose another`,
      ),
    });
    expect(far).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        '--metrics: the worker cannot listen at 192.0.2.7:9464: Cannot assign requested address; name an address of this machine',
      ),
    });
  });
});
