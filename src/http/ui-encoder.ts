import { parseJson } from '../core/text/json.js';
import type { AssistantMessage, ToolCall, ToolMessage } from '../core/transcript/messages.js';
import type { Outcome } from '../core/transcript/outcome.js';
import type { Request } from '../core/transcript/request.js';
import type { StreamEvent } from '../live/stream.js';

/** A chunk of the UI message stream of the AI SDK. */
export type Chunk = Readonly<Record<string, unknown>> & { readonly type: string };

const REASONS = {
  completed: 'stop',
  stopped: 'length',
  cancelled: 'other',
  failed: 'error',
} as const;

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
  /** The open requests, with the call of each that is about one. */
  const open = new Map<string, string | undefined>();
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
    isAsking: () => [...open.values()].some((call) => call !== undefined),
    /** Whether exactly these requests are open. */
    isAt: (pending: readonly Pick<Request, 'id'>[]): boolean =>
      pending.length === open.size && pending.every(({ id }) => open.has(id)),
    plan(calls: readonly ToolCall[]) {
      for (const { id, name, arguments: given } of calls) {
        planned.set(id, { name, input: parseJson(given) ?? given });
      }
    },
    raised(request: string, call: string | undefined) {
      open.set(request, call);
      if (call !== undefined) asked.add(call);
    },
    /** The client was asked about these calls in an earlier stream, so it knows them. */
    skip() {
      for (const call of asked) planned.delete(call);
    },
    closed(request: string, as: string | null) {
      const call = open.get(request);
      open.delete(request);
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

/** The texts of a turn: what an attempt has written, and what of it was shown. */
function replyTexts(texts: ReturnType<typeof textParts>) {
  /** What the attempt in progress has written; null: part of it is unknown until it is durable. */
  let written: string | null = '';
  let lastText = '';
  return {
    lastText: () => lastText,
    write(text: string): readonly Chunk[] {
      if (written === null) return [];
      written += text;
      // Text of another attempt is shown once it goes beyond what was shown, or when it is durable.
      return written.startsWith(texts.shown()) ? texts.show(written) : [];
    },
    /** What was written does not count. */
    void: () => void (written = ''),
    /** Part of what is written is unknown until it is durable. */
    lose: () => void (written = null),
    /** Shows a reply that is durable. */
    close({ text, blob, calls = [] }: Pick<AssistantMessage, 'text' | 'blob' | 'calls'>): Chunk[] {
      const shown = texts.shown();
      // Of a long text, the history has only the head and the tail.
      const isCut = blob !== undefined && shown.length > text.length;
      [written, lastText] = ['', text];
      const chunks = texts.show(isCut ? shown : text);
      return [...chunks, ...(calls.length === 0 ? texts.end() : texts.close())];
    },
    /** Ends a reply that does not count. What was shown of it stays a part of its own. */
    refuse(): Chunk[] {
      [written, lastText] = ['', ''];
      return texts.end();
    },
  };
}

/**
 * Turns the events of one turn into chunks. `answered`: the requests that the client has just answered; the
 * chunks begin with the first of these answers that counts. Empty: they begin with the turn.
 */
export function uiEncoder(turn: number, answered: readonly string[]) {
  const texts = textParts(turn);
  const calls = callParts(() => texts.begin());
  const replies = replyTexts(texts);
  let isSkipping = answered.length > 0;
  /** The client has all parts so far, in a step that it has ended. */
  const skip = (): void => {
    isSkipping = false;
    calls.skip();
    texts.end();
  };
  const end = ({ answer, status, error, reason }: Outcome): Chunk[] => {
    const more = answer !== null && answer !== replies.lastText() ? texts.show(answer) : [];
    const failed: Chunk[] =
      status === 'failed' ? [{ type: 'error', errorText: error ?? reason }] : [];
    return [...more, ...texts.end(), ...failed, { type: 'finish', finishReason: REASONS[status] }];
  };
  const chunksOf = (event: StreamEvent): readonly Chunk[] => {
    switch (event.type) {
      case 'delta':
        return event.turn === turn && event.kind === 'text' ? replies.write(event.text) : [];
      case 'superseded':
        if (event.turn === turn) replies.void();
        return [];
      case 'gap':
        if (event.turn === turn) replies.lose();
        return [];
      case 'model-replied':
        if (event.message.turn !== turn) return [];
        calls.plan(event.message.calls ?? []);
        return replies.close(event.message);
      case 'answer-refused':
        return event.message.turn === turn ? replies.refuse() : [];
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
      if (event.type === 'request-closed' && answered.includes(event.request)) skip();
      return { chunks: [], isOver };
    },
    asks: calls.isAsking,
    isAt: calls.isAt,
    /**
     * Returns the end of a stream whose turn waits for the client. A decision of the client that a worker
     * has refused is an error, and its request is offered again.
     */
    wait(pending: readonly Request[]): readonly Chunk[] {
      if (isSkipping) skip();
      const asked = pending.flatMap(({ id, digest, call, kind }): Chunk[] => {
        if (call === undefined || kind !== 'approval') return [];
        const approval = { approvalId: `${id}.${digest}`, toolCallId: call };
        return [...calls.show(call, false), { type: 'tool-approval-request', ...approval }];
      });
      const refused = pending.flatMap(({ id, refused: why }): Chunk[] => {
        if (why === undefined || !answered.includes(id)) return [];
        return [
          { type: 'error', errorText: `request: the decision about ${id} was refused: ${why}` },
        ];
      });
      return [...asked, ...texts.end(), ...refused, { type: 'finish', finishReason: 'tool-calls' }];
    },
  };
}
