import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import type { Finding } from '../../src/cli/doctor/finding.js';
import { createClient } from '../../src/index.js';
import type { Model } from '../../src/models/model.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { commandLine, type CommandEnd } from '../support/command.js';
import { untilStatus } from '../support/conversation.js';
import { ownBundle } from '../support/own-bundle.js';
import { connectToRuns } from '../support/runs-client.js';
import { createRig, type Rig } from '../support/rig.js';
import { waitUntilPolling } from '../support/wait-until-polling.js';

const command = await commandLine();
let rig: Rig;
let paid = 0;

const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({}),
  effect: 'keyed',
  approval: 'always',
  execute: async () => {
    paid += 1;
    return 'paid';
  },
});
const model: Model = {
  call: async ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? replyText('done') : replyCall('pay', {}),
};
const agent = defineAgent({ name: 'payer', instructions: 'x', model: 'm', tools: [pay] });

beforeAll(async () => {
  rig = await createRig();
});
afterAll(async () => await rig.close());

async function perdure(...args: readonly string[]): Promise<CommandEnd> {
  const place = ['--address', inject('temporalAddress'), '--task-queue', rig.taskQueue];
  return await command.here([...args, '--no-config', ...place]).ended;
}

test('decisions and control need no worker elsewhere, and start no work', async () => {
  await rig.worker([agent], { models: { m: model } });
  const handle = await rig.start({ agent: 'payer', message: 'x', open: true }, `r-${randomUUID()}`);
  const id = handle.workflowId;
  await untilStatus(handle, 'waiting_decision');
  const { pending } = await handle.query<RunStatus>('status');
  await rig.stopWorkers();

  const limited = await perdure('limits', id, '--limit', 'steps=7', '--json');
  expect(limited).toMatchObject({ code: 0 });
  expect(JSON.parse(limited.stdout)).toMatchObject({ id, limits: { turn: { steps: 7 } } });
  const digest = ['--digest', pending[0]?.digest ?? ''];
  const approved = await perdure('resolve', id, 'r1', '--as', 'approve', ...digest, '--json');
  expect(approved.stderr).toMatch(
    /Decision on request \S+ of run \S+: approve; the run resumes when a worker runs\. No worker is running\. This configuration does not have agent "payer": start the program that has it/,
  );
  expect(approved.stderr).not.toContain('Start one with');
  expect(approved.stderr).not.toContain('makes no progress');
  expect(JSON.parse(approved.stdout)).toMatchObject({ id, as: 'approve', resolved: true });
  expect(await perdure('pause', id)).toMatchObject({ code: 0 });
  expect(await perdure('close', id)).toMatchObject({ code: 0 });
  const resumed = await perdure('resume', id);
  expect(resumed).toMatchObject({ code: 0 });
  expect(resumed.stderr).toContain(`Run ${id} resumes when a worker runs. No worker is running.`);
  expect(resumed.stderr).not.toContain('makes no progress');
  expect(paid).toBe(0);

  await rig.worker([agent], { models: { m: model } });
  const { outcome } = await rig.end(handle);
  expect(outcome).toMatchObject({ status: 'completed', answer: 'done' });
  expect(paid).toBe(1);
}, 120_000);

test('a run of an agent that the configuration lacks is followed, and no worker is hosted for it', async () => {
  const taskQueue = `applications-${randomUUID()}`;
  const reader = defineAgent({ name: 'reviewer', instructions: 'x', model: 'm' });
  const id = `r-${randomUUID()}`;
  const args = [{ agent: 'reviewer', message: 'x' }];
  const handle = await rig.client.workflow.start('agent', { taskQueue, workflowId: id, args });
  const place = ['--no-config', '--address', inject('temporalAddress'), '--task-queue', taskQueue];
  const lack = 'This configuration does not have agent "reviewer": start the program that has it';
  const shown = await command.here(['status', id, ...place]).ended;
  expect(shown.stderr).toContain(lack);
  expect(shown.stderr).not.toContain('Start one with');
  expect(shown.stdout).toMatch(
    /attach .* follow it; only the program with agent "reviewer" makes it go on$/m,
  );
  expect(shown.stdout).not.toContain('start a worker');
  const left = await command.here(['attach', id, '--no-wait', ...place, '--json']).ended;
  expect(left.stderr).toContain(
    `error: no worker is running on task queue "${taskQueue}". ${lack}; then run this command again.`,
  );
  expect(left).toMatchObject({ code: 1, stdout: expect.stringContaining('"code":"no_worker"') });
  const attached = command.here(['attach', id, ...place]);
  await attached.prints(lack);
  await rig.worker([reader], { taskQueue, models: { m: { call: async () => replyText('read') } } });
  expect(await attached.ended).toMatchObject({ code: 0, stdout: 'read\n' });
  const { outcome } = await rig.end(handle);
  expect(outcome).toMatchObject({ status: 'completed', answer: 'read' });
}, 60_000);

