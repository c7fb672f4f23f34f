import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, chown, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { doctor } from '../../src/cli/commands/doctor.js';
import type { Finding } from '../../src/cli/doctor/finding.js';
import { versionsFinding } from '../../src/cli/doctor/installation.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { commandLine } from '../support/command.js';
import { mayBeOther, NOBODY } from '../support/other-user.js';
import { runInProcess, type Place, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

const address = inject('temporalAddress');
const KEY = `sk-${randomUUID()}`;
const command = await commandLine();
let rig: Rig;

beforeAll(async () => {
  rig = await createRig();
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm' });
  const files = defineAgent({ name: 'files', instructions: 'x', model: 'm' });
  await rig.worker([agent, files], { models: { m: scriptedModel([replyText('hi')]) } });
});
afterAll(async () => await rig.close());

async function ask(place: Partial<Place>): Promise<CommandOutput> {
  const { env, ...rest } = place;
  const cli = { TEMPORAL_CLI_PATH: inject('temporalCli') };
  return await runInProcess(
    doctor,
    { model: true },
    { home: rig.home, taskQueue: rig.taskQueue, env: { ...cli, ...env }, ...rest },
  );
}

interface Examined {
  readonly code: number;
  readonly ok: boolean;
  readonly of: Readonly<Record<string, Finding | undefined>>;
}

async function examined(place: Partial<Place>): Promise<Examined> {
  const { stdout, code } = await ask({ ...place, json: true });
  expect(stdout.split('\n')).toHaveLength(1);
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: readonly Finding[] };
  return { code, ok, of: Object.fromEntries(findings.map((finding) => [finding.name, finding])) };
}

async function written(text: string): Promise<string> {
  const file = join(rig.home, `${randomUUID()}.config.mjs`);
  await writeFile(file, text);
  return file;
}

describe('with a running server', () => {
  test('it shows the server, how it was found, and the workers', async () => {
    const { code, ok, of } = await examined({ address });
    expect({ code, ok, of: of['worker agents'] }).toMatchObject({
      code: 0,
      ok: true,
      of: { level: 'ok', text: `1 worker on task queue "${rig.taskQueue}" with a, files` },
    });
    expect(of['server']).toMatchObject({
      level: 'ok',
      text: expect.stringMatching(/^127.*, named by --address, Temporal \d+\.\d+\.\d+/),
      data: { address, how: 'address', version: expect.stringMatching(/^\d+\.\d+/) },
    });
    expect(of['namespace']).toMatchObject({
      level: 'ok',
      text: 'default, keeps closed runs for 30 days',
      data: { namespace: 'default', retentionHours: 720 },
    });
    expect(of['search attributes']).toMatchObject({ level: 'ok', data: { missing: [] } });
    expect(of['worker']).toMatchObject({
      level: 'ok',
      text: expect.stringContaining(`1 worker on task queue "${rig.taskQueue}": ${process.pid}@`),
    });
    expect(of['versions']?.text).toMatch(/^perdure \d.*, Node \d.*, Temporal SDK 1\.\d+\.\d+$/);
    // The CLI is that of the embedded server, which is not in use.
    expect(of['temporal cli']).toBeUndefined();
  });

  test('the text output shows the same, with each fix below its problem', async () => {
    const { stdout, stderr, code } = await ask({ address });
    expect(stdout).toMatch(/^ok {6}server {12}127/m);
    expect(stdout).toMatch(/^note {4}agent files {7}the demo model: .*LLM; it needs no key/m);
    expect(stdout).toMatch(/^ +→ to use an LLM: set OPENAI_API_KEY/m);
    expect({ code, stderr }).toEqual({
      code: 0,
      // Other tests may have left runs, whose queues are noted too.
      stderr: expect.stringMatching(/^No problem found; \d notes?\.$/),
    });
  });

  test('it names missing search attributes, and the command that adds them', async () => {
    const namespace = `doctor-${randomUUID()}`;
    await temporal([
      'operator',
      'namespace',
      'create',
      '-n',
      namespace,
      '--retention',
      '24h',
      '--address',
      address,
    ]);
    const { code, of } = await vi.waitFor(
      async () => {
        const found = await examined({ address, namespace });
        expect(found.of['search attributes']?.data['missing']).toHaveLength(3);
        return found;
      },
      { timeout: 30_000, interval: 200 },
    );
    expect(code).toBe(0);
    const { level, text, fix = '' } = of['search attributes'] ?? {};
    expect(level).toBe('note');
    expect(text).toContain('AgentName, AgentStatus, AgentReason missing');
    expect(of['namespace']).toMatchObject({
      level: 'note',
      fix: expect.stringContaining(`update -n ${namespace} --retention 720h`),
    });
    expect(fix).toMatch(/^temporal operator search-attribute create /);
    await temporal(fix.split(' ').slice(1));
    await vi.waitFor(
      async () => {
        const after = await examined({ address, namespace });
        expect(after.of['search attributes']).toMatchObject({ level: 'ok', data: { missing: [] } });
      },
      { timeout: 30_000, interval: 200 },
    );
  });

  test('it refuses an unknown namespace', async () => {
    const { code, of } = await examined({ address, namespace: 'nowhere' });
    expect(of['server']).toMatchObject({
      level: 'problem',
      text: expect.stringMatching(
        /no namespace nowhere.*temporal operator namespace create -n nowhere/,
      ),
    });
    expect(code).toBe(1);
  });
});

