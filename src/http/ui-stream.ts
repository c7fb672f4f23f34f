import type { Hono } from 'hono';
import { z } from 'zod';
import { InputError, NoRunError, RefusedError } from '../core/errors.js';
import { askingWork } from '../core/requests/open-requests.js';
import { parseJson } from '../core/text/json.js';
import type { RunState } from '../core/state/state.js';
import { actorText } from '../core/state/summaries.js';
import { shorten, show, visibleJson } from '../core/text/text.js';
import type { AssistantMessage, ToolMessage } from '../core/transcript/messages.js';
import { MAX_NOTE_CHARACTERS } from '../core/transcript/request.js';
import { type Place, idPrefixOf, openRun } from './access.js';
import {
  type DoorParts,
  answerJson,
  callerOf,
  openRunStream,
  readBody,
  whileRead,
} from './api-routes.js';
import {
  beginOrResume,
  noConversation,
  readOwn,
  refuseUnanswered,
  requestsAt,
  requireServed,
  runOf,
  sayIn,
  servedInput,
  unreadableRequests,
  viewOf,
  refuseDiverged,
  type ShownId,
} from './chats.js';
import type { Guarded, GuardedContext } from './guard.js';
import { createHandlers, ownId } from './handlers.js';
import { clientId } from './input-fields.js';
import { sseEvent, sseResponse } from '../live/sse.js';
import { type Answers, type Chunk, NO_ANSWERS, uiEncoder } from './ui-encoder.js';
import { firstIssue } from '../validation/check-options.js';
import { requestIssue } from '../validation/request-issues.js';

const part = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  toolCallId: z.string().optional(),
  approval: z
    .looseObject({
      id: z.string(),
      approved: z.boolean().optional(),
      reason: z.string().max(MAX_NOTE_CHARACTERS).optional(),
    })
    .optional(),
});
/** A message in the form of the AI SDK, as a client keeps it. */
interface ShownMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: (TextPart | CallPart)[];
}

interface TextPart {
  readonly type: 'text';
  readonly text: string;
  readonly state: 'done';
}

/** A call of an ended turn. A client sends all parts back with each message, so long results are cut. */
interface CallPart {
  readonly type: 'dynamic-tool';
  readonly toolName: string;
  readonly toolCallId: string;
  readonly providerExecuted: true;
  readonly input: unknown;
  readonly state: 'output-available' | 'output-error';
  readonly output?: unknown;
  readonly errorText?: string;
}

/** The characters that are left of a result. */
const MAX_RESULT = 2_000;

/** Returns the calls of a reply that have results. */
function callsOf(
  { calls = [] }: AssistantMessage,
  results: ReadonlyMap<string, ToolMessage>,
): readonly CallPart[] {
  return calls.flatMap(({ id, name, arguments: given }): readonly CallPart[] => {
    const result = results.get(id);
    if (result === undefined) return [];
    const { ok } = result;
    const text = shorten(result.text, MAX_RESULT);
    const call = {
      type: 'dynamic-tool',
      toolName: name,
      toolCallId: id,
      providerExecuted: true,
      input: parseJson(given) ?? given,
    } as const;
    return ok === false
      ? [{ ...call, state: 'output-error', errorText: text }]
      : [{ ...call, state: 'output-available', output: parseJson(text) ?? text }];
  });
}

/** The maximum length of the id of a message, which a run keeps. */
const MAX_MESSAGE_ID = 200;

const chatBody = z.looseObject({
  id: clientId,
  messages: z
    .array(z.looseObject({ id: z.string(), role: z.string(), parts: z.array(part) }))
    .min(1, 'expected at least one message'),
});

/** What the client's request means: a message, or answers to approvals that it has shown. */
type Meaning =
  | { readonly type: 'message'; readonly id: string; readonly text: string }
  | {
      readonly type: 'decisions';
      readonly approvals: readonly Approval[];
      /** The calls that the message shows. */
      readonly calls: readonly string[];
      /** The turn whose stream has made the message; null if its id does not tell. */
      readonly turn: number | null;
    };