test('a run says that its worker has another version of the agent than the configuration file', async () => {
  // A process loads a file once.
  const configWith = async (instructions: string): Promise<string> => {
    const config = join(command.folder, `${instructions}.config.ts`);
    const defined = `defineAgent({ name: 'reader', instructions: '${instructions}', model: 'm' })`;
    await writeFile(
      config,
      `import { defineAgent, defineConfig } from 'perdure';\nexport default defineConfig({ agents: [${defined}] });\n`,
    );
    return config;
  };
  const place = ['--address', inject('temporalAddress'), '--task-queue', `edited-${randomUUID()}`];
  const taskQueue = place.at(-1) ?? '';
  const reader = defineAgent({ name: 'reader', instructions: 'first', model: 'm' });
  const files = defineAgent({ name: 'files', instructions: 'of another project', model: 'm' });
  const models = { m: { call: async () => replyText('read') } };
  await rig.worker([reader, files], { taskQueue, models });
  const noteOf = async (name: string, ...words: readonly string[]): Promise<boolean> => {
    const end = await command.here(['run', name, 'x', ...words, ...place]).ended;
    expect(end).toMatchObject({ code: 0, stdout: 'read\n' });
    return end.stderr.includes(`The worker of this run has another version of agent ${name} than`);
  };
  expect(await noteOf('reader', '--config', await configWith('first'))).toBe(false);
  expect(await noteOf('reader', '--config', await configWith('second'))).toBe(true);
  // The built-in configuration is no version of the agent of another project.
  expect(await noteOf('files', '--no-config')).toBe(false);
}, 60_000);

test.each([[['serve', '--port', '0']], [['worker']]])(
  '%s notes open runs whose agent the configuration lacks',
  async (words) => {
    const taskQueue = `applications-${randomUUID()}`;
    const id = `r-${randomUUID()}`;
    const args = [{ agent: 'reviewer', message: 'x' }];
    const handle = await rig.client.workflow.start('agent', { taskQueue, workflowId: id, args });
    const place = [
      '--no-config',
      '--address',
      inject('temporalAddress'),
      '--task-queue',
      taskQueue,
    ];
    const serving = command.here([...words, ...place]);
    await serving.prints(
      `Task queue "${taskQueue}" has open runs of reviewer, which this configuration does not have (${id})`,
    );
    serving.interrupt();
    expect(await serving.ended).toMatchObject({ code: 0 });
    await handle.terminate();
  },
  60_000,
);