describe('without a server', () => {
  test('a named server that does not answer is a problem, and nothing is started', async () => {
    const { code, ok, of } = await examined({ env: { TEMPORAL_ADDRESS: '127.0.0.1:1' } });
    expect({ code, ok }).toEqual({ code: 1, ok: false });
    expect(of['server']).toMatchObject({
      level: 'problem',
      text: expect.stringContaining('No Temporal server answers at 127.0.0.1:1'),
      data: { address: '127.0.0.1:1', by: 'TEMPORAL_ADDRESS' },
    });
    expect(of['worker']).toBeUndefined();
  });

  test('it shows what `run` would start, and with which program', async () => {
    const home = join(rig.home, 'fresh');
    const { code, of } = await examined({ home });
    expect(of['server']?.text).toMatch(
      /^none is running; `run`.* start the embedded one in .*fresh$/,
    );
    expect(of['temporal cli']).toMatchObject({
      level: 'ok',
      data: { path: inject('temporalCli'), source: 'TEMPORAL_CLI_PATH', version: '1.9.1' },
    });
    expect(of['home']?.text).toMatch(/fresh: no database yet, blobs can be written$/);
    expect(code).toBe(0);
  });

  test('a program that cannot be run is a problem, with each source that failed', async () => {
    const TEMPORAL_CLI_PATH = join(rig.home, 'no-temporal');
    const { code, of } = await examined({
      home: join(rig.home, 'fresh'),
      env: { TEMPORAL_CLI_PATH },
    });
    expect(of['temporal cli']).toMatchObject({
      level: 'problem',
      data: { sources: [`TEMPORAL_CLI_PATH: there is no file ${TEMPORAL_CLI_PATH}`] },
      fix: expect.stringContaining('correct TEMPORAL_CLI_PATH'),
    });
    expect(code).toBe(1);
  });

  test('a program outside the supported range is used if it is named, and skipped on PATH', async () => {
    const path = join(rig.home, 'path');
    await mkdir(path);
    const program = join(path, 'temporal');
    const text = '#!/bin/sh\necho "temporal version 2.3.4 (Server 1.99.0, UI 2)"';
    await writeFile(program, text, { mode: 0o755 });
    const home = join(rig.home, 'fresh');
    const named = await examined({ home, env: { TEMPORAL_CLI_PATH: program } });
    expect(named.of['temporal cli']).toMatchObject({
      level: 'note',
      text: `${program} (source: TEMPORAL_CLI_PATH), version 2.3.4, server 1.99.0`,
      fix: expect.stringContaining('perdure supports 1.5.0 or later, before 2.0.0'),
    });
    const env = { TEMPORAL_CLI_PATH: '', PATH: path, HOME: join(rig.home, 'empty') };
    const found = await examined({ home, env: { ...env, XDG_CACHE_HOME: '' } });
    expect(found.of['temporal cli']?.text).toContain(`${program} is version 2.3.4 and is not used`);
  });

  test('a folder in the path of PERDURE_HOME that is open to others is a problem, with the command that restricts it', async () => {
    const home = join(rig.home, 'open');
    await mkdir(join(home, 'archive'), { recursive: true });
    await chmod(home, 0o755);
    await chmod(join(home, 'archive'), 0o750);
    await symlink('/tmp', join(home, 'blobs'));
    const { code, of } = await examined({ home });
    expect(code).toBe(1);
    expect(of['permissions']).toMatchObject({
      level: 'problem',
      text:
        `${home} is open to other users (mode 0755)\n` +
        `${join(home, 'archive')} is open to other users (mode 0750)\n` +
        `${join(home, 'blobs')} is a symbolic link`,
      fix: expect.stringContaining(`chmod -R go= ${home}\n`),
    });
    await rm(join(home, 'blobs'));
    await promisify(execFile)('chmod', ['-R', 'go=', home]);
    expect((await examined({ home })).of['permissions']?.level).toBe('ok');
  });

  test.runIf(mayBeOther)('a file of another user is reported', async () => {
    const home = join(rig.home, 'foreign');
    await mkdir(home, { mode: 0o700 });
    await chown(home, NOBODY, NOBODY);
    const { of } = await examined({ home });
    expect(of['permissions']).toMatchObject({
      level: 'problem',
      text: `${home} belongs to user ${NOBODY}`,
      fix: `sudo chown -R "$(id -un)" ${home}`,
    });
  });

  test('a missing program is noted, with the download that `run` performs', async () => {
    const empty = join(rig.home, 'empty');
    const env = { TEMPORAL_CLI_PATH: '', PATH: empty, HOME: empty, XDG_CACHE_HOME: empty };
    const { code, of } = await examined({ home: join(rig.home, 'fresh'), env });
    expect(of['temporal cli']).toMatchObject({
      level: 'note',
      fix: expect.stringContaining('`run` downloads version'),
    });
    expect(of['temporal cli']?.data['sources']).toHaveLength(3);
    expect(code).toBe(0);
  });
});

