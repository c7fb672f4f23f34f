import { InputError } from '../core/errors.js';
import { show, visibleJson } from '../core/text/text.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { sseEvent, sseResponse } from '../live/sse.js';
import type { Place } from './access.js';
import { type DoorParts, answerJson, callerOf, readBody, whileRead } from './api-routes.js';
import { HttpError } from './errors.js';
import type { GuardedContext } from './guard.js';
import { type Caller, resultWithin } from './handlers.js';
import { answerCalls, runOfCalls } from './openai-answers.js';
import {
  type ChatBody,
  chatBody,
  isRetry,
  readOpenAi,
  spokenInChat,
  startOnce,
} from './openai-requests.js';
import { clientToolsOf, mayCallClient, requireTools } from './openai-tools.js';
import { type ResponseState, argumentsOf } from './response-encoder.js';
import { type ResponsePlace, clientCallId, responseId } from './response-ids.js';
import { readState, responseEvents, waitForPart, withWholeAnswer } from './response-state.js';

const FINISHED = {
  completed: 'stop',
  stopped: 'length',
  cancelled: 'stop',
  failed: 'stop',
} as const;

/** Answers `POST /v1/chat/completions`. */
export async function completeChat(context: GuardedContext, parts: DoorParts): Promise<Response> {
  const { place, limits, waitMs } = parts;
  const caller = callerOf(context, parts);
  const body = readOpenAi(chatBody, await readBody(context), 'chat');
  const again = isRetry(context.req.header('x-stainless-retry-count'));
  return await whileRead(context, parts, async (over) => {
    const { signal } = over;
    const id = await beginChat(place, caller, body, again);
    const { run } = id;
    const created = Math.floor(Date.now() / 1_000);
    const base = { id: `chatcmpl-${responseId(id)}`, created, model: body.model };
    const mayPause =
      id.after !== undefined || mayCallClient(place, body.model, clientToolsOf(body.tools));
    if (body.stream === true) {
      const chunks = mayPause
        ? eventChunks(place, { id, base, over })
        : chatChunks(place, { run, base, signal });
      return sseResponse(chunks, { over, readMs: limits.readMs });
    }
    let ended: Completed = { place: id, outcome: null, calls: [], usage: null };
    if (mayPause) {
      await waitForPart(place, id, { signal, waitMs });
      ended = await readState(place, id);
    } else {
      const outcome = await resultWithin(place, { run, signal, waitMs });
      ended = { ...ended, outcome: outcome && (await withWholeAnswer(outcome, place.blobs)) };
    }
    over.abort();
    return answerJson({ ...base, object: 'chat.completion', ...completionOf(ended) });
  });
}

/** Starts the run of a chat completion, or continues the one whose calls the client has executed. */
async function beginChat(
  place: Place,
  caller: Caller,
  body: ChatBody,
  again: boolean,
): Promise<ResponsePlace> {
  const { model } = body;
  const { messages, outputs } = spokenInChat(body.messages);
  const clientTools = clientToolsOf(body.tools);
  requireTools(place, model, clientTools);
  if (outputs.length > 0) {
    const run = runOfCalls(outputs);
    return await answerCalls(place, caller, { run, model, outputs, clientTools });
  }
  if (messages.length === 0) {
    const at = body.messages.length - 1;
    const got = show(body.messages.at(at)?.content);
    throw new InputError(
      `messages[${at}].content: expected text, got ${got}; end \`messages\` with what the user says`,
    );
  }
  const given = { model, messages, open: false, isRetry: again, sampling: body, clientTools };
  return { run: await startOnce(place, caller, given), turn: 1 };
}

type Completed = Pick<ResponseState, 'place' | 'outcome' | 'calls' | 'usage'>;

/** Returns the choice and the usage of a completion. Throws an `HttpError` for one that has failed or goes on. */
function completionOf({ place: { run, after }, outcome, calls, usage }: Completed) {
  const logprobs = null;
  if (calls.length > 0) {
    const called = calls.map((call) => toolCallOf(run, call));
    const message = { role: 'assistant', content: null, refusal: null, tool_calls: called };
    return {
      choices: [{ index: 0, message, finish_reason: 'tool_calls', logprobs }],
      usage: usageOf(usage),
    };
  }
  if (outcome === null) throw notEnded(run);
  if (outcome.status === 'failed') throw new HttpError(500, 'unexpected', failureOf(outcome));
  const message = { role: 'assistant', content: outcome.answer ?? '', refusal: null };
  return {
    choices: [{ index: 0, message, finish_reason: FINISHED[outcome.status], logprobs }],
    usage: usageOf(after === undefined ? outcome.usage : usage),
  };
}

