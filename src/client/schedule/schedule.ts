import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  WorkflowFailedError,
  WorkflowNotFoundError,
  type Client,
  type ScheduleDescription,
  type ScheduleHandle,
} from '@temporalio/client';
import { rootCause } from '@temporalio/common';
import { listSchedules } from '../../temporal/server-answers.js';
import { hashedId } from '../../temporal/stored-ids.js';
import { findSchedule, storedId } from '../run-ids.js';
import { show } from '../../core/input/input.js';
import { toMs } from '../../core/text/text.js';
import { visible } from '../../core/state/summaries.js';
import { IdTakenError, InputError, NoScheduleError } from '../../core/errors.js';
import { findServedAgent } from '../../temporal/pollers.js';
import { assertTenantId, tenantOfId } from '../../temporal/tenant-rules.js';
import { assertKnownAgent, servedAgentProblem, type KnownAgent } from '../fork-run.js';
import {
  scheduleAction,
  MEMO_KEY,
  NO_NOTE,
  firingsBeside,
  readScheduleMemo,
  scheduleDetails,
  scheduleMemo,
  scheduleRow,
  unreadableRow,
  type ScheduleMemo,
  type ScheduleRow,
} from './view.js';
import {
  type BackfillOptions,
  type ScheduleNote,
  type Schedules,
  type ScheduleChanges,
  changedOptions,
  refusedCron,
  replaceSchedule,
} from './methods.js';
import {
  assertActOptions,
  assertScheduleOptions,
  overlapPolicy,
  scheduleSpec,
  type ScheduleOptions,
} from './options.js';
import { seeFiring, triggering } from './trigger.js';

/** The maximum number of schedules that a list reads at the same time. */
const AT_ONCE = 8;

interface SchedulePlace {
  readonly taskQueue: string;
  /** The actor recorded for runs of a schedule that specifies none. */
  readonly by: string | undefined;
  /** The agents that a schedule may use, if they are known; null if the caller has checked it. */
  readonly config: { readonly agents: readonly KnownAgent[] } | null | undefined;
}

/** A change of a schedule that was read just before. */
type Act = (handle: ScheduleHandle, description: ScheduleDescription) => Promise<void>;

export function createSchedules(client: Client, place: SchedulePlace): Schedules {
  const { taskQueue, by } = place;
  const handleOf = (id: string): ScheduleHandle => client.schedule.getHandle(id);
  const found = async (id: string) => {
    const described = findSchedule(client, id, async (stored) => await handleOf(stored).describe());
    return await readSchedule(client, id, described);
  };
  /** Acts on a schedule of perdure; another program's schedule stays as it is. */
  const acting = async (id: string, act: Act) => {
    const { description } = await found(id);
    const handle = handleOf(description.scheduleId);
    await whenFound(id, act(handle, description));
    return { handle, description };
  };
  return {
    async create(given) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the run checks the arguments
      const options = given as ScheduleOptions;
      assertScheduleOptions(options);
      await assertAgent(client, place, options);
      await create(client, { ...(by !== undefined && { by }), ...options }, taskQueue);
    },
    async list() {
      const rows: ScheduleRow[] = [];
      const ids: string[] = [];
      for await (const listed of listSchedules(client)) {
        // Other programs have schedules, too.
        if (!listed.fields.includes(MEMO_KEY)) continue;
        if (listed.memo === null) rows.push(unreadableRow(listed));
        else ids.push(listed.id);
      }
      while (ids.length > 0) {
        const read = ids.splice(0, AT_ONCE).map(async (id) => {
          const each = await readSchedule(client, id, handleOf(id).describe()).catch(nullIfDeleted);
          return each && (await withFailure(client, scheduleRow(each.description, each.memo)));
        });
        for (const row of await Promise.all(read)) if (row !== null) rows.push(row);
      }
      return rows;
    },
    async describe(id) {
      const { description, memo } = await found(id);
      const beside = await firingsBeside(client, description);
      return await withFailure(client, scheduleDetails(description, memo, beside));
    },
    async update(id, changes) {
      const present = await found(id);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the run checks the arguments
      const changed = changedOptions(present, changes as ScheduleChanges);
      const options = await withStoredTarget(client, changed);
      assertScheduleTenant(client, options);
      if (changes.agent !== undefined || changes.args !== undefined)
        await assertAgent(client, place, options);
      await replaceSchedule(client, present, options);
    },
    async pause(id, options = {}) {
      assertActOptions('pause', options);
      await acting(id, settingPaused({ ...options, paused: true }));
    },
    async resume(id, options = {}) {
      assertActOptions('resume', options);
      await acting(id, settingPaused({ ...options, paused: false }));
    },
    async trigger(id, options = {}) {
      assertActOptions('trigger', options);
      return await seeFiring(await acting(id, triggering(options)), options);
    },
    async backfill(id, options) {
      assertActOptions('backfill', options);
      const range = backfillRange(options);
      await acting(id, (handle) => handle.backfill(range));
    },
    async delete(id) {
      await acting(id, (handle) => handle.delete());
    },
  };
}

/**
 * Returns what pauses or resumes a schedule. Without a note, one that is so already keeps its own: the server
 * would replace it, and ignores a request with an empty one.
 */
