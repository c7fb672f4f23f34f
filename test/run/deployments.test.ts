import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http2';
import { promisify } from 'node:util';
import { Connection } from '@temporalio/client';
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { computeBuildId, type RunningWorker } from '../../src/worker/create-worker.js';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import {
  deploymentProblem,
  promote,
  promotionCommand,
  type DeploymentOptions,
} from '../../src/worker/deployment.js';
import type { Model } from '../../src/models/model.js';
import { ownVersion } from '../../src/storage/files.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { loadWorkflowCode } from '../../src/worker/bundle.js';
import { createGate, type Gate } from '../../src/testing/play.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import * as graphs from '../../src/graphs.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { bundleWorkflows } from '../../src/worker/bundle.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { clientOf } from '../support/clerk.js';
import { portOf } from '../support/port-of.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
let held: Gate;
let name: string;
beforeEach(async () => {
  rig = await createRig();
  held = createGate();
  name = `agents-${randomUUID()}`;
});
afterEach(async () => {
  held.barrier.release();
  await rig.close();
});

/** A worker of a build whose model and tool report which build they belong to. */
async function worker(
  build: string,
  rest: Partial<DeploymentOptions> = {},
): Promise<RunningWorker> {
  const wait = defineTool({
    name: 'wait',
    description: 'waits',
    input: z.object({}),
    effect: 'read',
    async execute(_input, { signal }) {
      await held.wait(signal);
      return `waited on ${build}`;
    },
  });
  const model: Model = {
    async call({ messages }) {
      const last = messages.at(-1)?.text;
      return last === 'wait' ? replyCall('wait') : replyText(`${last} by ${build}`);
    },
  };
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm', tools: [wait] });
  const deployment = { name, buildId: build, ...rest };
  return await rig.worker([agent], { models: { m: model }, deployment });
}

async function answer(message: string): Promise<string | null> {
  return (await rig.run({ agent: 'a', message })).outcome.answer;
}

/** Deploys a build of an agent, and waits until the server gives it new runs. */
async function deployBuild(
  client: PerdureClient,
  {
    buildId,
    agent,
    models = {},
  }: { buildId: string; agent: Agent; models?: Readonly<Record<string, Model>> },
): Promise<void> {
  await rig.worker([agent], { models, deployment: { name, buildId } });
  await vi.waitFor(
    async () => {
      const probe = await client.start(agent.name, { message: 'go' });
      await client.cancel(probe.id);
      const { history } = await rig.end(rig.client.workflow.getHandle(probe.id));
      const tasks = history.events?.flatMap(
        (each) => each.workflowTaskCompletedEventAttributes ?? [],
      );
      expect(tasks?.map((task) => task.deploymentVersion?.buildId)).toContain(buildId);
    },
    { timeout: 30_000, interval: 100 },
  );
}

test('a worker without a deployment is called by its version and its code in the events of a run', async () => {
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm' });
  await rig.worker([agent], { models: { m: scriptedModel([replyText('hi')]) } });
  const { history } = await rig.run({ agent: 'a', message: 'go' });
  const ids = (history.events ?? []).flatMap(
    ({ workflowTaskCompletedEventAttributes: task }) => task?.workerVersion?.buildId ?? [],
  );
  expect(ids.length).toBeGreaterThan(0);
  const code = await computeBuildId(await loadWorkflowCode());
  expect(new Set(ids)).toEqual(new Set([`perdure@${ownVersion()}+${code}`]));
});