function toolCallOf(run: string, call: ResponseState['calls'][number]) {
  return {
    id: clientCallId({ run, call: call.id }),
    type: 'function',
    function: { name: call.name, arguments: argumentsOf(call) },
  };
}

function notEnded(run: string): HttpError {
  return new HttpError(504, 'not_ended', `run "${run}" has not ended yet; it goes on`, {
    fix: `GET /v1/runs/${encodeURIComponent(run)}/result waits for its end; /v1/responses runs in the background`,
    headers: { 'x-should-retry': 'false' },
  });
}

function failureOf(outcome: Pick<Outcome, 'error' | 'reason'>): string {
  return outcome.error ?? `the run has failed: ${outcome.reason}`;
}

function usageOf(usage: ResponseState['usage']) {
  const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}

/** Returns the writer of the chunks of a completion. */
function chunkWriter(base: object) {
  return (delta: object, finish: string | null = null): string => {
    const choices = [{ index: 0, delta, finish_reason: finish, logprobs: null }];
    return sseEvent({ data: visibleJson({ ...base, object: 'chat.completion.chunk', choices }) });
  };
}

function failedChunk(outcome: Pick<Outcome, 'error' | 'reason'>): string {
  return errorChunk(failureOf(outcome));
}

function errorChunk(message: string): string {
  const error = { message, type: 'server_error', code: null, param: null };
  return sseEvent({ data: visibleJson({ error }) });
}

/** Text that was sent does not count: its attempt has failed, or its answer was refused. */
class VoidText extends Error {}

function refuseText(): never {
  throw new VoidText();
}

/** Returns the end of a stream whose text does not count. The protocol has no way to take it back. */
function voidChunk(run: string): string {
  return errorChunk(
    `the text so far does not count, because a model call has failed or its answer was refused; the run goes on: GET /v1/runs/${encodeURIComponent(run)}/result has the answer`,
  );
}

async function* chatChunks(
  { api }: Place,
  {
    run,
    base,
    signal,
  }: { readonly run: string; readonly base: object; readonly signal: AbortSignal },
): AsyncGenerator<string, void, undefined> {
  const chunk = chunkWriter(base);
  yield chunk({ role: 'assistant', content: '' });
  try {
    for await (const content of api.text(run, { turn: 1, signal, onReset: refuseText }))
      yield chunk({ content });
  } catch (error) {
    if (!(error instanceof VoidText)) throw error;
    return yield voidChunk(run);
  }
  const outcome = await api.result(run, { signal });
  yield outcome.status === 'failed' ? failedChunk(outcome) : chunk({}, FINISHED[outcome.status]);
  yield sseEvent({ data: '[DONE]' });
}

/** Yields the chunks of a completion that may end with calls for the client. */
async function* eventChunks(
  place: Place,
  {
    id,
    base,
    over,
  }: { readonly id: ResponsePlace; readonly base: object; readonly over: AbortController },
): AsyncGenerator<string, void, undefined> {
  const chunk = chunkWriter(base);
  yield chunk({ role: 'assistant', content: '' });
  let isBroken = false;
  let shown = '';
  let isVoid = false;
  for await (const batch of await responseEvents(place, id, { over })) {
    for (const { type, delta, text } of batch) {
      if (type === 'response.output_text.done') {
        isBroken = true;
        isVoid ||= text !== shown;
        shown = '';
      }
      if (type !== 'response.output_text.delta' || delta === undefined) continue;
      if (isVoid) return yield voidChunk(id.run);
      yield chunk({ content: isBroken ? `\n\n${delta}` : delta });
      shown += delta;
      isBroken = false;
    }
  }
  const { outcome, calls } = await readState(place, id);
  if (isVoid && outcome?.status !== 'cancelled') return yield voidChunk(id.run);
  const called = calls.map((call, index) => ({ index, ...toolCallOf(id.run, call) }));
  if (calls.length > 0) {
    yield chunk({ tool_calls: called });
    yield chunk({}, 'tool_calls');
  } else if (outcome !== null) {
    yield outcome.status === 'failed' ? failedChunk(outcome) : chunk({}, FINISHED[outcome.status]);
  }
  yield sseEvent({ data: '[DONE]' });
}