function settingPaused({ note, paused }: ScheduleNote & { readonly paused: boolean }): Act {
  return async (handle, { state }) => {
    const kept = state.paused === paused ? state.note : undefined;
    if (paused) await handle.pause(note || kept || NO_NOTE.paused);
    else await handle.unpause(note || kept || NO_NOTE.resumed);
  };
}

/** Returns a described schedule with its memo. Rejects with a `NoScheduleError` if there is none of perdure. */
async function readSchedule(
  client: Client,
  id: string,
  described: Promise<ScheduleDescription>,
): Promise<{ readonly description: ScheduleDescription; readonly memo: ScheduleMemo }> {
  const description = await whenFound(id, described);
  const memo = await readScheduleMemo(client, description);
  if (memo !== null) return { description, memo };
  throw new NoScheduleError(`schedule ${visible(id)} is not a schedule of perdure`);
}

/**
 * Throws an `InputError` for an agent that the configuration does not have. Without one, a worker
 * that answers knows which agents it has.
 */
async function assertAgent(
  client: Client,
  { taskQueue, config }: SchedulePlace,
  { agent, ...given }: Partial<ScheduleOptions>,
): Promise<void> {
  if (config === null) return;
  assertKnownAgent(config, agent, given);
  // An agent that is passed exists, and its worker may be on its way; a name may be misspelled.
  if (config !== undefined || typeof agent !== 'string') return;
  const served = await findServedAgent(client, { taskQueue, agent });
  const problem = servedAgentProblem(agent, served, taskQueue);
  if (problem !== null) throw new InputError(problem);
}

/**
 * Throws an `InputError` if what the schedule says would be encrypted with the key of another tenant than
 * what its runs say, or the run to which it sends.
 */
function assertScheduleTenant(client: Client, { id, tenant, to, agent }: ScheduleOptions): void {
  // Without an agent, a firing sends to a run that was started elsewhere, so the run has the tenant.
  const of =
    tenant ?? (to === undefined || agent !== undefined ? undefined : tenantOfId(client, to));
  assertTenantId(client, { id, tenant: of });
  if (to !== undefined) assertTenantId(client, { id: to, tenant: of });
}

/** Adds why the newest firing did not send its message. A firing that is a run of its own is in lists. */
async function withFailure<T extends ScheduleRow>(client: Client, row: T): Promise<T> {
  const newest = row.recent.at(-1);
  if (row.to === null || newest === undefined) return row;
  const firing = client.workflow.getHandle(newest.id);
  try {
    // A firing that is on its way has no result yet.
    if ((await firing.describe()).status.name !== 'RUNNING') await firing.result();
    return row;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return row;
    if (!(error instanceof WorkflowFailedError)) throw error;
    return { ...row, failure: rootCause(error.cause) ?? error.message };
  }
}

/** Returns the options with the id of the run that gets the messages, as the server has it. */
async function withStoredTarget(
  client: Client,
  options: ScheduleOptions,
): Promise<ScheduleOptions> {
  const { to } = options;
  return typeof to === 'string' ? { ...options, to: await storedId(client, to) } : options;
}

async function create(client: Client, given: ScheduleOptions, taskQueue: string): Promise<void> {
  assertScheduleOptions(given);
  const { overlap = 'skip', catchUp, paused } = given;
  const id = hashedId(client, 'schedule', given.id);
  const options = await withStoredTarget(client, { ...given, id });
  assertScheduleTenant(client, options);
  const memo = scheduleMemo(options, id === given.id ? {} : { givenId: given.id });
  try {
    await client.schedule.create({
      scheduleId: id,
      spec: scheduleSpec(options),
      action: scheduleAction(client, options, taskQueue),
      policies: {
        overlap: overlapPolicy(overlap),
        ...(catchUp !== undefined && { catchupWindow: toMs(catchUp) }),
      },
      memo: { [MEMO_KEY]: memo },
      ...(paused && { state: { paused } }),
    });
  } catch (error) {
    throw refusedCreate(error, given);
  }
}

function refusedCreate(error: unknown, { id, cron }: ScheduleOptions): unknown {
  if (error instanceof ScheduleAlreadyRunning) {
    const message = `id: schedule ${visible(id)} already exists; update or delete it, or choose another id`;
    return new IdTakenError(message, { cause: error });
  }
  // The SDK throws a TypeError if the server rejects a spec.
  return error instanceof TypeError && cron !== undefined ? refusedCron(cron, error) : error;
}

async function whenFound<T>(id: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    throw new NoScheduleError(`there is no schedule ${visible(id)}`, { cause: error });
  }
}

/** A schedule may be deleted while it is listed. */
function nullIfDeleted(error: unknown): null {
  if (NoScheduleError.isInstance(error)) return null;
  throw error;
}

function backfillRange({ from, to, overlap = 'buffer_all' }: BackfillOptions) {
  const [start, end] = [timeOf('from', from), timeOf('to', to)];
  if (start <= end) return { start, end, overlap: overlapPolicy(overlap) };
  throw new InputError(`to: expected a time from ${show(from)}, got ${show(to)}`);
}

function timeOf(field: string, value: Date | string): Date {
  const time = new Date(value);
  if (!Number.isNaN(time.getTime())) return time;
  throw new InputError(`${field}: expected a Date or an ISO 8601 time, got ${show(value)}`);
}
