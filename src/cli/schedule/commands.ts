import type { Command as Entry } from 'commander';
import type { ScheduleChanges, Schedules } from '../../client/schedule/methods.js';
import type { ScheduleOptions } from '../../client/schedule/options.js';
import type { RecordedTimes, ScheduleDetails, ScheduleRow } from '../../client/schedule/view.js';
import { visible, visibleMessage } from '../../core/state/summaries.js';
import { formatInterval, type Duration } from '../../core/text/text.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { columns, formatCount, formatDateTime } from '../format/format.js';
import { withOptions, type OptionName } from '../input/options.js';
import { nextCommandAbout } from '../reports/next-command.js';
import type { JsonObject } from '../../core/text/json.js';
import { checkAgent } from '../open-run.js';
import { RUN_SETTINGS, runSettings, type RunSettingOptions } from '../input/run-settings.js';
import { nearHint } from '../../validation/near-names.js';
import { closedTarget, type ScheduleTarget } from './target.js';
import { asOptions, withSchedules } from './with-schedules.js';

interface ScheduleNoteOptions {
  readonly id: string;
  /** The reason, for people. */
  readonly note?: string;
}

/** The argument of commands about one schedule. */
export const ID = ['<id>', 'the schedule'] as const;

/** `schedule pause ID`: pauses a schedule until `schedule resume`. */
export const pauseSchedule: Command<ScheduleNoteOptions> = {
  declare: (entry) => withOptions(entry.argument(...ID), 'note'),
  async run(context, { id, note }) {
    const {
      to,
      buffered,
      paused: wasPaused,
    } = await withSchedules(context, async (schedules) => {
      const before = await stateOf(schedules, id);
      await schedules.pause(id, { note });
      return before;
    });
    const resume = nextCommandAbout(context, ['schedule resume', id]);
    const until = to ? `It sends no messages to run ${visible(to)} until then. ` : startedText(to);
    const waiting =
      buffered === 0
        ? ''
        : `${formatCount(buffered, 'firing')} waited for an earlier one to end; those of its times are dropped. `;
    const text = `${wasPaused ? 'was already' : 'is'} paused. ${until}${waiting}Resume it with: ${resume}`;
    return report(context, { id, text, fields: { paused: true, wasPaused } });
  },
};

/** `schedule resume ID`: resumes a paused schedule. */
export const resumeSchedule: Command<ScheduleNoteOptions> = {
  declare: (entry) => withOptions(entry.argument(...ID), 'note'),
  async run(context, { id, note }) {
    const { paused: wasPaused } = await withSchedules(context, async (schedules) => {
      const before = await stateOf(schedules, id);
      await schedules.resume(id, { note });
      return before;
    });
    const text =
      wasPaused === false ? 'is not paused: it fires at its times.' : 'fires again at its times.';
    return report(context, { id, text, fields: { paused: false, wasPaused } });
  },
};

/** What becomes of a schedule's work when it stops. */
interface ScheduleState {
  /** The run that gets its messages; null if it starts runs of its own, undefined if that cannot be read. */
  readonly to: string | null | undefined;
  /** Firings that wait for an earlier one to end. */
  readonly buffered: number;
  /** Null if that cannot be read. */
  readonly paused: boolean | null;
}

async function stateOf(schedules: Schedules, id: string): Promise<ScheduleState> {
  return await schedules.describe(id).then(
    ({ to, buffered, paused }) => ({ to, buffered, paused }),
    () => ({ to: undefined, buffered: 0, paused: null }),
  );
}

/** Returns the sentence about the runs of a schedule, if it is known to start some. */
function startedText(to: string | null | undefined): string {
  return to === null ? 'Runs that it has started continue. ' : '';
}

/** `schedule delete ID`: deletes the schedule, and leaves its runs as they are. */
export const deleteSchedule: Command<{ readonly id: string }> = {
  declare: (entry) => entry.argument(...ID),
  async run(context, { id }) {
    const to = await withSchedules(context, async (schedules) => {
      const before = await stateOf(schedules, id);
      await schedules.delete(id);
      return before.to;
    });
    const runs = to
      ? `It sends no more messages to run ${visible(to)}, which is left as it is.`
      : startedText(to);
    const text = `is deleted. ${runs}`.trimEnd();
    return report(context, { id, text, fields: { deleted: true } });
  },
};

/** Says what has become of a schedule, and prints it for programs. */
export function report(
  context: CliContext,
  { id, text, fields }: { readonly id: string; readonly text: string; readonly fields: object },
): ExitCode {
  context.note(`Schedule ${visible(id)} ${text}`);
  if (context.options.json) context.out(JSON.stringify({ id, ...fields }));
  return EXIT.completed;
}

/** Notes when a schedule fires next, and prints it for programs. */
async function noteSchedule(
  context: CliContext,
  schedules: Schedules,
  id: string,
): Promise<ScheduleDetails> {
  const details = await schedules.describe(id);
  const [next] = details.nextAt;
  if (details.paused) context.note('It is paused.');
  else if (next === undefined) context.note(`It never fires: ${timesText(details)}.`);
  else {
    const at = formatDateTime(Date.parse(next));
    context.note(
      details.cron === undefined
        ? `It fires ${timesText(details)}, next at ${at}.`
        : `It fires by the cron expression ${timesText(details)}, next at ${at} by the clock of this machine.`,
    );
  }
  if (context.options.json) context.out(JSON.stringify(details));
  return details;
}

