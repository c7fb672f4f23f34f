import { setTimeout as pause } from 'node:timers/promises';
import { InputError, NoRunError, RefusedError } from '../core/errors.js';
import { openRequests } from '../core/requests/open-requests.js';
import type { RunState } from '../core/state/state.js';
import {
  type Json,
  type JsonObject,
  canonicalJson,
  parseJson,
  sha256Hex,
} from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { Request } from '../core/transcript/request.js';
import { hashedId } from '../temporal/stored-ids.js';
import { resolveRequests } from '../updates/decide.js';
import { type Place, type SeenRun, openRun } from './access.js';
import { requireAgent, viewOf } from './chats.js';
import { HttpError } from './errors.js';
import { type Caller, actorOfCaller, groupsOfCaller } from './handlers.js';
import type { ClientTools } from './input-fields.js';
import { requireSameTools } from './openai-tools.js';
import { type ResponsePlace, clientCallId, readClientCallId, turnOfCall } from './response-ids.js';
import { numberOf } from './response-pauses.js';

/** The result of a call that a client has executed. */
export interface CallOutput {
  /** The id that the client got with the call. */
  readonly callId: string;
  readonly output: string;
}

/** How long an answer is tried, and how long a worker may take to check it. */
const WITHIN = '30 seconds';
const CHECK_WITHIN_MS = 30_000;
const CHECK_MS = 100;

/** Returns the run of these calls. Throws an `HttpError` (404) if they are not calls of one run. */
export function runOfCalls(outputs: readonly CallOutput[]): string {
  const [first] = outputs;
  const run = readClientCallId(first?.callId ?? '')?.run;
  if (run === undefined) throw noCall(first?.callId ?? '');
  return run;
}

/**
 * Answers the requests for calls that a client has executed, and returns the response that continues
 * their turn. The same outputs again are the same answer. Rejects with an `HttpError` (404) for a call
 * that the principal cannot see, and with a `RefusedError` for one that is answered, or if one is missing.
 */
export async function answerCalls(
  place: Place,
  caller: Caller,
  {
    run,
    model,
    outputs,
    clientTools,
  }: {
    readonly run: string;
    readonly model: string;
    readonly outputs: readonly CallOutput[];
    readonly clientTools: ClientTools;
  },
): Promise<ResponsePlace> {
  const results = new Map<string, string>();
  for (const { callId, output } of outputs) {
    const found = readClientCallId(callId);
    if (found === null || found.run !== run) throw noCall(callId);
    if (results.has(found.call)) {
      throw new InputError(
        `call_id: expected each call once, got ${show(callId)} twice; send one output for it`,
      );
    }
    results.set(found.call, output);
  }
  const seen = await openFor(place, caller, outputs);
  requireAgent(model, seen.agent);
  await requireSameTools(place, run, clientTools);
  const { state } = await viewOf(place, run);
  if (state === null) throw noCall(outputs[0]?.callId ?? '');
  const id = answerId(caller, state, { run, results });
  const stored = hashedId(place.client, 'decision', id);
  const made =
    state.decisions?.filter((one) => one.id === stored && one.refused === undefined) ?? [];
  if (made.length > 0) return placeOf(run, results, made);
  const asked = askedAbout(state, { run, results });
  await requireRight(place, caller, { seen, state, asked });
  const actor = { ...actorOfCaller(caller), ...groupsOfCaller(caller) };
  const decisions = asked.map(({ id: request, digest, call = '', tool }) => ({
    request,
    digest,
    as: 'answer' as const,
    result: resultOf(results.get(call) ?? '', state, tool),
    ...actor,
  }));
  await resolveRequests(place.client, seen.id, decisions, { id, within: WITHIN });
  await checked(place, run, asked);
  return placeOf(
    run,
    results,
    asked.map(({ id: request }) => ({ request })),
  );
}

async function openFor(
  place: Place,
  { principal }: Caller,
  outputs: readonly CallOutput[],
): Promise<SeenRun> {
  const run = runOfCalls(outputs);
  try {
    // The answer is the reply, so the right to send a message is not enough.
    await openRun(place, { principal, right: 'read', run });
    return await openRun(place, { principal, right: ['talk', 'decide'], run });
  } catch (error) {
    if (NoRunError.isInstance(error)) throw noCall(outputs[0]?.callId ?? '');
    throw error;
  }
}

