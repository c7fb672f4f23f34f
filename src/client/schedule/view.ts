import type {
  Client,
  ScheduleDescription,
  ScheduleExecutionResult,
  ScheduleOptionsAction,
} from '@temporalio/client';
import { InputError } from '../../core/errors.js';
import type { RunInput } from '../../core/input/input.js';
import { askProblem } from '../../core/run/ask.js';
import { workflowSummary } from '../../core/run/details.js';
import { visible } from '../../core/state/summaries.js';
import { isObject, textField } from '../../core/text/json.js';
import { toMs } from '../../core/text/text.js';
import { queryTerm } from '../../temporal/query-term.js';
import { decodeArrayFromPayloads } from '../../temporal/sdk-internals.js';
import { type ListedSchedule, listWorkflows } from '../../temporal/server-answers.js';
import type { GivenNames } from '../../temporal/stored-ids.js';
import {
  type RunSettings,
  agentName,
  createRunInput,
  runSummary,
  sharedBy,
} from '../../updates/start.js';
import type { SendInput } from '../../workflows/send.js';
import {
  type Overlap,
  type ScheduleOptions,
  type ScheduleTimes,
  overlapOf,
  runSettings,
} from './options.js';
import { bufferedIn } from './trigger.js';

/** When a schedule fires: by `cron` or every so many milliseconds. */
export interface RecordedTimes extends Pick<ScheduleTimes, 'cron' | 'timeZone'> {
  /** Milliseconds between firings, counted from 1970. */
  readonly everyMs?: number;
}

/** A schedule in a list. All times are ISO 8601. */
export interface ScheduleRow extends RecordedTimes {
  /** The id that the server has: a hash, if ids are hashed; `givenId` is then the one that the caller chose. */
  readonly id: string;
  /** The id that the caller chose; absent if `id` is not its hash. */
  readonly givenId?: string;
  /** Null for a schedule that only sends to an existing run. */
  readonly agent: string | null;
  /** The open run that gets the messages; null if each firing is a run of its own. */
  readonly to: string | null;
  readonly paused: boolean;
  /** The reason given for pausing or resuming it; null if none was given. */
  readonly note: string | null;
  /** Its next firings. */
  readonly nextAt: readonly string[];
  /** The newest firings, oldest first. */
  readonly recent: readonly Firing[];
  /** Firings skipped because an earlier one had not ended. Absent if the schedule could not be read. */
  readonly skipped?: number;
  /**
   * Firings missed because the server was down for longer than `catchUp`. Absent if the schedule could
   * not be read.
   */
  readonly missed?: number;
  /**
   * Why the newest firing of a schedule with `to` has failed, so that the run did not get its message.
   * Absent if it was sent, or is still on its way.
   */
  readonly failure?: string;
  /**
   * Why the rest of the row is not known: the schedule is encoded, and the client lacks the codec or
   * the key. Absent if everything could be read.
   */
  readonly unreadable?: string;
}

/** One firing of a schedule. All times are ISO 8601. */
export interface Firing {
  /** The id of the run; with `to`, of the workflow that sent the message, and of the message. */
  readonly id: string;
  /** The time at which it was due. */
  readonly dueAt: string;
  /** The time at which it fired. */
  readonly firedAt: string;
}

/** Everything about a schedule: its row in the list, what it sends, and how its firings went. */
export interface ScheduleDetails extends ScheduleRow {
  /** The message of each firing. */
  readonly message: string;
  /** The settings of the runs that it starts, such as `limits` and `tags`; empty if it starts none. */
  readonly settings: RunSettings;
  /** `terminate_other` was set by means other than perdure. */
  readonly overlap: Overlap | 'terminate_other';
  /** Ids of firings that have not ended, except those that `allow_all` let through. */
  readonly running: readonly string[];
  /** Ids of the newest firings that `allow_all` let through and that have not ended, at most 20. */
  readonly beside: readonly string[];
  /** The number of times it has fired. */
  readonly fired: number;
  /** Firings skipped because the previous one had not ended. */
  readonly skipped: number;
  /** Firings that wait until an earlier one has ended. */
  readonly buffered: number;
  /** Firings missed because the server was down for longer than `catchUp`. */
  readonly missed: number;
}

/**
 * What perdure records with the action of a schedule, because the server stores the times in
 * another form.
 */
export interface ScheduleMemo extends RecordedTimes, Pick<GivenNames, 'givenId'> {
  readonly agent: string | null;
  readonly to: string | null;
}

