import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { doctor } from '../../src/cli/commands/doctor.js';
import type { Finding } from '../../src/cli/doctor/finding.js';
import { replyError, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { runInProcess } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';
import { waitUntilPolling } from '../support/wait-until-polling.js';

const address = inject('temporalAddress');
const FAR_KEY = `sk-${randomUUID()}`;
let rig: Rig;
let stub: Stub;
let config: string;

beforeAll(async () => {
  rig = await createRig();
  stub = await startStub();
  config = join(rig.home, 'far.config.mjs');
  const text = `
    import { defineAgent, defineConfig } from 'perdure';
    const agent = (name) => defineAgent({ name, instructions: 'x', model: 'far' });
    const models = { far: { model: 'big', apiKeyEnv: 'FAR_KEY', baseUrl: '${stub.baseUrl}' } };
    export default defineConfig({ agents: [agent('desk'), agent('clerk')], models });
  `;
  await writeFile(config, text);
});
afterAll(async () => {
  await rig.close();
  await stub.close();
});

async function serve(taskQueue: string, ...names: readonly string[]) {
  const agents = names.map((name) => defineAgent({ name, instructions: 'x', model: 'm' }));
  const models = { m: scriptedModel([replyText('hi')]) };
  const worker = await rig.worker(agents, { taskQueue, models });
  await waitUntilPolling(rig.client, { taskQueue, identity: worker.identity });
  return worker;
}

async function examined(taskQueue: string, { model = true, home = rig.home } = {}) {
  const place = { address, config, taskQueue, home, json: true, env: { FAR_KEY } };
  const { code, stdout, stderr } = await runInProcess(doctor, { model }, place);
  const { ok, unchecked, findings, conclusion } = JSON.parse(stdout) as {
    ok: boolean;
    conclusion: string;
    unchecked: readonly string[];
    findings: readonly Finding[];
  };
  const of = Object.fromEntries(findings.map((finding) => [finding.name, finding]));
  // The text, the JSON, and the exit code agree.
  expect({ conclusion, code }).toEqual({ conclusion: stderr, code: ok ? 0 : 1 });
  return { code, ok, unchecked, stderr, of };
}

describe('the model', () => {
  test('is called for one token; if it answers and workers have the agents, doctor reports no problems', async () => {
    const taskQueue = `asks-${randomUUID()}`;
    await serve(taskQueue, 'desk', 'clerk');
    stub.script(replyText('Yes'));
    const { of, ...rest } = await examined(taskQueue);
    expect(of['model far']).toMatchObject({
      level: 'ok',
      text: expect.stringMatching(/^answered within \d+ ms$/),
    });
    expect(stub.requests.at(-1)).toMatchObject({
      headers: { authorization: `Bearer ${FAR_KEY}` },
      body: { model: 'big', max_completion_tokens: 1 },
    });
    // Runs of other tests may have lost their workers, which causes a note.
    const others = Object.values(of).filter(({ name }) => name !== 'task queues');
    expect(others.filter(({ level }) => level !== 'ok')).toEqual([]);
    const stderr = expect.stringMatching(
      /^(Everything that a run needs is present|No problem found; 1 note)\.$/,
    );
    expect(rest).toEqual({ code: 0, ok: true, unchecked: [], stderr });
  });

  test('that rejects the key is a problem that names the variable', async () => {
    const taskQueue = `asks-${randomUUID()}`;
    await serve(taskQueue, 'desk', 'clerk');
    stub.script(replyError(401, { message: `no such key ${FAR_KEY}` }));
    const { of, ...rest } = await examined(taskQueue);
    expect(of['model far']).toMatchObject({
      level: 'problem',
      text: expect.stringMatching(
        /^401 from .*: the key was refused; set FAR_KEY for the worker to a valid key/,
      ),
    });
    expect(JSON.stringify(of)).not.toContain(FAR_KEY);
    expect(rest).toEqual({
      code: 1,
      ok: false,
      unchecked: [],
      stderr: expect.stringMatching(/^1 problem(; 1 note)?\.$/),
    });
  });

  test('is not called with --no-model, and the conclusion says so', async () => {
    const taskQueue = `asks-${randomUUID()}`;
    await serve(taskQueue, 'desk', 'clerk');
    const before = stub.requestCount;
    const { of: _, ...rest } = await examined(taskQueue, { model: false });
    expect(stub.requestCount).toBe(before);
    const stderr = expect.stringMatching(
      /^No problem found(; 1 note)?\. Not checked: model far\.$/,
    );
    expect(rest).toEqual({ code: 0, ok: true, unchecked: ['model far'], stderr });
  });
});

describe('the workers', () => {
  test('are a problem if one of two lacks an agent, and both are named', async () => {
    const taskQueue = `asks-${randomUUID()}`;
    await serve(taskQueue, 'desk', 'clerk');
    const lacking = await serve(taskQueue, 'desk', 'other');
    // Both are workers of this process with the same identity, so a probe may reach either of them.
    stub.answer(() => replyText('Yes'));
    const { of, code, ok } = await vi.waitFor(
      async () => {
        const found = await examined(taskQueue);
        expect(found.of['worker agents']?.level).toBe('problem');
        return found;
      },
      { timeout: 20_000, interval: 100 },
    );
    expect({ code, ok }).toEqual({ code: 1, ok: false });
    expect(of['worker agents']).toMatchObject({
      text: `${lacking.identity} on task queue "${taskQueue}" does not have clerk`,
      fix: expect.stringContaining('restart that worker with this configuration'),
    });
  });

  test('are reported as not probed if there are none', async () => {
    stub.answer(() => replyText('Yes'));
    const { of, ...rest } = await examined(`asks-${randomUUID()}`);
    expect(of['worker agents']?.text).toMatch(/^not checked: no worker on task queue "asks-/);
    const stderr = expect.stringMatching(
      /^No problem found(; 1 note)?\. Not checked: worker agents\.$/,
    );
    expect(rest).toEqual({ code: 0, ok: true, unchecked: ['worker agents'], stderr });
  });
});
