import type { Hono } from 'hono';
import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { parseJson } from '../core/text/json.js';
import { visibleJson } from '../core/text/text.js';
import type { ToolCall, ToolMessage } from '../core/transcript/messages.js';
import type { Outcome } from '../core/transcript/outcome.js';
import type { StreamEvent } from '../live/stream.js';
import { openRun } from './access.js';
import {
  type DoorParts,
  answerJson,
  callerOf,
  openRunStream,
  readBody,
  whileRead,
} from './api-routes.js';
import { readOwn, runOf, sayIn } from './chats.js';
import type { Guarded, GuardedContext } from './guard.js';
import { createHandlers, ownId, startFor } from './handlers.js';
import { sseEvent, sseResponse } from './sse.js';

/** A chunk of the UI message stream of the AI SDK. */
type Chunk = Readonly<Record<string, unknown>> & { readonly type: string };

const part = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  approval: z
    .looseObject({
      id: z.string(),
      approved: z.boolean().optional(),
      reason: z.string().max(2_000).optional(),
    })
    .optional(),
});
const chatBody = z.looseObject({
  id: z.string().min(1).max(200),
  messages: z
    .array(z.looseObject({ id: z.string(), role: z.string(), parts: z.array(part) }))
    .min(1),
});

/** What the client's request means: a message, or answers to approvals that it has shown. */
type Meaning =
  | { readonly type: 'message'; readonly id: string; readonly text: string }
  | { readonly type: 'decisions'; readonly approvals: readonly Approval[] };

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
    const [, request, digest] = /^(r\d{1,9})\.([0-9a-f]{64})$/.exec(approval?.id ?? '') ?? [];
    if (approval?.approved === undefined || request === undefined || digest === undefined)
      return [];
    return [{ request, digest, approved: approval.approved, reason: approval.reason }];
  });
  if (last.role === 'assistant' && approvals.length > 0) {
    return { chat, meaning: { type: 'decisions', approvals } };
  }
  throw new InputError(
    'messages: expected a last message of the user, or one with answers to approvals',
  );
}

/** Adds the routes for `useChat` of the AI SDK: `/v1/ui/{agent}`. */
export function addUiRoutes(app: Hono<Guarded>, parts: DoorParts): void {
  const { place } = parts;
  const handlers = createHandlers(place);
  app.post('/v1/ui/:agent', async (context) => {
    const agent = context.req.param('agent');
    const caller = callerOf(context, parts);
    const { chat, meaning } = readChat(await readBody(context));
    const run = runOf(caller, { door: 'chat', agent, id: chat });
    if (meaning.type === 'message') {
      await startFor(place, caller, { agent, id: run, open: true });
      const turn = await sayIn(place, caller, { run, id: meaning.id, text: meaning.text });
      return await streamTurn(context, parts, { run, turn, after: null });
    }
    await openRun(place, { principal: caller.principal, right: 'read', run });
    const { pending, turn } = await place.api.status(run);
    // An answer that the client repeats has been recorded.
    const open = meaning.approvals.filter((one) => pending.some(({ id }) => id === one.request));
    const decisions = open.map(({ request, digest, approved, reason }) => ({
      request,
      digest,
      as: approved ? ('approve' as const) : ('deny' as const),
      ...(reason !== undefined && { note: reason }),
    }));
    if (decisions.length > 0) await handlers.decide({ run, decisions }, caller);
    const last = meaning.approvals.at(-1)?.request ?? null;
    return await streamTurn(context, parts, { run, turn, after: last });
  });
  app.get('/v1/ui/:agent/:id/stream', async (context) => {
    const { agent, id } = context.req.param();
    const caller = callerOf(context, parts);
    const run = runOf(caller, { door: 'chat', agent, id });
    const found = await readOwn(place, caller, run);
    const isMoving = found !== null && !['waiting_message', 'done'].includes(found.status);
    if (!isMoving) return new Response(null, { status: 204 });
    return await streamTurn(context, parts, { run, turn: found.turn, after: null });
  });
  app.get('/v1/ui/:agent/:id/messages', async (context) => {
    const { agent, id } = context.req.param();
    const caller = callerOf(context, parts);
    const run = runOf(caller, { door: 'chat', agent, id });
    const found = await readOwn(place, caller, run);
    if (found === null) return answerJson([]);
    const isMoving = !['waiting_message', 'done'].includes(found.status);
    const { messages } = await place.api.transcript(run);
    const shown = messages.flatMap((one) => {
      const isCurrent = isMoving && one.turn === found.turn;
      if (one.role === 'tool' || one.text === '' || (one.role === 'assistant' && isCurrent))
        return [];
      if (one.role === 'user' && one.origin !== undefined) return [];
      const own = one.role === 'user' && one.id ? ownId(caller, one.id) : undefined;
      const text = { type: 'text', text: one.text, state: 'done' };
      return [{ id: own || `m${one.n}`, role: one.role, parts: [text] }];
    });
    return answerJson(shown);
  });
}

