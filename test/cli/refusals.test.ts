import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { createClient, type PerdureClient } from '../../src/index.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { template } from '../../src/prompts/template.js';
import { commandLine } from '../support/command.js';
import { untilStatus } from '../support/conversation.js';
import { createRig, type Rig } from '../support/rig.js';

const address = inject('temporalAddress');
const command = await commandLine();
const instructions = template('Speak {{language}}.', { args: ['language'] });
const desk = defineAgent({ name: 'desk', description: 'Helps.', instructions: 'x', model: 'm' });
const guide = defineAgent({ name: 'guide', instructions, model: 'm', agents: [desk] });
let rig: Rig;
let client: PerdureClient;
let config: string;

beforeAll(async () => {
  rig = await createRig();
  await rig.worker([guide], { models: { m: scriptedModel([replyText('hi'), replyText('hi')]) } });
  const { client: sdk, taskQueue, home } = rig;
  client = await createClient({ client: sdk, taskQueue, home, config: { agents: [guide] } });
  config = join(rig.home, 'own.config.mjs');
  const text = `
    import { defineAgent, defineConfig, template } from 'perdure';
    const desk = defineAgent({ name: 'desk', description: 'Helps.', instructions: 'x', model: 'demo' });
    const instructions = template('Speak {{language}}.', { args: ['language'] });
    const guide = defineAgent({ name: 'guide', instructions, model: 'demo', agents: [desk] });
    export default defineConfig({ agents: [guide] });
  `;
  await writeFile(config, text);
});
afterAll(async () => await rig.close());

async function refused(...args: readonly string[]): Promise<string> {
  const place = ['--address', address, '--task-queue', rig.taskQueue];
  const given = args.includes('--address') ? args : [...args, ...place];
  const { code, stdout, stderr } = await command.here(given).ended;
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  return stderr.trim();
}

async function startedRuns(): Promise<number> {
  const { count } = await rig.client.workflow.count(
    `TaskQueue = '${rig.taskQueue}' AND WorkflowType = 'agent'`,
  );
  return count;
}

const unknown =
  'agent: expected an agent of the configuration, got "dsek" (nearest: desk); correct the name, or add the agent';

describe('the command', () => {
  test('refuses a misspelled agent and suggests the nearest name, even with --detach, and starts nothing', async () => {
    const nobody = ['--address', address, '--task-queue', `nobody-${randomUUID()}`];
    expect(await refused('run', 'dsek', 'hi', '--config', config, ...nobody)).toContain(unknown);
    const elsewhere = `agent: expected an agent of the worker on task queue "${rig.taskQueue}", got "dsek" (nearest: desk)`;
    expect(await refused('run', 'dsek', 'hi', '--config', config)).toContain(elsewhere);
    expect(await refused('run', 'dsek', 'hi', '--detach', '--config', config)).toContain(elsewhere);
    expect(await startedRuns()).toBe(0);
  });

  test('refuses only a name that no worker elsewhere may have, if there is no configuration file', async () => {
    const elsewhere = ['--address', address, '--task-queue', `nobody-${randomUUID()}`];
    expect(await refused('run', 'flies', 'hi', '--no-config', ...elsewhere)).toContain(
      'got "flies" (nearest: files)',
    );
    const place = ['--address', address, '--task-queue', rig.taskQueue];
    const { code, stdout } = await command.here(['run', 'desk', 'hi', '--no-config', ...place])
      .ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'hi\n' });
  });

  test('refuses --arg for an agent without a template', async () => {
    expect(await refused('run', 'desk', 'hi', '--arg', 'a=b', '--config', config)).toContain(
      '--arg: expected none for agent "desk", whose instructions are not a template; remove them',
    );
  });

  test('refuses a run without an argument of its template, and starts nothing', async () => {
    const before = await startedRuns();
    expect(await refused('run', 'guide', 'hi', '--config', config)).toContain(
      '--arg: expected a value for language, got none; the template of agent "guide" takes language: give --arg language=TEXT',
    );
    const schedule = ['create', 'lacking', 'hi', '--agent', 'guide', '--every', '1h'];
    expect(await refused('schedule', ...schedule, '--config', config)).toContain(
      '--arg: expected a value for language, got none',
    );
    expect(await startedRuns()).toBe(before);
  });

  test('refuses an empty id of a new run and of an existing one', async () => {
    const empty = '--id: expected a string of 1 to 1000 characters, got ""; omit it';
    expect(await refused('run', 'desk', 'hi', '--config', config, '--id', '')).toContain(empty);
    expect(await refused('fork', 'some-run', 'hi', '--id', ' ')).toContain('--id: expected');
    expect(await refused('status', '')).toContain('id: expected the id of a run, got ""');
  });

  test.each(['localhost', 'http://127.0.0.1:7233', '127.0.0.1:', '127.0.0.1:99999', ':7233', ''])(
    'refuses the address "%s"',
    async (given) => {
      expect(await refused('list', '--address', given)).toContain(
        `--address: expected host:port, got "${given}"; write for example 127.0.0.1:7233`,
      );
    },
  );

  test('applies no limits if one of them is invalid, and names it', async () => {
    const { id } = await client.start('desk', { open: true });
    await untilStatus(rig.client.workflow.getHandle(id), 'waiting_message');
    const before = (await client.status(id)).limits;
    expect(await refused('limits', id, '--limit', 'steps=3', '--limit', 'tool-calls=-1')).toContain(
      'Expected a positive whole number',
    );

    const bad = { steps: 3, run: { toolCalls: 1.5 } };
    await expect(client.setLimits(id, bad)).rejects.toThrow('limits.run.toolCalls');
    expect((await client.status(id)).limits).toEqual(before);
    await client.cancel(id);
  });
});

