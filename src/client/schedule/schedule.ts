import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type Client,
  type ScheduleHandle,
  type ScheduleOptionsAction,
} from '@temporalio/client';
import { show, type RunInput } from '../../core/input/input.js';
import { visible } from '../../core/text/summaries.js';
import { agentName, createRunInput, type RunSettings } from '../../updates/run-input.js';
import { InputError, NoScheduleError } from '../../core/errors.js';
import {
  assertScheduleOptions,
  overlapPolicy,
  scheduleSpec,
  type Overlap,
  type ScheduleOptions,
} from './options.js';
import {
  MEMO_KEY,
  scheduleDetails,
  scheduleRow,
  type ScheduleDetails,
  type ScheduleMemo,
  type ScheduleRow,
} from './view.js';
import { assertKnownAgent, type KnownAgent } from '../known-agents.js';
import { askProblem } from '../../core/ask.js';
import { workflowSummary } from '../../core/text/markdown.js';
import type { SendInput } from '../../workflows/send.js';
import { runSummary } from '../../updates/start.js';

export interface BackfillOptions {
  /** The time range whose firings are made up for, both ends included; a Date or ISO 8601. */
  readonly from: Date | string;
  readonly to: Date | string;
  /** Default `bufferAll`: one after another. */
  readonly overlap?: Overlap;
}

/** Runs agents on a cron expression or an interval. The server fires them, also without a worker. */
export interface Schedules {
  /** Creates a schedule. Rejects with an `InputError`, also if a schedule with this id exists. */
  create(options: ScheduleOptions): Promise<void>;
  list(): Promise<readonly ScheduleRow[]>;
  describe(id: string): Promise<ScheduleDetails>;
  /** `note`: the reason, for people. */
  pause(id: string, note?: string): Promise<void>;
  unpause(id: string, note?: string): Promise<void>;
  /**
   * Fires now, also while the schedule is paused. Two triggers within a second are one firing. `overlap`:
   * for this firing only, default `allowAll`.
   */
  trigger(id: string, options?: { readonly overlap?: Overlap }): Promise<void>;
  /** Makes up for the firings of a past time range. */
  backfill(id: string, options: BackfillOptions): Promise<void>;
  /** Deletes the schedule. Runs that it has started go on. */
  delete(id: string): Promise<void>;
}

interface SchedulePlace {
  readonly taskQueue: string;
  /** Who starts the runs of a schedule that names nobody. */
  readonly by: string | undefined;
  /** The agents that a schedule may name, if they are known. */
  readonly config: { readonly agents: readonly KnownAgent[] } | undefined;
}

export function createSchedules(
  client: Client,
  { taskQueue, by, config }: SchedulePlace,
): Schedules {
  const handleOf = (id: string): ScheduleHandle => client.schedule.getHandle(id);
  return {
    async create(options) {
      assertKnownAgent(config, options.agent, options);
      // Without an agent, a firing sends to a run that somebody else has started.
      const starts = options.agent !== undefined && by !== undefined;
      await create(client, { ...(starts && { by }), ...options }, taskQueue);
    },
    async list() {
      const rows: ScheduleRow[] = [];
      for await (const summary of client.schedule.list()) {
        const row = scheduleRow(summary);
        if (row !== null) rows.push(row);
      }
      return rows;
    },
    async describe(id) {
      const details = scheduleDetails(await whenFound(id, handleOf(id).describe()));
      if (details !== null) return details;
      throw new NoScheduleError(`schedule ${visible(id)} is not a schedule of perdure`);
    },
    // The server ignores a request with an empty note.
    pause: (id, note) => whenFound(id, handleOf(id).pause(note || 'paused by a client')),
    unpause: (id, note) => whenFound(id, handleOf(id).unpause(note || 'unpaused by a client')),
    async trigger(id, { overlap = 'allowAll' } = {}) {
      await whenFound(id, handleOf(id).trigger(overlapPolicy(overlap)));
    },
    backfill: async (id, options) =>
      await whenFound(id, handleOf(id).backfill(backfillRange(options))),
    delete: (id) => whenFound(id, handleOf(id).delete()),
  };
}

