import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { costs } from '../../src/cli/commands/costs.js';
import { readCosts } from '../../src/client/costs.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { ModelError, type Model } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { clientOf } from '../support/clerk.js';
import { runInProcess } from '../support/in-process.js';
import { ownCaller } from '../support/own-caller.js';
import { createRig, type Rig } from '../support/rig.js';

const run = randomUUID();
const name = `clerk-${run}`;
const tag = `tag-${run}`;
const price = { input: 1_000, cachedInput: 1_000, output: 1_000 };
const usage = (tokens: number) => ({ inputTokens: tokens, outputTokens: 0, cachedTokens: 0 });

/** Costs a dollar for each thousand tokens, of which the message says how many. */
const model: Model = {
  async call({ messages }) {
    const [message] = messages;
    if (message?.text === 'ask' && messages.length === 1) {
      return { ...replyCall(`helper-${run}`, { message: '300' }), usage: usage(100) };
    }
    return { ...replyText('done'), usage: usage(Number(message?.text) || 100) };
  },
};

let rig: Rig;
let client: PerdureClient;

beforeAll(async () => {
  rig = await createRig();
  const helper = defineAgent({
    name: `helper-${run}`,
    description: 'helps',
    instructions: 'x',
    model: 'm',
  });
  const clerk = defineAgent({ name, instructions: 'x', model: 'm', agents: [helper] });
  const guest = defineAgent({ name: `guest-${run}`, instructions: 'x', model: 'unpriced' });
  const own = defineAgent({ name: `own-${run}`, instructions: 'x', model: 'm' });
  const idle = defineAgent({ name: `idle-${run}`, instructions: 'x', model: 'broken' });
  const broken: Model = {
    async call() {
      throw new ModelError('no', { kind: 'request', type: 'refused' });
    },
  };
  await rig.worker([clerk, helper, guest, idle, own], {
    models: { m: Object.assign({ ...model }, { price }), unpriced: model, broken },
  });
  client = await clientOf(rig);
  const start = async (message: string, options: object, agent = name) =>
    await client.run(agent, { message, tags: [tag], ...options });
  await Promise.all([
    // Two runs with the same id, one after the other.
    start('1000', { tenant: 'acme', id: `twice-${run}` }).then(async ({ id }) =>
      start('2000', { tenant: 'acme', tags: [tag, `${tag}-more`], id, reuseId: true }),
    ),
    start('ask', { tenant: 'other' }),
    start('700', {}, `guest-${run}`),
    client.run(`idle-${run}`, { message: 'x', tags: [`${tag}-idle`] }).catch(() => undefined),
  ]);
  // A run that is open counts with what it has spent so far.
  const open = await client.start(name, {
    message: '50',
    tenant: 'other',
    open: true,
    tags: [tag],
  });
  await client.result(open, { turn: 1 });
  // The list lags behind the runs.
  const listed = async (): Promise<number> => {
    const { rows } = await client.list({ since: '1h', limit: 1_000 });
    return rows.filter(({ agent }) => agent?.endsWith(run)).length;
  };
  while ((await listed()) < 6);
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

test('the cost of a tenant is the sum of its runs and of the agents that they have called', async () => {
  const { rows } = await readCosts(client, { by: 'tenant', agent: name, tag });
  expect(rows).toMatchObject([
    { name: 'acme', runs: 2, unpriced: 0, usage: { inputTokens: 3_000, costUsd: 3 } },
    { name: 'other', runs: 2, unpriced: 0, usage: { inputTokens: 550, costUsd: 0.55 } },
  ]);
  // Runs of other tests that cannot be read are in the list, too.
  const own = (await client.list({ agent: name, tag })).rows.filter(
    (row) => row.tenant === 'other',
  );
  const statuses = await Promise.all(own.map(({ id }) => client.status(id)));
  const sum = statuses.reduce((before, one) => before + (one.usage.costUsd ?? 0), 0);
  expect(rows[1]?.usage.costUsd).toBeCloseTo(sum);
  const guests = await readCosts(client, { by: 'tenant', agent: `guest-${run}` });
  expect(guests.rows).toMatchObject([
    { name: null, runs: 1, unpriced: 1, usage: { inputTokens: 700, costUsd: 0 } },
  ]);
});

test('costs are added up per agent and per tag, and the command shows them', async () => {
  const { rows } = await readCosts(client, { tag });
  const ours = rows.filter((row) => row.name?.endsWith(run));
  expect(ours.map((row) => [row.name, row.runs])).toEqual([
    [name, 4],
    [`guest-${run}`, 1],
  ]);
  const place = {
    address: inject('temporalAddress'),
    home: rig.home,
    taskQueue: rig.taskQueue,
  };
  const shown = await runInProcess(costs, { per: 'tag', agent: name, tag: [tag] }, place);
  const [head, first, second] = shown.stdout.split('\n');
  expect(head).toMatch(/^TAG +RUNS +TOKENS IN +TOKENS OUT +COST/);
  expect(first).toMatch(/^tag-\S+ +4 +3550 +0 +\$3\.5500/);
  expect(second).toMatch(/^tag-\S+-more +1 +2000 +0 +\$2\.0000/);
  const guests = await runInProcess(costs, { agent: `guest-${run}` }, place);
  expect(guests.stdout).toContain('and 1 run of unknown cost');
});

test('a run that has used no tokens has cost nothing, although its model has no price', async () => {
  const { rows } = await readCosts(client, { tag: `${tag}-idle` });
  expect(rows).toMatchObject([
    { name: `idle-${run}`, runs: 1, unpriced: 0, usage: { inputTokens: 0, costUsd: 0 } },
  ]);
});

test('runs that a workflow of your own has started count, and the agents that runs have called do not', async () => {
  const place = { ...rig, address: inject('temporalAddress') };
  const input = { agent: `own-${run}`, message: '400', tags: [`${tag}-own`] };
  const { runs } = await ownCaller(place, input);
  const { rows } = await readCosts(client, { by: 'tag', agent: `own-${run}` });
  expect(rows).toMatchObject([
    { name: `${tag}-own`, runs: runs.length, usage: { inputTokens: 800, costUsd: 0.8 } },
  ]);
  const called = await readCosts(client, { agent: `helper-${run}` });
  expect(called.rows).toEqual([]);
});

test('what a run has spent before it was reset counts once', async () => {
  const own = `${tag}-${randomUUID()}`;
  const { id } = await client.start(name, {
    message: '50',
    open: true,
    tags: [own],
  });
  await client.result(id, { turn: 1 });
  await client.send(id, '60');
  await client.result(id, { turn: 2 });
  const before = (await client.status(id)).usage.inputTokens;
  const { events = [] } = await rig.client.workflow.getHandle(id).fetchHistory();
  const isReply = (at: number | undefined): boolean =>
    events?.some(
      ({ eventId, activityTaskScheduledEventAttributes: scheduled }) =>
        Number(eventId) === at && scheduled?.activityType?.name === 'callModel',
    ) === true;
  const replied = (events ?? []).findIndex(({ activityTaskCompletedEventAttributes: completed }) =>
    isReply(Number(completed?.scheduledEventId)),
  );
  const task = events?.slice(replied).find((event) => event.workflowTaskCompletedEventAttributes);
  const { runId } = await rig.client.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: id },
    reason: 'test',
    requestId: randomUUID(),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a Long, of which a number will do
    workflowTaskFinishEventId: Number(task?.eventId) as never,
  });
  await client.close(id);
  await client.result(id);
  const after = (await client.status(id)).usage.inputTokens;
  const listed = async (): Promise<readonly string[]> => {
    const { rows } = await client.list({ idPrefix: id, status: 'ended' });
    return rows.map((row) => row.runId);
  };
  await expect.poll(listed).toHaveLength(2);
  expect(await listed()).toContain(runId);
  const { rows } = await readCosts(client, { by: 'tag', tag: own });
  expect(before).toBe(100);
  expect(rows).toMatchObject([{ runs: 1, usage: { inputTokens: before + after - 50 } }]);
});

test('a wrong group or filter is refused by name', async () => {
  await expect(readCosts(client, { by: 'day' as never })).rejects.toThrow('readCosts');
  await expect(readCosts(client, { since: 'soon' })).rejects.toThrow('since: expected a time');
});
