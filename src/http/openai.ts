import { randomUUID } from 'node:crypto';
import type { Hono } from 'hono';
import { IdTakenError, InputError, RefusedError } from '../core/errors.js';
import { shorten, show, visibleJson } from '../core/text/text.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { type Place, idPrefixOf, noWorker, openRun } from './access.js';
import {
  type DoorParts,
  answerJson,
  callerOf,
  openRunStream,
  readBody,
  whileRead,
} from './api-routes.js';
import { beginOrResume, requireAgent } from './chats.js';
import { type ErrorAnswer, HttpError } from './errors.js';
import type { Guarded, GuardedContext } from './guard.js';
import {
  type Caller,
  actorOfCaller,
  createHandlers,
  openToCancel,
  resultWithin,
} from './handlers.js';
import {
  chatBody,
  isRetry,
  messageId,
  messagesOf,
  nextMessageId,
  noModel,
  readOpenAi,
  type ResponseBody,
  responseBody,
  startOnce,
} from './openai-requests.js';
import {
  type ResponseEvent,
  eventAfter,
  type ResponsePlace,
  readResponseId,
  responseEncoder,
  responseId,
  toResponse,
  readState,
  withWholeAnswer,
  withWholeText,
} from './response-encoder.js';
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
    if (found === undefined) throw noModel(id);
    return answerJson(found);
  });
  app.post('/v1/conversations', () => {
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
    if (context.req.query('stream') !== 'true') {
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
  await requireTurn(parts.place, id, name);
  return { id, caller };
}

/** Rejects with an `HttpError` (404) if a run has no such turn. */
async function requireTurn(
  { api }: Pick<Place, 'api'>,
  { run, turn: asked }: ResponsePlace,
  name: string,
): Promise<void> {
  const { turn, queued } = await api.status(run);
  if (asked > Math.max(1, turn + queued)) throw noResponse(name);
}

/** Returns the sequence number after which a stream begins; -1 for its beginning. */
function readPosition(text: string | undefined): number {
  if (text === undefined) return -1;
  if (/^\d{1,12}$/.test(text)) return Number(text);
  throw new InputError(
    `starting_after: expected the sequence number of an event, got ${show(text)}; omit it for the whole stream`,
  );
}

function readId(id: string): ResponsePlace {
  const found = readResponseId(id);
  if (found !== null) return found;
  throw noResponse(id);
}

function noResponse(id: string): HttpError {
  return new HttpError(404, 'not_found', `there is no response "${shorten(id, 100)}"`);
}

async function createResponse(context: GuardedContext, parts: DoorParts): Promise<Response> {
  const { place, waitMs } = parts;
  const caller = callerOf(context, parts);
  const body = readOpenAi(responseBody, await readBody(context));
  const again = isRetry(context.req.header('x-stainless-retry-count'));
  if (body.background === true && body.stream !== true) {
    const id = await beginResponse(place, caller, body, again);
    return answerJson(toResponse(await readState(place, id)));
  }
  return await whileRead(context, parts, async (over) => {
    const id = await beginResponse(place, caller, body, again);
    if (body.stream === true) return await streamResponse(parts, { id, after: -1, over });
    await resultWithin(place, { ...id, signal: over.signal, waitMs });
    const state = await readState(place, id);
    over.abort();
    return answerJson(toResponse(state));
  });
}

/** Starts the run of a response, or sends the next message of its conversation. */
async function beginResponse(
  place: Place,
  caller: Caller,
  { model, previous_response_id: previous, conversation, ...rest }: ResponseBody,
  again: boolean,
): Promise<ResponsePlace> {
  const messages = messagesOf(rest.input);
  if (previous != null) {
    const before = readId(previous);
    const { principal } = caller;
    const { agent } = await openRun(place, { principal, right: 'talk', run: before.run });
    requireAgent(model, agent);
    await requireTurn(place, before, previous);
    const key = nextMessageId(caller, { previous, messages });
    return await sendNext(place, caller, { run: before.run, id: key, messages });
  }
  const id = typeof conversation === 'string' ? conversation : conversation?.id;
  if (id != null) {
    return await inConversation(place, caller, { model, conversation: id, messages, again });
  }
  const given = { model, messages, open: true, isRetry: again, sampling: rest };
  return { run: await startOnce(place, caller, given), turn: 1 };
}

/** Sends the next message of a conversation. The same `id` is the same message. */
async function sendNext(
  place: Place,
  caller: Caller,
  given: {
    readonly run: string;
    readonly id: string;
    readonly messages: ReturnType<typeof messagesOf>;
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
    readonly messages: ReturnType<typeof messagesOf>;
    readonly again: boolean;
  },
): Promise<ResponsePlace> {
  const { model, conversation, messages, again } = given;
  const [, name = ''] = /^conv_([\w-]{1,100})$/.exec(conversation) ?? [];
  if (name === '') throw new HttpError(404, 'not_found', 'there is no such conversation');
  const run = `${idPrefixOf(place, caller)}conversation-${name}`;
  await beginOrResume(place, caller, { agent: model, run }).catch((error: unknown) => {
    if (!IdTakenError.isInstance(error)) throw error;
    throw new IdTakenError(
      `conversation: expected one of your own, got ${show(conversation)}, whose run another request has started; create a new one`,
      { cause: error },
    );
  });
  const id = await messageId(place, caller, { run, messages, isRetry: again });
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
  const state = await readState(place, id);
  const stream = await openRunStream(place, { run: id.run, over });
  const encoder = responseEncoder(state);
  const block = (event: ResponseEvent): string => {
    const rest = eventAfter(event, after);
    return rest === null ? '' : sseEvent({ event: rest.type, data: visibleJson(rest) });
  };
  async function* blocks(): AsyncGenerator<string, void, undefined> {
    yield encoder.begin().map(block).join('');
    for await (const batch of stream.batches) {
      for (const step of batch) {
        const { events, isOver } = encoder.advance(await withWholeText(step, place.blobs));
        const text = events.map(block).join('');
        if (text !== '') yield text;
        if (isOver) return;
      }
    }
  }
  return sseResponse(blocks(), { over, readMs: limits.readMs });
}

const FINISHED = {
  completed: 'stop',
  stopped: 'length',
  cancelled: 'stop',
  failed: 'stop',
} as const;

async function completeChat(context: GuardedContext, parts: DoorParts): Promise<Response> {
  const { place, limits, waitMs } = parts;
  const caller = callerOf(context, parts);
  const body = readOpenAi(chatBody, await readBody(context));
  const again = isRetry(context.req.header('x-stainless-retry-count'));
  const messages = messagesOf(body.messages);
  const given = { model: body.model, messages, open: false, isRetry: again, sampling: body };
  return await whileRead(context, parts, async (over) => {
    const { signal } = over;
    const run = await startOnce(place, caller, given);
    const created = Math.floor(Date.now() / 1_000);
    const base = { id: `chatcmpl-${responseId({ run, turn: 1 })}`, created, model: body.model };
    if (body.stream === true) {
      return sseResponse(chatChunks(place, { run, base, signal }), { over, readMs: limits.readMs });
    }
    const ended = await resultWithin(place, { run, signal, waitMs });
    over.abort();
    if (ended === null) throw notEnded(run);
    const outcome = await withWholeAnswer(ended, place.blobs);
    if (outcome.status === 'failed') throw new HttpError(500, 'unexpected', failureOf(outcome));
    const message = { role: 'assistant', content: outcome.answer ?? '', refusal: null };
    const choice = { index: 0, message, finish_reason: FINISHED[outcome.status], logprobs: null };
    const usage = usageOf(outcome);
    return answerJson({ ...base, object: 'chat.completion', choices: [choice], usage });
  });
}

function notEnded(run: string): HttpError {
  return new HttpError(504, 'not_ended', `run "${run}" has not ended yet; it goes on`, {
    fix: `GET /v1/runs/${encodeURIComponent(run)}/result waits for its end; /v1/responses runs in the background`,
    headers: { 'x-should-retry': 'false' },
  });
}

function failureOf(outcome: Outcome): string {
  return outcome.error ?? `the run has failed: ${outcome.reason}`;
}

function usageOf({ usage }: Outcome) {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}

async function* chatChunks(
  { api }: Place,
  {
    run,
    base,
    signal,
  }: { readonly run: string; readonly base: object; readonly signal: AbortSignal },
): AsyncGenerator<string, void, undefined> {
  const chunk = (delta: object, finish: string | null = null): string => {
    const choices = [{ index: 0, delta, finish_reason: finish, logprobs: null }];
    return sseEvent({ data: visibleJson({ ...base, object: 'chat.completion.chunk', choices }) });
  };
  yield chunk({ role: 'assistant', content: '' });
  for await (const content of api.text(run, { turn: 1, signal })) yield chunk({ content });
  const outcome = await api.result(run, { signal });
  if (outcome.status === 'failed') {
    const error = { message: failureOf(outcome), type: 'server_error', code: null, param: null };
    yield sseEvent({ data: visibleJson({ error }) });
  } else yield chunk({}, FINISHED[outcome.status]);
  yield sseEvent({ data: '[DONE]' });
}