interface Approval {
  readonly request: string;
  readonly digest: string;
  readonly approved: boolean;
  readonly reason: string | undefined;
}

const CHAT_FORM =
  '{ "id": "CHAT", "messages": [{ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": "…" }] }] }, as useChat does';

/**
 * Reads the last message only: what else the client says of the conversation is never believed. `earlier`: which
 * messages it shows before that.
 */
function readChat(body: unknown): {
  readonly chat: string;
  readonly meaning: Meaning;
  readonly earlier: readonly ShownId[];
} {
  const read = chatBody.safeParse(body, { error: requestIssue });
  const at = (read.data?.messages.length ?? 0) - 1;
  const last = read.data?.messages.at(-1);
  if (!read.success || last === undefined) {
    throw new InputError(`${firstIssue(read.error?.issues, body)}; send ${CHAT_FORM}`);
  }
  const { id: chat, messages } = read.data;
  const earlier = messages.slice(0, -1);
  if (last.role === 'user') return { chat, meaning: readMessage(last, `messages[${at}]`), earlier };
  const approvals = last.parts.flatMap(({ approval }, index) => {
    if (approval?.approved === undefined) return [];
    const { id, approved, reason } = approval;
    return [{ ...readApprovalId(id, `messages[${at}].parts[${index}]`), approved, reason }];
  });
  if (last.role === 'assistant' && approvals.length > 0) {
    const calls = last.parts.flatMap(({ toolCallId }) => toolCallId ?? []);
    const [, turn] = /^turn-([1-9]\d{0,8})$/.exec(last.id) ?? [];
    const shown = { calls, turn: turn === undefined ? null : Number(turn) };
    return { chat, meaning: { type: 'decisions', approvals, ...shown }, earlier };
  }
  throw new InputError(
    `messages: expected a last message of the user, or one with answers to approvals, got one with the role ${show(last.role)}; send ${CHAT_FORM}`,
  );
}

/** Reads the id of an approval. Throws an `InputError` if it is not one that a stream has. */
function readApprovalId(id: string, path: string): Pick<Approval, 'request' | 'digest'> {
  const [, request, digest] = /^(r[1-9]\d{0,8})\.([0-9a-f]{64})$/.exec(id) ?? [];
  if (request !== undefined && digest !== undefined) return { request, digest };
  throw new InputError(
    `${path}.approval.id: expected a request and its digest, as in r1.<64 hex digits>, got ${show(id)}; give the id of the part that asks`,
  );
}

/** Reads the message of a user. Throws an `InputError` before anything starts for it. */
function readMessage(
  { id, parts: given }: { readonly id: string; readonly parts: readonly z.output<typeof part>[] },
  path: string,
): Extract<Meaning, { type: 'message' }> {
  if (id === '' || id.length > MAX_MESSAGE_ID) {
    throw new InputError(
      `${path}.id: expected 1 to ${MAX_MESSAGE_ID} characters, got ${id.length}`,
    );
  }
  const file = given.findIndex(({ type }) => type === 'file');
  if (file !== -1) {
    throw new InputError(
      `${path}.parts[${file}].type: expected text, got "file"; this server takes no other parts`,
    );
  }
  const text = given.flatMap((one) => (one.type === 'text' ? (one.text ?? []) : [])).join('\n');
  if (text.trim() === '') {
    throw new InputError(`${path}.parts: expected text, got ${text === '' ? 'none' : show(text)}`);
  }
  return { type: 'message', id, text };
}

const ANSWER_PARTS =
  'answer them where they are shown, or in the console, and send the message again';