test('the refusal of a run prints its message once, without the errors of the SDK around it', async () => {
  const { id } = await client.start('desk', { open: true });
  await untilStatus(rig.client.workflow.getHandle(id), 'waiting_message');
  const error = await client.revoke(id, 'g99').catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'RefusedError', code: 'refused' });
  const printed = inspect(error);
  expect(printed.split('g99')).toHaveLength(2);
  expect(printed).not.toMatch(/\[cause\]|ApplicationFailure|WorkflowUpdateFailedError/);
  await client.cancel(id);
});

describe('an error with --json', () => {
  test('is one document with a stable code, whatever the command', async () => {
    const { id } = await client.start('desk', { open: true });
    const { id: over } = await client.start('desk', { message: 'hi' });
    await client.cancel(over);
    await client.result(over);
    await untilStatus(rig.client.workflow.getHandle(id), 'waiting_message');
    const digest = 'ab'.repeat(32);
    const cases: readonly (readonly [code: string, ...args: readonly string[]])[] = [
      ['usage', 'nonsense'],
      ['usage', 'run', 'desk', 'hi', '--bogus'],
      ['usage', 'limits', id, '--limit', 'steps=0'],
      ['no_run', 'status', 'no-such-run'],
      ['no_run', 'fork', 'no-such-run', 'hi'],
      ['no_schedule', 'schedule', 'pause', 'no-such-schedule'],
      ['no_request', 'approve', id, 'r9', '--digest', digest],
      ['run_ended', 'close', over],
      ['id_taken', 'run', 'desk', 'hi', '--id', over, '--no-wait'],
      ['changed', 'send', id, 'yes', '--digest', digest, '--no-wait'],
      ['no_server', 'list', '--address', '127.0.0.1:1'],
    ];
    for (const [code, ...args] of cases) {
      const place = args.includes('--address') ? [] : ['--address', address];
      const all = [...args, ...place, '--task-queue', rig.taskQueue, '--json'];
      const { stdout, stderr } = await command.here(all).ended;
      const line = JSON.parse(stdout) as { code: string; error: string };
      expect({ args, code: line.code }).toEqual({ args, code });
      expect(stderr).toContain(line.error.split('\n')[0]);
    }
    await client.cancel(id);
  });
});

