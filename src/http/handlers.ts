import { assertKnownAgent } from '../client/fork-run.js';
import type { PerdureClient } from '../client/client-types.js';
import { listWithBelow } from '../client/below.js';
import type { SeesRow } from '../client/list.js';
import { storedFilter } from '../client/decision-methods.js';
import { listRequests } from '../client/requests.js';
import { resolveOpen } from '../client/resolve.js';
import type { Right } from '../config.js';
import { InputError } from '../core/errors.js';
import { readDrawing } from '../history/run-drawing.js';
import { toMermaid } from '../core/graph/draw.js';
import type { RunState } from '../core/state/state.js';
import { canonicalJson, sha256Hex } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { Outcome } from '../core/transcript/outcome.js';
import type { Decision } from '../core/transcript/request.js';
import { readRun } from '../history/read-run.js';
import { createRunInput, startRun } from '../updates/start.js';
import {
  type ListedRun,
  type Place,
  type SeenRun,
  forbidden,
  mayDo,
  meantAgent,
  openRun,
  sightOf,
  tenantFor,
} from './access.js';
import { HttpError } from './errors.js';
import { MAX_WAIT_SECONDS, cancelOpen, checkedLimits, undoOnly } from './input-fields.js';
import type { OperationName, OperationOutput, ReadInput } from './operations.js';
import { type AgentOfTenant, type Principal, rightsOf } from './principals.js';
import {
  attachToNew,
  forkFor,
  idOfOperation,
  nameFor,
  startOrFind,
  storeAttachments,
} from './starts.js';
import { runnableFix, runnableList, runnableStatus } from '../client/runnable-texts.js';
import { agentView, requestView, withSeenBelow } from './views.js';

/** Who calls an operation. */
export interface Caller {
  readonly principal: Principal;
  /** The interface that has verified the principal, such as `http`; null: the server has no keys. */
  readonly door: string | null;
  /** The header `Idempotency-Key`; null if there is none. */
  readonly operationKey: string | null;
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal;
  /**
   * Counts a wait as a stream of the principal until the signal aborts. Throws an `HttpError` (429) if it is
   * one too many.
   */
  hold(over: AbortSignal): void;
}

/** Returns the caller as runs record it. */
export function actorOfCaller({ principal, door }: Pick<Caller, 'principal' | 'door'>): {
  readonly by: string;
  readonly door?: string;
} {
  return { by: principal.name, ...(door !== null && { door }) };
}

/** The most groups of a principal that are recorded with a decision, and their longest names. */
const [MAX_GROUPS, MAX_GROUP_CHARACTERS] = [100, 200];

/** Returns the groups of a caller as a decision records them: those that deciders can name. */
export function groupsOfCaller({ principal, door }: Caller): {
  readonly groups?: readonly string[];
} {
  const groups = principal.groups
    .filter((name) => name.length <= MAX_GROUP_CHARACTERS)
    .slice(0, MAX_GROUPS);
  return door === null || groups.length === 0 ? {} : { groups };
}

export type Handlers = {
  readonly [Name in OperationName]: (
    input: ReadInput<Name>,
    caller: Caller,
  ) => Promise<OperationOutput<Name>>;
};

/** How long a change of a run is tried; without a worker, the answer is then 503. */
const WITHIN = '30 seconds';
const WAIT_SECONDS = 30;
const LISTED = 50;
const MAX_LISTED = 200;

