import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { doctor } from '../../src/cli/commands/doctor.js';
import { status } from '../../src/cli/commands/status.js';
import type { Finding } from '../../src/cli/doctor/finding.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { prepareNamespace } from '../../src/server/namespace.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { commandLine } from '../support/command.js';
import { runInProcess } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';
import { shellWord } from '../../src/core/text/text.js';

const address = inject('temporalAddress');
const command = await commandLine();
/** A namespace for this file only, without the runs of other tests. */
const namespace = `routing-${randomUUID()}`;
const agent = defineAgent({ name: 'files', instructions: 'x', model: 'm' });
let connection: Connection;
let client: Client;
let rig: Rig;
let stub: Stub;

beforeAll(async () => {
  connection = await Connection.connect({ address });
  client = new Client({ connection, namespace });
  await prepareNamespace(connection, namespace);
  rig = await createRig();
  stub = await startStub();
});
afterAll(async () => {
  await rig.close();
  await stub.close();
  await connection.close();
});

interface Found {
  readonly code: number;
  readonly stranded: Finding | undefined;
  readonly queues: Finding | undefined;
  readonly blocked: Finding | undefined;
}

async function examined(taskQueue: string, config?: false): Promise<Found> {
  const given = config === undefined ? {} : { config };
  const place = { home: rig.home, address, namespace, taskQueue, json: true, ...given };
  const { code, stdout } = await runInProcess(doctor, { model: true }, place);
  const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] };
  const named = (name: string) => findings.find((finding) => finding.name === name);
  return {
    code,
    stranded: named('stranded runs'),
    queues: named('task queues'),
    blocked: named('blocked runs'),
  };
}

/** The server's list of runs lags behind. */
async function expectEventually(
  taskQueue: string,
  expected: { readonly [Name in keyof Found]?: unknown },
  config?: false,
): Promise<Found> {
  return await vi.waitFor(
    async () => {
      const found = await examined(taskQueue, config);
      expect(found).toMatchObject(expected);
      return found;
    },
    { timeout: 30_000, interval: 200 },
  );
}

async function worker(taskQueue: string, deployment?: { name: string; promote?: boolean }) {
  return await rig.worker([agent], {
    namespace,
    taskQueue,
    models: { m: scriptedModel([replyText('hi')]) },
    ...(deployment && { deployment: { buildId: 'one', ...deployment } }),
  });
}

/** Runs a printed command line. */
async function typed(line = ''): Promise<void> {
  const start = line.slice(line.indexOf('temporal ') + 'temporal '.length);
  await promisify(execFile)('sh', ['-c', `'${inject('temporalCli')}' ${start}`]);
}

describe('runs and builds', () => {
  test('a run pinned to a missing build is named, and the printed command moves it', async () => {
    const taskQueue = `queue-${randomUUID()}`;
    const name = `agents-${randomUUID()}`;
    const place = ['--address', address, '--namespace', namespace, '--task-queue', taskQueue];
    const env = { OPENAI_BASE_URL: stub.baseUrl };
    const build = (id: string) => ['worker', '--deployment', name, '--build-id', id, ...place];
    stub.answer((request) =>
      replyText('done', request.attempt === 1 ? { holdBeforeHeaders: 'held' } : {}),
    );
    const one = command.start(build('one'), { env });
    await one.prints(': current');
    const workflowId = `stranded-${name}`;
    const args = [{ agent: 'files', message: 'go' }];
    const run = await client.workflow.start('agent', { taskQueue, workflowId, args });
    await stub.barrier('held').reached;
    const two = command.here(build('two'), { env });
    await two.prints(': current');
    await expectEventually(taskQueue, {
      stranded: { level: 'ok' },
      queues: { level: 'ok' },
      code: 0,
    });

    one.child.kill('SIGKILL');
    await one.ended;
    const { stranded, code } = await expectEventually(taskQueue, {
      stranded: { level: 'problem' },
    });
    expect(stranded).toMatchObject({
      text: `1 run (${workflowId}) on deployment ${name}, build one, which has no running worker`,
      data: { stranded: [{ deploymentName: name, buildId: 'one', runs: [workflowId] }] },
    });
    expect(stranded?.fix).toContain(
      ` --from-server ${shellWord(`TemporalWorkerDeploymentVersion = '${name}:one' AND ExecutionStatus = 'Running'`)} succeeds`,
    );
    expect(stranded?.fix).toMatch(
      /temporal workflow update-options .* --workflow-id \S+ --versioning-override-behavior auto_upgrade$/,
    );
    expect(code).toBe(1);
    // The worker of the other build polls the queue, but it cannot continue the run.
    const shown = await runInProcess(
      status,
      { id: workflowId },
      { home: rig.home, address, namespace, taskQueue },
    );
    const missing = `the run is pinned to deployment ${name}, build one, which has no running worker`;
    expect(shown.stdout).toContain(missing);
    expect(shown.stderr).toContain(`No worker can continue the run: ${missing}`);
    expect(shown.stderr).toContain('move the run as `npx perdure doctor');

    await typed(stranded?.fix);
    expect(await run.result()).toMatchObject({ status: 'completed', answer: 'done' });
    await expectEventually(taskQueue, { stranded: { level: 'ok' }, code: 0 });
    two.interrupt();
    await two.ended;
  });
});