describe('two builds on one queue', () => {
  test('a run ends its step on its build and moves with its next segment; a new run begins on the newer build', async () => {
    expect((await worker('one')).deployed).toMatchObject({ buildId: 'one', isCurrent: true });
    const old = await rig.start({ agent: 'a', message: 'wait' });
    /** The builds that have worked on a segment; default: the newest. */
    const buildsOf = async (segment?: string): Promise<readonly unknown[]> => {
      const { events } = await rig.client.workflow
        .getHandle(old.workflowId, segment)
        .fetchHistory();
      const tasks = events?.flatMap((each) => each.workflowTaskCompletedEventAttributes ?? []);
      return [...new Set(tasks?.map(({ deploymentVersion }) => deploymentVersion?.buildId))];
    };
    await held.barrier.reached;
    const { runId } = await old.describe();
    await worker('two');
    expect(await answer('go')).toBe('go by two');
    held.barrier.release();
    const { outcome } = await rig.end(old);
    expect(outcome).toMatchObject({ answer: 'waited on one by two', segments: 2, toolCalls: 1 });
    expect(await buildsOf(runId)).toEqual(['one']);
    expect(await buildsOf()).toEqual(['two']);
  });

  test('a run that waits for a decision stays in the inbox when a deploy, and then a rollback, moves it', async () => {
    const agent = defineAgent({
      name: 'b',
      instructions: 'x',
      model: 'm',
      tools: [
        defineTool({
          name: 'pay',
          description: 'pays',
          input: z.object({ n: z.number() }),
          effect: 'once',
          execute: ({ n }) => n,
        }),
      ],
      rules: [{ tool: 'pay', then: 'ask' }],
    });
    const model: Model = {
      call: async ({ messages }) =>
        replyCall('pay', { n: messages.filter(({ role }) => role === 'tool').length }),
    };
    const client = await clientOf(rig);
    const deploy = async (buildId: string) =>
      await deployBuild(client, { buildId, agent, models: { m: model } });
    const segmentOf = async (segments: number, request: string) => {
      await vi.waitFor(
        async () => {
          const status = await client.status(id);
          expect(status).toMatchObject({ segments, pending: [{ id: request }] });
          const { requests } = await client.requests({ run: id });
          expect(requests.map((one) => one.id)).toEqual([request]);
          const { rows } = await client.list({ idPrefix: id, tag: 'late' });
          expect(rows).toMatchObject([{ status: 'waiting_decision', startedAt: begun }]);
        },
        { timeout: 30_000, interval: 100 },
      );
    };
    await deploy('one');
    const { id } = await client.start('b', { message: 'go', open: true, tags: ['late'] });
    const handle = rig.client.workflow.getHandle(id);
    const begun = (await handle.describe()).startTime.toISOString();
    await segmentOf(1, 'r1');
    await deploy('two');
    await client.send(id, { message: 'is it done?' });
    await segmentOf(2, 'r1');
    await deploy('one');
    const { digest } = await client.request(id, 'r1');
    await client.resolve(id, { request: 'r1', digest, as: 'approve' });
    await segmentOf(3, 'r2');
    await client.cancel(id);
    await rig.end(handle);
  });

  test('a run that is moved to a build that has renamed its next node waits, says which node is missing, and ends after a rollback', async () => {
    const graph = (last: string) =>
      defineGraph({
        name: 'g',
        state: z.object({ message: z.string().default(''), answer: z.string().default('') }),
        messageTo: 'message',
        answerFrom: 'answer',
        nodes: ({ run, confirm }) => ({
          sure: confirm({ show: () => graphs.text`Sure?` }),
          [last]: run({ run: async () => ({ answer: `ended by ${last}` }) }),
        }),
      }).wire({ start: 'sure', edges: { sure: { yes: last, no: 'end' }, [last]: 'end' } });
    const client = await clientOf(rig);
    const deploy = async (buildId: string, last: string) =>
      await deployBuild(client, { buildId, agent: graph(last) });
    const asks = async (id: string, segments: number) =>
      await vi.waitFor(
        async () => {
          const status = await client.status(id);
          expect(status).toMatchObject({ segments, status: 'waiting_decision' });
          return status.pending[0]?.digest ?? '';
        },
        { timeout: 30_000, interval: 100 },
      );
    const yes = async (id: string, segments: number) => {
      const said = { request: 'r1', digest: await asks(id, segments), as: 'answer' } as const;
      await client.resolve(id, { ...said, result: 'yes' });
    };
    await deploy('one', 'finish');
    const { id } = await client.start('g', { message: 'go', open: true });
    await asks(id, 1);
    await deploy('two', 'complete');
    // The answer moves the run to the newer build, with the definition that it has pinned.
    await yes(id, 1);
    await vi.waitFor(
      async () =>
        expect(await client.status(id)).toMatchObject({
          status: 'blocked',
          reason: 'tool_missing',
          message: expect.stringMatching(
            /the function of node "finish" of graph "g" is not on .*; deploy it again, or cancel the run/,
          ),
        }),
      { timeout: 30_000, interval: 100 },
    );
    // The server repeats the search on the newer build, and the workflow learns nothing of it.
    await vi.waitFor(
      async () => expect((await client.status(id)).doing).toMatch(/^node finish .*attempt [3-9]/),
      { timeout: 30_000, interval: 100 },
    );
    await deploy('one', 'finish');
    expect(await client.result(id, { turn: 1 })).toMatchObject({ answer: 'ended by finish' });
    await client.close(id);
    await rig.end(rig.client.workflow.getHandle(id));
  });

  test('a run that begins on a build without its agent moves to the next build, which has it', async () => {
    await worker('one');
    const client = await clientOf(rig);
    const { workflowId: id } = await rig.start({ agent: 'late', message: 'go' });
    await vi.waitFor(
      async () =>
        expect(await client.status(id)).toMatchObject({
          reason: 'agent_missing',
          doing: expect.stringMatching(/^find agent .*attempt [3-9]/),
        }),
      { timeout: 30_000, interval: 100 },
    );
    const late = defineAgent({ name: 'late', instructions: 'x', model: 'm' });
    const models = { m: { call: async () => replyText('on time') } };
    await rig.worker([late], { models, deployment: { name, buildId: 'two' } });
    expect(await client.result(id)).toMatchObject({ answer: 'on time' });
  });

  test('without promotion, nothing new reaches the newer build until the printed command is run', async () => {
    await worker('one');
    const { deployed } = await worker('two', { promote: false });
    expect(deployed?.isCurrent).toBe(false);
    expect(await answer('go')).toBe('go by one');
    const line = deployed === null ? '' : promotionCommand(deployed);
    const typed = line.replace(/^temporal/, inject('temporalCli'));
    // The server takes a moment to list a build that has just begun to poll.
    await expect
      .poll(() => promisify(execFile)('sh', ['-c', typed]).then(() => 'done', String), {
        timeout: 30_000,
      })
      .toBe('done');
    expect(await answer('go on')).toBe('go on by two');
  });

  test('workers of one build can start at the same time', async () => {
    const started = await Promise.all([worker('one'), worker('one'), worker('one')]);
    expect(started.map(({ deployed }) => deployed?.isCurrent)).toEqual([true, true, true]);
    expect(await answer('go')).toBe('go by one');
  });
});