/** Starts a run for a principal. The same operation never starts a second one. */
export async function startFor(
  place: Place,
  { principal, operationKey, door }: Pick<Caller, 'principal' | 'operationKey' | 'door'>,
  { id: given, attachments, tenant, ...asked }: ReadInput<'startRun'>,
): Promise<OperationOutput<'startRun'>> {
  const { client, agents, taskQueue } = place;
  const { agent, context, limits } = asked;
  requireStart(place, principal, { agent });
  const fields = { ...asked, ...tenantFor(place, principal, tenant) };
  requireStart(place, principal, fields);
  if (context !== undefined || limits !== undefined) requireControl(principal, fields);
  assertKnownAgent(agents.length === 0 ? undefined : { agents }, agent, fields);
  const digest = sha256Hex(
    canonicalJson({
      ...fields,
      ...(attachments && { attachments: attachments.map((one) => ({ ...one })) }),
    }),
  );
  const about = { id: given, agent, tenant: fields.tenant };
  const name = await nameFor(place, { principal, operationKey }, about);
  const { id } = name;
  const attached = await attachToNew(place, id, attachments, fields.tenant);
  const actor = actorOfCaller({ principal, door });
  const input = createRunInput(agent, { ...fields, ...attached, ...actor });
  return await startOrFind(place, principal, {
    ...name,
    digest,
    operationKey: given === undefined ? operationKey : null,
    start: (memo) => startRun(client, input, { ...name, taskQueue, memo }),
  });
}

/** Checks that a principal may start runs of an agent that there is. */
function requireStart(place: Place, principal: Principal, about: AgentOfTenant): void {
  const { agents } = place;
  const { agent } = about;
  const noAgent = (): InputError => {
    const fix = `${meantAgent(place, principal, agent)}GET /v1/agents lists them`;
    return new InputError(`agent: there is no agent ${show(agent)}; ${fix}`);
  };
  if (!principal.may('start', about)) {
    if (rightsOf(principal, agent).length === 0) throw noAgent();
    throw forbidden(principal, 'start', about);
  }
  // Another check would name the nearest agents, which the principal may not know.
  if (agents.length > 0 && !agents.some(({ name }) => name === agent)) throw noAgent();
}

const OWNER_DIGITS = 16;
const MAX_OWN_CHARACTERS = 160;

/**
 * Returns the id under which a run records a message. Runs know ids of all senders together, so that of
 * a principal has its mark: no principal can suppress a message of another, or get its answer. Without
 * keys, there is one principal, and its ids are those of the command, too.
 */
function recordedId(caller: Pick<Caller, 'principal' | 'door'>, id: string): string {
  if (caller.door === null) return id;
  return markOf(caller) + (id.length > MAX_OWN_CHARACTERS ? sha256Hex(id) : id);
}

function markOf({ principal }: Pick<Caller, 'principal'>): string {
  return `${sha256Hex(principal.name).slice(0, OWNER_DIGITS)}.`;
}

/** Returns the id that the caller gave a message of its own; any other as it is recorded. */
export function ownId(caller: Pick<Caller, 'principal'>, recorded: string): string {
  const mark = markOf(caller);
  return recorded.startsWith(mark) ? recorded.slice(mark.length) : recorded;
}

/** Checks that a principal may cancel a run: one that it has started, or with the right `control`. */
export async function openToCancel(place: Place, principal: Principal, run: string): Promise<void> {
  const { isOwn } = await openRun(place, { principal, right: 'read', run });
  if (!isOwn) await openRun(place, { principal, right: 'control', run });
}

/** Waits for the outcome of a turn; null if the time is over or the signal aborts first. */
export async function resultWithin(
  { api }: Pick<Place, 'api'>,
  {
    run,
    turn,
    signal,
    waitMs,
  }: {
    readonly run: string;
    readonly turn?: number | undefined;
    readonly signal: AbortSignal;
    readonly waitMs: number;
  },
): Promise<Outcome | null> {
  const over = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
  try {
    return await api.result(run, { signal: over, ...(turn !== undefined && { turn }) });
  } catch (error) {
    if (over.aborted && error === over.reason) return null;
    throw error;
  }
}

function requireControl(principal: Principal, about: AgentOfTenant): void {
  if (!principal.may('control', about)) throw forbidden(principal, 'control', about);
}

/** Returns the handlers of all operations. */
export function createHandlers(place: Place): Handlers {
  const open: OpenFor = async (run, right, { principal }) =>
    await openRun(place, { principal, right, run });
  return { ...readHandlers(place, open), ...writeHandlers(place, open) };
}