/** Returns the times of a schedule as text: `every hour`, `0 9 * * * (Europe/Berlin)`. */
export function timesText({ cron, everyMs, timeZone }: RecordedTimes): string {
  if (cron === undefined) return formatInterval(everyMs ?? 0);
  return `${visible(cron)} (${visible(timeZone ?? 'UTC')})`;
}

interface ScheduleCreateOptions extends ScheduleCommandOptions {
  readonly paused?: boolean;
}

/** `schedule create ID MESSAGE…`: runs an agent on a cron expression or an interval. */
export const createSchedule: Command<ScheduleCreateOptions> = {
  declare: (entry) => declareSchedule(entry, 'paused'),
  async run(context, options) {
    const { id, paused } = options;
    if (options.agent === undefined && options.to === undefined) throw await noAgent(context);
    await checkNamedAgent(context, options);
    const given = { message: '', ...namedFields(options), id, ...(paused && { paused }) };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `create` checks it
    const schedule = given as ScheduleOptions;
    return await withSchedules(context, async (schedules) => {
      await schedules.create(schedule);
      context.note(`Schedule ${visible(id)} is created.`);
      const { agent } = await noteSchedule(context, schedules, id);
      if (schedule.to !== undefined)
        await noteClosedTarget(context, { id, to: schedule.to, agent });
      return EXIT.completed;
    });
  },
};

/** Returns the error for a schedule that starts runs of no agent, with those that it may name. */
async function noAgent(context: CliContext): Promise<UsageError> {
  const names = (await context.config()).agents.map(({ name }) => visible(name)).join(', ');
  return new UsageError(
    `--agent: expected the name of an agent, got none; give one of ${names}, or the id of a run with --to`,
  );
}

/** Notes that a run is not there to take messages. One that does not exist may be started later. */
async function noteClosedTarget(context: CliContext, target: ScheduleTarget): Promise<void> {
  const closed = await closedTarget(context, target);
  if (closed !== null) context.note(`--to: ${closed}`);
}

const HEADERS = ['ID', 'AGENT', 'TO', 'TIMES', 'NEXT', 'LAST', 'LEFT OUT', 'NOTE'];

/** `schedule list`: lists the schedules of the namespace. */
export const listSchedules: Command<object> = {
  async run(context) {
    const rows = await withSchedules(context, async (schedules) => await schedules.list());
    const sorted = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    if (context.options.json) context.out(JSON.stringify(sorted));
    else if (sorted.length === 0) context.note('There are no schedules.');
    else for (const line of columns([HEADERS, ...sorted.map(cells)])) context.out(line);
    for (const row of sorted) {
      const { id, unreadable, failure } = row;
      await noteLeftOut(context, row);
      if (unreadable !== undefined) context.note(`Schedule ${visible(id)}: ${unreadable}`);
      if (failure !== undefined)
        context.note(
          `Schedule ${visible(id)}: its last message was not sent: ${visibleMessage(failure)}`,
        );
    }
    return EXIT.completed;
  },
};

function cells(row: ScheduleRow): readonly string[] {
  const { id, givenId, agent, to, paused, note, nextAt, recent } = row;
  const next = paused ? 'paused' : timeText(nextAt[0]);
  const texts = [agent, to].map((text) => visible(text ?? '-'));
  return [
    visible(givenId ?? id),
    ...texts,
    row.unreadable === undefined ? timesText(row) : '?',
    next,
    `${timeText(recent.at(-1)?.firedAt)}${row.failure === undefined ? '' : ' (failed)'}`,
    leftOut(row),
    visible(note ?? '-'),
  ];
}

/** Returns the firings that did not take place, as a cell. While it is paused, a schedule has none. */
export function leftOut({ skipped = 0, missed = 0 }: ScheduleRow): string {
  const parts = [skipped > 0 && `${skipped} skipped`, missed > 0 && `${missed} missed`];
  return parts.filter((part) => part !== false).join(', ') || '-';
}

/** Notes why firings did not take place, and how to change that. */
async function noteLeftOut(context: CliContext, row: ScheduleRow): Promise<void> {
  const { id, givenId, skipped = 0, missed = 0 } = row;
  const name = visible(givenId ?? id);
  const change = (option: readonly string[]): string =>
    nextCommandAbout(context, ['schedule update', givenId ?? id, ...option]);
  if (skipped > 0) {
    const overlap = await withSchedules(context, async (schedules) => {
      return await schedules.describe(id).then(
        (details) => details.overlap,
        () => null,
      );
    });
    const fix =
      overlap === 'skip'
        ? ` Let the next one wait instead with: ${change(['--overlap', 'buffer_one'])}`
        : overlap === 'buffer_one'
          ? ` Only one waits for it; let all wait with: ${change(['--overlap', 'buffer_all'])}`
          : '';
    context.note(
      `Schedule ${name}: ${formatCount(skipped, 'firing')} skipped, because an earlier one had not ended.${fix}`,
    );
  }
  if (missed > 0) {
    context.note(
      `Schedule ${name}: ${formatCount(missed, 'firing')} missed, because the server was down for longer than it catches up. Let it catch up for a year with: ${change(['--without', 'catch-up'])}`,
    );
  }
}