export const MEMO_KEY = 'perdure';

/** Returns the memo of a schedule with these options, and with the id that the caller chose. */
export function scheduleMemo(
  options: ScheduleOptions,
  { givenId }: Pick<GivenNames, 'givenId'>,
): ScheduleMemo {
  const { agent, to, cron, every, timeZone } = options;
  return {
    agent: agent === undefined ? null : agentName(agent),
    to: to ?? null,
    ...(cron !== undefined && { cron }),
    ...(every !== undefined && { everyMs: toMs(every) }),
    ...(timeZone !== undefined && { timeZone }),
    ...(givenId !== undefined && { givenId }),
  };
}

/**
 * Returns what `update`, or else `create`, recorded about a schedule; null if perdure did not
 * create it. The server cannot replace the memo of a schedule, so an update writes to the headers
 * of its action.
 */
export async function readScheduleMemo(
  client: Client,
  { memo, raw }: ScheduleDescription,
): Promise<ScheduleMemo | null> {
  const created = toScheduleMemo(memo?.[MEMO_KEY]);
  if (created === null) return null;
  const header = raw.schedule?.action?.startWorkflow?.header?.fields?.[MEMO_KEY];
  const { loadedDataConverter: converter } = client.options;
  const [updated]: readonly unknown[] =
    header == null ? [] : ((await decodeArrayFromPayloads(converter, [header])) ?? []);
  return toScheduleMemo(updated) ?? created;
}

/** Returns a recorded value as a memo; null if it is none, for example one of another program. */
export function toScheduleMemo(value: unknown): ScheduleMemo | null {
  if (!isObject(value)) return null;
  const { agent, to, cron, everyMs, timeZone, givenId } = value;
  if (agent !== null && typeof agent !== 'string') return null;
  if (to !== null && typeof to !== 'string') return null;
  if (cron !== undefined && typeof cron !== 'string') return null;
  if (everyMs !== undefined && typeof everyMs !== 'number') return null;
  if (timeZone !== undefined && typeof timeZone !== 'string') return null;
  return {
    agent,
    to,
    ...(cron !== undefined && { cron }),
    ...(everyMs !== undefined && { everyMs }),
    ...(timeZone !== undefined && { timeZone }),
    ...(typeof givenId === 'string' && { givenId }),
  };
}

/** The notes that perdure writes if none is given, because the server ignores a request with an empty one. */
export const NO_NOTE = { paused: 'paused by a client', resumed: 'resumed by a client' } as const;

