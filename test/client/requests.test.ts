import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { OpenRequest } from '../../src/client/requests.js';
import type { PerdureClient, StartOptions } from '../../src/client/client-types.js';
import { RefusedError } from '../../src/core/errors.js';
import type { Request } from '../../src/core/transcript/request.js';
import type { Rule } from '../../src/core/definition/rules.js';
import type { Model } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { createRig, type Rig } from '../support/rig.js';

const AGENT = `payer-${randomUUID()}`;
const CROWD = `crowd-${randomUUID()}`;
const BOSS = `boss-${randomUUID()}`;
const ASK: readonly Rule[] = [{ tool: 'pay', then: 'ask', deciders: 'not_requester' }];

let rig: Rig;
let client: PerdureClient;
const paid: number[] = [];

const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ euros: z.number() }),
  effect: 'keyed',
  describe: ({ euros }) => `pay ${euros} €`,
  execute: async ({ euros }) => {
    paid.push(euros);
    return `paid ${euros}`;
  },
});

/** Pays the number in the message, or calls the payer with it. */
const model: Model = {
  async call({ messages, tools }) {
    const last = messages.at(-1);
    if (last?.role === 'tool') return replyText(`read: ${last.text}`);
    const euros = Number(/\d+/.exec(messages[0]?.text ?? '')?.[0]);
    const pays = tools.some(({ name }) => name === 'pay');
    return pays ? replyCall('pay', { euros }) : replyCall(AGENT, { message: `pay ${euros}` });
  },
};

async function startWorker(): Promise<void> {
  const fixed = { instructions: 'x', model: 'm' };
  const payer = defineAgent({
    ...fixed,
    name: AGENT,
    description: 'pays',
    tools: [pay],
    rules: ASK,
  });
  const boss = defineAgent({ ...fixed, name: BOSS, agents: [payer] });
  const crowd = defineAgent({
    name: CROWD,
    instructions: 'x',
    tools: [pay],
    rules: [{ tool: 'pay', then: 'ask' }],
    decide: async ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? { answer: 'all denied' }
        : {
            calls: Array.from({ length: 25 }, (_, euros) => ({
              name: 'pay',
              arguments: { euros },
            })),
          },
  });
  await rig.worker([payer, boss, crowd], { models: { m: model } });
}

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig, { by: 'web: ann' });
  await startWorker();
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

const newId = (): string => `req-${randomUUID()}`;

/** Starts a run, and returns its request once it waits. */
async function asked(euros: number, given: Partial<StartOptions> = {}) {
  const { id } = await client.start(AGENT, { id: newId(), message: `pay ${euros}`, ...given });
  return { id, request: await openIn(id) };
}

async function openIn(id: string): Promise<Request> {
  return await vi.waitFor(
    async () => {
      const { status, reason, pending } = await client.status(id);
      expect({ status, reason }).toEqual({ status: 'waiting_decision', reason: 'approval' });
      const [request] = pending;
      if (request === undefined) throw new Error('no request');
      return request;
    },
    { timeout: 20_000, interval: 50 },
  );
}

/** The list lags behind the history. */
async function listed(filter: Parameters<PerdureClient['requests']>[0], count: number) {
  return await vi.waitFor(
    async () => {
      const { requests } = await client.requests(filter);
      expect(requests).toHaveLength(count);
      return requests;
    },
    { timeout: 20_000, interval: 100 },
  );
}

describe('open requests', () => {
  test('are listed oldest first, with run and agent, until they are decided', async () => {
    const first = await asked(60);
    const second = await asked(61);
    const runs = [first.id, second.id];
    const ours = async (): Promise<readonly OpenRequest[]> => {
      const { requests } = await client.requests({ agent: AGENT });
      return requests.filter(({ run }) => runs.includes(run));
    };
    await expect.poll(async () => (await ours()).map(({ run }) => run)).toEqual(runs);
    const [one] = await ours();
    const { digest, raisedAt, expiresAt } = first.request;
    const same = { run: first.id, agent: AGENT, id: 'r1', kind: 'approval', tool: 'pay' };
    expect(one).toMatchObject({ ...same, digest, raisedAt, expiresAt });
    expect(one?.shown).toContain('pay 60 €');
    // Each text has a command that can be pasted in a project.
    const fix = `npx perdure approve ${first.id} r1 --digest ${digest.slice(0, 12)}`;
    const { message } = await client.status(first.id);
    const { fix: alone } = await client.request(first.id, 'r1');
    for (const text of [one?.fix, first.request.fix, alone, message?.split('decide: ')[1]]) {
      expect(text?.startsWith(fix)).toBe(true);
    }
    await client.resolve(first.id, { request: 'r1', digest, as: 'approve', by: 'bob' });
    expect((await client.result(first.id)).answer).toBe('read: paid 60');
    await expect.poll(async () => (await ours()).map(({ run }) => run)).toEqual([second.id]);
    await client.cancel(second.id);
  });

  test('are read as a whole without a worker, and stay listed while the run is paused', async () => {
    const { id, request } = await asked(62);
    await client.pause(id, { by: 'ops' });
    await rig.stopWorkers();
    expect(await client.request(id, 'r1')).toEqual(request);
    expect(request.arguments).toBe('{"euros":62}');
    await expect(client.request(id, 'r9')).rejects.toThrow('its open requests are r1');
    await listed({ run: id }, 1);
    await startWorker();
    await client.cancel(id);
  });

  test('of a called agent are listed under its root run, and decided on its own run', async () => {
    const { id } = await client.start(BOSS, { id: newId(), message: 'pay 63' });
    const [request] = await listed({ root: id }, 1);
    if (request === undefined) throw new Error('no request');
    expect(request.run.startsWith(`${id}/`)).toBe(true);
    const { status, below, pending } = await client.status(id);
    expect({ status, pending, below }).toMatchObject({ pending: [], below: [request] });
    const { digest } = request;
    await client.resolve(request.run, { request: request.id, digest, as: 'approve', by: 'bob' });
    expect((await client.result(id)).status).toBe('completed');
    expect(paid).toContain(63);
  });
});

