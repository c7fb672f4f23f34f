import { randomUUID } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { Rig } from '../support/rig.js';
import { scheduleCommands } from '../support/schedule-commands.js';

let rig: Rig;
let client: PerdureClient;
const { created, perdure } = scheduleCommands((desk) => {
  ({ rig, client } = desk);
});

test('a trigger without a worker says so, and does not propose a second run', async () => {
  const id = `schedule-${randomUUID()}`;
  created.push(id);
  const times = ['--cron', '0 9 1 1 *'];
  await perdure('schedule', 'create', id, 'the', 'report', '--agent', 'files', ...times);
  const noWorker = `No worker is running on task queue "${rig.taskQueue}": none has polled in the last minutes. Start one with: npx perdure worker --no-config`;
  const first = await perdure('schedule', 'trigger', id);
  const run = await vi.waitFor(
    async () => {
      const { running } = await client.schedule.describe(id);
      return running[0] ?? expect.fail('no run is running');
    },
    { timeout: 20_000, interval: 50 },
  );
  expect(first.stderr).toContain(`follow it with: npx perdure attach ${run}`);
  expect(first.stderr).toContain(`\n${noWorker}`);
  const second = await perdure('schedule', 'trigger', id);
  expect(second.stderr).toContain(
    `Schedule ${id} is not fired: the firing was skipped, because run ${run} has not ended.\n${noWorker}`,
  );
  expect(second.stderr).not.toContain('allow_all');
  await rig.client.workflow.getHandle(run).terminate();
});