/** The notes of Temporal's clients and of its command if none is given. */
const NOTE_OF_CLIENT = /^(?:(?:P|Unp)aused via [A-Za-z]{1,20} SDK"?|\(no reason provided\))$/;

/** Returns a note that a person gave, or that the server wrote; null for what clients write without one. */
function personalNote(note: string | undefined): string | null {
  const isOwn = note === NO_NOTE.paused || note === NO_NOTE.resumed;
  return note === undefined || note === '' || isOwn || NOTE_OF_CLIENT.test(note) ? null : note;
}

/** Returns a schedule as a row of a list. */
export function scheduleRow(
  { scheduleId: id, state, info }: ScheduleDescription,
  memo: ScheduleMemo,
): ScheduleRow {
  return {
    id,
    ...memo,
    paused: state.paused,
    note: personalNote(state.note),
    nextAt: info.nextActionTimes.map((time) => time.toISOString()),
    recent: info.recentActions.map(firing),
    skipped: info.numActionsSkippedOverlap,
    missed: info.numActionsMissedCatchupWindow,
  };
}

/** Returns the row of a schedule whose memo cannot be decoded. */
export function unreadableRow({ id, paused, note, unreadable }: ListedSchedule): ScheduleRow {
  const shown = personalNote(note);
  const row = { id, agent: null, to: null, paused, note: shown, nextAt: [], recent: [] };
  return unreadable === null ? row : { ...row, unreadable };
}

/** Returns everything about a schedule. */
export function scheduleDetails(
  description: ScheduleDescription,
  memo: ScheduleMemo,
  beside: readonly string[],
): ScheduleDetails {
  const { action, policies, info } = description;
  const [input]: readonly unknown[] = action.args ?? [];
  return {
    ...scheduleRow(description, memo),
    message: isObject(input) ? textField(input, 'message') : '',
    settings: settingsOf(firingOptions(input)),
    overlap: overlapOf(policies.overlap),
    running: info.runningActions.map(({ workflow }) => workflow.workflowId),
    fired: info.numActionsTaken,
    skipped: info.numActionsSkippedOverlap,
    missed: info.numActionsMissedCatchupWindow,
    buffered: bufferedIn(description),
    beside,
  };
}

/** The maximum number of firings beside the others that are listed. */
const MAX_BESIDE = 20;
/** What the server adds to the id of a schedule in that of a firing: its time. */
const FIRED_AT = /^-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** Returns the firings that have not ended and of which the schedule itself does not know that. */
export async function firingsBeside(
  client: Client,
  { scheduleId: id, info }: Pick<ScheduleDescription, 'scheduleId' | 'info'>,
): Promise<readonly string[]> {
  const known = new Set(info.runningActions.map(({ workflow }) => workflow.workflowId));
  if (info.recentActions.every(({ action }) => known.has(action.workflow.workflowId))) return [];
  const query = `ExecutionStatus = 'Running' AND ${queryTerm('WorkflowId', `${id}-`, 'STARTS_WITH')}`;
  const found: string[] = [];
  for await (const { info: run } of listWorkflows(client, query)) {
    const { workflowId } = run;
    if (known.has(workflowId) || !FIRED_AT.test(workflowId.slice(id.length))) continue;
    found.push(workflowId);
    if (found.length === MAX_BESIDE) break;
  }
  return found;
}

function firing({ action, scheduledAt, takenAt }: ScheduleExecutionResult): Firing {
  return {
    id: action.workflow.workflowId,
    dueAt: scheduledAt.toISOString(),
    firedAt: takenAt.toISOString(),
  };
}

/** Returns what a firing does: it starts a task run or sends a message. Throws an `InputError`. */
export function scheduleAction(
  client: Client,
  { id, agent, message, to, ...rest }: ScheduleOptions,
  taskQueue: string,
): ScheduleOptionsAction & {
  readonly args: [RunInput | SendInput];
  readonly workflowType: string;
} {
  const settings = settingsOf(rest);
  const common = { type: 'startWorkflow', taskQueue, workflowId: id } as const;
  if (to === undefined) {
    if (agent === undefined)
      throw new InputError('agent: expected the name of an agent, got none; add it');
    if (message === undefined)
      throw new InputError('message: expected the message of each firing, got none; add it');
    const { input, shares } = sharedBy(client, createRunInput(agent, { ...settings, message }));
    return {
      ...common,
      workflowType: 'agent',
      args: [input],
      staticSummary: runSummary(input),
      ...shares,
    };
  }
  const { by, ...others } = settings;
  const [first] = Object.keys(others);
  if (agent === undefined && first !== undefined) {
    throw new InputError(
      `${first}: expected only with "agent", because it applies to a run that is started; add the agent of run ${visible(to)}, or remove it`,
    );
  }
  const sender = by === undefined ? {} : { by };
  const problem = askProblem({ message, ...sender });
  if (problem !== null) throw new InputError(problem);
  const start =
    agent === undefined
      ? null
      : sharedBy(client, createRunInput(agent, { ...settings, open: true })).input;
  const input: SendInput = { to, message, ...sender, ...(start && { start }) };
  const staticSummary = workflowSummary(`to ${visible(to)}: ${visible(message)}`);
  return { ...common, workflowType: 'send', args: [input], staticSummary };
}

/** What a firing does, read from the input of its workflow. */
type FiringOptions = RunSettings &
  Pick<ScheduleOptions, 'message' | 'to'> & { readonly agent?: string };

/** Returns the options that made this input of a firing's workflow. */
export function firingOptions(input: unknown): FiringOptions {
  if (!isObject(input)) return { message: '' };
  const { to, by } = input;
  const run = to === undefined ? input : input['start'];
  return {
    message: textField(input, 'message'),
    ...(typeof to === 'string' && { to }),
    ...(isObject(run) && { agent: textField(run, 'agent'), ...settingsOf(run) }),
    ...(to !== undefined && typeof by === 'string' && { by }),
  };
}

/** Returns the settings of a run that are given, without anything else. */
function settingsOf(options: RunSettings): RunSettings {
  return Object.fromEntries(
    Object.entries(options).filter(
      ([name, value]) => Object.hasOwn(runSettings, name) && value !== undefined,
    ),
  );
}
