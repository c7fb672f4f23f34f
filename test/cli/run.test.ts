import { createServer } from 'node:net';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { filesAgent } from '../../src/agents/files-agent.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { replyCalls, replyError, replyText } from '../../src/testing/replies.js';
import { commandLine, type CommandEnd } from '../support/command.js';
import { portOf } from '../support/port-of.js';
import { createRig, type Rig } from '../support/rig.js';

const address = inject('temporalAddress');
const command = await commandLine();
let rig: Rig;
let stub: Stub;

beforeAll(async () => {
  rig = await createRig();
  stub = await startStub();
  const env = { PERDURE_HOME: rig.home, OPENAI_BASE_URL: stub.baseUrl };
  await rig.worker([filesAgent(import.meta.dirname, env)], { env });
});
afterAll(async () => {
  await rig.close();
  await stub.close();
  stub.assertConsumed();
});

function json({ stdout }: CommandEnd): unknown {
  expect(stdout.endsWith('\n')).toBe(true);
  expect(stdout.trimEnd().split('\n')).toHaveLength(1);
  return JSON.parse(stdout);
}

const ownPlace = () => ['--address', address, '--task-queue', rig.taskQueue];

/** Starts `run` on the queue of the worker. */
function run(...args: string[]) {
  return command.here(['run', ...args, ...ownPlace()]);
}

describe('a run with a worker elsewhere', () => {
  test('exits with 0, the answer on stdout, and messages on stderr', async () => {
    stub.scriptFor(
      'Who are you',
      replyCalls([{ name: 'list_files', arguments: { path: '.' } }]),
      replyText('I am\na stub.'),
    );
    const args = ['run', 'files', 'Who are', 'you?', '--id', 'run-plain'];
    const { code, stdout, stderr } = await command.start([...args, ...ownPlace()]).ended;
    // The model has a line of its own if it is not known within a moment.
    expect(stderr).toMatch(/^run run-plain · (?:model gpt-4.1-mini · )?http:.*run-plain$/m);
    expect(stderr).toMatch(/^(?:run run-plain · )?model gpt-4.1-mini\b/m);
    expect(stderr).toMatch(/^step 1 · list_files \. · [\d.]+ k?B · [\d.]+ s$/m);
    expect(stderr).toMatch(/^completed \(answer\) · 2 steps · 1 call · 20 in, 10 out/m);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'I am\na stub.\n' });
  });

  test('prints one line of JSON, and refuses to reuse an id', async () => {
    stub.scriptFor('Say hello', replyText('hello'));
    const first = await run('files', 'Say hello', '--json', '--id', 'run-twice').ended;
    expect(json(first)).toMatchObject({
      id: 'run-twice',
      runId: expect.stringMatching(/^[\da-f-]{36}$/),
      status: 'completed',
      reason: 'answer',
      answer: 'hello',
      steps: 1,
      usage: { inputTokens: 10, outputTokens: 5 },
    });
    expect(first.code).toBe(0);
    const again = ['files', 'Say hello', '--json', '--id', 'run-twice'];
    const second = await run(...again).ended;
    expect(second.code).toBe(2);
    expect(second.stderr).toMatch(
      /run-twice, that of a run that has ended; .* add --reuse-id to use it again, .* status run-twice --address/,
    );
    expect(json(second)).toEqual({
      code: 'id_taken',
      error: expect.stringContaining('--id: expected an unused id'),
    });
    stub.scriptFor('Say hello', replyText('hello again'));
    const third = await run(...again, '--reuse-id').ended;
    expect(json(third)).toMatchObject({ id: 'run-twice', status: 'completed' });
  });

  test('exits with 1 when the provider filters the answer', async () => {
    stub.scriptFor('Be rude', replyText('', { finish: 'content_filter' }));
    const end = await run('files', 'Be rude', '--json').ended;
    expect(json(end)).toMatchObject({ status: 'failed', reason: 'filtered' });
    expect(end.code).toBe(1);
    expect(end.stderr).toContain('failed (filtered)');
  });

  test('exits with 4 when no worker has the agent, and names the nearest ones', async () => {
    // The agent is new in the configuration, and the worker has the old one.
    const config = join(rig.home, 'new.config.mjs');
    const agent = "defineAgent({ name: 'file', instructions: 'x', model: 'demo' })";
    await writeFile(
      config,
      `import { defineAgent, defineConfig } from 'perdure';\nexport default defineConfig({ agents: [${agent}] });\n`,
    );
    const end = await run('file', 'Hello', '--json', '--config', config).ended;
    expect(json(end)).toMatchObject({ status: 'blocked', reason: 'agent_missing' });
    expect(end.code).toBe(4);
    expect(end.stderr).toMatch(
      /expected an agent of worker \d+@\S+, got "file" \(nearest: files\).*its own taskQueue$/m,
    );
  });

  test('exits with 6 when a limit stops it', async () => {
    stub.scriptFor(
      'Look around',
      replyCalls([{ name: 'list_files', arguments: { path: '.' } }]),
      replyText('not much'),
    );
    const end = await run('files', 'Look around', '--limit', 'steps=1', '--json').ended;
    expect(json(end)).toMatchObject({ status: 'stopped', reason: 'steps', answer: 'not much' });
    expect(end.code).toBe(6);
  });

  test('exits with 4 when it is blocked and no person is present', async () => {
    stub.scriptFor(
      'Use a bad key',
      replyError(401, { message: 'bad key', code: 'invalid_api_key' }),
    );
    const end = await run('files', 'Use a bad key', '--json', '--id', 'run-blocked').ended;
    expect(json(end)).toEqual({
      id: 'run-blocked',
      runId: expect.any(String),
      status: 'blocked',
      reason: 'credentials',
    });
    expect(end.code).toBe(4);
    expect(end.stderr).toContain('blocked (credentials): ');
    expect(end.stderr).toContain('resume run-blocked');
    await rig.client.workflow.getHandle('run-blocked').terminate();
  });

  test('exits with 7 when it is canceled', async () => {
    stub.scriptFor('Wait for me', replyText('late', { holdBeforeHeaders: 'cancel' }));
    const running = run('files', 'Wait for me', '--json', '--id', 'run-cancelled');
    await running.until(stub.barrier('cancel').reached);
    await rig.client.workflow.getHandle('run-cancelled').cancel();
    const end = await running.ended;
    expect(json(end)).toMatchObject({ status: 'cancelled', reason: 'cancelled' });
    expect(end.code).toBe(7);
  });

  test('continues after --detach, and after the command that follows it is interrupted', async () => {
    stub.scriptFor('Take your time', replyText('done', { holdBeforeHeaders: 'detach' }));
    const started = await run('files', 'Take your time', '--detach', '--id', 'run-detached').ended;
    expect({ code: started.code, stdout: started.stdout }).toEqual({
      code: 0,
      stdout: 'run-detached\n',
    });
    await stub.barrier('detach').reached;
    const follower = command.here(['attach', 'run-detached', '--json', ...ownPlace()]);
    await follower.prints('run run-detached');
    follower.interrupt();
    const left = await follower.ended;
    expect(left.code).toBe(130);
    expect(json(left)).toMatchObject({ id: 'run-detached', status: 'working' });
    expect(left.stderr).toContain('continues where a worker serves its task queue');
    stub.barrier('detach').release();
    const again = await command.here(['attach', 'run-detached', ...ownPlace()]).ended;
    expect({ code: again.code, stdout: again.stdout }).toEqual({ code: 0, stdout: 'done\n' });
  });
});