describe('the models', () => {
  test('an agent without a key is a problem; the fix names the variables', async () => {
    const { code, of } = await examined({ address, env: { PERDURE_MODEL: 'gpt-4.1-mini' } });
    expect(of['agent files']).toMatchObject({
      level: 'problem',
      text: 'model gpt-4.1-mini: no key in OPENAI_API_KEY, so its runs are blocked',
      fix: expect.stringMatching(/^set OPENAI_API_KEY.*\nor try it without a key: .*"demo"/),
      data: { keyPresent: false },
    });
    expect(code).toBe(1);
  });

  test('a key is reported as present and never shown, and neither are the secrets in a URL', async () => {
    const env = {
      OPENAI_API_KEY: KEY,
      OPENAI_BASE_URL: `https://me:${KEY}@models.example/v1?key=${KEY}`,
    };
    const { of } = await examined({ address, env });
    expect(of['agent files']).toMatchObject({
      level: 'ok',
      text: 'model gpt-4.1-mini at https://models.example/v1, key from OPENAI_API_KEY',
      data: { keyPresent: true, baseUrl: 'https://models.example/v1' },
    });
    const { stdout, stderr } = await ask({ address, env });
    expect(stdout + stderr).not.toContain(KEY);
    expect(JSON.stringify(of)).not.toContain(KEY);
  });

  test('models of a configuration are shown with their own URLs and variables', async () => {
    const config = await written(`
      import { defineAgent, defineConfig } from 'perdure';
      const agent = (name, model) => defineAgent({ name, instructions: 'x', ...(model && { model }) });
      export default defineConfig({
        agents: [
          agent('own', 'own'),
          agent('far', 'far'),
          agent('local', 'local'),
          agent('claude', 'claude-sonnet-4-6'),
          agent('none'),
        ],
        models: {
          own: { call: async () => ({}) },
          far: { model: 'big', apiKeyEnv: 'FAR_KEY' },
          local: { baseUrl: 'http://127.0.0.1:9/v1' },
        },
      });
    `);
    const { of } = await examined({ address, config });
    expect(of['configuration']?.text).toMatch(
      /\.config\.mjs: 5 agents, own, far, local, claude, none$/,
    );
    expect(of['agent own']).toMatchObject({ level: 'ok', data: { provider: 'adapter' } });
    expect(of['agent far']).toMatchObject({
      level: 'problem',
      text: 'model big: no key in FAR_KEY, so its runs are blocked',
      fix: 'set FAR_KEY',
    });
    expect(of['agent local']).toMatchObject({
      level: 'ok',
      text: 'model local at http://127.0.0.1:9/v1, no key in OPENAI_API_KEY (a placeholder is sent)',
    });
    expect(of['agent claude']).toMatchObject({
      level: 'problem',
      text: 'model claude-sonnet-4-6: no key in ANTHROPIC_API_KEY, so its runs are blocked',
      fix: 'set ANTHROPIC_API_KEY',
      data: { provider: 'anthropic' },
    });
    expect(of['agent none']).toMatchObject({
      level: 'problem',
      fix: expect.stringMatching(/^give the agent a model, or set PERDURE_MODEL; the model "demo"/),
    });
  });

  test('a model server on this machine is found', async ({ skip }) => {
    const server = createServer((_, response) => response.end('{"data":[]}'));
    // The port of vLLM. The test is skipped if another program uses it.
    const free = await new Promise<boolean>((done) => {
      server.once('error', () => done(false)).listen(8000, '127.0.0.1', () => done(true));
    });
    skip(!free, 'something else listens on port 8000');
    const { of } = await examined({ address });
    expect(of['local models']?.text).toContain('vLLM at http://127.0.0.1:8000/v1');
    expect(of['agent files']?.fix).toContain('answers: OPENAI_BASE_URL=');
    await new Promise((done) => server.close(done));
  });
});