describe('a client with the configuration', () => {
  test('refuses a misspelled agent in start, batch, schedule, and ask', async () => {
    const before = await startedRuns();
    const options = { message: 'hi' };
    await expect(client.start('dsek', options)).rejects.toThrow(unknown);
    expect(() => client.batch('dsek', ['hi'], { id: 'b' })).toThrow(unknown);
    const schedule = { id: randomUUID(), agent: 'dsek', cron: '0 3 * * *', ...options };
    await expect(client.schedule.create(schedule)).rejects.toThrow(unknown);
    const ask = client.send(randomUUID(), 'hi', { start: { agent: 'dsek' } });
    await expect(ask).rejects.toThrow(unknown);
    expect(await startedRuns()).toBe(before);
  });

  test('refuses arguments for an agent without a template, an empty id, and a malformed address', async () => {
    const args = { language: 'French' };
    await expect(client.start('desk', { message: 'hi', args })).rejects.toThrow(
      'args: expected none for agent "desk"',
    );
    await expect(client.start('desk', { message: 'hi', id: '' })).rejects.toThrow(
      'id: expected a string of 1 to 1000 characters, got ""',
    );
    // Workflows with these ids hand out what all runs share.
    for (const id of ['budget:costUsd:tenant:acme', 'rate:gpt-5-mini']) {
      await expect(client.start('desk', { message: 'hi', id })).rejects.toThrow(
        `id: expected one that does not begin with "budget:" or "rate:", got "${id}"`,
      );
    }
    for (const id of ['a\u0000b', 'a\ud800b']) {
      await expect(client.start('desk', { message: 'hi', id })).rejects.toThrow(
        'id: expected no U+0000 and no unpaired surrogate, got "a\\u',
      );
    }
    await expect(client.send('', 'hi', { start: { agent: 'desk' } })).rejects.toThrow(
      'run: expected what `start` returns, or the id of a run, got ""',
    );
    await expect(createClient({ address: 'localhost' })).rejects.toThrow(
      'address: expected host:port, got "localhost"',
    );
  });
});

test('a malformed head is no head of a changed log', async () => {
  const log = join(rig.home, 'audit.log');
  await writeFile(log, '');
  expect(await refused('audit', '--verify', log, '--head', 'abc')).toMatch(
    /^error: --head: expected 64 hexadecimal digits, .*, got "abc"$/,
  );
});

test.each([
  ['message', 'run', 'desk', 'MESSAGE'],
  ['message', 'send', 'desk-1', 'MESSAGE'],
  ['message', 'fork', 'desk-1', 'MESSAGE'],
  ['text', 'answer', 'desk-1', 'r1', 'TEXT'],
  ['--note', 'deny', 'desk-1', 'r1', '--note', 'TEXT'],
])('a placeholder of a printed command is no %s: %s', async (field, ...args) => {
  expect(await refused(...args)).toMatch(
    new RegExp(`^error: ${field}: expected your own words, got ${args.at(-1)}, which`),
  );
});

test('wrong encryption settings are an error of usage, in each command', async () => {
  const strict = join(rig.home, 'strict.config.mjs');
  await writeFile(
    strict,
    `
    import { defineAgent, defineConfig } from 'perdure';
    const desk = defineAgent({ name: 'desk', instructions: 'x', model: 'demo' });
    export default defineConfig({ agents: [desk], encryption: { required: true } });
  `,
  );
  const place = ['--json', '--address', address, '--config'];
  const short = { PERDURE_ENCRYPTION_KEYS: 'k1:short' };
  const faults = [
    [config, short, 'PERDURE_ENCRYPTION_KEYS: key "k1": expected base64 of 32 bytes'],
    [strict, {}, 'encryption: expected keys, because `required` is true, got none'],
  ] as const;
  for (const [file, env, text] of faults) {
    for (const words of [['list'], ['run', 'desk', 'x'], ['worker'], ['transcript', 'x']]) {
      const { code, stdout, stderr } = await command.here([...words, ...place, file], { env })
        .ended;
      expect({ words, code, stderr }).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(text) as string,
      });
      expect(JSON.parse(stdout)).toMatchObject({ code: 'usage' });
    }
  }
});
