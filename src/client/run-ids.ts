import type { Client, ScheduleDescription } from '@temporalio/client';
import { ScheduleNotFoundError, WorkflowNotFoundError } from '@temporalio/client';
import { HASH_IDS_VARIABLE } from '../encryption/hashed-ids.js';
import type { Archive } from '../storage/blob-store.js';
import { isUnanswered } from '../temporal/grpc.js';
import { describeWorkflow } from '../temporal/server-answers.js';
import { type GivenNames, idHashingOf, isHashedId, storedForms } from '../temporal/stored-ids.js';
import { tenantIdPrefix } from '../temporal/tenant-rules.js';
import { assertRunId, newRunId } from '../updates/start.js';
import type { RunLike } from './control.js';
import { idOf } from './given.js';

/**
 * The one place where an id that a caller names becomes the id under which the server has a run.
 */

/** The beginning of an id that is not hashed, for runs of before and of workflows of your own. */
const CLEAR = 'clear:';

/**
 * Returns the id under which the server has a run: the id itself, or its hash if ids are hashed. A hash stays
 * as it is, and so does what derives from one. Unless encryption is required, an id whose hash names no run may be
 * that of a run from before ids were hashed, or of one that a workflow has started; it is then looked up as it is.
 */
export async function storedId(
  client: Client,
  run: RunLike<unknown>,
  archive?: Archive,
): Promise<string> {
  const id = idOf(run);
  const hashing = idHashingOf(client);
  if (hashing === null || isHashedId(id)) return id;
  if (id.startsWith(CLEAR)) return id.slice(CLEAR.length);
  const [hashed, before] = storedForms(hashing, 'run', id);
  if (before === undefined || (await stateOf(client, hashed)) !== null) return hashed;
  if ((await stateOf(client, id)) !== null) return id;
  const { namespace } = client.options;
  const isArchived = async (one: string): Promise<boolean> =>
    archive !== undefined && (await archive.list({ namespace, id: one })).length > 0;
  return !(await isArchived(hashed)) && (await isArchived(id)) ? id : hashed;
}

/** The same for several runs, in their order. */
export async function storedIds(
  client: Client,
  runs: readonly RunLike<unknown>[],
  archive?: Archive,
): Promise<readonly string[]> {
  return await Promise.all(runs.map((run) => storedId(client, run, archive)));
}

/** Returns an id of the server in a form in which `storedId` finds it again. */
export function asStored(client: Client, id: string): string {
  return idHashingOf(client) === null || isHashedId(id) ? id : CLEAR + id;
}

/** Under which id a run starts, and which one the caller chose. */
export interface RunName extends Pick<GivenNames, 'givenId'> {
  readonly id: string;
}

/**
 * Returns the name of a run that may be started. Without an id, it gets a new one. The id of a run from before ids were
 * hashed stays in use: a start is refused, and a message goes to that run. Throws an `InputError` for an
 * invalid id.
 */
export async function nameRun(
  client: Client,
  {
    id,
    agent,
    tenant,
    reuseId = false,
  }: {
    readonly id?: string | undefined;
    readonly agent: string;
    /** A new id leads to the encryption key of the tenant, if it has one. */
    readonly tenant?: string | undefined;
    readonly reuseId?: boolean | undefined;
  },
): Promise<RunName> {
  const given = id ?? newRunId(agent, tenantIdPrefix(client, tenant));
  assertRunId(given);
  const [hashed, before] = storedForms(idHashingOf(client), 'run', given);
  if (hashed === given) return { id: given };
  const name = { id: hashed, givenId: given };
  const isNew = id === undefined || before === undefined;
  if (isNew || (await stateOf(client, hashed)) !== null) return name;
  const state = await stateOf(client, before);
  const isTaken = state === 'open' || (state === 'ended' && !reuseId);
  return isTaken ? { id: given } : name;
}

/** Returns whether a workflow is open; null if there is none. If the server does not answer, what is done next says so. */
async function stateOf(client: Client, id: string): Promise<'open' | 'ended' | 'unknown' | null> {
  try {
    const { closeTime } = await describeWorkflow(client, id);
    return closeTime === undefined ? 'open' : 'ended';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    if (isUnanswered(error)) return 'unknown';
    throw error;
  }
}

/** Does the same as `storedId` for a schedule: `describe` reads one by the id that the server has. */
export async function findSchedule(
  client: Client,
  id: string,
  describe: (stored: string) => Promise<ScheduleDescription>,
): Promise<ScheduleDescription> {
  const hashing = idHashingOf(client);
  if (hashing === null || isHashedId(id)) return await describe(id);
  if (id.startsWith(CLEAR)) return await describe(id.slice(CLEAR.length));
  const [hashed, before] = storedForms(hashing, 'schedule', id);
  return await describe(hashed).catch(async (error: unknown) => {
    if (before === undefined || !(error instanceof ScheduleNotFoundError)) throw error;
    return await describe(before);
  });
}

/**
 * Returns what explains that a client does not find a run by the id that a caller chose: ids are hashed, and the client
 * does not hash them, or with another key. Returns null if nothing suggests that.
 */
export async function unknownIdHint(client: Client, run: string): Promise<string | null> {
  if (isHashedId(run)) return null;
  const hashing = idHashingOf(client);
  const other = hashing === null ? '' : ` AND WorkflowId NOT STARTS_WITH '${hashing.prefix}'`;
  const query = `WorkflowType = 'agent' AND WorkflowId STARTS_WITH 'h-'${other}`;
  const { namespace } = client.options;
  try {
    const { executions } = await client.workflowService.listWorkflowExecutions({
      namespace,
      query,
      pageSize: LOOKED_AT,
    });
    if (!executions.some(({ execution }) => isHashedId(execution?.workflowId ?? ''))) return null;
  } catch {
    // The error that is explained matters more.
    return null;
  }
  return hashing === null
    ? `this namespace has runs with hashed ids, and this client hashes none: set \`hashIds\` of \`encryption\`, or ${HASH_IDS_VARIABLE}, to the key of the workers, or give the id that lists show`
    : `this namespace has runs whose ids are hashed with another key: \`hashIds\` of \`encryption\`, or ${HASH_IDS_VARIABLE}, has to name the key of whoever started the run, or give the id that lists show`;
}

const LOOKED_AT = 10;
