import { nodeOfCallId } from '../core/state/turn-definition.js';
import { parseJson } from '../core/text/json.js';
import type { AssistantMessage, ToolCall, ToolMessage } from '../core/transcript/messages.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { type Request, isUndoRequest } from '../core/transcript/request.js';
import type { StreamEvent } from '../live/stream.js';

/** A chunk of the UI message stream of the AI SDK. */
export type Chunk = Readonly<Record<string, unknown>> & { readonly type: string };

const REASONS = {
  completed: 'stop',
  stopped: 'length',
  cancelled: 'other',
  failed: 'error',
} as const;

/** Marks a text part that does not count: a client has it, and no chunk removes it. */
const VOID = { providerMetadata: { perdure: { superseded: true } } };

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
    /** `isVoid`: the part in progress, if there is one, does not count. */
    end(isVoid = false): Chunk[] {
      const closed = parts.close(isVoid);
      if (!inStep) return closed;
      inStep = false;
      return [...closed, { type: 'finish-step' }];
    },
    close(isVoid = false): Chunk[] {
      if (text === null) return [];
      const { id } = text;
      text = null;
      return [{ type: 'text-end', id, ...(isVoid && VOID) }];
    },
    /**
     * Shows a text: as the rest of the part in progress, or as a new part if it does not continue that, which is
     * then void.
     */
    show(target: string): Chunk[] {
      if (target === text?.shown) return [];
      const isOther = text !== null && !target.startsWith(text.shown);
      const closed = isOther ? parts.close(true) : [];
      if (target === '') return closed;
      const chunks = [...closed, ...parts.begin()];
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

/** The requests of a run, at the place that a stream has come to. */
function requestsOfRun() {
  /** The open requests, with the call of each that is about one. */
  const open = new Map<string, string | undefined>();
  const denied = new Set<string>();
  /** All calls that were asked about. */
  const asked = new Set<string>();
  return {
    asked,
    denied,
    isAsking: () => open.size > 0,
    /** Whether exactly these requests are open. */
    isAt: (pending: readonly Pick<Request, 'id'>[]): boolean =>
      pending.length === open.size && pending.every(({ id }) => open.has(id)),
    raised(request: string, call: string | undefined) {
      open.set(request, call);
      if (call !== undefined) asked.add(call);
    },
    closed(request: string, as: string | null) {
      const call = open.get(request);
      open.delete(request);
      if (as === 'deny' && call !== undefined) denied.add(call);
    },
  };
}

/** A call as the client shows it. */
interface CallText {
  readonly tool: string | undefined;
  /** JSON. */
  readonly arguments: string | undefined;
}

/** The calls of a message in progress. */
function callParts(
  begin: () => Chunk[],
  { asked, denied }: Pick<ReturnType<typeof requestsOfRun>, 'asked' | 'denied'>,
) {
  /** The calls of the replies of this turn, by id. */
  const planned = new Map<string, CallText>();
  /** The calls that the client shows; a chunk about another one is an error to it. */
  let shown = new Set<string>();
  const finished = new Set<string>();
  /** Shows a call. Workers execute it, so it is never left to the client. */
  const show = (
    id: string,
    { tool: toolName = '', arguments: given = '{}' }: CallText,
  ): Chunk[] => {
    if (shown.has(id)) return [];
    shown.add(id);
    const common = { toolCallId: id, toolName, dynamic: true, providerExecuted: true };
    const input = parseJson(given) ?? given;
    return [...begin(), { type: 'tool-input-available', ...common, input }];
  };
  const begun = (id: string): Chunk[] => {
    const call = planned.get(id);
    return call === undefined ? [] : show(id, call);
  };
  /** Ends a call that the client shows. */
  const finish = (toolCallId: string, result: Chunk): Chunk[] => {
    const isOver = finished.has(toolCallId);
    finished.add(toolCallId);
    if (isOver || !shown.has(toolCallId)) return [];
    return [denied.has(toolCallId) ? { type: 'tool-output-denied', toolCallId } : result];
  };
  return {
    begun,
    plan(calls: readonly ToolCall[]) {
      for (const { id, name: tool, arguments: given } of calls) {
        planned.set(id, { tool, arguments: given });
      }
    },
    /** The client shows exactly these calls, from an earlier stream. */
    skip: (known: readonly string[]) => void (shown = new Set(known)),
    /**
     * Asks for the approval of a call, also of one that no reply of this turn has requested. It is shown as
     * its tool will get it.
     */
    ask({ id, digest, call = '', tool, arguments: given, parsed = given }: Request): Chunk[] {
      const approval = { approvalId: `${id}.${digest}`, toolCallId: call };
      return [
        ...show(call, { tool, arguments: parsed }),
        { type: 'tool-approval-request', ...approval },
      ];
    },
    finished({ callId: toolCallId, text, ok }: ToolMessage): Chunk[] {
      const fields = { toolCallId, dynamic: true };
      const result: Chunk =
        ok === false
          ? { type: 'tool-output-error', ...fields, errorText: text }
          : { type: 'tool-output-available', ...fields, output: parseJson(text) ?? text };
      return [...begun(toolCallId), ...finish(toolCallId, result)];
    },
    /** Ends the calls of a graph's node, whose results are only in the graph's state. */
    nodeEnded: (node: string, exit: string): Chunk[] =>
      [...asked]
        .filter((id) => nodeOfCallId(id) === node)
        .flatMap((toolCallId) => {
          const fields = { toolCallId, dynamic: true, output: { exit } };
          return finish(toolCallId, { type: 'tool-output-available', ...fields });
        }),
    /** Ends what was asked about: a client sends answers again as long as their calls have no end. */
    endAll: (): Chunk[] =>
      [...asked].flatMap((toolCallId) => {
        const errorText = 'the conversation has no result of this call';
        const fields = { toolCallId, dynamic: true, errorText };
        return finish(toolCallId, { type: 'tool-output-error', ...fields });
      }),
  };
}

/** Whether a client of the AI SDK can answer a request: it asks before a call is made. */
function isApproval(request: Request): boolean {
  const { kind, call } = request;
  if (call === undefined || isUndoRequest(request)) return false;
  return kind === 'approval' || kind === 'safety_check';
}

/** The texts of a turn: what an attempt has written, and what of it was shown. */
function replyTexts(texts: ReturnType<typeof textParts>) {
  /** What the attempt in progress has written; null: part of it is unknown until it is durable. */
  let written: string | null = '';
  /** The last text that a reply has. A turn that is canceled answers with it, whatever came after it. */
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
      written = '';
      if (text !== '') lastText = text;
      const chunks = texts.show(isCut ? shown : text);
      return [...chunks, ...(calls.length === 0 ? texts.end() : texts.close())];
    },
    /** Ends a reply that does not count. What was shown of it stays a part of its own, and is marked. */
    refuse(): Chunk[] {
      written = '';
      return texts.end(true);
    },
  };
}