function timeText(iso: string | undefined): string {
  return iso === undefined ? '-' : formatDateTime(Date.parse(iso));
}

interface ScheduleUpdateOptions extends ScheduleCommandOptions {
  /** Names of options that are removed, without dashes. */
  readonly without?: readonly string[];
}

/** The options that can be removed, by flag. */
const REMOVABLE: Readonly<Record<string, keyof ScheduleChanges>> = {
  agent: 'agent',
  'time-zone': 'timeZone',
  to: 'to',
  overlap: 'overlap',
  'catch-up': 'catchUp',
  tag: 'tags',
  limit: 'limits',
  unattended: 'unattended',
  archive: 'archive',
  tenant: 'tenant',
  'model-attempts': 'modelAttempts',
  context: 'context',
  by: 'by',
  arg: 'args',
};

/** `schedule update ID`: changes the fields that the options set, and keeps the rest. */
export const updateSchedule: Command<ScheduleUpdateOptions> = {
  declare: (entry) => declareSchedule(entry, 'without'),
  async run(context, options) {
    const { id, without = [] } = options;
    const changes = { ...namedFields(options), ...removed(without) };
    if (Object.keys(changes).length === 0) {
      const { cron } = await withSchedules(context, (schedules) => schedules.describe(id));
      const example = cron === undefined ? '--every 1h' : '--cron "0 9 * * MON-FRI"';
      throw new UsageError(`update: expected a change, got none; give for example ${example}`);
    }
    // Without new arguments, the schedule keeps its own.
    await checkNamedAgent(context, { ...options, arg: options.arg ?? null });
    return await withSchedules(context, async (schedules) => {
      await schedules.update(id, changes);
      context.note(`Schedule ${visible(id)} is updated; the next firing uses the changes.`);
      const { agent } = await noteSchedule(context, schedules, id);
      const { to } = options;
      if (to !== undefined) await noteClosedTarget(context, { id, to, agent });
      return EXIT.completed;
    });
  },
};

function removed(names: readonly string[]): ScheduleChanges {
  const entries = names.map((name) => {
    const field = Object.hasOwn(REMOVABLE, name) ? REMOVABLE[name] : undefined;
    if (field !== undefined) return [field, null] as const;
    throw new UsageError(
      `--without: expected one of ${Object.keys(REMOVABLE).join(', ')}; got ${visible(name)}${nearHint(visible(name), Object.keys(REMOVABLE))}`,
    );
  });
  return Object.fromEntries(entries);
}

/** The options of `schedule create` and `schedule update`. */
interface ScheduleCommandOptions extends RunSettingOptions {
  readonly id: string;
  /** The words of the message. */
  readonly message: readonly string[];
  readonly agent?: string;
  readonly cron?: string;
  /** A duration as it was given, which errors name. */
  readonly every?: Duration;
  readonly timeZone?: string;
  readonly to?: string;
  readonly overlap?: string;
  /** A duration as it was given. */
  readonly catchUp?: Duration;
  readonly arg?: JsonObject;
}

/** Declares the arguments and options that define what a schedule does, and when. */
function declareSchedule(entry: Entry, ...others: readonly OptionName[]): Entry {
  const own = entry
    .argument('<id>', 'the schedule')
    .argument('[message...]', 'the message of each firing');
  const times = ['agent', 'cron', 'every', 'timeZone', 'to', 'overlap', 'catchUp'] as const;
  return withOptions(own, ...times, ...RUN_SETTINGS, 'arg', ...others);
}

/** Returns the fields of a schedule that the options set. */
function namedFields(options: ScheduleCommandOptions): ScheduleChanges {
  const { message, agent, cron, every, timeZone, to, overlap, catchUp, arg: args } = options;
  const { by, ...settings } = runSettings(options);
  const fields = {
    ...(message.length > 0 && { message: message.join(' ') }),
    agent,
    cron,
    every,
    timeZone,
    to,
    overlap,
    catchUp,
    args,
    ...settings,
    // Without a name, the schedule keeps that of its creator.
    ...(options.by !== undefined && { by }),
  };
  const named = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(named);
}

/** Throws a `UsageError` if an agent is named that no worker can have; see `checkAgent`. */
async function checkNamedAgent(
  context: CliContext,
  {
    agent,
    arg,
  }: Pick<ScheduleCommandOptions, 'agent'> & {
    readonly arg?: ScheduleCommandOptions['arg'] | null;
  },
): Promise<void> {
  if (agent === undefined) return;
  const place = { taskQueue: await context.taskQueue(), otherwise: 'later' } as const;
  await checkAgent(context, { agent, args: arg }, place).catch((error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(asOptions(error.message), { cause: error });
  });
}
