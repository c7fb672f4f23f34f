import { createHmac, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import type { Decision } from '../../src/core/transcript/request.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { gate } from '../support/gate.js';
import { revokeUpdate } from '../../src/workflows/messages/definitions.js';
import { portOf } from '../support/port-of.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { createRig } from '../support/rig.js';

let desk: Desk;
/** On a server, where the time of an expiry passes. */
let onServer: Desk;

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  effect: 'once',
  input: z.object({ euros: z.number(), text: z.string().optional() }),
  execute: ({ euros }) => {
    for (const each of [desk, onServer]) each.did(`pay ${euros}`);
    return `paid ${euros}`;
  },
});

const options = { instructions: 'Pay.', model: 'script', tools: [pay] };
const payer = defineAgent({
  ...options,
  name: 'payer',
  description: 'Pays.',
  rules: [{ tool: 'pay', then: 'ask' }],
});
const brief = defineAgent({
  ...options,
  name: 'brief',
  rules: [{ tool: 'pay', then: 'ask', expires: 700 }],
});
const tiered = defineAgent({
  ...options,
  name: 'tiered',
  rules: [
    { tool: 'pay', then: 'ask' },
    {
      tool: 'pay',
      where: { op: 'over', path: 'euros', value: 100 },
      then: 'ask',
      deciders: ['boss'],
    },
  ],
});
const head = defineAgent({ name: 'head', instructions: 'Lead.', model: 'script', agents: [payer] });
const agents = [payer, brief, tiered, head];

beforeAll(async () => {
  desk = await createDesk(await createMemoryRig());
  onServer = await createDesk(await createRig());
});
beforeEach(async () => {
  for (const each of [desk, onServer]) {
    each.reset();
    await each.rig.stopWorkers();
  }
});
afterAll(async () => {
  await desk.close();
  await onServer.close();
});