describe('a broken environment', () => {
  test('a configuration that cannot be loaded does not hide the other checks', async () => {
    const config = await written('throw new Error("half a config");');
    const { code, of } = await examined({ address, config });
    expect(of['configuration']).toMatchObject({
      level: 'problem',
      text: expect.stringContaining('half a config'),
    });
    expect(of['server']?.level).toBe('ok');
    expect(code).toBe(1);
  });

  test('a home without a writable blob folder is a problem', async () => {
    const whole = join(rig.home, 'whole');
    await writeFile(whole, 'a file');
    const unwritable = await examined({ address, home: whole });
    expect(unwritable.code).toBe(1);
    expect(unwritable.of['home']).toMatchObject({
      level: 'problem',
      text: `${whole}: no database yet, the folder cannot be written`,
      fix: `make ${whole} writable, or set PERDURE_HOME to a folder that is`,
    });
    const home = join(rig.home, 'taken');
    await mkdir(home);
    await writeFile(join(home, 'blobs'), 'a file');
    const { code, of } = await examined({ address, home });
    expect(of['home']).toMatchObject({
      level: 'problem',
      fix: expect.stringMatching(/make .*blobs writable, or set PERDURE_HOME/),
      data: { blobsWritable: false },
    });
    expect(code).toBe(1);
  });

  test('a Node that is too old is a problem', () => {
    expect(versionsFinding('20.18.9')).toMatchObject({
      level: 'problem',
      fix: 'install Node 20.19 or later',
    });
    expect(versionsFinding('24.1.0').level).toBe('ok');
  });
});

test('the command exits with 1 for a problem and prints one JSON document', async () => {
  const { code, stdout, stderr } = await command.start(['doctor', '--json', '--no-model'], {
    env: { TEMPORAL_ADDRESS: '127.0.0.1:1', OPENAI_API_KEY: KEY },
  }).ended;
  const conclusion = stderr.trim();
  expect(JSON.parse(stdout)).toMatchObject({ ok: false, problems: ['server'], conclusion });
  expect(stdout + stderr).not.toContain(KEY);
  expect(conclusion).toMatch(/^1 problem.*\. Not checked: namespace, worker agents, model gpt/);
  expect(code).toBe(1);
});

async function temporal(args: readonly string[]): Promise<void> {
  await promisify(execFile)(inject('temporalCli'), args);
}
