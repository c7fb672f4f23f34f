import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import { showSchedule } from '../../src/cli/schedule/show.js';
import { clientOf } from '../support/clerk.js';
import { runInProcess } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
let client: PerdureClient;
const id = `nightly-${randomUUID()}`;

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
});
afterAll(async () => {
  await client.schedule.delete(id);
  await client.disconnect();
  await rig.close();
});

test('a schedule is shown with its message, settings, times, and firings', async () => {
  await client.schedule.create({
    id,
    agent: 'clerk',
    message: 'Check the \u001B[2Jorders',
    cron: '30 9 1 1 *',
    timeZone: 'Europe/Berlin',
    limits: { steps: 3 },
    tags: ['a'],
    by: 'unverified:os-user:ann',
    overlap: 'buffer_one',
  });
  await client.schedule.trigger(id);
  await expect
    .poll(async () => (await client.schedule.describe(id)).fired, { timeout: 20_000 })
    .toBe(1);
  await client.schedule.pause(id, { note: 'holiday' });
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue: rig.taskQueue };
  const { stdout } = await runInProcess(showSchedule, { id }, place);
  const lines = stdout.split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([
      `schedule  ${id}`,
      'state     paused: holiday',
      'agent     clerk',
      'message   Check the \\u001b[2Jorders',
      'times     30 9 1 1 * (Europe/Berlin)',
      'overlap   buffer_one',
      'settings  limits: {"steps":3}',
      '          tags: ["a"]',
      '          by: os-user:ann (not verified)',
      'fired     1 time',
      expect.stringMatching(new RegExp(`^running   ${id}-`)),
      expect.stringMatching(
        new RegExp(`^last      \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d  ${id}-`),
      ),
    ]),
  );
  expect(lines.filter((line) => /^(?:to|next|left out|waiting|failed) /.test(line))).toEqual([]);
  const json = await runInProcess(showSchedule, { id }, { ...place, json: true });
  expect(JSON.parse(json.stdout)).toMatchObject({
    id,
    message: 'Check the \u001B[2Jorders',
    settings: { limits: { steps: 3 }, tags: ['a'], by: 'unverified:os-user:ann' },
  });
});

test('only a note that someone has given is one, and not what clients write without', async () => {
  const details = async () => await client.schedule.describe(id);
  const handle = rig.client.schedule.getHandle(id);
  await client.schedule.resume(id);
  expect(await details()).toMatchObject({ paused: false, note: null });
  await client.schedule.pause(id);
  expect(await details()).toMatchObject({ paused: true, note: null });
  await handle.unpause();
  expect(await details()).toMatchObject({ paused: false, note: null });
  await handle.pause('(no reason provided)');
  expect(await details()).toMatchObject({ paused: true, note: null });
  await client.schedule.resume(id, { note: 'the shop is open' });
  const [row] = (await client.schedule.list()).filter((one) => one.id === id);
  expect(row?.note).toBe('the shop is open');
});

test('a schedule that does not exist is named', async () => {
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue: rig.taskQueue };
  await expect(runInProcess(showSchedule, { id: 'nigthly' }, place)).rejects.toThrow('nigthly');
});