describe('a request', () => {
  test('outlives its worker, and is decided when another one is available', async () => {
    await desk.work(agents);
    desk.script([{ pay: { euros: 7 } }, 'Paid.']);
    const { handle, requests } = await desk.asked({ agent: 'payer', message: 'pay' });
    await desk.rig.stopWorkers();
    const description = await handle.describe();
    expect(description.searchAttributes).toMatchObject({ AgentStatus: ['waiting_decision'] });
    const [{ id, digest, fix } = { id: '', digest: '', fix: '' }] = requests;
    expect(description.memo?.['requests']).toMatchObject([{ id, digest, kind: 'approval', fix }]);
    // No worker holds anything: no activity, no workflow task.
    expect(description.raw.pendingActivities).toEqual([]);
    await desk.work(agents);
    await desk.decide(handle, { as: 'approve' });
    expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Paid.' });
    expect(desk.done).toEqual(['pay 7']);
  });

  test.each([0, 1, 2, 3, 4])('has one decision if two people decide at once (%i)', async (seed) => {
    await desk.work(agents);
    desk.script([{ pay: { euros: 7 } }, 'Over.']);
    const { handle, requests } = await desk.asked({ agent: 'payer', message: 'pay' });
    const [{ id, digest } = { id: '', digest: '' }] = requests;
    const words = seed % 2 === 0 ? (['approve', 'deny'] as const) : (['deny', 'approve'] as const);
    const made = await Promise.allSettled(
      words.map((as) => desk.decideAll(handle, [{ request: id, digest, as }])),
    );
    const winners = made.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    expect(winners).toHaveLength(1);
    await desk.end(handle);
    expect(desk.done).toEqual(winners[0]?.as === 'approve' ? ['pay 7'] : []);
  });

  test.each([650, 690, 700, 710, 750])(
    'approved %i ms after it was raised, 700 ms before it expires, is approved or expired, never both',
    async (delayMs) => {
      await onServer.work(agents);
      onServer.script([{ pay: { euros: 7 } }, 'Over.']);
      const { handle, requests } = await onServer.asked({ agent: 'brief', message: 'pay' });
      const [{ id, digest, raisedAt } = { id: '', digest: '', raisedAt: 0 }] = requests;
      await vi.waitUntil(() => Date.now() >= raisedAt + delayMs, { interval: 1 });
      const decision = { request: id, digest, as: 'approve' } as const;
      const approved = await onServer.decideAll(handle, [decision]).then(
        () => true,
        (error: unknown) => {
          expect(error).toMatchObject({ cause: expect.objectContaining({ details: ['expired'] }) });
          return false;
        },
      );
      await onServer.end(handle);
      expect(onServer.done).toEqual(approved ? ['pay 7'] : []);
    },
  );

  test.each([0, 1, 2])(
    'approved while its run is canceled leads to at most one execution (%i)',
    async () => {
      await desk.work(agents);
      desk.script([{ pay: { euros: 7 } }, 'Over.']);
      const { handle, requests } = await desk.asked({ agent: 'payer', message: 'pay' });
      const [{ id, digest } = { id: '', digest: '' }] = requests;
      const [approved] = await Promise.allSettled([
        desk.decideAll(handle, [{ request: id, digest, as: 'approve' }]),
        handle.cancel(),
      ]);
      const { outcome } = await desk.end(handle);
      expect(outcome.status).toBe('cancelled');
      if (approved.status === 'rejected') expect(desk.done).toEqual([]);
      expect(desk.done.length).toBeLessThanOrEqual(1);
    },
  );

  test('is raised again if an edit exceeds what one person may approve', async () => {
    await desk.work(agents);
    desk.script([{ pay: { euros: 50 } }, 'Paid.']);
    const { handle } = await desk.asked({ agent: 'tiered', message: 'pay' });
    await desk.decide(handle, { as: 'edit', arguments: { euros: 500 }, by: 'ann' });
    const again = await desk.statusWhere(handle, ({ pending }) => pending[0]?.id === 'r2');
    expect(again.pending).toMatchObject([
      {
        arguments: '{"euros":500}',
        deciders: [['boss']],
        why: expect.stringContaining('ann changed'),
      },
    ]);
    expect(desk.done).toEqual([]);
    await desk.decide(handle, { as: 'approve', by: 'boss' });
    await desk.end(handle);
    expect(desk.done).toEqual(['pay 500']);
  });

  test('with arguments of 2 MB refers to them by their blob', async () => {
    await desk.work(agents);
    desk.script([{ pay: { euros: 7, text: 'x'.repeat(2_000_000) } }, 'Paid.']);
    const { handle, requests } = await desk.asked({ agent: 'payer', message: 'pay' });
    expect(requests).toMatchObject([{ argumentsBlob: { bytes: expect.any(Number) } }]);
    expect(requests[0]?.arguments).toBeUndefined();
    expect(requests[0]?.shown).toContain('2.0 MB of arguments');
    await desk.decide(handle, { as: 'approve' });
    expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Paid.' });
    expect(desk.done).toEqual(['pay 7']);
  });
});

test('a revoked grant no longer covers calls that are still waiting', async () => {
  const held = gate();
  const slow = defineTool({
    name: 'pay',
    description: 'Pays.',
    effect: 'keyed',
    repeat: 'allow',
    input: z.object({ euros: z.number() }),
    execute: async ({ euros }) => {
      if (euros > 0) await held.wait();
      desk.did(`pay ${euros}`);
      return 'paid';
    },
  });
  const rules = [{ tool: 'pay', then: 'ask' }] as const;
  await desk.work([defineAgent({ ...options, name: 'granted', tools: [slow], rules })]);
  const many = [1, 2, 3, 4, 5, 6, 7].map((euros) => ({ pay: { euros } }));
  desk.script([{ pay: { euros: 0 } }, many, 'Over.']);
  const { handle } = await desk.asked({ agent: 'granted', message: 'pay' });
  await desk.decide(handle, { as: 'approve', grant: { scope: 'tool' } });
  // Five run at once; the others wait for them.
  await held.reached;
  await handle.executeUpdate(revokeUpdate, { args: [{ grant: 'g1' }] });
  const { pending } = await desk.statusWhere(handle, (one) => one.pending.length > 0);
  expect(pending.map(({ call }) => call)).toEqual(['call_1_2_5', 'call_1_2_6']);
  held.release();
  await desk.decideAll(
    handle,
    pending.map(({ id: request, digest }) => ({ request, digest, as: 'deny' })),
  );
  await desk.end(handle);
  expect(desk.done.toSorted()).toEqual([0, 1, 2, 3, 4, 5].map((euros) => `pay ${euros}`));
});

