import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { budgetWorkflowId } from '../../src/updates/shared-limits.js';
import { commandLine } from '../support/command.js';
import { createRig, type Rig } from '../support/rig.js';

const command = await commandLine();
let rig: Rig;

beforeAll(async () => {
  rig = await createRig();
});
afterAll(async () => await rig.close());

test('a budget that no worker answers for is shown with the command that starts one', async () => {
  const tenant = `acme-${randomUUID()}`;
  const config = join(rig.home, 'budgets.config.mjs');
  await writeFile(
    config,
    `
    import { defineAgent, defineConfig } from 'perdure';
    const agents = [defineAgent({ name: 'helper', instructions: 'x', model: 'demo' })];
    export default defineConfig({ agents, budgets: [{ tenant: '${tenant}', per: 'day', tokens: 500 }] });
  `,
  );
  const { taskQueue } = rig;
  const workflowId = budgetWorkflowId({ of: 'tenant', name: tenant, unit: 'tokens' });
  const budget = await rig.client.workflow.start('budget', { taskQueue, workflowId, args: [] });
  const place = ['--address', inject('temporalAddress'), '--task-queue', taskQueue];
  const here = (...args: readonly string[]) =>
    command.here([...args, ...place, '--config', config]).ended;
  const [shown, found] = await Promise.all([here('budgets'), here('doctor', '--no-model')]);
  await budget.terminate();
  expect(shown.code).toBe(1);
  const fix = /no worker answers for it; start one with: .*perdure worker .*--task-queue/;
  expect(shown.stderr).toMatch(fix);
  expect(found.stdout).toMatch(fix);
}, 60_000);