/**
 * Streams a turn: from its beginning, as a client that connects again needs it, or after the answer to
 * the request `after`. Ends with the turn, and when the run waits for an answer of the client.
 */
async function streamTurn(
  context: GuardedContext,
  parts: DoorParts,
  {
    run,
    turn,
    after,
  }: { readonly run: string; readonly turn: number; readonly after: string | null },
): Promise<Response> {
  const { place, limits } = parts;
  return await whileRead(context, parts, async (over) => {
    const stream = await openRunStream(place, { run, over });
    const encoder = uiEncoder(turn, after);
    async function* blocks(): AsyncGenerator<string, void, undefined> {
      yield block([{ type: 'start', messageId: `turn-${turn}` }]);
      for await (const batch of stream.batches) {
        for (const event of batch) {
          const { chunks, isOver } = encoder.advance(event);
          if (chunks.length > 0) yield block(chunks);
          if (isOver) return yield sseEvent({ data: '[DONE]' });
        }
        if (!encoder.asks()) continue;
        const { status, pending } = await place.api.status(run);
        if (status !== 'waiting_decision') continue;
        yield block(encoder.wait(pending));
        return yield sseEvent({ data: '[DONE]' });
      }
    }
    const headers = { 'x-vercel-ai-ui-message-stream': 'v1' };
    return sseResponse(blocks(), { over, readMs: limits.readMs, headers });
  });
}

type Pending = readonly {
  readonly id: string;
  readonly digest: string;
  readonly call?: string;
  readonly kind: string;
}[];

const REASONS = {
  completed: 'stop',
  stopped: 'length',
  cancelled: 'other',
  failed: 'error',
} as const;

/** Returns chunks as server-sent events. */
function block(chunks: readonly Chunk[]): string {
  return chunks.map((chunk) => sseEvent({ data: visibleJson(chunk) })).join('');
}

/** The text parts and steps of a message in progress. */
function textParts(turn: number) {
  let inStep = false;
  let count = 0;
  let text: { readonly id: string; shown: string } | null = null;
  const parts = {
    shown: (): string => text?.shown ?? '',
    begin(): Chunk[] {
      if (inStep) return [];
      inStep = true;
      return [{ type: 'start-step' }];
    },
    end(): Chunk[] {
      const closed = parts.close();
      if (!inStep) return closed;
      inStep = false;
      return [...closed, { type: 'finish-step' }];
    },
    close(): Chunk[] {
      if (text === null) return [];
      const { id } = text;
      text = null;
      return [{ type: 'text-end', id }];
    },
    /** Shows a text: as the rest of the part in progress, or as a new part if it does not continue it. */
    show(target: string): Chunk[] {
      if (target === '' || target === text?.shown) return [];
      const chunks = parts.begin();
      if (text !== null && !target.startsWith(text.shown)) chunks.push(...parts.close());
      if (text === null) {
        count += 1;
        text = { id: `text-${turn}-${count}`, shown: '' };
        chunks.push({ type: 'text-start', id: text.id });
      }
      const delta = target.slice(text.shown.length);
      text.shown = target;
      if (delta !== '') chunks.push({ type: 'text-delta', id: text.id, delta });
      return chunks;
    },
  };
  return parts;
}