/** What a client has just answered. Empty: the stream begins with the turn. */
export interface Answers {
  /** The requests. The stream goes on after the first of these answers that counts. */
  readonly requests: readonly string[];
  /** The calls that the message with the answers shows. */
  readonly calls: readonly string[];
}

export const NO_ANSWERS: Answers = { requests: [], calls: [] };

/** Returns the error for requests that a client of the AI SDK cannot answer. */
function otherRequest({ id, kind }: Request, run: string): Chunk {
  const errorText = `request: expected an approval, got ${id} (${kind}) of run ${run}; decide it in the console, or by POST /v1/runs/{run}/decisions, and load the chat again`;
  return { type: 'error', errorText };
}

interface Parts {
  readonly turn: number;
  readonly requests: ReturnType<typeof requestsOfRun>;
  readonly calls: ReturnType<typeof callParts>;
  readonly replies: ReturnType<typeof replyTexts>;
}

/** Returns what an event means that does not end the turn. */
function chunksOf({ turn, requests, calls, replies }: Parts, event: StreamEvent): readonly Chunk[] {
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
      requests.raised(event.request, event.call);
      return [];
    case 'request-closed':
      requests.closed(event.request, event.as);
      return [];
    case 'call-begun':
      return calls.begun(event.call.id);
    case 'call-finished':
      return calls.finished(event.message);
    case 'node-ended':
      return event.interrupted ? [] : calls.nodeEnded(event.node, event.exit);
    default:
      return [];
  }
}

/** Turns the events of one turn into chunks: from its beginning, or after answers of the client. */
export function uiEncoder(turn: number, answers: Answers) {
  const texts = textParts(turn);
  const requests = requestsOfRun();
  const calls = callParts(() => texts.begin(), requests);
  const replies = replyTexts(texts);
  const parts = { turn, requests, calls, replies };
  let isSkipping = answers.requests.length > 0;
  /** The client has all parts so far, in a step that it has ended. */
  const skip = (): void => {
    isSkipping = false;
    calls.skip(answers.calls);
    texts.end();
  };
  const end = ({ answer, status, error, reason }: Outcome): Chunk[] => {
    const more = answer !== null && answer !== replies.lastText() ? texts.show(answer) : [];
    const failed: Chunk[] =
      status === 'failed' ? [{ type: 'error', errorText: error ?? reason }] : [];
    const finish = { type: 'finish', finishReason: REASONS[status] };
    return [...calls.endAll(), ...more, ...texts.end(), ...failed, finish];
  };
  return {
    advance(event: StreamEvent): { readonly chunks: readonly Chunk[]; readonly isOver: boolean } {
      const isOver =
        event.type === 'run-ended' || (event.type === 'turn-ended' && event.turn === turn);
      if (isOver && isSkipping) skip();
      const chunks = isOver ? end(event.outcome) : chunksOf(parts, event);
      if (!isSkipping || isOver) return { chunks, isOver };
      if (event.type === 'request-closed' && answers.requests.includes(event.request)) skip();
      return { chunks: [], isOver };
    },
    /** Returns the end of a stream that cannot go on. */
    fail: (errorText: string): readonly Chunk[] => [
      ...texts.end(),
      { type: 'error', errorText },
      { type: 'finish', finishReason: 'error' },
    ],
    asks: requests.isAsking,
    isAt: requests.isAt,
    /**
     * Returns the end of a stream whose turn waits for a decision. One of the client that a worker has
     * refused is an error, and its request is offered again. A request that the client cannot answer is
     * an error, too, if it can answer none.
     */
    wait(pending: readonly Request[], run: string): readonly Chunk[] {
      if (isSkipping) skip();
      const approvals = pending.filter(isApproval);
      const refused = pending.flatMap(({ id, refused: why }): Chunk[] => {
        if (why === undefined || !answers.requests.includes(id)) return [];
        return [
          { type: 'error', errorText: `request: the decision about ${id} was refused: ${why}` },
        ];
      });
      const [other] = approvals.length > 0 ? [] : pending;
      return [
        ...approvals.flatMap((one) => calls.ask(one)),
        ...texts.end(),
        ...refused,
        ...(other === undefined ? [] : [otherRequest(other, run)]),
        { type: 'finish', finishReason: 'tool-calls' },
      ];
    },
  };
}