async function create(client: Client, options: ScheduleOptions, taskQueue: string): Promise<void> {
  const { id, agent, to, cron, everyMs, timezone, overlap = 'skip', catchUpMs, paused } = options;
  assertScheduleOptions(options);
  const memo: ScheduleMemo = {
    agent: agent === undefined ? null : agentName(agent),
    to: to ?? null,
    ...(cron !== undefined && { cron }),
    ...(everyMs !== undefined && { everyMs }),
    ...(timezone !== undefined && { timezone }),
  };
  try {
    await client.schedule.create({
      scheduleId: id,
      spec: scheduleSpec(options),
      action: scheduleAction(options, taskQueue),
      policies: {
        overlap: overlapPolicy(overlap),
        ...(catchUpMs !== undefined && { catchupWindow: catchUpMs }),
      },
      memo: { [MEMO_KEY]: memo },
      ...(paused && { state: { paused } }),
    });
  } catch (error) {
    throw refusedCreate(error, options);
  }
}

function refusedCreate(error: unknown, { id, cron }: ScheduleOptions): unknown {
  if (error instanceof ScheduleAlreadyRunning) {
    const message = `id: there is a schedule ${visible(id)}; delete it, or choose another id`;
    return new InputError(message, { cause: error });
  }
  // The SDK throws a TypeError if the server rejects a spec.
  if (!(error instanceof TypeError) || cron === undefined) return error;
  const message = `cron: expected an expression, e.g. "0 9 * * MON-FRI", got ${show(cron)} (${error.message})`;
  return new InputError(message, { cause: error });
}

async function whenFound<T>(id: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    throw new NoScheduleError(`there is no schedule ${visible(id)}`, { cause: error });
  }
}

function backfillRange({ from, to, overlap = 'bufferAll' }: BackfillOptions) {
  const [start, end] = [timeOf('from', from), timeOf('to', to)];
  if (start <= end) return { start, end, overlap: overlapPolicy(overlap) };
  throw new InputError(`to: expected a time from ${show(from)}, got ${show(to)}`);
}

function timeOf(field: string, value: Date | string): Date {
  const time = new Date(value);
  if (!Number.isNaN(time.getTime())) return time;
  throw new InputError(`${field}: expected a Date or an ISO 8601 time, got ${show(value)}`);
}

/** Returns what a firing does: it starts a task run or sends a message. Throws an `InputError`. */
function scheduleAction(
  { id, agent, message, to, ...rest }: ScheduleOptions,
  taskQueue: string,
): ScheduleOptionsAction & { readonly args: [RunInput | SendInput] } {
  const { limits, context, args, tags, archive, by, rules, unattended } = rest;
  const given = { limits, context, args, tags, archive, by, rules, unattended };
  const settings: RunSettings = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  );
  const common = { type: 'startWorkflow', taskQueue, workflowId: id } as const;
  if (to === undefined) {
    if (agent === undefined)
      throw new InputError('agent: missing; name the agent that does the work');
    const input = createRunInput(agent, { ...settings, message });
    return { ...common, workflowType: 'agent', args: [input], staticSummary: runSummary(input) };
  }
  if (agent === undefined && Object.keys(settings).length > 0) {
    const [first] = Object.keys(settings);
    throw new InputError(
      `${first}: is for a run that is started; give the agent of run ${visible(to)} too, or leave it out`,
    );
  }
  const problem = askProblem({ message });
  if (problem !== null) throw new InputError(problem);
  const start = agent === undefined ? null : createRunInput(agent, { ...settings, open: true });
  const input: SendInput = { to, message, ...(start && { start }) };
  const staticSummary = workflowSummary(`to ${visible(to)}: ${visible(message)}`);
  return { ...common, workflowType: 'send', args: [input], staticSummary };
}
