import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { EXIT } from '../../src/cli/context.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { ScheduleDetails, ScheduleRow } from '../../src/client/schedule/view.js';
import type { Rig } from '../support/rig.js';
import { scheduleCommands } from '../support/schedule-commands.js';

const WITHIN = { timeout: 20_000, interval: 50 };
let rig: Rig;
let client: PerdureClient;
let ofFiles: string;
const { created, perdure, perdureWith } = scheduleCommands((desk) => {
  ({ rig, client, ofFiles } = desk);
});

/** Creates a schedule that does not fire by itself during a test. */
async function create(...rest: readonly string[]): Promise<string> {
  const id = `schedule-${randomUUID()}`;
  const fixed = ['the', 'report', '--agent', 'files', '--cron', '0 9 1 1 *'];
  await perdure('schedule', 'create', id, ...fixed, ...rest);
  created.push(id);
  return id;
}

describe('schedule', () => {
  test('create accepts every option, and reports when the schedule fires next', async () => {
    const id = `schedule-${randomUUID()}`;
    created.push(id);
    const options = ['--every', '2h', '--overlap', 'buffer_one', '--catch-up', '1d', '--paused'];
    const run = ['--tag', 'a', '--tag', 'b', '--limit', 'steps=3', '--context', '{"x":1}'];
    const words = ['schedule', 'create', id, 'the', 'report', '--agent', 'files'];
    const output = await perdure(...words, ...options, ...run, '--unattended', '--json');
    expect(JSON.parse(output.stdout)).toMatchObject({
      id,
      agent: 'files',
      everyMs: 7_200_000,
      message: 'the report',
      overlap: 'buffer_one',
      paused: true,
    });
    expect(output.stderr).toContain(`Schedule ${id} is created.\nIt is paused.`);
    const { action, policies } = await rig.client.schedule.getHandle(id).describe();
    expect(policies.catchupWindow).toBe(86_400_000);
    expect(action.args).toMatchObject([
      {
        agent: 'files',
        message: 'the report',
        limits: { steps: 3 },
        tags: ['a', 'b'],
        context: { x: 1 },
        unattended: 'deny',
        by: expect.stringContaining('os-user'),
      },
    ]);
  });

  test('a schedule that sends to a run says what becomes of its messages', async () => {
    const id = `schedule-${randomUUID()}`;
    created.push(id);
    const to = `none-${id}`;
    await perdure('schedule', 'create', id, 'hello', '--to', to, '--cron', '0 9 1 1 *');
    const paused = await perdure('schedule', 'pause', id);
    expect(paused.stderr).toContain(
      `Schedule ${id} is paused. It sends no messages to run ${to} until then. Resume it with: `,
    );
    const deleted = await perdure('schedule', 'delete', id);
    expect(deleted.stderr.trim()).toBe(
      `Schedule ${id} is deleted. It sends no more messages to run ${to}, which is left as it is.`,
    );
    const own = await create();
    const ended = await perdure('schedule', 'delete', own);
    expect(ended.stderr).toContain(`is deleted. Runs that it has started continue.`);
  });

  test('list says that the last message of a schedule did not reach its run, and why', async () => {
    await rig.worker([]);
    onTestFinished(async () => await rig.stopWorkers());
    const id = `schedule-${randomUUID()}`;
    created.push(id);
    const to = `none-${id}`;
    await perdure('schedule', 'create', id, 'hello', '--to', to, '--cron', '0 9 1 1 *');
    const fired = await perdure('schedule', 'trigger', id);
    expect(fired.stderr).toContain(
      `It sends its message to run ${to}. See whether it was sent with: npx perdure schedule list`,
    );
    expect(fired.stderr).toContain(
      `There is no run "${to}" now; each message fails until one is started.`,
    );
    const why = `there is no run "${to}"`;
    await vi.waitFor(async () => {
      const { stdout } = await perdure('schedule', 'list', '--json');
      const row = (JSON.parse(stdout) as ScheduleRow[]).find((each) => each.id === id);
      expect(row?.failure).toContain(why);
    }, WITHIN);
    const { stdout, stderr } = await perdure('schedule', 'list');
    expect(stderr).toContain(`Schedule ${id}: its last message was not sent: `);
    expect(stderr).toContain(why);
    const line = stdout.split('\n').find((each) => each.startsWith(id));
    expect(line).toMatch(/ \d\d:\d\d:\d\d \(failed\) {2,}/);
    expect((await client.schedule.describe(id)).failure).toContain(why);
  });

  test('list shows schedules; pause, resume, trigger, update, and delete change one', async () => {
    const id = await create('--time-zone', 'Europe/Berlin', '--tag', 'a');
    const row = async (): Promise<ScheduleRow | undefined> => {
      const { stdout } = await perdure('schedule', 'list', '--json');
      return (JSON.parse(stdout) as ScheduleRow[]).find((each) => each.id === id);
    };
    await vi.waitFor(async () => expect(await row()).toMatchObject({ id, paused: false }), WITHIN);
    const paused = await perdure('schedule', 'pause', id, '--note', 'a holiday');
    expect(paused.stderr).toContain(`Resume it with: npx perdure schedule resume ${id}`);
    const again = await perdure('schedule', 'pause', id, '--note', 'a holiday');
    expect(again.stderr).toContain('was already paused');
    const { stdout } = await perdure('schedule', 'list');
    const lines = stdout.split('\n').map((line) => line.split(/ {2,}/));
    expect(lines[0]).toEqual(['ID', 'AGENT', 'TO', 'TIMES', 'NEXT', 'LAST', 'LEFT OUT', 'NOTE']);
    const times = '0 9 1 1 * (Europe/Berlin)';
    expect(lines).toContainEqual([id, 'files', '-', times, 'paused', '-', '-', 'a holiday']);

    const triggered = await perdure('schedule', 'trigger', id, '--json');
    expect(triggered.code).toBe(EXIT.completed);
    expect(JSON.parse(triggered.stdout)).toEqual({
      id,
      triggered: true,
      firing: 'fired',
      run: expect.stringContaining(id),
    });
    await vi.waitFor(async () => expect((await row())?.recent).toHaveLength(1), WITHIN);
    await perdure('schedule', 'resume', id);
    expect(await row()).toMatchObject({ paused: false });
    expect((await perdure('schedule', 'resume', id)).stderr).toContain('is not paused');

    const changed = [
      'a',
      'summary',
      '--cron',
      '@daily',
      '--without',
      'tag',
      '--without',
      'time-zone',
    ];
    const updated = await perdure('schedule', 'update', id, ...changed);
    expect(updated.stderr).toContain(
      `Schedule ${id} is updated; the next firing uses the changes.`,
    );
    await vi.waitFor(async () => {
      const details: ScheduleDetails = await client.schedule.describe(id);
      expect(details).toMatchObject({ cron: '@daily', message: 'a summary', agent: 'files' });
      expect(details.timeZone).toBeUndefined();
    }, WITHIN);
    const { action } = await rig.client.schedule.getHandle(id).describe();
    expect(Object.keys(action.args?.[0] ?? {})).not.toContain('tags');

    const deleted = await perdure('schedule', 'delete', id, '--json');
    expect(JSON.parse(deleted.stdout)).toEqual({ id, deleted: true });
    await vi.waitFor(async () => expect(await row()).toBeUndefined(), WITHIN);
    for (const act of ['pause', 'resume', 'trigger', 'delete']) {
      await expect(perdure('schedule', act, id)).rejects.toThrow(
        `there is no schedule ${id}; list schedules with: npx perdure schedule list`,
      );
    }
    const [run] = (await client.list({ idPrefix: id })).rows;
    await client.cancel(run?.id ?? '');
  });

  test.each<[string, readonly string[], string]>([
    [
      'a misspelled agent',
      ['x', '--agent', 'fils', '--every', '1h'],
      '--agent: expected an agent of',
    ],
    ['its nearest name', ['x', '--agent', 'fils', '--every', '1h'], 'got "fils" (nearest: files)'],
    [
      'no agent',
      ['x', '--every', '1h'],
      '--agent: expected the name of an agent, got none; give one of files, or the id of a run with --to',
    ],
    [
      'no time',
      ['x', '--agent', 'files', '--time-zone', 'Asia/Tokyo'],
      'schedule: expected either --cron or --every, got neither; give one, such as --cron "0 9 * * MON-FRI"',
    ],
    [
      'no message',
      ['--agent', 'files', '--every', '1h'],
      'MESSAGE: expected the message of each firing, got none',
    ],
    [
      'a bad zone',
      ['x', '--agent', 'files', '--cron', '@daily', '--time-zone', 'B'],
      '--time-zone: ',
    ],
    [
      'a bad overlap',
      ['x', '--agent', 'files', '--every', '1h', '--overlap', 'q'],
      '--overlap <policy>',
    ],
    ['a bad duration', ['x', '--agent', 'files', '--every', 'often'], 'such as 30s, "90 min", 2h'],
    [
      'a duration without a unit',
      ['x', '--agent', 'files', '--every', '2'],
      'Expected a duration with its unit, got 2; write for example 2s or 2m.',
    ],
    ['a bad tag', ['x', '--agent', 'files', '--every', 'hour', '--tag', ''], '--tag: expected'],
    [
      'a bad limit',
      ['x', '--agent', 'files', '--every', '1h', '--limit', 'steps=0'],
      'Expected a positive whole number',
    ],
    [
      'an hour that no day has',
      ['x', '--agent', 'files', '--cron', '0 25 * * *'],
      'got "0 25 * * *" (Hour is not in range',
    ],
    ['a bad cron', ['x', '--agent', 'files', '--cron', 'now'], '--cron: expected five fields'],
    [
      'a cron with seconds',
      ['x', '--agent', 'files', '--cron', '*/10 * * * * *'],
      'for an interval of seconds, give --every "10 seconds"',
    ],
    [
      'an interval as cron beside a time zone',
      ['x', '--agent', 'files', '--cron', '@every 1h', '--time-zone', 'Asia/Tokyo'],
      'for an interval, give --every "1h" without --time-zone',
    ],
    [
      'a cron with its zone',
      ['x', '--agent', 'files', '--cron', 'TZ=Asia/Tokyo 0 9 * * *'],
      'give --time-zone "Asia/Tokyo" instead',
    ],
    [
      'a zone of an interval',
      ['x', '--agent', 'files', '--every', '1h', '--time-zone', 'Asia/Tokyo'],
      '--time-zone: expected only with --cron, because --every counts from 1970 in UTC, got "Asia/Tokyo"; omit it, or use --cron',
    ],
    [
      'a short interval',
      ['x', '--agent', 'files', '--every', '1ms'],
      '--every: expected a duration such as 30s, "90 min", 2h, or "3 days", got "1ms"; at least 1 second',
    ],
    [
      'a broken second',
      ['x', '--agent', 'files', '--every', '1500ms'],
      '--every: expected whole seconds, such as 90s, got "1500ms"',
    ],
    [
      'a short catch-up',
      ['x', '--agent', 'files', '--every', '1h', '--catch-up', '1s'],
      'got "1s"',
    ],
    ['a word of cron', ['x', '--agent', 'files', '--every', 'daily'], 'for "daily", write day'],
    ['a limit without a unit', ['x', '--agent', 'files', '--limit', 'wall=5'], 'wall=5s'],
    [
      'arguments',
      ['x', '--agent', 'files', '--every', '1h', '--arg', 'a=b'],
      '--arg: expected none for agent "files"',
    ],
  ])('create refuses %s', async (_, rest, message) => {
    const words = ['schedule', 'create', `s-${randomUUID()}`, ...rest];
    await expect(perdureWith(ofFiles, ...words)).rejects.toMatchObject({
      name: expect.stringMatching(/^(UsageError|CommanderError)$/),
      message: expect.stringContaining(message),
    });
  });

  test('update refuses a misspelled agent, an empty change, and the removal of a required option', async () => {
    const id = await create();
    const update = async (...rest: readonly string[]) =>
      await perdureWith(ofFiles, 'schedule', 'update', id, ...rest);
    await expect(update('--agent', 'file')).rejects.toThrow('got "file" (nearest: files)');
    await expect(update()).rejects.toThrow(
      'update: expected a change, got none; give for example --cron "0 9 * * MON-FRI"',
    );
    await expect(update('--cron', '0 25 * * *')).rejects.toThrow(
      'got "0 25 * * *" (Hour is not in range',
    );
    await update('--time-zone', 'Asia/Tokyo');
    await expect(update('--every', '1h')).rejects.toThrow(
      '--time-zone: expected only with --cron, because --every counts from 1970 in UTC; the schedule has "Asia/Tokyo"; remove it with --without time-zone',
    );
    await expect(update()).rejects.toThrow('give for example --cron "0 9 * * MON-FRI"');
    await update('--cron', '0 9 * * MON-FRI');
    await expect(update('--cron', '*/10 * * * * *')).rejects.toThrow(
      'give --every "10 seconds" and --without time-zone',
    );
    await update('--every', '1h', '--without', 'time-zone');
    await expect(update()).rejects.toThrow('got none; give for example --every 1h');
    await update('--every', '1h');
    await expect(update('--without', 'cron')).rejects.toThrow('--without: expected one of agent,');
    await expect(update('--without', 'tga')).rejects.toThrow('got tga (nearest: tag)');
  });
});