/** Adds the routes for `useChat` of the AI SDK: `/v1/ui/{agent}`. */
export function addUiRoutes(app: Hono<Guarded>, parts: DoorParts): void {
  const { place } = parts;
  const handlers = createHandlers(place);
  app.post('/v1/ui/:agent', async (context) => {
    const agent = context.req.param('agent');
    const caller = callerOf(context, parts);
    const body = await readBody(context);
    const { chat, meaning, earlier } = servedInput(parts, { caller, agent }, () => readChat(body));
    const run = runOf(caller, { door: 'chat', agent, id: chat, prefix: idPrefixOf(place, caller) });
    if (meaning.type === 'message') {
      const { id, text } = meaning;
      await refuseUnanswered(place, caller, { run, ids: [id], fix: ANSWER_PARTS });
      await refuseDiverged(place, caller, { run, id, earlier });
      await beginOrResume(place, caller, { agent, run });
      const turn = await sayIn(place, caller, { run, id, text });
      return await streamTurn(context, parts, { run, turn, answers: NO_ANSWERS });
    }
    await openRun(place, { principal: caller.principal, right: 'read', run }).catch(
      (error: unknown) => {
        throw NoRunError.isInstance(error) ? noConversation('id', { agent, id: chat }) : error;
      },
    );
    const { approvals, calls } = meaning;
    const { turn, open } = await openAmong(place, run, meaning);
    const decisions = open.map(decisionOf);
    if (decisions.length > 0) await handlers.decide({ run, decisions }, caller);
    const answered = open.length > 0 ? open : approvals.slice(-1);
    const answers = { requests: answered.map(({ request }) => request), calls };
    return await streamTurn(context, parts, { run, turn, answers });
  });
  app.get('/v1/ui/:agent/:id/stream', async (context) => {
    const { agent, id } = context.req.param();
    const caller = callerOf(context, parts);
    const run = runOf(caller, { door: 'chat', agent, id, prefix: idPrefixOf(place, caller) });
    const found = await readOwn(place, caller, run);
    if (found === null) requireServed(place, caller, agent);
    const isMoving = found !== null && !['waiting_message', 'done'].includes(found.status);
    if (!isMoving) return new Response(null, { status: 204 });
    // Before a worker has seen the run, its first turn waits.
    const turn = Math.max(1, found.turn);
    return await streamTurn(context, parts, { run, turn, answers: NO_ANSWERS });
  });
  app.get('/v1/ui/:agent/:id/messages', async (context) => {
    const { agent, id } = context.req.param();
    const caller = callerOf(context, parts);
    const run = runOf(caller, { door: 'chat', agent, id, prefix: idPrefixOf(place, caller) });
    const found = await readOwn(place, caller, run);
    if (found === null) {
      requireServed(place, caller, agent);
      return answerJson([]);
    }
    const isMoving = !['waiting_message', 'done'].includes(found.status);
    const { messages } = await place.api.transcript(run);
    const results = new Map(
      messages.flatMap((one) => (one.role === 'tool' ? [[one.callId, one] as const] : [])),
    );
    const shown: ShownMessage[] = [];
    for (const one of messages) {
      const { text, turn, n } = one;
      const said: readonly TextPart[] = text === '' ? [] : [{ type: 'text', text, state: 'done' }];
      if (one.role === 'user') {
        if (one.origin !== undefined || said.length === 0) continue;
        const own = one.id ? ownId(caller, one.id) : undefined;
        shown.push({ id: own || `message-${n}`, role: 'user', parts: [...said] });
      } else if (one.role === 'assistant' && (!isMoving || turn !== found.turn)) {
        const all = [...said, ...callsOf(one, results)];
        if (all.length === 0) continue;
        // As in the stream: one message a turn.
        const own = `turn-${turn}`;
        const known = shown.find((message) => message.id === own && message.role === 'assistant');
        if (known === undefined) shown.push({ id: own, role: 'assistant', parts: all });
        else known.parts.push(...all);
      }
    }
    return answerJson(shown);
  });
}

/** Returns an answer as a decision. */
function decisionOf({ request, digest, approved, reason }: Approval) {
  const as = approved ? ('approve' as const) : ('deny' as const);
  return { request, digest, as, ...(reason !== undefined && { note: reason }) };
}

