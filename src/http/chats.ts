import { setTimeout as pause } from 'node:timers/promises';
import { withAllArguments } from '../client/requests.js';
import { storedId } from '../client/run-ids.js';
import { InputError, NoRunError, RefusedError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { canonicalJson, sha256Hex } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { type Request, isUndoRequest } from '../core/transcript/request.js';
import type { Projection } from '../history/projection.js';
import { readRun } from '../history/read-run.js';
import { BlobError } from '../storage/blob-store.js';
import { type Place, meantAgent, noWorker, openRun, unseen } from './access.js';
import type { DoorParts } from './api-routes.js';
import { HttpError } from './errors.js';
import type { ClientTools } from './input-fields.js';
import { type Caller, createHandlers, ownId, startFor } from './handlers.js';
import { type Principal, rightsOf } from './principals.js';

/** Conversations that a client names: each is an open run of its principal. */

const ID_DIGITS = 24;

/** Returns the run of a conversation. Those of other principals are other runs, whatever their id. */
export function runOf(
  { principal }: { readonly principal: Pick<Principal, 'name'> },
  given: {
    readonly door: 'chat' | 'thread';
    readonly agent: string;
    /** The client's id of the conversation. */
    readonly id: string;
    /** What the ids of the principal's runs begin with; default: nothing. */
    readonly prefix?: string;
  },
): string {
  const { door, agent, id, prefix = '' } = given;
  const digest = sha256Hex(canonicalJson([principal.name, agent, id]));
  return `${prefix}${door}-${digest.slice(0, ID_DIGITS)}`;
}

/**
 * Starts the run of a conversation, unless its principal has one: a principal of several tenants, which starts
 * nothing here, goes on with it. Rejects with an `InputError` if it is a run of another agent, and with an `HttpError` (404) if
 * the agent does not exist.
 */
export async function beginOrResume(
  place: Place,
  caller: Caller,
  {
    agent,
    run,
    clientTools = [],
  }: {
    readonly agent: string;
    readonly run: string;
    /** Those of the client, with which the run starts. */
    readonly clientTools?: ClientTools;
  },
): Promise<void> {
  const { principal } = caller;
  const found = await openRun(place, { principal, right: 'read', run }).catch(unseen);
  if (found?.isOwn) return requireAgent(agent, found.agent);
  requireServed(place, caller, agent);
  const tools = clientTools.length > 0 && { clientTools };
  await startFor(place, caller, { agent, id: run, open: true, ...tools });
}

/**
 * Throws an `HttpError` (404) if the agent in a path does not exist, or the principal has no right about it. A
 * server that does not know its agents accepts any name.
 */
export function requireServed(
  place: Pick<Place, 'agents'>,
  { principal }: Pick<Caller, 'principal'>,
  agent: string,
): void {
  const { agents } = place;
  const isListed = agents.length === 0 || agents.some(({ name }) => name === agent);
  if (isListed && rightsOf(principal, agent).length > 0) return;
  const fix = `${meantAgent(place, principal, agent)}GET /v1/agents lists them`;
  throw new HttpError(404, 'not_found', `agent: there is no agent ${show(agent)}`, { fix });
}

/**
 * Returns what `read` returns. If it throws, the agent in the path is checked before: a request for one that does
 * not exist is wrong whatever it says.
 */
export function servedInput<Input>(
  { place }: { readonly place: Pick<Place, 'agents'> },
  { caller, agent }: { readonly caller: Pick<Caller, 'principal'>; readonly agent: string },
  read: () => Input,
): Input {
  try {
    return read();
  } catch (error) {
    requireServed(place, caller, agent);
    throw error;
  }
}

/** Returns the refusal of a conversation that its client has not begun, by the field that names it. */
export function noConversation(
  field: 'id' | 'threadId',
  { agent, id }: { readonly agent: string; readonly id: string },
): NoRunError {
  const kind = field === 'id' ? 'chat' : 'thread';
  return new NoRunError(
    `${field}: there is no ${kind} ${show(id)} with agent ${show(agent)}; begin it with a message`,
  );
}

/** Throws an `InputError` if a conversation is to go on with another agent. */
export function requireAgent(asked: string, agent: string): void {
  if (asked === agent) return;
  throw new InputError(
    `model: expected ${show(agent)}, the agent of the conversation, got ${show(asked)}; begin a conversation of its own with another agent`,
  );
}

/**
 * Sends a message to a run, and returns its turn. Sending it again has no effect. Rejects with an
 * `HttpError` (503) if no worker has received it, unless it is the first one.
 */
export async function sayIn(
  place: Place,
  caller: Caller,
  said: { readonly run: string; readonly id: string; readonly text: string },
): Promise<number> {
  const { run, id, text: message } = said;
  const sent = await createHandlers(place).sendMessage({ run, id, message }, caller);
  if (sent.delivered) return sent.turn;
  const { turn } = await place.api.status(run);
  // Without a worker, the number of a later turn is not known.
  if (turn === 0) return 1;
  throw noWorker();
}

/** Returns the status of a run; null if there is none that the caller may read. */
export async function readOwn(place: Place, { principal }: Pick<Caller, 'principal'>, run: string) {
  try {
    await openRun(place, { principal, right: 'read', run });
    return await place.api.status(run);
  } catch (error) {
    if (NoRunError.isInstance(error)) return null;
    throw error;
  }
}

/** Returns a run, as projected from its history. */
export async function viewOf({ client, archive }: Place, run: string): Promise<Projection> {
  return (await readRun(client, await storedId(client, run, archive), { archive })).view;
}

/**
 * Rejects with a `RefusedError` if new messages come while requests are open, which would wait for them
 * unseen. An undo delays no turn.
 */
export async function refuseUnanswered(
  place: Place,
  caller: Caller,
  given: {
    readonly run: string;
    /** The client's ids of the messages. */
    readonly ids: readonly string[];
    /** How the client answers the requests. */
    readonly fix: string;
  },
): Promise<void> {
  const { run, ids, fix } = given;
  const open = (await readOwn(place, caller, run))?.pending.filter((one) => !isUndoRequest(one));
  if (open === undefined || open.length === 0) return;
  const { state } = await viewOf(place, run);
  const seen = new Set(state?.inbox.seen.map(([id]) => ownId(caller, id)));
  if (ids.every((id) => seen.has(id))) return;
  const names = open.map(({ id }) => id).join(', ');
  throw new RefusedError(`messages: the run waits for answers to ${visible(names)}; ${fix}`);
}

/** A message that the client shows: its id and role there. */
export interface ShownId {
  readonly id: string;
  readonly role: string;
}

/**
 * Rejects with a `RefusedError` if the client has not seen the newest turn of a run, such as one that another
 * tab has begun: its message would answer to something else. `earlier`: what the client shows before the
 * message. A client that sends none of the turns, as one that sends only the message, is not refused.
 */
export async function refuseDiverged(
  place: Place,
  caller: Caller,
  {
    run,
    id,
    earlier,
  }: { readonly run: string; readonly id: string; readonly earlier: readonly ShownId[] },
): Promise<void> {
  if (earlier.length === 0 || (await readOwn(place, caller, run)) === null) return;
  const { state } = await viewOf(place, run);
  if (state === null) return;
  const turns = new Map(state.inbox.seen.map(([known, turn]) => [ownId(caller, known), turn]));
  // The message is sent again.
  if (turns.has(id)) return;
  const shown = earlier.map((one) => {
    const [, turn = 0] = /^turn-([1-9]\d{0,8})$/.exec(one.id) ?? [];
    return one.role === 'assistant' ? Number(turn) : (turns.get(one.id) ?? 0);
  });
  const [known, last] = [Math.max(...shown), Math.max(state.turn.number, state.inbox.lastTurn)];
  if (known === 0 || known >= last) return;
  throw new RefusedError(
    `messages: expected those of turn ${last}, which this chat has from elsewhere, such as another tab; got them up to turn ${known}; load the chat again, and send the message after it`,
  );
}

/**
 * Returns what a client is told if the arguments of requests cannot be read; the log has the reason. Throws any
 * other error.
 */
export function unreadableRequests(
  { logFailure }: Pick<DoorParts, 'logFailure'>,
  run: string,
  error: unknown,
): string {
  if (!BlobError.isInstance(error)) throw error;
  logFailure(`requests of run ${visible(run)}`, error);
  return `request: the server cannot read the arguments of what run ${visible(run)} asks; its log has the reason`;
}

/** How often a decision is looked at that a worker checks, in ms. */
const CHECK_MS = 250;

/** A reader of a run's stream. */
interface RequestReader {
  /** Whether requests are open at the place that it has come to. */
  asks(): boolean;
  /** Whether exactly these are. */
  isAt(pending: readonly Pick<Request, 'id'>[]): boolean;
}

/**
 * Returns the requests that a run waits for, with all of their arguments, once no worker checks a decision
 * about one of them; null if there are none, or if the reader has not come to them. Rejects with a
 * `BlobError` if arguments cannot be read.
 */
export async function requestsAt(
  { api, blobs }: Pick<Place, 'api' | 'blobs'>,
  run: string,
  { reader, signal }: { readonly reader: RequestReader; readonly signal: AbortSignal },
): Promise<readonly Request[] | null> {
  while (reader.asks()) {
    const { status, pending } = await api.status(run);
    if (status !== 'waiting_decision' || !reader.isAt(pending)) return null;
    if (!pending.some(({ checking }) => checking)) return await withAllArguments(pending, blobs);
    await pause(CHECK_MS, undefined, { signal });
  }
  return null;
}