describe('a worker', () => {
  const decided = (as: Decision['as'], by: string) => ({ as, by });

  test('makes the final check of who may decide', async () => {
    await desk.work(agents, { mayDecide: (_, { by }) => by === 'ann' });
    desk.script([{ pay: { euros: 7 } }, 'Paid.']);
    const { handle } = await desk.asked({ agent: 'payer', message: 'pay' });
    expect(await desk.decide(handle, decided('approve', 'eve'))).toMatchObject([
      { checking: true },
    ]);
    const refused = await desk.statusWhere(handle, ({ decisions }) => decisions?.length === 1);
    expect(refused.decisions).toMatchObject([{ by: 'eve', refused: expect.any(String) }]);
    expect(refused.pending).toMatchObject([{ id: 'r1' }]);
    expect(desk.done).toEqual([]);
    await desk.decide(handle, decided('approve', 'ann'));
    expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Paid.' });
    expect(desk.done).toEqual(['pay 7']);
  });

  test('notifies a webhook of each request, signed, and again after a failure', async () => {
    const secret = Buffer.from('0123456789abcdef0123456789abcdef');
    const posts: { headers: IncomingHttpHeaders; body: string }[] = [];
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (part: Buffer) => (body += part.toString()));
      request.on('end', () => {
        posts.push({ headers: request.headers, body });
        response.writeHead(posts.length === 1 ? 503 : 204).end();
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const port = portOf(server);
    try {
      await desk.work(agents, {
        notify: { url: `http://127.0.0.1:${port}/hook`, secretEnv: 'HOOK_SECRET' },
        env: { PERDURE_HOME: desk.rig.home, HOOK_SECRET: `whsec_${secret.toString('base64')}` },
      });
      desk.script([{ pay: { euros: 7 } }, 'Paid.']);
      const { handle, requests } = await desk.asked({ agent: 'payer', message: 'pay' });
      await vi.waitFor(() => expect(posts).toHaveLength(2), { timeout: 20_000, interval: 50 });
      const [first, second] = posts;
      expect(first?.headers['webhook-id']).toBe(second?.headers['webhook-id']);
      const { body = '', headers = {} } = second ?? {};
      const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
      const signature = createHmac('sha256', secret).update(signed).digest('base64');
      expect(headers['webhook-signature']).toBe(`v1,${signature}`);
      expect(JSON.parse(body)).toMatchObject({
        type: 'perdure.request',
        data: { run: handle.workflowId, request: { id: 'r1', digest: requests[0]?.digest } },
      });
      await desk.decide(handle, { as: 'deny' });
      await desk.end(handle);
    } finally {
      server.close();
    }
  });
});

test('takes rules from its configuration, too', async () => {
  expect(() => defineConfig({ agents, rules: [{ tool: '', then: 'ask' }] })).toThrow(
    'rules[0].tool',
  );
  await desk.work(agents, { rules: [{ tool: 'pay', then: 'deny' }] });
  desk.script([{ pay: { euros: 7 } }, 'Not paid.']);
  const { outcome } = await desk.run({ agent: 'payer', message: 'pay' });
  expect(outcome).toMatchObject({ answer: 'Not paid.' });
  expect(desk.done).toEqual([]);
});

describe('on a server, because it lists requests', () => {
  let inMemory = desk;

  beforeAll(async () => {
    inMemory = desk;
    desk = await createDesk();
  });
  afterAll(async () => {
    await desk.close();
    desk = inMemory;
  });

  test('moves with its run into each new segment, and so does what the run has published', async () => {
    await desk.work(agents, { segment: { steps: 1, bytes: 1_000_000 } });
    const client = await clientOf(desk.rig);
    desk.script([{ pay: { euros: 1 } }, { pay: { euros: 2 } }, 'Paid.', 'Hello.', 'Bye.']);
    const { handle, requests } = await desk.asked({
      agent: 'payer',
      message: 'pay',
      open: true,
      tags: ['late'],
    });
    const run = handle.workflowId;
    const newest = desk.rig.client.workflow.getHandle(run);
    const [segment] = await client.list({ idPrefix: run, tag: 'late' }).then(({ rows }) => rows);
    /** What readers of the memo say agrees with the history of the run. */
    const agree = async (segments: number, pending: readonly string[]) => {
      await desk.statusWhere(newest, (now) => now.segments === segments);
      const status = await client.status(run);
      expect(status.pending.map(({ id }) => id)).toEqual(pending);
      await vi.waitFor(
        async () => {
          const { requests: listed } = await client.requests({ run });
          expect(listed.map(({ id }) => id)).toEqual(pending);
          const { rows } = await client.list({ idPrefix: run, tag: 'late' });
          // Temporal lists the run that a reset has ended, too.
          const open = rows.filter(({ closedAt }) => closedAt === null);
          expect(open).toMatchObject([{ status: status.status, startedAt: segment?.startedAt }]);
        },
        { timeout: 20_000, interval: 50 },
      );
      const { memo } = await newest.describe();
      expect(Object.keys(memo ?? {})).not.toContain('kept');
      return status;
    };
    const shown = requests.map((one) => ({ ...one, fix: `npx ${one.fix}` }));
    expect((await agree(2, ['r1'])).pending).toEqual(shown);
    await desk.decide(handle, { as: 'approve' });
    await desk.statusWhere(newest, ({ pending }) => pending[0]?.id === 'r2');
    await agree(3, ['r2']);
    // A reset goes back to the beginning of the segment, whose start has the memo.
    const { runId } = await desk.rig.client.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: run },
      reason: 'test',
      requestId: randomUUID(),
      // oxlint-disable-next-line typescript/no-explicit-any -- a Long, of which a number will do
      workflowTaskFinishEventId: 4 as never,
    });
    expect((await newest.describe()).runId).toBe(runId);
    await agree(3, ['r2']);
    await desk.decide(newest, { as: 'edit', arguments: { euros: 3 } });
    await desk.statusWhere(newest, ({ status }) => status === 'waiting_message');
    await agree(4, []);
    expect((await newest.describe()).memo).toMatchObject({ tags: ['late'], turn: 1 });
    expect(desk.done).toEqual(['pay 1', 'pay 3']);
    await newest.terminate();
    await desk.end(newest).catch(() => undefined);
  });

  test('is over when Temporal has terminated its run', async () => {
    await desk.work(agents);
    const client = await clientOf(desk.rig);
    desk.script([{ pay: { euros: 7 } }]);
    const { handle } = await desk.asked({ agent: 'payer', message: 'pay' });
    await handle.terminate();
    expect(await client.status(handle.workflowId)).toMatchObject({
      status: 'done',
      reason: 'terminated',
      pending: [],
    });
    // A busy server lists an ended run as open for a moment.
    await expect
      .poll(async () => await client.requests({ run: handle.workflowId }))
      .toMatchObject({ requests: [], more: false });
    await expect(client.request(handle.workflowId, 'r1')).rejects.toThrow('no open request');
  });

  test('a request of a called agent is listed under its root, and decided on its own run', async () => {
    await desk.work(agents);
    desk.script([{ payer: { message: 'pay 7' } }, { pay: { euros: 7 } }, 'Paid.', 'All paid.']);
    const handle = await desk.rig.start({ agent: 'head', message: 'go', by: 'ann' });
    const client = await clientOf(desk.rig);
    const below = await vi.waitFor(
      async () => {
        const { requests } = await client.requests({ root: handle.workflowId });
        expect(requests).toHaveLength(1);
        return requests;
      },
      { timeout: 20_000, interval: 100 },
    );
    const [{ run, id, digest } = { run: '', id: '', digest: '' }] = below;
    expect(run).not.toBe(handle.workflowId);
    expect(await client.request(run, id)).toMatchObject({
      requester: 'ann',
      arguments: '{"euros":7}',
    });
    await client.resolve(run, { request: id, digest, as: 'approve', by: 'bob' });
    expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'All paid.' });
    expect(desk.done).toEqual(['pay 7']);
    await client.disconnect();
  });
});