describe('a decision', () => {
  test.each([
    ['unknown_request', { request: 'r9' }],
    ['wrong_digest', { digest: 'f'.repeat(64) }],
    ['not_offered', { as: 'raise', arguments: { steps: 1 } }],
    ['not_a_decider', { by: 'web: ann' }],
  ] as const)('is refused as %s, and nothing happens', async (reason, change) => {
    const { id, request } = await asked(70);
    const right = { request: 'r1', digest: request.digest, as: 'approve', by: 'bob' } as const;
    const refused = await client.resolve(id, { ...right, ...change }).then(
      () => null,
      (error: unknown) => error,
    );
    expect(refused).toBeInstanceOf(RefusedError);
    expect(refused).toMatchObject({ reason });
    expect((await client.status(id)).pending).toMatchObject([{ digest: request.digest }]);
    expect(paid).not.toContain(70);
    await client.cancel(id);
  });

  test('is refused if another person was first; the same id gets the same answer', async () => {
    const { id, request } = await asked(71, { open: true });
    const decision = { request: 'r1', digest: request.digest, as: 'deny', by: 'bob' } as const;
    const first = await client.resolve(id, decision, { id: 'decision-1' });
    expect(first).toMatchObject([{ request: 'r1', as: 'deny' }]);
    expect(await client.resolve(id, decision, { id: 'decision-1' })).toEqual(first);
    await expect(client.resolve(id, decision)).rejects.toMatchObject({ reason: 'decided' });
    await client.close(id);
  });

  test('is checked before it is sent', async () => {
    await expect(client.resolve('x', [])).rejects.toThrow('decisions: expected 1 to 200');
    const odd = { request: 'r1', digest: 7, as: 'approve' };
    await expect(client.resolve('x', odd as never)).rejects.toThrow('decision.digest: expected');
    const right = { request: 'r1', digest: 'd', as: 'approve' } as const;
    await expect(client.resolve('x', [right, odd as never])).rejects.toThrow(
      'decisions[1].digest: expected',
    );
    await expect(client.resolve('x', right, { id: '' })).rejects.toThrow('id: expected a string');
  });
});

test('the events of a run show what was asked, and what was decided', async () => {
  const { id, request } = await asked(64);
  await client.resolve(id, {
    request: request.id,
    digest: request.digest,
    as: 'approve',
    by: 'bob',
  });
  const requestEvents: unknown[] = [];
  for await (const event of client.events(id)) {
    if (event.type === 'request-raised' || event.type === 'request-closed')
      requestEvents.push(event);
    if (event.type === 'call-begun') requestEvents.push({ type: event.type });
  }
  expect(requestEvents).toMatchObject([
    { type: 'request-raised', request: 'r1', kind: 'approval', call: 'call_1_1_0' },
    { type: 'request-closed', request: 'r1', as: 'approve', by: 'bob' },
    { type: 'call-begun' },
  ]);
});

test('the events have every decision of one update, however many there are', async () => {
  const { id } = await client.start(CROWD, { id: newId(), message: 'go' });
  const pending = await vi.waitFor(
    async () => {
      const status = await client.status(id);
      expect(status.pending).toHaveLength(25);
      return status.pending;
    },
    { timeout: 20_000, interval: 50 },
  );
  const denials = pending.map(({ id: request, digest }) => ({
    request,
    digest,
    as: 'deny' as const,
    by: 'bob',
  }));
  await client.resolve(id, denials);
  const closed: unknown[] = [];
  for await (const event of client.events(id)) {
    if (event.type === 'request-closed') closed.push([event.as, event.by]);
  }
  expect(closed).toEqual(pending.map(() => ['deny', 'bob']));
});

test('all runs of an agent are paused and resumed by signal, with progress', async () => {
  const agent = `herd-${randomUUID()}`;
  const herd = defineAgent({ name: agent, instructions: 'x', model: 'm', tools: [] });
  const taskQueue = `${rig.taskQueue}-herd`;
  await rig.worker([herd], { models: { m: model }, taskQueue });
  const other = await clientOf(rig, { taskQueue });
  const ids = Array.from({ length: 5 }, newId);
  await Promise.all(ids.map((id) => other.start(agent, { id, open: true })));
  await expect.poll(async () => (await other.list({ agent })).rows).toHaveLength(5);
  const progress: number[] = [];
  const onProgress = ({ signaled }: { signaled: number }): number => progress.push(signaled);
  const paused = await other.pauseAll({ agent, by: 'ops: ann', onProgress });
  expect(paused).toEqual({ signaled: 5, ended: 0, failed: 0, error: null });
  expect(progress).toEqual([1, 2, 3, 4, 5]);
  for (const id of ids) {
    await expect.poll(async () => (await other.status(id)).status).toBe('paused');
  }
  const resumed = await other.resumeAll({ agent, by: 'ops: ann' });
  expect(resumed).toEqual({ signaled: 5, ended: 0, failed: 0, error: null });
  for (const id of ids) {
    await expect.poll(async () => (await other.status(id)).status).toBe('waiting_message');
    const decided = (await other.status(id)).decisions?.map(({ what, by }) => ({ what, by }));
    expect(decided).toEqual([
      { what: 'pause', by: 'ops: ann' },
      { what: 'resume', by: 'ops: ann' },
    ]);
    await other.cancel(id);
  }
  await other.disconnect();
});