/** Returns a run that the caller may do this with, as `openRun` does. */
type OpenFor = (
  run: string,
  right: Right | readonly [Right, ...Right[]],
  caller: Caller,
) => Promise<SeenRun>;

/** Whoever may decide sees what there is to decide. */
export const SEES_REQUESTS = ['read', 'decide'] as const;

type ReadNames =
  | 'whoAmI'
  | 'listAgents'
  | 'listRuns'
  | 'getRun'
  | 'getResult'
  | 'getTranscript'
  | 'getTurns'
  | 'getGraph'
  | 'listRequests'
  | 'getRequest';

/** Returns the handlers that read. They need no worker. */
function readHandlers(place: Place, open: OpenFor): Pick<Handlers, ReadNames> {
  const { api, agents } = place;
  return {
    whoAmI: async (_, { principal: { name, groups }, door }) => ({
      name,
      groups: [...groups],
      verified: door !== null,
    }),
    listAgents: async (_, { principal }) => ({
      agents: agents
        .map((agent) => ({ ...agentView(agent), rights: rightsOf(principal, agent.name) }))
        .filter(({ rights }) => rights.length > 0),
    }),
    async listRuns({ limit = LISTED, ...filter }, { principal, signal }) {
      const sight = principal.mayAll('read') ? null : sightOf(place, principal, ['read']);
      const sees: SeesRow | undefined =
        sight === null ? undefined : ({ id: run, agent }, { info }) => sight({ run, agent, info });
      const wanted = { ...filter, limit: Math.min(limit, MAX_LISTED) };
      return await listWithBelow(place.client, wanted, { sees, signal });
    },
    async getRun({ run }, caller) {
      const { principal } = caller;
      const seen = await open(run, 'read', caller);
      const all = ['talk', 'read', 'decide', 'control'] as const;
      const rights = all.filter((right) => mayDo(principal, right, seen));
      const status = runnableStatus(await api.status(run), place.runnable);
      return { ...(await withSeenBelow(status, sightOf(place, principal, ['read']))), rights };
    },
    async getResult({ run, turn, wait = WAIT_SECONDS }, caller) {
      await open(run, 'read', caller);
      const waitMs = Math.max(1, Math.min(wait, MAX_WAIT_SECONDS) * 1_000);
      const over = new AbortController();
      if (wait > 0) caller.hold(over.signal);
      try {
        const outcome = await resultWithin(place, { run, turn, signal: caller.signal, waitMs });
        return { done: outcome !== null, outcome };
      } finally {
        over.abort();
      }
    },
    async getTranscript({ run, ...range }, caller) {
      await open(run, 'read', caller);
      return await api.transcript(run, range);
    },
    async getTurns({ run }, caller) {
      await open(run, 'read', caller);
      return await api.turns(run);
    },
    async getGraph({ run }, caller) {
      const { agent, id } = await open(run, 'read', caller);
      const drawing = await readDrawing(place, { run, id });
      return { agent, mermaid: toMermaid(drawing), ...drawing };
    },
    async listRequests(filter, { principal, signal }) {
      const seesAll = SEES_REQUESTS.some((right) => principal.mayAll(right));
      const sight = sightOf(place, principal, SEES_REQUESTS);
      const sees = seesAll
        ? undefined
        : (run: ListedRun, info: ListedRun['info']) => sight({ ...run, info });
      const stored = await storedFilter(place.client, filter);
      const found = await listRequests(place.client, stored, { sees, signal });
      return runnableList(found, place.runnable);
    },
    async getRequest({ run, request }, caller) {
      await open(run, SEES_REQUESTS, caller);
      const found = await api.request(run, request).catch((error: unknown) => {
        if (!InputError.isInstance(error)) throw error;
        const fix = `GET /v1/runs/${encodeURIComponent(run)} returns its open requests`;
        throw new HttpError(404, 'no_request', error.message, { fix });
      });
      return { ...runnableFix(found, place.runnable), view: requestView(found) };
    },
  };
}

