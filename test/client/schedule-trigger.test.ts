import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { Overlap } from '../../src/client/schedule/options.js';
import { showSchedule } from '../../src/cli/schedule/show.js';
import { triggerSchedule } from '../../src/cli/schedule/trigger.js';
import type { Command } from '../../src/cli/context.js';
import { clientOf } from '../support/clerk.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
let client: PerdureClient;
const created: string[] = [];

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
});
afterAll(async () => {
  for (const id of created) {
    const { running, beside } = await client.schedule.describe(id);
    await client.schedule.delete(id);
    for (const run of [...running, ...beside])
      await rig.client.workflow.getHandle(run).terminate('the test is over');
  }
  await client.disconnect();
  await rig.close();
});

async function create(overlap: Overlap): Promise<string> {
  const id = `trigger-${randomUUID()}`;
  await client.schedule.create({ id, agent: 'clerk', message: 'x', cron: '0 9 1 1 *', overlap });
  created.push(id);
  return id;
}

/** Two triggers within a second are one firing. */
async function nextSecond(): Promise<void> {
  const now = Date.now();
  await expect.poll(() => Date.now(), { timeout: 5_000 }).toBeGreaterThan(now + 1_000);
}

async function type<Options>(command: Command<Options>, options: Options): Promise<CommandOutput> {
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue: rig.taskQueue };
  return await runInProcess(command, options, place);
}

test('a trigger returns what the server did', async () => {
  const id = await create('skip');
  const first = await client.schedule.trigger(id);
  expect(first).toEqual({ firing: 'fired', run: expect.stringMatching(`^${id}-`) });
  await nextSecond();
  expect(await client.schedule.trigger(id)).toEqual({ firing: 'skipped' });
  await nextSecond();
  expect(await client.schedule.trigger(id, { overlap: 'buffer_one' })).toEqual({ firing: 'waits' });
});

test('a trigger that replaces a waiting firing says so', async () => {
  const id = await create('cancel_other');
  await client.schedule.trigger(id);
  await nextSecond();
  const waits = await type(triggerSchedule, { id });
  expect(waits.stderr).toContain('has ended, which is being canceled.');
  expect(waits.stderr).not.toContain('takes the place');
  await nextSecond();
  expect((await type(triggerSchedule, { id })).stderr).toContain(
    'has ended, which is being canceled. It takes the place of the firing that waited for that.',
  );
  await nextSecond();
  expect(await client.schedule.trigger(id)).toEqual({ firing: 'waits', replaces: true });
});

test('a schedule shows the runs that `allow_all` has let through', async () => {
  const id = await create('allow_all');
  const { run = '' } = await client.schedule.trigger(id);
  await expect
    .poll(async () => (await client.schedule.describe(id)).beside, { timeout: 20_000 })
    .toEqual([run]);
  const { stdout } = await type(showSchedule, { id });
  expect(stdout).toMatch(new RegExp(`^running +${run}$`, 'm'));
});

test('an update refuses what it cannot change, and a schedule needs a message', async () => {
  const id = await create('skip');
  const refused = async (changes: object) => await client.schedule.update(id, changes);
  await expect(refused({ paused: true })).rejects.toThrow(
    'paused: expected no change by an update; call schedule.pause or schedule.resume',
  );
  await expect(refused({ overlp: null })).rejects.toThrow('did you mean overlap?');
  await expect(refused({ id: 'x' })).rejects.toThrow(/^id: expected no change, /);
  const silent = { id: `${id}-2`, agent: 'clerk', every: '1h' };
  await expect(client.schedule.create(silent as never)).rejects.toThrow(
    /^message: expected the message of each firing, got none; add it$/,
  );
});