describe('queues and workers', () => {
  test('versioned workers without a current build, then idle unversioned workers', async () => {
    const taskQueue = `queue-${randomUUID()}`;
    const name = `agents-${randomUUID()}`;
    await worker(taskQueue, { name, promote: false });
    const waiting = await expectEventually(taskQueue, {
      code: 1,
      queues: {
        level: 'problem',
        text: `task queue "${taskQueue}": workers of deployment ${name}, build one poll it, but no build is current: no run starts`,
        data: { mismatches: [{ what: 'no_current' }] },
      },
    });
    await typed(waiting.queues?.fix);
    await expectEventually(taskQueue, { queues: { level: 'ok' }, code: 0 });

    await worker(taskQueue);
    const idle = await expectEventually(taskQueue, {
      code: 1,
      queues: {
        level: 'problem',
        text: `task queue "${taskQueue}": 1 unversioned worker is idle: all work is routed to deployment ${name}, build one`,
        data: { mismatches: [{ what: 'unversioned_idle' }] },
      },
    });
    expect(idle.queues?.fix).toBe(
      `start workers with --deployment ${name}, or run the unversioned ones on another task queue`,
    );
  });

  test('a current build without a running worker', async () => {
    const taskQueue = `queue-${randomUUID()}`;
    const name = `agents-${randomUUID()}`;
    const place = ['--address', address, '--namespace', namespace, '--task-queue', taskQueue];
    const gone = command.start(['worker', '--deployment', name, '--build-id', 'gone', ...place]);
    await gone.prints(': current');
    await worker(taskQueue, { name, promote: false });
    gone.child.kill('SIGKILL');
    await gone.ended;
    const { queues } = await expectEventually(taskQueue, {
      code: 1,
      queues: {
        text: `task queue "${taskQueue}": runs start on deployment ${name}, build gone, but no worker of that build is running`,
        data: { mismatches: [{ what: 'current_gone' }] },
      },
    });
    await typed(queues?.fix);
    await expectEventually(taskQueue, { queues: { level: 'ok' }, code: 0 });
  });

  test('a queue with running runs and no poller is noted', async () => {
    const nobody = `nobody-${randomUUID()}`;
    const options = {
      taskQueue: nobody,
      workflowId: nobody,
      args: [{ agent: 'a', message: 'go' }],
    };
    const run = await client.workflow.start('agent', options);
    await expectEventually(`queue-${randomUUID()}`, {
      code: 0,
      queues: {
        level: 'note',
        text: `task queue "${nobody}": 1 running run, and no worker polls it`,
        fix: expect.stringMatching(
          `^start a worker there, with the configuration of its agents: .*worker .*--task-queue ${nobody}$`,
        ),
      },
    });
    const { queues } = await expectEventually(nobody, { queues: { level: 'note' } });
    expect(queues?.fix).toMatch(
      new RegExp(
        `^start a worker there, with the configuration of its agents: .*worker --address .* --namespace .* --task-queue ${nobody}$`,
      ),
    );
    await run.terminate();
  });

  test('no worker of the built-in agent is proposed for runs of other agents', async () => {
    const queue = `others-${randomUUID()}`;
    const start = async (name: string) =>
      await client.workflow.start('agent', {
        taskQueue: queue,
        workflowId: `${queue}-${name}`,
        args: [{ agent: name, message: 'go' }],
        searchAttributes: { AgentName: [name] },
      });
    const own = await start('files');
    const fixOf = async (count: string): Promise<string | undefined> => {
      const text = expect.stringContaining(`: ${count}, and no worker polls it`) as string;
      const { queues } = await expectEventually(queue, { queues: { level: 'note', text } }, false);
      return queues?.fix;
    };
    expect(await fixOf('1 running run')).toMatch(/^start a worker there: .*worker .*--no-config/);
    const theirs = await start('payer');
    const fix = await fixOf('2 running runs');
    expect(fix).toBe(`start the program that has payer, with task queue "${queue}"`);
    await theirs.terminate();
    // A run of a schedule of one's own has no attribute before it has loaded its agent.
    const unknown = await client.workflow.start('agent', {
      taskQueue: queue,
      workflowId: `${queue}-unknown`,
      args: [{ agent: 'payer', message: 'go' }],
    });
    expect(await fixOf('2 running runs')).toContain('with the configuration of its agents');
    await own.terminate();
    await unknown.terminate();
  });
});

describe('blocked runs', () => {
  test('of the queue are a problem, with their reasons and the command that shows each', async () => {
    const taskQueue = `queue-${randomUUID()}`;
    await worker(taskQueue);
    const start = async (name: string) => {
      const args = [{ agent: name, message: 'go' }];
      const workflowId = `blocked-${randomUUID()}`;
      return await client.workflow.start('agent', { taskQueue, workflowId, args });
    };
    await expectEventually(taskQueue, { blocked: { level: 'ok' }, code: 0 });
    const { workflowId: id } = await start('other');
    const { blocked } = await expectEventually(taskQueue, {
      blocked: { level: 'problem', data: { blocked: [{ id, reason: 'agent_missing' }] } },
      code: 1,
    });
    expect(blocked?.text).toBe(`1 run on task queue "${taskQueue}": ${id} (agent_missing)`);
    expect(blocked?.fix).toMatch(new RegExp(`^see what it needs: .*perdure.* status .*${id}$`));
    await client.workflow.getHandle(id).terminate();
  });
});