describe('an invalid command line', () => {
  test.each([
    ['run files hello --limti steps=3', 'Did you mean --limit'],
    [
      'run files hello --limit steps=-1',
      'Expected a positive whole number, or none for no limit, got -1',
    ],
    ['run files hello --limit steps=many', 'Expected a positive whole number'],
    [
      'run files hello --limit run.wall=soon',
      'Expected a duration such as 10m, or none for no limit, got soon',
    ],
    ['run files hello --limit stepz=3', 'with one of steps, tool-calls, tokens, cost-usd, wall'],
    ['run files hello --limit steps=3 --limit steps=4', 'The limit steps is given twice'],
    ['run files hello --tag ', '--tag: expected a list of strings'],
    ['run files hello --input 7', '--input: expected'],
    ['run files hello --by ', '--by: expected a name of 1 to 200 characters'],
    ['run files hello --context {', 'Expected JSON'],
    ['run files hello --opened', 'Did you mean --open'],
    [
      'run files',
      'message: expected a message after the agent, or --prompt, or for a graph --input',
    ],
    ['run files   --id x', 'message: expected a message after the agent'],
    ['nothing', "unknown command 'nothing'"],
    ['trigger s1', "unknown command 'trigger'\n(Did you mean schedule trigger?)"],
    ['run files hello --config gone.ts', '--config: expected an existing file, got gone.ts'],
  ])('%s: exits with 2 and the reason', async (line, why) => {
    const end = await command.here([...line.split(' '), '--json']).ended;
    expect(end.code).toBe(2);
    expect(end.stderr).toContain(why);
    expect(json(end)).toEqual({ code: 'usage', error: expect.stringContaining(why.slice(0, 20)) });
  });

  test('--detach needs a worker elsewhere', async () => {
    const place = ['--address', address, '--task-queue', 'nobody-listens'];
    const end = await command.here(['run', 'files', 'hello', '--detach', '--json', ...place]).ended;
    expect(end.code).toBe(1);
    expect(end.stderr).toContain('expected a worker on task queue "nobody-listens", got none');
    expect(json(end)).toMatchObject({ code: 'no_worker' });
  });

  test('an address without a server exits with 5', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const port = portOf(server);
    server.close();
    const end = await command.here(['run', 'files', 'hello', '--address', `127.0.0.1:${port}`])
      .ended;
    expect(end.code).toBe(5);
    expect(end.stderr).toContain(`127.0.0.1:${port}`);
    expect(end.stdout).toBe('');
  });
});
