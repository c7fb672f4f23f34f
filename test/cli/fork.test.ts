import { userInfo } from 'node:os';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { commandLine, type CommandEnd } from '../support/command.js';

const command = await commandLine();
const place = ['--address', inject('temporalAddress'), '--task-queue', `fork-${randomUUID()}`];
let stub: Stub;

beforeAll(async () => {
  stub = await startStub();
});
afterAll(async () => {
  await stub.close();
  stub.assertConsumed();
});

const env = () => ({ OPENAI_BASE_URL: stub.baseUrl });

async function perdure(...args: readonly string[]): Promise<CommandEnd> {
  return await command.here([...args, ...place], { env: env() }).ended;
}

describe('the command fork', () => {
  test('continues from a message with another question, and hosts a worker', async () => {
    const source = `source-${randomUUID()}`;
    const id = `fork-${randomUUID()}`;
    stub.scriptFor('My name is Ada', replyText('Hello Ada.'), replyText('42.'));
    await perdure('run', 'files', 'My name is Ada', '--open', '--id', source);
    const fork = ['fork', source, 'What is', 'it?', '--at', '1', '--id', id];
    const asked = await perdure(...fork);
    expect({ code: asked.code, stdout: asked.stdout }).toEqual({ code: 0, stdout: '42.\n' });
    expect(asked.stderr).toContain(`run ${id} is forked from run ${source}`);

    const status = await perdure('status', id);
    expect(status.stdout).toMatch(
      new RegExp(`forked +from ${source}, with its messages before #1`),
    );
    const output = await perdure('transcript', id);
    expect(output.stdout.match(/^#.*?(?= ·)/gm)).toEqual([
      '#0 user (os-user:' + userInfo().username + ' (not verified))',
      '#1 user (os-user:' + userInfo().username + ' (not verified))',
      '#2 model',
    ]);
    expect(output.stderr).toContain(`The messages before #1 come from run ${source}`);

    const taken = await perdure('fork', source, 'x', '--id', id);
    expect(taken.code).toBe(2);
    expect(taken.stderr).toContain(
      `--id: expected an unused id, got ${id}, that of a run that has`,
    );
    expect(taken.stderr).not.toContain('--reuse-id');
    const beyond = await perdure('fork', source, 'x', '--at', '9');
    expect(beyond.code).toBe(2);
    expect(beyond.stderr).toContain('--at: expected at most 2');
    const noGraph = await perdure('fork', source, '--node', 'judge#2');
    expect(noGraph.code).toBe(2);
    expect(noGraph.stderr).toContain(
      '--node: the run has no graph; give the next message, and --at for its place',
    );
    const empty = await perdure('fork', source);
    expect(empty.code).toBe(2);
    expect(empty.stderr).toContain(
      'message: expected the next message, got none; give it after the run',
    );
    const none = await perdure('fork', 'never-was', 'x');
    expect(none.code).toBe(1);
    expect(none.stderr).toContain('there is no run "never-was"');
  }, 120_000);
});
