import { randomUUID } from 'node:crypto';
import type { Hono } from 'hono';
import type { ReadStatus } from '../client/below.js';
import { IdTakenError, InputError, RefusedError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { shorten, show, visibleJson } from '../core/text/text.js';
import { type Place, idPrefixOf, noWorker, openRun } from './access.js';
import { type DoorParts, answerJson, callerOf, readBody, whileRead } from './api-routes.js';
import { beginOrResume, requireAgent, viewOf } from './chats.js';
import { type ErrorAnswer, HttpError } from './errors.js';
import type { Guarded, GuardedContext } from './guard.js';
import {
  type Caller,
  actorOfCaller,
  createHandlers,
  openToCancel,
  resultWithin,
} from './handlers.js';
import type { ClientTools } from './input-fields.js';
import { answerCalls, runOfCalls } from './openai-answers.js';
import { completeChat } from './openai-chat.js';
import {
  SAY,
  type Spoken,
  isRetry,
  messageId,
  nextMessageId,
  noModel,
  readOpenAi,
  type ResponseBody,
  responseBody,
  spokenIn,
  startOnce,
} from './openai-requests.js';
import { clientToolsOf, mayCallClient, requireSameTools, requireTools } from './openai-tools.js';
import { type ResponseEvent, eventAfter, toResponse } from './response-encoder.js';
import { type ResponsePlace, clientCallId, readResponseId } from './response-ids.js';
import { readState, responseEvents, waitForPart } from './response-state.js';
import { sseEvent, sseResponse } from '../live/sse.js';

/** Paths of OpenAI's API, whose errors have OpenAI's form. */
const PATHS = /^\/v1\/(?:responses|conversations|models|chat)(?:\/|$)/;

/** Returns an error in the form of the interface that the request used. */
export function inFormOf(
  path: string,
  { status, body, headers }: ErrorAnswer,
): Pick<ErrorAnswer, 'status' | 'headers'> & { readonly body: object } {
  if (!PATHS.test(path)) return { status, body, headers };
  const { code, message, fix } = body.error;
  const text = fix === null ? message : `${message}; ${fix}`;
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  return { status, headers, body: { error: { message: text, type, param: null, code } } };
}

/** How long the cancellation of a turn may take; then, its response is still in progress. */
const CANCEL_MS = 10_000;

/** Adds the routes that OpenAI's own clients use. A model is an agent. */
export function addOpenAiRoutes(app: Hono<Guarded>, parts: DoorParts): void {
  const { place } = parts;
  const handlers = createHandlers(place);
  const models = async (caller: Caller) => {
    const { agents } = await handlers.listAgents({}, caller);
    return agents
      .filter(({ rights }) => rights.includes('start'))
      .map(({ name: id }) => ({ id, object: 'model', created: 0, owned_by: 'perdure' }));
  };
  app.get('/v1/models', async (context) =>
    answerJson({ object: 'list', data: await models(callerOf(context, parts)) }),
  );
  app.get('/v1/models/:id', async (context) => {
    const id = context.req.param('id');
    const found = (await models(callerOf(context, parts))).find((one) => one.id === id);
    if (found === undefined) throw noModel(place, context.get('principal'), id);
    return answerJson(found);
  });
  app.post('/v1/conversations', async (context) => {
    const { items } = await readBody(context);
    // Nothing is stored before the first response, so they would be lost.
    if (items != null && !(Array.isArray(items) && items.length === 0)) {
      throw new InputError(
        'items: not supported: a conversation begins with its first response; send them as its `input`',
      );
    }
    const created = Math.floor(Date.now() / 1_000);
    return answerJson({
      id: `conv_${randomUUID()}`,
      object: 'conversation',
      created_at: created,
      metadata: {},
    });
  });
  app.post('/v1/responses', (context) => createResponse(context, parts));
  app.get('/v1/responses/:id', async (context) => {
    const { id } = await opened(context, parts);
    if (!readFlag('stream', context.req.query('stream'))) {
      return answerJson(toResponse(await readState(place, id)));
    }
    const after = readPosition(context.req.query('starting_after'));
    return await whileRead(context, parts, (over) => streamResponse(parts, { id, after, over }));
  });
  app.post('/v1/responses/:id/cancel', async (context) => {
    const { id, caller } = await opened(context, parts);
    await openToCancel(place, caller.principal, id.run);
    await place
      .as(actorOfCaller(caller))
      .cancel(id.run, { turn: id.turn, within: '30 seconds' })
      .catch((error: unknown) => {
        // It has ended already.
        if (!RefusedError.isInstance(error)) throw error;
      });
    const { signal } = caller;
    const waitMs = Math.min(CANCEL_MS, parts.waitMs);
    await resultWithin(place, { ...id, signal, waitMs });
    return answerJson(toResponse(await readState(place, id)));
  });
  app.get('/v1/responses/:id/input_items', async (context) => {
    const { id } = await opened(context, parts);
    const { messages } = await place.api.transcript(id.run);
    const data = messages
      .filter((one) => one.role === 'user' && one.turn === id.turn && one.origin === undefined)
      .map(({ n, text }) => ({
        id: `msg_in_${n}`,
        type: 'message',
        role: 'user',
        content: [{ type: 'input_text', text }],
      }));
    const [first, last] = [data.at(0)?.id ?? null, data.at(-1)?.id ?? null];
    return answerJson({ object: 'list', data, first_id: first, last_id: last, has_more: false });
  });
  app.post('/v1/chat/completions', (context) => completeChat(context, parts));
}

/** Returns the response that a path names, for a caller that may see it. */
async function opened(
  context: GuardedContext,
  parts: DoorParts,
): Promise<{ readonly id: ResponsePlace; readonly caller: Caller }> {
  const caller = callerOf(context, parts);
  const name = context.req.param('id') ?? '';
  const id = readId(name);
  await openRun(parts.place, { principal: caller.principal, right: 'read', run: id.run });
  await requireTurn(parts.place, id, { name, field: 'id' });
  return { id, caller };
}

/** Returns the status of a run. Rejects with an `HttpError` (404) if the run has no such turn, or no such request. */
async function requireTurn(
  place: Place,
  { run, turn: asked, after = 0 }: ResponsePlace,
  { name, field }: { readonly name: string; readonly field: ResponseField },
): Promise<ReadStatus> {
  const status = await place.api.status(run);
  const { turn, queued } = status;
  if (asked > Math.max(1, turn + queued)) throw noResponse(name, field);
  if (after > 0 && after > ((await viewOf(place, run)).state?.requests ?? 0)) {
    throw noResponse(name, field);
  }
  return status;
}

/**
 * Rejects with a `RefusedError` if the run waits for calls of the client, which a new message would not
 * answer.
 */
async function refuseUnexecuted(
  place: Place,
  { run, id, pending }: { readonly run: string; readonly id: string } & Pick<ReadStatus, 'pending'>,
): Promise<void> {
  const waiting = pending.filter(({ kind }) => kind === 'client_tool');
  if (waiting.length === 0) return;
  const { state } = await viewOf(place, run);
  // The client sends the message again whose turn has made the calls.
  if (state?.inbox.seen.some(([seen]) => seen === id)) return;
  const names = waiting.map(({ call = '' }) => clientCallId({ run, call })).join(', ');
  throw new RefusedError(
    `input: the run waits for the results of ${visible(names)}; send them as function_call_output first`,
  );
}

/** Returns the sequence number after which a stream begins; -1 for its beginning. */
function readPosition(text: string | undefined): number {
  if (text === undefined) return -1;
  if (/^\d{1,12}$/.test(text)) return Number(text);
  throw new InputError(
    `starting_after: expected the sequence number of an event, got ${show(text)}; omit it for the whole stream`,
  );
}

/** Returns a flag of the query; false without it. */
function readFlag(name: string, text: string | undefined): boolean {
  if (text === undefined || text === 'true' || text === 'false') return text === 'true';
  throw new InputError(`${name}: expected true or false, got ${show(text)}; omit it for false`);
}

/** The fields that name a response. */
type ResponseField = 'id' | 'previous_response_id';

function readId(id: string, field: ResponseField = 'id'): ResponsePlace {
  const found = readResponseId(id);
  if (found !== null) return found;
  throw noResponse(id, field);
}

function noResponse(id: string, field: ResponseField): HttpError {
  return new HttpError(404, 'not_found', `${field}: there is no response "${shorten(id, 100)}"`, {
    fix: 'give the `id` of a response that this server has returned to you',
  });
}

async function createResponse(context: GuardedContext, parts: DoorParts): Promise<Response> {
  const { place, waitMs } = parts;
  const caller = callerOf(context, parts);
  const body = readOpenAi(responseBody, await readBody(context), 'response');
  const again = isRetry(context.req.header('x-stainless-retry-count'));
  const begin = async (): Promise<ResponsePlace> => {
    const { isBackground: _, ...id } = await beginResponse(place, caller, body, again);
    return body.background === true ? { ...id, isBackground: true } : id;
  };
  if (body.background === true && body.stream !== true) {
    const id = await begin();
    return answerJson(toResponse(await readState(place, id)));
  }
  return await whileRead(context, parts, async (over) => {
    const id = await begin();
    if (body.stream === true) return await streamResponse(parts, { id, after: -1, over });
    const isNew = body.previous_response_id == null && body.conversation == null;
    const mayPause = !isNew || mayCallClient(place, body.model, clientToolsOf(body.tools));
    const { signal } = over;
    if (mayPause) await waitForPart(place, id, { signal, waitMs });
    else await resultWithin(place, { ...id, signal, waitMs });
    const state = await readState(place, id);
    over.abort();
    return answerJson(toResponse(state));
  });
}

/** Starts the run of a response, sends the next message of its conversation, or answers its calls. */
async function beginResponse(
  place: Place,
  caller: Caller,
  { model, previous_response_id: previous, conversation, ...rest }: ResponseBody,
  again: boolean,
): Promise<ResponsePlace> {
  const spoken = spokenIn(rest.input);
  const clientTools = clientToolsOf(rest.tools);
  requireTools(place, model, clientTools);
  const { principal } = caller;
  const id = typeof conversation === 'string' ? conversation : conversation?.id;
  if (previous != null) {
    const field = 'previous_response_id';
    const before = readId(previous, field);
    const { run } = before;
    const { agent } = await openRun(place, { principal, right: 'talk', run });
    requireAgent(model, agent);
    const status = await requireTurn(place, before, { name: previous, field });
    const { messages, outputs } = onlyOne(spoken);
    const answered = { run, model, outputs, clientTools };
    if (outputs.length > 0) return await answerCalls(place, caller, answered);
    await requireSameTools(place, run, clientTools);
    const key = nextMessageId(caller, { previous, messages });
    await refuseUnexecuted(place, { run, id: key, pending: status.pending });
    return await sendNext(place, caller, { run, id: key, messages });
  }
  if (id != null) {
    const given = { model, conversation: id, spoken: onlyOne(spoken), clientTools, again };
    return await inConversation(place, caller, given);
  }
  const { messages, outputs } = spoken;
  if (outputs.length > 0) {
    const run = runOfCalls(outputs);
    return await answerCalls(place, caller, { run, model, outputs, clientTools });
  }
  if (messages.length === 0) throw new InputError(`input: expected a message, got none; ${SAY}`);
  const given = { model, messages, open: true, isRetry: again, sampling: rest, clientTools };
  return { run: await startOnce(place, caller, given), turn: 1 };
}

/** Throws an `InputError` for results of calls together with messages: they would be different turns. */
function onlyOne(spoken: Spoken): Spoken {
  const { messages, outputs, hasEarlier } = spoken;
  if (hasEarlier || (outputs.length > 0 && messages.length > 0)) {
    throw new InputError(
      'input: expected results of calls or messages, got both; send the message after the response to the results',
    );
  }
  if (messages.length > 0 || outputs.length > 0) return spoken;
  throw new InputError(`input: expected a message or results of calls, got none; ${SAY}`);
}

/** Sends the next message of a conversation. The same `id` is the same message. */
async function sendNext(
  place: Place,
  caller: Caller,
  given: {
    readonly run: string;
    readonly id: string;
    readonly messages: Spoken['messages'];
  },
): Promise<ResponsePlace> {
  const { run, id, messages } = given;
  const { principal } = caller;
  // The answer is the reply, so the right to send a message is not enough.
  await openRun(place, { principal, right: 'read', run });
  await openRun(place, { principal, right: 'talk', run });
  const [only] = messages;
  const text = messages.length === 1 && only ? { message: only.text } : { messages };
  const message = { ...text, id, answers: false as const };
  const api = place.as(actorOfCaller(caller));
  const sent = await api.send(run, message, { within: '30 seconds' });
  if (sent.delivered) return { run, turn: sent.turn };
  throw noWorker();
}

async function inConversation(
  place: Place,
  caller: Caller,
  given: {
    readonly model: string;
    readonly conversation: string;
    readonly spoken: Spoken;
    readonly clientTools: ClientTools;
    readonly again: boolean;
  },
): Promise<ResponsePlace> {
  const { model, conversation, spoken, clientTools, again } = given;
  const { messages, outputs } = spoken;
  const [, name = ''] = /^conv_([\w-]{1,100})$/.exec(conversation) ?? [];
  if (name === '') {
    const message = `conversation: expected an id such as conv_x, got ${show(conversation)}`;
    throw new HttpError(404, 'not_found', message, {
      fix: 'use conv_ and 1 to 100 letters, digits, "_", or "-"',
    });
  }
  const run = `${idPrefixOf(place, caller)}conversation-${name}`;
  const answered = { run, model, outputs, clientTools };
  if (outputs.length > 0) return await answerCalls(place, caller, answered);
  await beginOrResume(place, caller, { agent: model, run, clientTools }).catch((error: unknown) => {
    if (error instanceof HttpError && error.code === 'not_found') {
      throw noModel(place, caller.principal, model);
    }
    if (!IdTakenError.isInstance(error)) throw error;
    throw new IdTakenError(
      `conversation: expected one of your own, got ${show(conversation)}, whose run another request has started; create a new one`,
      { cause: error },
    );
  });
  await requireSameTools(place, run, clientTools);
  const id = await messageId(place, caller, { run, messages, isRetry: again });
  await refuseUnexecuted(place, { run, id, pending: (await place.api.status(run)).pending });
  return await sendNext(place, caller, { run, id, messages });
}

async function streamResponse(
  { place, limits }: DoorParts,
  {
    id,
    after,
    over,
  }: { readonly id: ResponsePlace; readonly after: number; readonly over: AbortController },
): Promise<Response> {
  const block = (event: ResponseEvent): string => {
    const rest = eventAfter(event, after);
    return rest === null ? '' : sseEvent({ event: rest.type, data: visibleJson(rest) });
  };
  const events = await responseEvents(place, id, { over });
  async function* blocks(): AsyncGenerator<string, void, undefined> {
    for await (const batch of events) {
      const text = batch.map(block).join('');
      if (text !== '') yield text;
    }
  }
  return sseResponse(blocks(), { over, readMs: limits.readMs });
}