/** Checks that the caller may answer: its own tools of its own run, or any with the right `decide`. */
async function requireRight(
  place: Place,
  { principal }: Caller,
  {
    seen,
    state,
    asked,
  }: { readonly seen: SeenRun; readonly state: RunState; readonly asked: readonly Request[] },
): Promise<void> {
  const added = state.config.definition.callerTools?.names ?? [];
  if (seen.isOwn && asked.every(({ tool = '' }) => added.includes(tool))) return;
  await openRun(place, { principal, right: 'decide', run: seen.id });
}

/** Returns the requests that are answered. Throws a `RefusedError` unless the answers are complete. */
function askedAbout(
  state: RunState,
  { run, results }: { readonly run: string; readonly results: ReadonlyMap<string, string> },
): readonly Request[] {
  const open = openRequests(state, run).filter(({ kind }) => kind === 'client_tool');
  const asked = open.filter(({ call = '' }) => results.has(call));
  const shown = (call: string): string => show(clientCallId({ run, call }));
  const closed = [...results.keys()].find((call) => !asked.some((one) => one.call === call));
  if (closed !== undefined) {
    throw new RefusedError(
      `call_id: expected a call that waits for its result, got ${shown(closed)}, which is answered or has ended; read the response for what followed`,
      { reason: 'decided' },
    );
  }
  // Calls that were raised later are those of a later response.
  const newest = Math.max(...asked.map(({ raisedAt }) => raisedAt));
  const missing = open.find(({ call = '', raisedAt }) => raisedAt <= newest && !results.has(call));
  if (missing === undefined) return asked;
  throw new RefusedError(
    `input: expected the results of all calls of the response, got none for ${shown(missing.call ?? '')}; send them together`,
  );
}

/** Returns the id of an answer: the same for the same outputs, until a worker has refused one of them. */
function answerId(
  { principal }: Caller,
  { decisions = [] }: RunState,
  { run, results }: { readonly run: string; readonly results: ReadonlyMap<string, string> },
): string {
  const given = [...results].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const refusals = decisions
    .filter(({ call = '', refused }) => refused !== undefined && results.has(call))
    .map(({ id }) => id);
  return sha256Hex(canonicalJson([principal.name, run, given, refusals]));
}

/** Returns what the run gets: JSON where the tool has a schema for its result, else the text. */
function resultOf(output: string, state: RunState, tool: string | undefined): Json {
  const schema: JsonObject | undefined = state.config.definition.tools.find(
    ({ name }) => name === tool,
  )?.result;
  if (schema === undefined || schema['type'] === 'string') return output;
  const value = parseJson(output);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parsed from JSON
  return value === undefined ? output : (value as Json);
}

/** Waits until a worker has checked the answers. Rejects with an `InputError` if it refuses one. */
async function checked({ api }: Place, run: string, asked: readonly Request[]): Promise<void> {
  const ids = new Set(asked.map(({ id }) => id));
  const until = performance.now() + CHECK_WITHIN_MS;
  for (;;) {
    const open = (await api.status(run)).pending.filter(({ id }) => ids.has(id));
    const refused = open.find((one) => one.refused !== undefined && !one.checking);
    if (refused !== undefined) {
      const call = show(clientCallId({ run, call: refused.call ?? '' }));
      throw new InputError(
        `output of ${call}: ${refused.refused}; send an output that the tool accepts`,
      );
    }
    if (!open.some(({ checking }) => checking) || performance.now() > until) return;
    await pause(CHECK_MS);
  }
}

function placeOf(
  run: string,
  results: ReadonlyMap<string, string>,
  made: readonly { readonly request?: string }[],
): ResponsePlace {
  const [call = ''] = results.keys();
  const after = Math.max(...made.map(({ request = '' }) => numberOf(request)));
  return { run, turn: turnOfCall(call), after };
}

function noCall(id: string): HttpError {
  return new HttpError(404, 'not_found', `call_id: there is no call ${show(id)}`, {
    fix: 'give the `call_id` of a function_call of the last response',
  });
}
