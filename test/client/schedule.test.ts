import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { ScheduleOptions } from '../../src/client/schedule/options.js';
import { firingOptions } from '../../src/client/schedule/view.js';
import type { RunInput } from '../../src/core/input/input.js';
import type { RunSettings } from '../../src/updates/start.js';
import type { ScheduleChanges } from '../../src/client/schedule/methods.js';
import { obedientModel } from '../support/conversation.js';
import { clerk, clientOf } from '../support/clerk.js';
import { createRig, type Rig } from '../support/rig.js';
import { replayLater } from '../support/replays.js';

const WITHIN = { timeout: 20_000, interval: 50 };
let rig: Rig;
let client: PerdureClient;
const created: string[] = [];

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
});
afterEach(async () => {
  for (const id of created.splice(0)) await client.schedule.delete(id).catch(() => undefined);
  await rig.stopWorkers();
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

const work = () => rig.worker([clerk()], { models: { m: obedientModel() } });

/** A schedule that does not fire by itself during a test. */
async function create(options: Partial<ScheduleOptions> = {}): Promise<string> {
  const id = `schedule-${randomUUID()}`;
  const when = options.every === undefined ? { cron: '0 9 1 1 *' } : {};
  const who = options.to === undefined ? { agent: clerk() } : {};
  await client.schedule.create({ id, message: 'the report', ...when, ...who, ...options });
  created.push(options.id ?? id);
  return options.id ?? id;
}

/** Waits for this many firings, and returns their ids, oldest first. */
async function firings(id: string, count: number): Promise<readonly string[]> {
  const recent = async () => (await client.schedule.describe(id)).recent;
  await expect.poll(recent, { timeout: 20_000 }).toHaveLength(count);
  return (await recent()).map((firing) => firing.id);
}

describe('a schedule', () => {
  test('fires by itself without a worker; the next worker executes the runs', async () => {
    const id = await create({ every: '1 second', overlap: 'allow_all', tags: ['nightly'] });
    const recent = async () => (await client.schedule.describe(id)).recent.length;
    await expect.poll(recent, { timeout: 20_000 }).toBeGreaterThanOrEqual(2);
    await client.schedule.pause(id, { note: 'enough' });
    const [first] = (await client.schedule.describe(id)).recent;
    expect((await client.status(first?.id ?? '')).status).toBe('working');
    await work();
    expect(await client.result(first?.id ?? '')).toMatchObject({
      status: 'completed',
      answer: 'done: the report',
    });
    expect(first?.id).toMatch(new RegExp(`^${id}-\\d{4}-`));
    expect(await client.schedule.describe(id)).toMatchObject({ paused: true, note: 'enough' });
    await client.schedule.pause(id);
    expect(await client.schedule.describe(id)).toMatchObject({ paused: true, note: 'enough' });
    await client.schedule.resume(id);
    expect((await client.schedule.describe(id)).note).toBeNull();
  });

  test('passes every setting of a run on to its firings', async () => {
    const settings: Required<RunSettings> = {
      limits: { steps: 3 },
      context: { floor: 2 },
      args: { tone: 'dry' },
      settings: { temperature: 0.5 },
      tags: ['nightly'],
      archive: true,
      by: 'ann',
      rules: [{ tool: 'lookup', then: 'ask' }],
      tenant: 'acme',
      unattended: 'deny',
      modelAttempts: 2,
    };
    const id = `schedule-${randomUUID()}`;
    await client.schedule.create({
      id,
      agent: 'anyone',
      message: 'the report',
      cron: '@yearly',
      ...settings,
    });
    created.push(id);
    const { action } = await rig.client.schedule.getHandle(id).describe();
    const [input] = action.args ?? [];
    expect(input).toMatchObject({ ...settings, message: 'the report' });
    expect(firingOptions(input)).toEqual({
      ...settings,
      agent: 'anyone',
      message: 'the report',
      limits: (input as RunInput).limits,
    });
  });

  test('is listed and described with its action and its times', async () => {
    const options = { cron: '30 9 * * MON-FRI', timeZone: 'Europe/Berlin', overlap: 'buffer_one' };
    const id = await create(options as Partial<ScheduleOptions>);
    const row = { id, agent: 'clerk', to: null, paused: false, cron: '30 9 * * MON-FRI' };
    expect(await client.schedule.describe(id)).toMatchObject({
      ...row,
      timeZone: 'Europe/Berlin',
      message: 'the report',
      overlap: 'buffer_one',
      running: [],
      fired: 0,
      skipped: 0,
    });
    const [next] = (await client.schedule.describe(id)).nextAt;
    const berlin = new Date(next ?? '').toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' });
    expect(berlin).toBe('09:30:00');
    const listed = async () => (await client.schedule.list()).find((one) => one.id === id);
    await expect.poll(listed).toMatchObject(row);
    await client.schedule.delete(id);
    await expect(client.schedule.describe(id)).rejects.toThrow(`there is no schedule ${id}`);
    await expect.poll(listed).toBeUndefined();
  });

  test('is triggered, also while it is paused', async () => {
    await work();
    const id = await create({ paused: true, limits: { steps: 3 } });
    await client.schedule.trigger(id);
    const [run] = await firings(id, 1);
    expect(await client.result(run ?? '')).toMatchObject({ answer: 'done: the report' });
    expect((await client.status(run ?? '')).limits.turn.steps).toBe(3);
    await client.schedule.resume(id);
    expect(await client.schedule.describe(id)).toMatchObject({ paused: false, fired: 1 });
  });

  test('backfills a past time range, one firing after another', async () => {
    await work();
    const id = await create({ cron: '0 * * * *' });
    await client.schedule.backfill(id, {
      from: '2026-01-01T00:30:00Z',
      to: '2026-01-01T03:30:00Z',
    });
    const runs = await firings(id, 3);
    expect(runs).toEqual(['01', '02', '03'].map((hour) => `${id}-2026-01-01T${hour}:00:00Z`));
    for (const run of runs) expect((await client.result(run)).status).toBe('completed');
  });

  test('skips a firing while the previous one has not ended, unless configured otherwise', async () => {
    const id = await create();
    await client.schedule.trigger(id);
    const [only] = await firings(id, 1);
    expect((await client.schedule.describe(id)).running).toEqual([only]);
    await client.schedule.trigger(id, { overlap: 'skip' });
    const skipped = async () => (await client.schedule.describe(id)).skipped;
    await expect.poll(skipped, { timeout: 20_000 }).toBe(1);
    await client.schedule.trigger(id);
    await expect.poll(skipped, { timeout: 20_000 }).toBe(2);
    await client.schedule.trigger(id, { overlap: 'buffer_one' });
    await expect
      .poll(async () => (await client.schedule.describe(id)).buffered, { timeout: 20_000 })
      .toBe(1);
    // The time of a firing, in seconds, is a part of its id.
    const [first] = (await client.schedule.describe(id)).recent;
    const nextSecond = Date.parse(first?.firedAt ?? '') + 1_000;
    await expect.poll(() => Date.now(), { timeout: 5_000 }).toBeGreaterThan(nextSecond);
    await client.schedule.trigger(id, { overlap: 'allow_all' });
    for (const run of await firings(id, 2))
      expect((await client.status(run)).status).toBe('working');
  });
});

describe('an update', () => {
  test('changes only the named fields, for the next firing and in the list', async () => {
    await work();
    const id = await create({ limits: { steps: 3 }, tags: ['old'], timeZone: 'Europe/Berlin' });
    await client.schedule.pause(id, { note: 'for a while' });
    const changes = { every: '1 day', message: 'the summary', tags: null } as const;
    const at = { timeZone: null, catchUp: '1 minute' } as const;
    await client.schedule.update(id, { ...changes, ...at, overlap: 'buffer_one' });
    const row = { id, agent: 'clerk', everyMs: 86_400_000, paused: true, note: 'for a while' };
    const details = await vi.waitFor(async () => {
      const described = await client.schedule.describe(id);
      expect(described).toMatchObject({ ...row, message: 'the summary', overlap: 'buffer_one' });
      return described;
    }, WITHIN);
    expect(Object.keys(details)).not.toContain('cron');
    expect(Object.keys(details)).not.toContain('timeZone');
    const listed = async () => (await client.schedule.list()).find((one) => one.id === id);
    await expect.poll(listed, WITHIN).toMatchObject(row);
    await client.schedule.trigger(id);
    const [run = ''] = await firings(id, 1);
    expect(await client.result(run)).toMatchObject({ answer: 'done: the summary' });
    expect((await client.status(run)).limits.turn.steps).toBe(3);
    const { rows } = await client.list({ idPrefix: id });
    expect(rows[0]?.tags).toEqual([]);
  });

  test('changes a schedule that sends to an open run, and keeps its agent', async () => {
    const to = `open-${randomUUID()}`;
    const id = await create({ to, agent: 'clerk', limits: { steps: 4 } });
    await client.schedule.update(id, { to: `${to}-2`, cron: '@daily' });
    const { action } = await rig.client.schedule.getHandle(id).describe();
    expect(action.args).toMatchObject([
      { to: `${to}-2`, message: 'the report', start: { agent: 'clerk', limits: { steps: 4 } } },
    ]);
    await client.schedule.update(id, { to: null });
    await vi.waitFor(async () => {
      const described = await client.schedule.describe(id);
      expect(described).toMatchObject({ to: null, agent: 'clerk', cron: '@daily' });
    }, WITHIN);
  });

  test.each<[ScheduleChanges, string]>([
    [{ cron: '0 9 * * now' }, 'cron: expected an expression, e.g.'],
    [{ every: '1 hour', timeZone: 'Europe/Berlin' }, 'timeZone: expected only with cron'],
    [{ cron: '0 0 9 * * MON' }, 'cron: expected five fields'],
    [{ cron: null }, 'either cron or every, got neither; give one'],
    [{ cron: '@daily', every: 1_000 }, 'either cron or every, got both; remove'],
    [{ message: '' }, 'message: expected text'],
    [{ limits: { steps: 0 } }, 'limits.steps: expected a positive whole number'],
    [{ agent: null }, 'agent: expected the name of an agent, got none'],
    [{ everyMs: 1 } as never, '"everyMs" is not an option; did you mean every?'],
    [{ overlap: 'queue' as never }, 'overlap: expected one of "skip"|"buffer_one"'],
  ])('%j is refused, and changes nothing', async (changes, message) => {
    const id = await create();
    await expect(client.schedule.update(id, changes)).rejects.toThrow(message);
    expect(await client.schedule.describe(id)).toMatchObject({ cron: '0 9 1 1 *', agent: 'clerk' });
  });

  test('by a client with the configuration refuses a misspelled agent', async () => {
    const id = await create();
    const strict = await clientOf(rig, { config: { agents: [clerk()] } });
    const refused = strict.schedule.update(id, { agent: 'clerc' });
    await expect(refused).rejects.toThrow('got "clerc" (nearest: clerk)');
    await strict.disconnect();
  });
});

describe('a schedule that sends to an open run', () => {
  test('starts the run with its first message and sends it one message per firing', async () => {
    await work();
    const to = `open-${randomUUID()}`;
    const id = await create({ to, agent: 'clerk', cron: '0 * * * *', by: 'ann' });
    const hours = { from: '2026-01-01T00:30:00Z', to: '2026-01-01T02:30:00Z' };
    await client.schedule.backfill(id, hours);
    const sent = await firings(id, 2);
    for (const firing of sent) {
      const handle = rig.client.workflow.getHandle(firing);
      expect(await handle.result()).toMatchObject({ turn: sent.indexOf(firing) + 1 });
      replayLater(await handle.fetchHistory(), firing);
    }
    expect(await client.result(to, { turn: 2 })).toMatchObject({ answer: 'done: the report' });
    const { messages } = await client.transcript(to);
    const asked = messages.filter(({ role }) => role === 'user');
    expect(asked).toMatchObject(sent.map((message) => ({ id: message, by: 'ann' })));
    await client.close(to);
    await client.result(to);
    await client.schedule.trigger(id);
    const [, , late] = await firings(id, 3);
    await expect(rig.client.workflow.getHandle(late ?? '').result()).rejects.toMatchObject({
      cause: { cause: { message: expect.stringContaining(`run ${to} has ended`) } },
    });
  });

  test('without an agent sends only to an existing run', async () => {
    await work();
    const to = `open-${randomUUID()}`;
    const id = await create({ to, by: 'ann' });
    await client.schedule.trigger(id);
    const [firing] = await firings(id, 1);
    await expect(rig.client.workflow.getHandle(firing ?? '').result()).rejects.toMatchObject({
      cause: {
        cause: { message: expect.stringContaining(`there is no run "${to}"`) },
      },
    });
    await client.start('clerk', { open: true, id: to });
    await client.schedule.trigger(id);
    await firings(id, 2);
    expect(await client.result(to, {})).toMatchObject({ answer: 'done: the report' });
    const settings = { by: 'ann' };
    expect(await client.schedule.describe(id)).toMatchObject({ to, agent: null, settings });
    const [message] = (await client.transcript(to)).messages;
    expect(message).toMatchObject({ role: 'user', by: 'ann' });
    expect(message).not.toHaveProperty('door');
    await client.close(to);
  });
});

describe('an invalid schedule', () => {
  test.each<[string, Partial<ScheduleOptions>, string]>([
    ['no time', { cron: undefined as never }, 'either cron or every, got neither'],
    ['both times', { every: 1_000, cron: '* * * * *' }, 'either cron or every, got both'],
    ['a bad cron', { cron: '0 9 * * now' }, 'got "0 9 * * now" ('],
    [
      'a cron with seconds',
      { cron: '*/10 * * * * *' },
      'and no seconds or years, of which it has 6, got "*/10 * * * * *"; for an interval of seconds, give every: "10 seconds"',
    ],
    [
      'a zone of an interval',
      { every: '1 hour', timeZone: 'Europe/Berlin' },
      'timeZone: expected only with cron, because every counts from 1970 in UTC, got "Europe/Berlin"; omit it, or use cron',
    ],
    ['an empty cron', { cron: ' ' }, 'cron: expected a cron expression, got " "; write'],
    [
      'a broken second',
      { every: 1_500 },
      'every: expected whole seconds, such as "90 seconds" or 90000, got 1500',
    ],
    [
      'an interval of nothing',
      { every: 0 },
      'every: expected a whole number of ms or words such as "30 seconds" or "2 days", got 0; at least 1 second',
    ],
    ['a strange zone', { timeZone: 'Berlin' }, 'expected a time zone, got "Berlin"; give'],
    ['a strange overlap', { overlap: 'queue' as never }, 'expected one of "skip"|"buffer_one"'],
    ['a typo', { catchUpMs: 5 } as never, 'is not an option; did you mean catchUp?'],
    ['no message', { message: '' }, 'message: expected text'],
    ['a bad limit', { limits: { steps: 0 } }, 'limits.steps: expected a positive whole number'],
    ['no id', { id: '' }, 'id: expected a text of 1 to 150 characters, got ""'],
    ['a hasty catch-up', { catchUp: 5 }, 'catchUp: expected a whole number of ms or words such as'],
    ['settings without an agent', { to: 'x', tags: ['y'] }, 'tags: expected only with "agent"'],
  ])('%s', async (_, options, message) => {
    await expect(create(options)).rejects.toThrow(message);
  });

  test.each(['0 9 29 2 *', '0 9 31 * MON', '0 9 */31 JAN-mar *', '0 9 30 2/2 *', '@midnight'])(
    'is not one that fires by %s',
    async (cron) => {
      const id = await create({ cron });
      expect((await client.schedule.describe(id)).nextAt).not.toEqual([]);
    },
  );

  test('is refused for a missing agent, a taken id, a reversed range, or an unknown schedule', async () => {
    const { schedule } = client;
    const id = `schedule-${randomUUID()}`;
    await expect(schedule.create({ id, message: 'x', cron: '@daily' })).rejects.toThrow(
      'agent: expected the name of an agent, got none',
    );
    await create({ id });
    await expect(create({ id })).rejects.toMatchObject({ code: 'id_taken' });
    const backwards = { from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' };
    await expect(schedule.backfill(id, backwards)).rejects.toThrow('to: expected a time from');
    await expect(schedule.backfill(id, { from: 'x', to: 'y' })).rejects.toThrow(
      'from: expected a Date or an ISO 8601 time, got "x"',
    );
    const unknown = `schedule-${randomUUID()}`;
    const message = `there is no schedule ${unknown}`;
    for (const act of ['pause', 'resume', 'trigger', 'delete', 'describe'] as const) {
      await expect(schedule[act](unknown)).rejects.toThrow(message);
    }
    await expect(schedule.update(unknown, {})).rejects.toThrow(message);
  });

  test('of another program is neither listed nor changed', async () => {
    const { schedule } = client;
    const scheduleId = `schedule-${randomUUID()}`;
    const handle = await rig.client.schedule.create({
      scheduleId,
      spec: { calendars: [{ month: 'JANUARY' }] },
      action: { type: 'startWorkflow', workflowType: 'other', taskQueue: 'other', args: [] },
      state: { note: 'theirs' },
      memo: { perdure: { agent: 7 } },
    });
    try {
      expect((await schedule.list()).map(({ id }) => id)).not.toContain(scheduleId);
      const message = `schedule ${scheduleId} is not a schedule of perdure`;
      for (const act of ['pause', 'resume', 'trigger', 'delete', 'describe'] as const)
        await expect(schedule[act](scheduleId)).rejects.toThrow(message);
      const range = { from: '2026-01-01', to: '2026-01-02' };
      await expect(schedule.backfill(scheduleId, range)).rejects.toThrow(message);
      const { state, info } = await handle.describe();
      expect(state).toMatchObject({ paused: false, note: 'theirs' });
      expect(info.numActionsTaken).toBe(0);
    } finally {
      await handle.delete();
    }
  });

  test.each([
    ['pause', 'for a while', 'schedule.pause: expected object'],
    ['resume', { nota: 'x' }, 'schedule.resume: "nota" is not an option; did you mean note?'],
    ['trigger', 'skip', 'schedule.trigger: expected object'],
    ['backfill', { overlap: 'none' }, 'schedule.backfill: overlap: '],
  ])('cannot %s with %j', async (method, options, message) => {
    const act: unknown = Reflect.get(client.schedule, method);
    if (typeof act !== 'function') throw new Error(`there is no ${method}`);
    await expect(act('nightly', options)).rejects.toThrow(message);
  });
});
