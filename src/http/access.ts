import type { PerdureClient } from '../client/client-types.js';
import type { ClientParts } from '../client/create-client.js';
import type { KnownAgent } from '../client/fork-run.js';
import { storedId } from '../client/run-ids.js';
import type { Runnable } from '../client/runnable-texts.js';
import type { Right } from '../config.js';
import type { Limits } from '../core/definition/definition.js';
import { NoRunError, UnreadableError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { isObject, textField } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { describeRun, readRun } from '../history/read-run.js';
import { readSegmentStart } from '../history/segments.js';
import { hashedId } from '../temporal/stored-ids.js';
import { tenantIdPrefix } from '../temporal/tenant-rules.js';
import { HttpError } from './errors.js';
import { type AgentOfTenant, type Principal, rightsOf } from './principals.js';
import { likelyMeant } from '../validation/near-names.js';

/** An agent that the server lists and starts. */
export type ServedAgent = KnownAgent & { readonly description: string; readonly limits: Limits };

/** What the interfaces are made from. */
export interface Place extends ClientParts {
  readonly api: PerdureClient;
  /** Empty: unknown; any agent of the workers can be started then. */
  readonly agents: readonly ServedAgent[];
  readonly taskQueue: string;
  /** Makes each command in a text one that can be pasted. */
  readonly runnable: Runnable;
}

/** The field of a run's memo with the name of the principal that started it. */
const STARTED_BY = 'startedBy';
/** The field with the digest of the request that started it. */
const REQUEST = 'startRequest';

/** Returns the memo of a run that a principal starts. It is carried through all segments. */
export function startMemo(
  { name }: Pick<Principal, 'name'>,
  requestDigest: string,
): Readonly<Record<string, string>> {
  return { [STARTED_BY]: name, [REQUEST]: requestDigest };
}

/** A run, as far as it decides who may see it. */
export interface SeenRun {
  readonly id: string;
  readonly agent: string;
  /** For whom it works; empty without a tenant. */
  readonly tenant: string;
  /** Whether the principal has started the run, or the run that called it. */
  readonly isOwn: boolean;
  /** The digest of the request that started it; null if it was not started here. */
  readonly request: string | null;
}

/** Rights that whoever started a run has about it. */
const OF_STARTER: readonly Right[] = ['talk', 'read'];

/** Whether a principal has a right about a run. */
export function mayDo(
  principal: Principal,
  right: Right,
  run: Omit<SeenRun, 'id' | 'request'>,
): boolean {
  if (principal.may(right, run)) return true;
  return run.isOwn && OF_STARTER.includes(right) && principal.may('start', run);
}

/**
 * Returns a run that the principal may do this with. Rejects with a `NoRunError` for a run that it may
 * not see, with the words of one that does not exist, and with an `HttpError` (403) for a run that it
 * may see.
 */
export async function openRun(
  place: Place,
  {
    principal,
    right,
    run: named,
  }: {
    readonly principal: Principal;
    /** Of several, one is enough. */
    readonly right: Right | readonly [Right, ...Right[]];
    readonly run: string;
  },
): Promise<SeenRun> {
  const id = await storedId(place.client, named, place.archive);
  return await openStored(place, { principal, right, id, named });
}

async function openStored(
  place: Place,
  {
    principal,
    right,
    id,
    named,
  }: Pick<Parameters<typeof openRun>[1], 'principal' | 'right'> & {
    /** The id that the server has. */
    readonly id: string;
    /** The id that the caller has given. */
    readonly named: string;
  },
): Promise<SeenRun> {
  const rights = typeof right === 'string' ? ([right] as const) : right;
  const run = await identify(place, principal, id).catch((error: unknown) => {
    throw NoRunError.isInstance(error) ? noRun(named) : error;
  });
  if (rights.some((one) => mayDo(principal, one, run))) return run;
  const isSeen = (['read', 'talk', 'decide', 'control'] as const).some((one) =>
    mayDo(principal, one, run),
  );
  if (!isSeen) throw noRun(named);
  throw forbidden(principal, rights[0], run);
}

/** Returns the tenant of all runs that a principal starts; undefined if it may choose, or has none. */
function onlyTenant({ tenants }: Pick<Principal, 'tenants'>): string | undefined {
  return tenants.length === 1 ? tenants[0] : undefined;
}

/** Returns what the generated ids of a principal's runs begin with: see `tenantIdPrefix`. */
export function idPrefixOf(
  { client }: Pick<Place, 'client'>,
  { principal }: { readonly principal: Principal },
): string {
  return tenantIdPrefix(client, onlyTenant(principal));
}

/**
 * Returns the tenant of a run that the principal starts; none if it has none and asks for none. Throws
 * an `HttpError` (403) for a tenant that is not the principal's.
 */
export function tenantFor(
  { client }: Pick<Place, 'client'>,
  { name, tenants }: Principal,
  asked: string | undefined,
): { readonly tenant?: string } {
  if (tenants.length === 0) return asked === undefined ? {} : { tenant: asked };
  const tenant = asked ?? onlyTenant({ tenants });
  const hash = (one: string): string => hashedId(client, 'tenant', one);
  const own = tenants.find((one) => tenant !== undefined && hash(one) === hash(tenant));
  if (own !== undefined) return { tenant: own };
  const got = asked === undefined ? 'none' : show(asked);
  throw new HttpError(
    403,
    'forbidden',
    `tenant: expected one of those of ${visible(name)} (${tenants.map((one) => show(one)).join(', ')}), got ${got}`,
    { fix: 'leave the tenant out, or give one of these' },
  );
}

/** Returns the answer to a message that is recorded and that no worker has received. */
export function noWorker(): HttpError {
  return new HttpError(503, 'unexpected', 'no worker is running; the message is recorded', {
    fix: 'repeat the request; it is safe to repeat',
    headers: { 'x-should-retry': 'true' },
  });
}

const LISTS_RUNS = 'GET /v1/runs lists the runs that you may read';

function noRun(id: string): NoRunError {
  return new NoRunError(`run: there is no run ${visible(JSON.stringify(id))}; ${LISTS_RUNS}`);
}

/** Returns the refusal for a principal that sees an agent and lacks a right. */
export function forbidden(
  { name, tenants }: Principal,
  right: Right,
  { agent, tenant }: AgentOfTenant,
): HttpError {
  const where = tenants.length > 1 && tenant ? ` for tenant "${visible(tenant)}"` : '';
  return new HttpError(
    403,
    'forbidden',
    `${visible(name)} lacks the right "${right}" for agent "${visible(agent)}"${where}`,
    { fix: `give the principal the right "${right}" in \`serve.principals\` of the configuration` },
  );
}

/** A run of a list, with what the server has listed of it, if that is known. */
export interface ListedRun {
  readonly run: string;
  /** Null: unknown. */
  readonly agent: string | null;
  readonly info?:
    | {
        readonly memo?: Readonly<Record<string, unknown>> | undefined;
        readonly rootExecution?: { readonly workflowId?: string | null } | undefined;
      }
    | undefined;
}

/**
 * Returns whether the principal has one of the rights about a run. Runs of agents about which it has
 * only the right to start runs are looked at one by one, since it may see its own.
 */
export function sightOf(
  place: Place,
  principal: Principal,
  rights: readonly [Right, ...Right[]],
): (found: ListedRun) => Promise<boolean> {
  const known = new Map<string, Promise<boolean>>();
  return async ({ run, agent, info }) => {
    const isAny = principal.tenants.length === 0;
    if (agent !== null && isAny && rights.some((one) => principal.may(one, { agent }))) return true;
    if (agent !== null && isAny && !principal.may('start', { agent })) return false;
    const root = info?.rootExecution?.workflowId ?? '';
    if (agent !== null && info !== undefined && (root === '' || root === run)) {
      const isOwn = info.memo?.[STARTED_BY] === principal.name;
      // A list has no priorities, but the memo of a run that was not called.
      const tenant = isObject(info.memo) ? textField(info.memo, 'tenant') : '';
      return rights.some((one) => mayDo(principal, one, { agent, isOwn, tenant }));
    }
    const opened = { principal, right: rights, id: run, named: run };
    const seen = known.get(run) ?? openStored(place, opened).then(yes, no);
    known.set(run, seen);
    return await seen;
  };
}

/** Returns a hint at the agent that a principal may mean, among those that it may use; empty without one. */
export function meantAgent(
  { agents }: Pick<Place, 'agents'>,
  principal: Principal,
  agent: string,
): string {
  const known = agents
    .map(({ name }) => name)
    .filter((name) => rightsOf(principal, name).length > 0);
  const meant = likelyMeant(agent, known);
  return meant === undefined ? '' : `did you mean ${meant}? `;
}

const yes = (): boolean => true;
const no = (error: unknown): boolean => unseen(error) !== null;

/**
 * Returns null if the error of `openRun` means that the principal does not see the run: it has no right, the
 * run was deleted in the meantime, or its agent cannot be read. Throws any other error.
 */
export function unseen(error: unknown): null {
  if (NoRunError.isInstance(error) || UnreadableError.isInstance(error)) return null;
  if (error instanceof HttpError) return null;
  throw error;
}

async function identify(
  { client, archive }: Place,
  principal: Principal,
  id: string,
): Promise<SeenRun> {
  const description = await describeRun(client, id).catch((error: unknown) => {
    if (NoRunError.isInstance(error)) return null;
    throw error;
  });
  if (description === null) {
    // The archive knows who asked for the first turn, but not who has proven it.
    const { agent, view } = await readRun(client, id, { archive });
    return { id, agent, tenant: view.input?.tenant ?? '', isOwn: false, request: null };
  }
  const { memo, runId, rootExecution, priority } = description;
  const [named] = description.searchAttributes['AgentName'] ?? [];
  const agent = typeof named === 'string' ? named : await agentOf(client, id, runId);
  const root = rootExecution?.workflowId ?? id;
  // The memo of the run above all callers says who has started it, unless the server has deleted that.
  const ownerMemo: unknown =
    root === '' || root === id ? memo : (await describeRun(client, root).catch(unseen))?.memo;
  const isOwn = isObject(ownerMemo) && ownerMemo[STARTED_BY] === principal.name;
  const request = isObject(memo) ? textField(memo, REQUEST) || null : null;
  return { id, agent, tenant: priority?.fairnessKey ?? '', isOwn, request };
}

/** Returns the agent of a run that no worker has loaded yet, or of a namespace without attributes. */
async function agentOf(client: Place['client'], id: string, runId: string): Promise<string> {
  const input = (await readSegmentStart(client, id, runId))?.input;
  return isObject(input) ? textField(input, 'agent') : '';
}
