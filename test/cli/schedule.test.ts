import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  inject,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { ScheduleDetails, ScheduleRow } from '../../src/client/schedule/view.js';
import { createProgram } from '../../src/cli/program.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { clientOf } from '../support/clerk.js';
import { createRig, type Rig } from '../support/rig.js';

const address = inject('temporalAddress');
const WITHIN = { timeout: 20_000, interval: 50 };
let rig: Rig;
let client: PerdureClient;
/** A configuration with one agent, `files`. */
let ofFiles: string;
const created: string[] = [];

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
  ofFiles = join(rig.home, 'files.config.mjs');
  const agent = "defineAgent({ name: 'files', instructions: 'x', model: 'demo' })";
  await writeFile(
    ofFiles,
    `import { defineAgent, defineConfig } from 'perdure';\nexport default defineConfig({ agents: [${agent}] });\n`,
  );
});
afterEach(async () => {
  for (const id of created.splice(0)) await client.schedule.delete(id).catch(() => undefined);
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

/** Parses a command line as the program does, and runs its command in this process. */
async function perdure(...args: readonly string[]): Promise<CommandOutput> {
  return await perdureWith(false, ...args);
}

async function perdureWith(
  config: string | false,
  ...args: readonly string[]
): Promise<CommandOutput> {
  const place = { address, home: rig.home, taskQueue: rig.taskQueue, config };
  let output: CommandOutput | undefined;
  const program = createProgram(async (command, entry, options) => {
    const { json } = entry.optsWithGlobals<{ json?: boolean }>();
    output = await runInProcess(command, options, { ...place, ...(json && { json }) });
  });
  await program.parseAsync([...args], { from: 'user' });
  if (output === undefined) throw new Error('no command ran');
  return output;
}

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

  test('create notes that no run takes the messages', async () => {
    const id = `schedule-${randomUUID()}`;
    created.push(id);
    const words = ['schedule', 'create', id, 'hello', '--to', `none-${id}`, '--every', '2h'];
    const { stderr } = await perdure(...words, '--paused');
    expect(stderr).toContain(`--to: there is no run "none-${id}" now; each message fails until`);
  });

  test('list says that the last message of a schedule did not reach its run, and why', async () => {
    await rig.worker([]);
    onTestFinished(async () => await rig.stopWorkers());
    const id = `schedule-${randomUUID()}`;
    created.push(id);
    const to = `none-${id}`;
    await perdure('schedule', 'create', id, 'hello', '--to', to, '--cron', '0 9 1 1 *');
    const fired = await perdure('schedule', 'trigger', id);
    expect(fired.stderr).toContain(`It sends its message to run ${to}. Follow that with: `);
    expect(fired.stderr).toContain(` attach ${to}`);
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
    const { stdout } = await perdure('schedule', 'list');
    const lines = stdout.split('\n').map((line) => line.split(/ {2,}/));
    expect(lines[0]).toEqual(['ID', 'AGENT', 'TO', 'TIMES', 'NEXT', 'LAST', 'NOTE']);
    const times = '0 9 1 1 * (Europe/Berlin)';
    expect(lines).toContainEqual([id, 'files', '-', times, 'paused', '-', 'a holiday']);

    const triggered = await perdure('schedule', 'trigger', id, '--json');
    expect(JSON.parse(triggered.stdout)).toEqual({ id, triggered: true });
    await vi.waitFor(async () => expect((await row())?.recent).toHaveLength(1), WITHIN);
    await perdure('schedule', 'resume', id);
    expect(await row()).toMatchObject({ paused: false });

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
    ['no agent', ['x', '--every', '1h'], '--agent: expected the name of an agent, got none'],
    ['no time', ['x', '--agent', 'files'], 'schedule: expected either --cron or --every'],
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
    ['a bad tag', ['x', '--agent', 'files', '--every', 'hour', '--tag', ''], '--tag: expected'],
    [
      'a bad limit',
      ['x', '--agent', 'files', '--every', '1h', '--limit', 'steps=0'],
      'Expected a positive whole number',
    ],
    ['a bad cron', ['x', '--agent', 'files', '--cron', 'now'], '--cron: expected an expression'],
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
    await expect(update()).rejects.toThrow('update: expected a change, got none');
    await expect(update('--without', 'cron')).rejects.toThrow('--without: expected one of agent,');
  });
});
