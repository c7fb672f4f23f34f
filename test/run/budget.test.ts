import { randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from '@temporalio/worker';
import { afterAll, afterEach, beforeAll, expect, inject, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { budgets as budgetsCommand } from '../../src/cli/commands/budgets.js';
import { doctor } from '../../src/cli/commands/doctor.js';
import { type BudgetOptions, type Config, defineConfig } from '../../src/config.js';
import type { Finding } from '../../src/cli/doctor/finding.js';
import type { SharedBudget } from '../../src/core/rules/budget.js';
import { KEYS_VARIABLE } from '../../src/encryption/keyring.js';
import type { Model } from '../../src/models/model.js';
import { runInMemory } from '../../src/testing.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { budgetWorkflowId, readBudget, rateWorkflowId } from '../../src/updates/shared-limits.js';
import { sourceBundle } from '../support/bundle.js';
import { runInProcess } from '../support/in-process.js';
import { clientOf } from '../support/clerk.js';
import { ownCaller } from '../support/own-caller.js';
import { type Rig, createRig } from '../support/rig.js';

const CHILDREN = 5;

let rig: Rig;
let client: PerdureClient;

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
});
afterEach(async () => {
  await rig.stopWorkers();
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

/** A dollar for each token of a reply, which has as many as the instructions say; prompts are free. */
const price = { input: 0, cachedInput: 0, output: 1e6 };
const paid: Model = {
  async call({ instructions }) {
    const outputTokens = Number(/\d+/.exec(instructions)?.[0]);
    return { ...replyText('done'), usage: { inputTokens: 0, outputTokens, cachedTokens: 0 } };
  },
};
const planner: Model = {
  async call({ messages }) {
    const calls = Array.from({ length: CHILDREN }, (_, at) => ({
      name: 'helper',
      arguments: { message: `part ${at}` },
    }));
    return messages.length === 1 ? replyCalls(calls) : replyText('all done');
  },
};
const models = {
  paid: { ...paid, price },
  planner: { ...planner, price: { input: 0, cachedInput: 0, output: 0 } },
};
const spender = (name: string, dollars: number, { most = dollars, model = 'paid' } = {}) =>
  defineAgent({
    name,
    description: name,
    instructions: `spend ${dollars}`,
    model,
    settings: { maxOutputTokens: most },
  });
const big = spender('big', 99);
/** An agent that calls another one five times at once, and that one. */
function team(model = 'paid') {
  const helper = spender('helper', 3, { most: 5, model });
  const rest = { name: 'lead', instructions: 'lead', model: 'planner' };
  return [defineAgent({ ...rest, agents: [helper] }), helper] as const;
}
const [lead, helper] = team();
const AGENTS = [big, helper, lead];

async function workers(count: number, budget: Omit<BudgetOptions, 'per'>): Promise<void> {
  for (let one = 0; one < count; one += 1) {
    await rig.worker(AGENTS, { models, budgets: [{ per: 'day', ...budget }] });
  }
}

/** Returns the ids and the states of the runs that a run has called. */
async function called(root: string) {
  const { rows } = await client.list({ root, all: true });
  return rows.filter(({ id }) => id !== root);
}

async function until<T>(work: () => Promise<T>): Promise<T> {
  return await vi.waitFor(work, { timeout: 30_000, interval: 100 });
}

/** Expects that the command and `doctor` show what a tenant has spent of a budget of $20. */
async function expectShown(tenant: string, spent: number): Promise<void> {
  const config = join(rig.home, 'budgets.config.mjs');
  const text = `
    import { defineAgent, defineConfig } from 'perdure';
    const agents = [defineAgent({ name: 'helper', instructions: 'x', model: 'demo' })];
    const budgets = [{ tenant: '${tenant}', per: 'day', costUsd: 20 }];
    export default defineConfig({ agents, budgets });
  `;
  await writeFile(config, text);
  const { taskQueue, home } = rig;
  const place = { address: inject('temporalAddress'), config, taskQueue, home };
  const shown = await runInProcess(budgetsCommand, {}, place);
  expect(shown.stdout.replaceAll(/ +/g, ' ')).toMatch(
    new RegExp(
      `tenant ${tenant} \\d{4}-\\d\\d-\\d\\d \\$${spent}.0000 \\$0.0000 \\$20.0000 used up`,
    ),
  );
  const found = await runInProcess(doctor, { model: false }, { ...place, json: true });
  const { findings } = JSON.parse(found.stdout) as { findings: readonly Finding[] };
  expect(findings.find(({ name }) => name === 'budgets')).toMatchObject({
    level: 'note',
    text: `tenant ${tenant}: $${spent}.0000 of $20.0000 spent, $0.0000 held by workers; used up, so its runs wait for the next day`,
  });
}

test('five children and two workers at 99 % of a budget: the overrun is at most one lease', async () => {
  const tenant = `acme-${randomUUID()}`;
  await workers(2, { tenant, costUsd: 100 });
  const first = await client.start(big, 'go', { tenant });
  await client.result(first.id);
  const { id } = await client.start(lead, 'go', { tenant });
  await until(async () => {
    const statuses = (await called(id)).map(({ status }) => status).toSorted();
    expect(statuses).toEqual(['blocked', 'blocked', 'blocked', 'blocked', 'completed']);
  });
  const blocked = (await called(id)).filter(({ status }) => status === 'blocked');
  expect(blocked.map(({ reason }) => reason)).toEqual(Array(4).fill('budget'));
  const { message } = await client.status(blocked[0]?.id ?? '');
  expect(message?.replaceAll(/\d{4}-\d\d-\d\d/g, 'DAY')).toMatch(
    new RegExp(
      `the budget of tenant "${tenant}" for DAY has no room for this call: (102|99).00 of 100.00 USD spent.*; ` +
        'the run waits until DAYT00:00Z, or raise `costUsd` of the budget in the config of the workers',
    ),
  );
  // Raised: nothing that was paid for is paid for again.
  await rig.stopWorkers();
  await workers(1, { tenant, costUsd: 200 });
  for (const child of blocked) await client.resume(child.id);
  expect(await client.result(id)).toMatchObject({ status: 'completed', answer: 'all done' });
  // The report is the sum of the runs.
  const ids = [first.id, id, ...(await called(id)).map((row) => row.id)];
  const statuses = await Promise.all(ids.map((one) => client.status(one)));
  const own = statuses.map(({ usage }) => usage.costUsd ?? 0);
  // A caller counts what its agents spend.
  expect(own[1]).toBe(CHILDREN * 3);
  const sum = own.reduce((total, each) => total + each, 0) - (own[1] ?? 0);
  const budget: SharedBudget = { of: 'tenant', name: tenant, unit: 'costUsd', limit: 200 };
  // The worker returns its lease when it stops, and another one answers.
  await rig.stopWorkers();
  await workers(1, { tenant, costUsd: 200 });
  expect(await readBudget(rig.client, budget)).toMatchObject({ spent: sum, held: 0, limit: 200 });
  await expectShown(tenant, sum);
  const workflowId = budgetWorkflowId(budget);
  const history = await rig.client.workflow.getHandle(workflowId).fetchHistory();
  await Worker.runReplayHistory({ workflowBundle: await sourceBundle() }, history, workflowId);
});

test('agents that a run calls count for its tag, also with encryption, and its name stays secret', async () => {
  const tag = `tag-${randomUUID()}`;
  const env = {
    PERDURE_HOME: rig.home,
    [KEYS_VARIABLE]: `k1:${randomBytes(32).toString('base64')}`,
  };
  const taskQueue = `sealed-${randomUUID()}`;
  const budgets = [{ tag, per: 'day', costUsd: 9 }] as const;
  // The model has a shared rate too, whose workflow is as confidential.
  const model = `paid-${randomUUID()}`;
  const rated = { [model]: { ...models.paid, rate: { requests: 6_000 } }, planner: models.planner };
  await rig.worker(team(model), { models: rated, budgets, env, secrets: [], taskQueue });
  const sealed = await clientOf(rig, { env, taskQueue });
  const { id } = await sealed.start(lead, 'go', { tags: ['other', tag] });
  const budget: SharedBudget = { of: 'tag', name: tag, unit: 'costUsd', limit: 9 };
  await until(async () => {
    const { rows } = await sealed.list({ root: id, all: true });
    const of = (status: string) => rows.filter((row) => row.status === status).length;
    expect([of('completed'), of('blocked')]).toEqual([3, 2]);
  });
  const history = await rig.client.workflow.getHandle(budgetWorkflowId(budget)).fetchHistory();
  expect(JSON.stringify(history)).not.toContain(Buffer.from(tag).toString('base64').slice(4, 30));
  expect(budgetWorkflowId(budget)).not.toContain(tag);
  const paced = await rig.client.workflow.getHandle(rateWorkflowId(model)).fetchHistory();
  expect(JSON.stringify(paced)).not.toContain(Buffer.from('requests').toString('base64'));
  await sealed.cancel(id);
  await sealed.result(id);
  await sealed.disconnect();
});

test('runs that a workflow of your own starts count for their tenant and tags, and so do the agents that they call', async () => {
  const [tenant, tag] = [`own-${randomUUID()}`, `tag-${randomUUID()}`];
  const limit = 100;
  const both = [
    { tenant, per: 'day', costUsd: limit },
    { tag, per: 'day', costUsd: limit },
  ] as const;
  const work = async () => await rig.worker(AGENTS, { models, budgets: both });
  await work();
  const place = { ...rig, address: inject('temporalAddress') };
  await ownCaller(place, { agent: 'lead', message: 'go', tenant, tags: [tag] });
  // The worker says what was spent when it stops, and another one answers.
  await rig.stopWorkers();
  await work();
  for (const [of, name] of [
    ['tenant', tenant],
    ['tag', tag],
  ] as const) {
    const budget: SharedBudget = { of, name, unit: 'costUsd', limit };
    expect(await readBudget(rig.client, budget)).toMatchObject({
      spent: 2 * CHILDREN * 3,
      held: 0,
    });
  }
});

test.each([
  [{ per: 'day', costUsd: 1 }, 'budgets[0]: expected either `tenant` or `tag`'],
  [{ tenant: 'a', tag: 'b', per: 'day', costUsd: 1 }, 'budgets[0]: expected either `tenant` or'],
  [{ tenant: 'a', per: 'day' }, 'budgets[0]: expected `costUsd`, `tokens`, or both'],
  [{ tenant: 'a', per: 'day', costUsd: 0 }, 'budgets[0].costUsd: expected a number above 0, got 0'],
  [{ tenant: 'a', per: 'month', costUsd: 1 }, 'budgets[0].per: '],
])('the budget %j is refused', (budget, problem) => {
  const config = { agents: AGENTS, budgets: [budget] } as unknown as Config;
  expect(() => defineConfig(config)).toThrow(problem);
});

test('two budgets of the same runs in the same unit are refused', () => {
  const budget = { tenant: 'a', per: 'day', costUsd: 1 } as const;
  expect(() =>
    defineConfig({ agents: AGENTS, budgets: [budget, { ...budget, tokens: 5 }] }),
  ).toThrow('config: budgets: expected one costUsd of tenant "a", got two; remove one of them');
});

test('a run in memory counts against no budget', async () => {
  const { outcome } = await runInMemory(big, { message: 'go', models });
  expect(outcome.status).toBe('completed');
});

test('a worker does not start without the price of a model that a budget in money counts', async () => {
  const unpriced = { ...models, paid };
  const start = rig.worker(AGENTS, {
    models: unpriced,
    budgets: [{ tenant: 'acme', per: 'day', costUsd: 1 }],
  });
  await expect(start).rejects.toThrow(
    'agent "big": the price of model "paid" is unknown, so its calls cannot count against `budgets` with costUsd; ' +
      'give `price` with the model in the config, or use `tokens` in the budget',
  );
  await rig.worker(AGENTS, {
    models: unpriced,
    budgets: [{ tenant: 'acme', per: 'day', tokens: 1 }],
  });
});