/** The calls of a message in progress, and the requests about them. */
function callParts(begin: () => Chunk[]) {
  /** Calls that the client does not know yet, by id. */
  const planned = new Map<string, { readonly name: string; readonly input: unknown }>();
  /** The calls of open requests, by the id of the request. */
  const asking = new Map<string, string>();
  const denied = new Set<string>();
  /** All calls that were asked about. */
  const asked = new Set<string>();
  /** A tool that a worker executes is never offered to the client; one that asks is shown for approval. */
  const show = (id: string, executed: boolean): Chunk[] => {
    const call = planned.get(id);
    if (call === undefined) return [];
    planned.delete(id);
    const { name: toolName, input } = call;
    const common = { toolCallId: id, toolName, dynamic: true };
    const how = executed && { providerExecuted: true };
    return [...begin(), { type: 'tool-input-available', ...common, ...how, input }];
  };
  return {
    show,
    isAsking: () => asking.size > 0,
    plan(calls: readonly ToolCall[]) {
      for (const { id, name, arguments: given } of calls) {
        planned.set(id, { name, input: parseJson(given) ?? given });
      }
    },
    raised(request: string, call: string | undefined) {
      if (call === undefined) return;
      asking.set(request, call);
      asked.add(call);
    },
    /** The client was asked about these calls in an earlier stream, so it knows them. */
    skip() {
      for (const call of asked) planned.delete(call);
    },
    closed(request: string, as: string | null) {
      const call = asking.get(request);
      asking.delete(request);
      if (as === 'deny' && call !== undefined) denied.add(call);
    },
    finished({ callId: toolCallId, text, ok }: ToolMessage): Chunk[] {
      if (denied.has(toolCallId)) return [{ type: 'tool-output-denied', toolCallId }];
      const fields = { toolCallId, dynamic: true };
      const result: Chunk =
        ok === false
          ? { type: 'tool-output-error', ...fields, errorText: text }
          : { type: 'tool-output-available', ...fields, output: parseJson(text) ?? text };
      return [...show(toolCallId, true), result];
    },
  };
}

/** Turns the events of one turn into chunks. `after`: the request whose answer the chunks come after. */
function uiEncoder(turn: number, after: string | null) {
  const texts = textParts(turn);
  const calls = callParts(() => texts.begin());
  let isSkipping = after !== null;
  let written = '';
  let lastText = '';
  const end = ({ answer, status, error, reason }: Outcome): Chunk[] => {
    const more = answer !== null && answer !== lastText ? texts.show(answer) : [];
    const failed: Chunk[] =
      status === 'failed' ? [{ type: 'error', errorText: error ?? reason }] : [];
    return [...more, ...texts.end(), ...failed, { type: 'finish', finishReason: REASONS[status] }];
  };
  const chunksOf = (event: StreamEvent): readonly Chunk[] => {
    switch (event.type) {
      case 'delta':
        if (event.turn !== turn || event.kind !== 'text') return [];
        written += event.text;
        // Text of another attempt is shown once it goes beyond what was shown, or when it is durable.
        return written.startsWith(texts.shown()) ? texts.show(written) : [];
      case 'superseded':
        written = '';
        return [];
      case 'model-replied': {
        if (event.message.turn !== turn) return [];
        const { text, calls: requested = [] } = event.message;
        [written, lastText] = ['', text];
        calls.plan(requested);
        const shown = texts.show(text);
        return [...shown, ...(requested.length === 0 ? texts.end() : texts.close())];
      }
      case 'request-raised':
        calls.raised(event.request, event.call);
        return [];
      case 'request-closed':
        calls.closed(event.request, event.as);
        return [];
      case 'call-begun':
        return event.turn === turn ? calls.show(event.call.id, true) : [];
      case 'call-finished':
        return event.message.turn === turn ? calls.finished(event.message) : [];
      default:
        return [];
    }
  };
  return {
    advance(event: StreamEvent): { readonly chunks: readonly Chunk[]; readonly isOver: boolean } {
      const isOver =
        event.type === 'run-ended' || (event.type === 'turn-ended' && event.turn === turn);
      const chunks = isOver ? end(event.outcome) : chunksOf(event);
      if (!isSkipping || isOver) return { chunks, isOver };
      // The client has these parts already, in a step that it has ended.
      if (event.type === 'request-closed' && event.request === after) {
        isSkipping = false;
        calls.skip();
        texts.end();
      }
      return { chunks: [], isOver };
    },
    asks: () => !isSkipping && calls.isAsking(),
    /** Returns the end of a stream whose turn waits for the client. */
    wait(pending: Pending): readonly Chunk[] {
      const asked = pending.flatMap(({ id, digest, call, kind }): Chunk[] => {
        if (call === undefined || kind !== 'approval') return [];
        const approval = { approvalId: `${id}.${digest}`, toolCallId: call };
        return [...calls.show(call, false), { type: 'tool-approval-request', ...approval }];
      });
      return [...asked, ...texts.end(), { type: 'finish', finishReason: 'tool-calls' }];
    },
  };
}