describe('an obstacle to a deployment', () => {
  test('is reported in advance for a name that the server would refuse, with a valid one', async () => {
    await expect(worker('one', { name: 'my.agents' })).rejects.toThrow(
      'deployment.name: expected no dots, colons, or spaces, and no __ at the start; got "my.agents"; for example my-agents',
    );
    expect(deploymentProblem({ name: '__x' })).toContain('for example x');
    expect(deploymentProblem({ name: '' })).toContain('expected 1 to 200 characters');
    expect(deploymentProblem({ name: 'x', buildId: 'a b' })).toContain('got "a b"');
    expect(deploymentProblem({ name: 'Agents-of_17', buildId: 'v1.2+3' })).toBeNull();
  });

  test.each([
    [12, 'unknown method', 'this Temporal server is too old for worker deployments'],
    [7, 'not for you', 'not for you; start the worker with --no-promote (promote: false), and let'],
    [3, 'odd', 'deployment d, build b cannot be made current: odd'],
    [9, 'not all queues', 'could not be made current within 2 s: not all queues. If'],
  ])('is reported with the fix for status %i of the server', async (code, details, text) => {
    const server = await refusing({ code, details });
    const connection = Connection.lazy({ address: server.address });
    const version = {
      address: server.address,
      namespace: 'default',
      deploymentName: 'd',
      buildId: 'b',
    };
    const asked = promote(connection, version, { taskQueue: 'q', identity: 'i', withinMs: 2_000 });
    await expect(asked).rejects.toThrow(text);
    await connection.close();
    await server.close();
  });
});

/** Answers every call as a gRPC server does that refuses it. */
async function refusing({ code, details }: { code: number; details: string }) {
  const server = createServer();
  server.on('stream', (stream) => {
    stream.respond(
      {
        ':status': 200,
        'content-type': 'application/grpc',
        'grpc-status': code,
        'grpc-message': details,
      },
      { endStream: true },
    );
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    address: `127.0.0.1:${portOf(server)}`,
    close: async () => await new Promise((done) => server.close(done)),
  };
}

describe('the name of a build', () => {
  test('is that of the workflow code, wherever it is bundled', async () => {
    const here = process.cwd();
    const names: string[] = [];
    for (const folder of [here, '/']) {
      process.chdir(folder);
      names.push(await computeBuildId(await bundleWorkflows()));
    }
    process.chdir(here);
    expect(names).toEqual([expect.stringMatching(/^[0-9a-f]{12}$/), names[0]]);
  });

  test('depends on everything except a source map', async () => {
    const map = '\n//# sourceMappingURL=data:application/json;base64,';
    const plain = await computeBuildId({ code: 'f();' });
    expect(await computeBuildId({ code: `f();${map}eA==` })).toBe(
      await computeBuildId({ code: `f();${map}` }),
    );
    expect(await computeBuildId({ code: 'g();' })).not.toBe(plain);
  });
});
