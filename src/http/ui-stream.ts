import type { Hono } from 'hono';
import { z } from 'zod';
import { InputError, RefusedError } from '../core/errors.js';
import { askingWork } from '../core/requests/open-requests.js';
import { visibleJson } from '../core/text/text.js';
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
  readOwn,
  refuseUnanswered,
  requestsAt,
  requireServed,
  runOf,
  sayIn,
  unreadableRequests,
  viewOf,
} from './chats.js';
import type { Guarded, GuardedContext } from './guard.js';
import { createHandlers, ownId } from './handlers.js';
import { clientId } from './input-fields.js';
import { sseEvent, sseResponse } from '../live/sse.js';
import { type Answers, type Chunk, NO_ANSWERS, uiEncoder } from './ui-encoder.js';

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
  readonly parts: { readonly type: 'text'; readonly text: string; readonly state: 'done' }[];
}

const chatBody = z.looseObject({
  id: clientId,
  messages: z
    .array(z.looseObject({ id: z.string(), role: z.string(), parts: z.array(part) }))
    .min(1),
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

/** Reads the last message only: what else the client says of the conversation is never believed. */
function readChat(body: unknown): { readonly chat: string; readonly meaning: Meaning } {
  const read = chatBody.safeParse(body);
  const last = read.data?.messages.at(-1);
  if (!read.success || last === undefined) {
    const [issue] = read.error?.issues ?? [];
    throw new InputError(`${issue?.path.join('.') ?? 'body'}: ${issue?.message ?? 'not valid'}`);
  }
  const { id: chat } = read.data;
  if (last.role === 'user') {
    const text = last.parts
      .flatMap((one) => (one.type === 'text' ? (one.text ?? []) : []))
      .join('\n');
    return { chat, meaning: { type: 'message', id: last.id, text } };
  }
  const approvals = last.parts.flatMap(({ approval }) => {
    const [, request, digest] = /^(r[1-9]\d{0,8})\.([0-9a-f]{64})$/.exec(approval?.id ?? '') ?? [];
    if (approval?.approved === undefined || request === undefined || digest === undefined)
      return [];
    return [{ request, digest, approved: approval.approved, reason: approval.reason }];
  });
  if (last.role === 'assistant' && approvals.length > 0) {
    const calls = last.parts.flatMap(({ toolCallId }) => toolCallId ?? []);
    const [, turn] = /^turn-([1-9]\d{0,8})$/.exec(last.id) ?? [];
    const shown = { calls, turn: turn === undefined ? null : Number(turn) };
    return { chat, meaning: { type: 'decisions', approvals, ...shown } };
  }
  throw new InputError(
    'messages: expected a last message of the user, or one with answers to approvals',
  );
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
    const { chat, meaning } = readChat(await readBody(context));
    const run = runOf(caller, { door: 'chat', agent, id: chat, prefix: idPrefixOf(place, caller) });
    if (meaning.type === 'message') {
      const { id, text } = meaning;
      await refuseUnanswered(place, caller, { run, ids: [id], fix: ANSWER_PARTS });
      await beginOrResume(place, caller, { agent, run });
      const turn = await sayIn(place, caller, { run, id, text });
      return await streamTurn(context, parts, { run, turn, answers: NO_ANSWERS });
    }
    await openRun(place, { principal: caller.principal, right: 'read', run });
    const { approvals, calls } = meaning;
    const { turn, open } = await openAmong(place, run, meaning);
    const decisions = open.map(({ request, digest, approved, reason }) => ({
      request,
      digest,
      as: approved ? ('approve' as const) : ('deny' as const),
      ...(reason !== undefined && { note: reason }),
    }));
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
    const shown: ShownMessage[] = [];
    for (const one of messages) {
      const { text, turn, n } = one;
      if (one.role === 'tool' || text === '') continue;
      const said = { type: 'text', text, state: 'done' } as const;
      if (one.role === 'user') {
        if (one.origin !== undefined) continue;
        const own = one.id ? ownId(caller, one.id) : undefined;
        shown.push({ id: own || `message-${n}`, role: 'user', parts: [said] });
      } else if (!isMoving || turn !== found.turn) {
        // As in the stream: one message a turn.
        const own = `turn-${turn}`;
        const known = shown.find((message) => message.id === own && message.role === 'assistant');
        if (known === undefined) shown.push({ id: own, role: 'assistant', parts: [said] });
        else known.parts.push(said);
      }
    }
    return answerJson(shown);
  });
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
  const [now, last] = [state.turn.number, Math.max(state.turn.number, state.inbox.lastTurn)];
  const isRecent = state.recent.some((ended) => ended.turn === turn);
  const isKnown = turn !== null && turn <= last && (turn >= now || isRecent);
  return {
    turn: isKnown ? turn : now,
    open: approvals.filter(({ request }) => asking.has(request)),
  };
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