/**
 * Returns the turn of a message with answers, and those to requests that are open; the client repeats the
 * others, which have been recorded. Rejects with a `RefusedError` if one is about a request that the run never had.
 */
async function openAmong(
  place: Place,
  run: string,
  { approvals, turn }: Extract<Meaning, { type: 'decisions' }>,
): Promise<{ readonly turn: number; readonly open: readonly Approval[] }> {
  const { state } = await viewOf(place, run);
  const made = state?.requests ?? 0;
  const unknown = approvals.find(({ request }) => Number(request.slice(1)) > made);
  if (state === null || unknown !== undefined) {
    throw new RefusedError(
      `messages: expected answers to requests of the run, got one to ${unknown?.request}`,
      { reason: 'unknown_request' },
    );
  }
  const asking = new Set(askingWork(state).map(({ request }) => request.id));
  refuseOther(state, approvals, asking);
  const [now, last] = [state.turn.number, Math.max(state.turn.number, state.inbox.lastTurn)];
  const isRecent = state.recent.some((ended) => ended.turn === turn);
  const isKnown = turn !== null && turn <= last && (turn >= now || isRecent);
  return {
    turn: isKnown ? turn : now,
    open: approvals.filter(({ request }) => asking.has(request)),
  };
}

/**
 * Throws a `RefusedError` if the answer that a message adds is another one than was recorded. An equal one
 * is a repeat. Earlier answers of the message stay in it, whatever became of them.
 */
function refuseOther(
  state: RunState,
  approvals: readonly Approval[],
  asking: ReadonlySet<string>,
): void {
  const newest = approvals.at(-1);
  if (newest === undefined || approvals.some(({ request }) => asking.has(request))) return;
  const made = state.decisions?.findLast(({ request }) => request === newest.request);
  const other = newest.approved ? ['deny'] : ['approve', 'some', 'edit'];
  if (made?.as === undefined || !other.includes(made.as)) return;
  const by = made.by === undefined ? '' : `, by ${actorText({ by: made.by })}`;
  throw new RefusedError(`request: ${newest.request} has already been decided (${made.as}${by})`, {
    reason: 'decided',
  });
}

/**
 * Streams a turn: from its beginning, as a client that connects again needs it, or after the answers to
 * requests. Ends with the turn, and when the run waits for an answer of the client.
 */
async function streamTurn(
  context: GuardedContext,
  parts: DoorParts,
  {
    run,
    turn,
    answers,
  }: { readonly run: string; readonly turn: number; readonly answers: Answers },
): Promise<Response> {
  const { place, limits } = parts;
  return await whileRead(context, parts, async (over) => {
    const stream = await openRunStream(place, { run, over });
    const encoder = uiEncoder(turn, answers);
    async function* blocks(): AsyncGenerator<string, void, undefined> {
      yield block([{ type: 'start', messageId: `turn-${turn}` }]);
      for await (const batch of stream.batches) {
        for (const event of batch) {
          const { chunks, isOver } = encoder.advance(event);
          if (chunks.length > 0) yield block(chunks);
          if (isOver) return yield sseEvent({ data: '[DONE]' });
        }
        const pending = await requestsAt(place, run, {
          reader: encoder,
          signal: over.signal,
        }).catch((error: unknown) => unreadableRequests(parts, run, error));
        if (pending === null) continue;
        const isReadable = typeof pending !== 'string';
        yield block(isReadable ? encoder.wait(pending, run) : encoder.fail(pending));
        return yield sseEvent({ data: '[DONE]' });
      }
    }
    const headers = { 'x-vercel-ai-ui-message-stream': 'v1' };
    return sseResponse(blocks(), { over, readMs: limits.readMs, headers });
  });
}

/** Returns chunks as server-sent events. */
function block(chunks: readonly Chunk[]): string {
  return chunks.map((chunk) => sseEvent({ data: visibleJson(chunk) })).join('');
}