/** Returns the id of the newest decision about a request that a worker has refused; undefined if there is none. */
function newestRefusal(state: RunState | null, request: string): string | undefined {
  const made = state?.decisions ?? [];
  return made.findLast((one) => one.request === request && one.refused !== undefined)?.id;
}

/** Returns the handlers that change something. Each is safe to repeat. */
function writeHandlers(place: Place, open: OpenFor): Omit<Handlers, ReadNames> {
  const as = (caller: Caller): PerdureClient => place.as(actorOfCaller(caller));
  const how = { within: WITHIN } as const;
  const control = async (
    { run }: { readonly run: string },
    caller: Caller,
    act: (api: PerdureClient) => Promise<unknown>,
  ): Promise<{ readonly id: string }> => {
    await open(run, 'control', caller);
    await act(as(caller));
    return { id: run };
  };
  return {
    startRun: (input, caller) => startFor(place, caller, input),
    async sendMessage({ run, id, attachments, ...said }, caller) {
      const seen = await open(run, 'talk', caller);
      if (said.context !== undefined) requireControl(caller.principal, seen);
      const { principal, operationKey } = caller;
      const named = id === undefined ? null : recordedId(caller, id);
      const key = named ?? (operationKey === null ? null : idOfOperation(principal, operationKey));
      // The words of a person never decide here: only `decide` does, with a digest.
      const attached = await storeAttachments(place, attachments, seen.tenant);
      const message = {
        ...said,
        ...attached,
        ...(key !== null && { id: key }),
        answers: false as const,
      };
      return await as(caller).send(run, message, how);
    },
    async forkRun({ run, agent: named, ...given }, caller) {
      const source = await open(run, 'read', caller);
      const agent = named ?? source.agent;
      // The fork works for the same tenant.
      requireStart(place, caller.principal, { ...source, agent });
      // The fork has the context of the run, which tools trust.
      if (!source.isOwn && agent === source.agent) requireControl(caller.principal, source);
      const { principal, operationKey } = caller;
      const actor = actorOfCaller(caller);
      return await forkFor(
        place,
        { principal, operationKey, actor },
        { source: source.id, agent, tenant: source.tenant ?? '', ...given },
      );
    },
    async undoCall({ run, call }, caller) {
      await open(run, 'control', caller);
      return { id: run, call: await undoOnly(as(caller), { run, call, ...how }) };
    },
    async decide({ run, decisions }, caller) {
      const { id: runId } = await open(run, 'decide', caller);
      const { name: by } = caller.principal;
      const { state } = (await readRun(place.client, runId, { archive: place.archive })).view;
      // The same decision gets the answer that the run has recorded, also on a second click. After a worker
      // has refused one about the request, it is another decision.
      const refusals = decisions.flatMap(({ request }) => newestRefusal(state, request) ?? []);
      const once = refusals.length === 0 ? [by, decisions] : [by, decisions, refusals];
      const id = sha256Hex(canonicalJson(once));
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the run checks predicates
      const checkedLater = decisions as unknown as readonly Decision[];
      const actor = { ...actorOfCaller(caller), ...groupsOfCaller(caller) };
      const made = checkedLater.map((decision) => ({ ...decision, ...actor }));
      return { receipts: [...(await resolveOpen(place.client, runId, made, { id, ...how }))] };
    },
    async cancelRun({ run, turn }, caller) {
      await openToCancel(place, caller.principal, run);
      if (turn === undefined) await cancelOpen(as(caller), run);
      else await as(caller).cancel(run, { turn, ...how });
      return { id: run };
    },
    pauseRun: (input, caller) => control(input, caller, (api) => api.pause(input.run, how)),
    resumeRun: (input, caller) => control(input, caller, (api) => api.resume(input.run, how)),
    closeRun: (input, caller) => control(input, caller, (api) => api.close(input.run, how)),
    async setLimits({ run, limits }, caller) {
      await open(run, 'control', caller);
      return await as(caller).setLimits(run, checkedLimits(limits), how);
    },
  };
}