describe('schedule trigger', () => {
  const trigger = async (id: string, ...rest: readonly string[]): Promise<string> =>
    (await perdure('schedule', 'trigger', id, ...rest)).stderr;
  /** A busy server may take longer to fire than the command waits for it. */
  const running = async (id: string): Promise<string> =>
    await vi.waitFor(async () => {
      const [run] = (await client.schedule.describe(id)).running;
      return run ?? expect.fail('no run is running');
    }, WITHIN);

  /** The time of a firing, in seconds, is a part of the id of its run. */
  const nextSecond = async (id: string): Promise<void> => {
    const [first] = (await client.schedule.describe(id)).recent;
    const next = Date.parse(first?.firedAt ?? '') + 1_000;
    await expect.poll(() => Date.now(), { timeout: 5_000 }).toBeGreaterThan(next);
  };

  test('says which run was started, or that the firing was skipped or waits, and for which run', async () => {
    const id = await create();
    const first = await trigger(id);
    const run = await running(id);
    expect(first).toContain(
      `Schedule ${id} fires now. Its run is ${run}; follow it with: npx perdure attach ${run}`,
    );
    const skipped = `Schedule ${id} is not fired: the firing was skipped, because run ${run} has not ended.`;
    expect(await trigger(id)).toContain(skipped);
    expect(await trigger(id, '--overlap', 'skip')).toContain(skipped);
    const { stdout, code } = await perdure('schedule', 'trigger', id, '--json');
    expect(JSON.parse(stdout)).toEqual({ id, triggered: false, firing: 'skipped' });
    expect(code).toBe(EXIT.failed);
    const list = await perdure('schedule', 'list');
    expect(list.stdout).toMatch(new RegExp(`^${id} .* 3 skipped +-$`, 'm'));
    expect(list.stderr).toContain(
      `Schedule ${id}: 3 firings skipped, because an earlier one had not ended. Let the next one wait instead with: npx perdure schedule update ${id} --overlap buffer_one`,
    );
    const waits = await trigger(id, '--overlap', 'buffer_one');
    expect(waits).toContain(`Schedule ${id} fires when run ${run} has ended.`);
    expect(await trigger(id, '--overlap', 'buffer_one')).toContain(
      `because run ${run} has not ended and another firing waits for its end.`,
    );
    expect(await trigger(id, '--overlap', 'buffer_all')).toContain(
      `Schedule ${id} fires when run ${run} and the firings before it have ended.`,
    );
    const paused = await perdure('schedule', 'pause', id);
    expect(paused.stderr).toMatch(/2 firings waited for an earlier one to end; those of its times/);
    await perdure('schedule', 'resume', id);
    await nextSecond(id);
    const beside = await trigger(id, '--overlap', 'allow_all');
    expect(beside).toContain(`Schedule ${id} fires now. Its run is `);
    for (const { id: open } of (await client.list({ idPrefix: id })).rows) {
      await client.cancel(open).catch(() => undefined);
    }
  });

  test('says that a second firing within a second is the first one', async () => {
    const id = await create();
    await vi.waitFor(async () => {
      await client.schedule.trigger(id, { overlap: 'allow_all' });
      const second = await trigger(id, '--overlap', 'allow_all');
      expect(second).toContain(
        `Schedule ${id} fires now, unless it has fired within this second. `,
      );
    }, WITHIN);
  });

  test('cancels the earlier run if that is wanted, also one of a plain trigger', async () => {
    const id = await create();
    await rig.worker([]);
    onTestFinished(async () => await rig.stopWorkers());
    await trigger(id);
    const run = await running(id);
    await nextSecond(id);
    const skipped = await trigger(id);
    expect(skipped).toContain(
      `has not ended. Fire it beside that with: npx perdure schedule trigger ${id} --overlap allow_all`,
    );
    expect(skipped).not.toContain('No worker');
    expect(await trigger(id, '--overlap', 'cancel_other')).toMatch(
      new RegExp(
        `Schedule ${id} (?:fires when run ${run} has ended, which is being canceled|fires now)`,
      ),
    );
    await vi.waitFor(async () => {
      const { outcome } = await client.status(run);
      expect(outcome?.status).toBe('cancelled');
    }, WITHIN);
  });
});