test('serve hosts a worker once the one elsewhere has ended', async () => {
  const taskQueue = `taken-over-${randomUUID()}`;
  const place = ['--no-config', '--address', inject('temporalAddress'), '--task-queue', taskQueue];
  const env = { PERDURE_MODEL: 'demo' };
  const other = command.start(['worker', ...place], { env });
  await other.prints(`on task queue "${taskQueue}"`);
  const serving = command.here(['serve', '--port', '0', '--json', ...place], { env });
  await serving.prints('A worker runs elsewhere. If it ends, one starts in this process.');
  await serving.prints('"url"');
  expect(serving.stderr()).not.toContain('A worker runs in this process.');
  other.child.kill('SIGKILL');
  await other.ended;
  const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(serving.stderr()) ?? [];
  const answer = await fetch(`${url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'files', input: 'What is this project about?' }),
    signal: AbortSignal.timeout(80_000),
  });
  expect(await answer.json()).toMatchObject({ status: 'completed' });
  expect(serving.stderr()).toContain(
    'The worker elsewhere has ended. A worker runs in this process.',
  );
  serving.interrupt();
  expect(await serving.ended).toMatchObject({ code: 0 });
}, 120_000);

describe('an agent of a worker of the own, without a configuration', () => {
  const reporter = defineAgent({ name: 'reporter', instructions: 'x', model: 'm' });
  const models = { m: { call: async () => replyText('all is well') } };
  const lacks = (queue: string, name: string): string =>
    `agent: expected an agent of the worker on task queue "${queue}", got "${name}" (${name === 'files' ? 'it has' : 'nearest'}: reporter); ` +
    'correct the name, or start a worker that has it';

  async function on(taskQueue: string, ...args: readonly string[]): Promise<CommandEnd> {
    const place = ['--address', inject('temporalAddress'), '--task-queue', taskQueue];
    return await command.here([...args, '--no-config', ...place]).ended;
  }

  async function serve(taskQueue: string, rest: object = {}): Promise<string> {
    const { identity } = await rig.worker([reporter], { models, taskQueue, ...rest });
    await waitUntilPolling(rig.client, { taskQueue, identity });
    return identity;
  }

  /** Creates a schedule that does not fire by itself during a test. */
  async function schedule(queue: string, id: string, name: string): Promise<CommandEnd> {
    onTestFinished(async () => {
      await rig.client.schedule
        .getHandle(id)
        .delete()
        .catch(() => undefined);
    });
    const times = ['--cron', '0 9 1 1 *'];
    return await on(queue, 'schedule', 'create', id, 'report', '--agent', name, ...times);
  }

  test('is accepted by a schedule while no worker answers, with a note; a run names the worker to start', async () => {
    const queue = `applications-${randomUUID()}`;
    const { code, stderr } = await schedule(queue, `s-${randomUUID()}`, 'reporter');
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(
        `No worker answers on task queue "${queue}", so the name of agent reporter is not checked`,
      ),
    });
    // The worker that the command would host has only the built-in agent.
    const hosted = await on(queue, 'run', 'reporter', 'hi');
    expect(hosted.code).toBe(2);
    expect(hosted.stderr).toContain(
      `got "reporter" (it has: files); correct the name, or add the agent; if a worker of your own has it, give the task queue of that worker with --task-queue, or start it on task queue "${queue}" first`,
    );
    const detached = await on(queue, 'run', 'reporter', 'hi', '--detach');
    expect(detached.code).toBe(1);
    expect(detached.stderr).toContain(`--detach: expected a worker on task queue "${queue}"`);
    expect(detached.stderr).not.toContain('expected an agent');
  }, 60_000);

  test('is checked against the worker that answers, by every command that names it', async () => {
    const queue = `applications-${randomUUID()}`;
    await serve(queue);
    const id = `s-${randomUUID()}`;
    const misspelled = await schedule(queue, id, 'reportr');
    expect(misspelled.code).toBe(2);
    expect(misspelled.stderr).toContain(`--${lacks(queue, 'reportr')}`);
    const created = await schedule(queue, id, 'reporter');
    expect({ code: created.code, stderr: created.stderr }).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining('No worker answers'),
    });
    const updated = await on(queue, 'schedule', 'update', id, '--agent', 'files');
    expect(updated.code).toBe(2);
    expect(updated.stderr).toContain(`--${lacks(queue, 'files')}`);
    for (const [name, ...rest] of [['reportr'], ['reportr', '--detach'], ['files']]) {
      const refused = await on(queue, 'run', name ?? '', 'hi', ...rest);
      expect(refused.code).toBe(2);
      expect(refused.stderr).toContain(lacks(queue, name ?? ''));
    }
    const source = `r-${randomUUID()}`;
    const ran = await on(queue, 'run', 'reporter', 'hi', '--id', source);
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 0, stdout: 'all is well\n' });
    // A fork runs on the task queue of its run, which is not named here.
    const place = ['--no-config', '--address', inject('temporalAddress')];
    const forked = await command.here(['fork', source, 'and now?', ...place]).ended;
    expect({ code: forked.code, stdout: forked.stdout }).toEqual({
      code: 0,
      stdout: 'all is well\n',
    });
  }, 60_000);

  test('is checked by a client without a configuration, too', async () => {
    const taskQueue = `applications-${randomUUID()}`;
    await serve(taskQueue);
    const client = await createClient({ address: inject('temporalAddress'), taskQueue });
    onTestFinished(() => client.disconnect());
    const id = `s-${randomUUID()}`;
    const given = { id, message: 'report', cron: '0 9 1 1 *' };
    await expect(client.schedule.create({ ...given, agent: 'reportr' })).rejects.toThrow(
      lacks(taskQueue, 'reportr'),
    );
    await client.schedule.create({ ...given, agent: 'reporter' });
    onTestFinished(() => client.schedule.delete(id));
    await expect(client.schedule.update(id, { agent: 'reportr' })).rejects.toThrow(
      lacks(taskQueue, 'reportr'),
    );
  });

  test('is checked by `agent_start` of the MCP server, too', async () => {
    const taskQueue = `applications-${randomUUID()}`;
    await serve(taskQueue);
    const client = await connectToRuns(rig, { taskQueue });
    onTestFinished(() => client.close());
    const start = async (name: string): Promise<string> => {
      const given = { agent: name, message: 'hi', operation_id: randomUUID() };
      return JSON.stringify(await client.callTool({ name: 'agent_start', arguments: given }));
    };
    expect(await start('reportr')).toContain('(nearest: reporter)');
    expect(await start('reporter')).toContain('"repeated":false');
    await expect(client.callTool({ name: 'agent_strt' })).rejects.toThrow(
      'name: expected a tool of this server, got "agent_strt"; did you mean agent_start?',
    );
    await expect(client.callTool({ name: 'decide' })).rejects.toThrow(
      'it is offered only with the option --decide of the server',
    );
  });

  test('that is misspelled is refused without a server, with the nearest name', async () => {
    const refused = await command.here(['run', 'fils', 'hi', '--no-config']).ended;
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('got "fils" (nearest: files); correct the name');
    expect(refused.stderr).not.toContain('Started a Temporal server');
  });

  test.each([
    ['run', 'desk', 'hi'],
    ['schedule', 'create', 'x', 'hi', '--agent', 'desk', '--every', '1h'],
  ])('is refused in a folder without a configuration, with the fix: %s', async (...words) => {
    const refused = await command.here(words).ended;
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(
      /agent: expected an agent of the built-in configuration, got "desk" \(it has: files\); no perdure\.config\.ts was found in this folder, .* or write a configuration here with: npx perdure init/,
    );
    const drawn = await command.here(['graph', 'desk']).ended;
    expect(drawn.stderr).toContain('no perdure.config.ts was found in this folder');
    const chosen = await command.here([...words, '--no-config']).ended;
    expect(chosen.stderr).not.toContain('perdure.config');
  });

  async function findings(queue: string): Promise<readonly Finding[]> {
    const { stdout } = await on(queue, 'doctor', '--no-model', '--json');
    const report = JSON.parse(stdout) as { findings: readonly Finding[] };
    return report.findings.filter(({ name }) => name.startsWith('worker'));
  }

  test('is listed by doctor', async () => {
    const queue = `applications-${randomUUID()}`;
    await serve(queue);
    const [running, agents] = await findings(queue);
    expect(running?.text).toMatch(
      /\nkeys and other variables are checked in the environment of this command, and a worker has its own$/,
    );
    expect(agents).toMatchObject({
      level: 'ok',
      text: `1 worker on task queue "${queue}" with reporter`,
      data: { agents: ['reporter'], lacking: [] },
    });
  });

  test('cannot be listed without `probe`, and doctor says what the workflows file needs', async () => {
    const queue = `applications-${randomUUID()}`;
    const identity = await serve(queue, { workflowBundle: await ownBundle() });
    const [, agents] = await findings(queue);
    expect(agents).toMatchObject({
      level: 'skipped',
      text: `not checked: no answer from ${identity}`,
      fix: "if that worker is running, its workflows file must export `probe`: export { agent, probe } from 'perdure/workflow'",
    });
    expect(await schedule(queue, `s-${randomUUID()}`, 'reporter')).toMatchObject({ code: 0 });
  }, 60_000);
});
