import { Connection } from '@temporalio/client';
import { expect, test } from 'vitest';
import { tenantsFinding } from '../../src/cli/doctor/tenants.js';
import { testServer } from '../support/temporal-server.js';

/** Asks a server with these settings, and returns the finding and how many workflows are left. */
async function ask(settings: readonly string[]) {
  const { address, stop } = await testServer(settings);
  const connection = await Connection.connect({ address });
  const finding = await tenantsFinding(connection, { namespace: 'default' });
  await expect
    .poll(async () => {
      const list = { namespace: 'default', query: "WorkflowType = 'perdure-doctor'" };
      return (await connection.workflowService.listWorkflowExecutions(list)).executions.length;
    })
    .toBe(0);
  await connection.close();
  await stop();
  return finding;
}

test('doctor finds out by effect whether the server takes the work of tenants in turn', async () => {
  expect(await ask([])).toMatchObject({ name: 'tenants', level: 'ok' });
  expect(await ask(['matching.enableFairness=false'])).toMatchObject({
    level: 'note',
    text: expect.stringMatching(/^the server ignores them: whoever comes first/) as string,
    fix: expect.stringContaining('`matching.enableFairness: true`') as string,
    data: { taken: 12, ofOthers: 0 },
  });
});
