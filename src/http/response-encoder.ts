import type { ToolCall } from '../core/transcript/messages.js';
import type { Outcome, Usage } from '../core/transcript/outcome.js';
import type { Request } from '../core/transcript/request.js';
import type { StreamEvent } from '../live/stream.js';
import { type ResponsePlace, clientCallId, responseId } from './response-ids.js';
import { createPauseReader } from './response-pauses.js';

/** The counts of a usage that clients see. */
type TokenUsage = Pick<Usage, 'inputTokens' | 'outputTokens' | 'cachedTokens' | 'reasoningTokens'>;

/**
 * What is known of a response. `texts`: one for each reply of the model, null for a reply that is not a message
 * because it has no text. That of an answer that was refused is empty: its stream has shown the message.
 */
export interface ResponseState {
  readonly place: ResponsePlace;
  readonly model: string;
  /** Unix time in seconds. */
  readonly createdAt: number;
  readonly texts: readonly (string | null)[];
  /** The calls that the client executes, with which the response has ended; none if it has not. */
  readonly calls: readonly ToolCall[];
  /** Null: the turn goes on. */
  readonly outcome: Outcome | null;
  /** What the replies have used; null: that is unknown, or the outcome says it. */
  readonly usage: TokenUsage | null;
  readonly previous: string | null;
}

/**
 * Returns the texts of a response that has ended: those of its replies, and its answer if no reply has it. A
 * turn that is canceled answers with the last text that a reply has, whatever came after it.
 */
export function withAnswer(
  texts: ResponseState['texts'],
  { answer, status }: Pick<Outcome, 'answer' | 'status'>,
): ResponseState['texts'] {
  const isCancelled = status === 'cancelled';
  const last = isCancelled ? texts.findLast(Boolean) : texts.at(-1);
  return answer === null || answer === '' || answer === last ? texts : [...texts, answer];
}

/** Returns a message as an item of a response. `index`: how many messages are before it. */
function itemOf({ turn }: ResponsePlace, index: number, text: string | null) {
  return {
    id: `msg_${turn}_${index}`,
    type: 'message',
    role: 'assistant',
    status: text === null ? 'in_progress' : 'completed',
    content: text === null ? [] : [partOf(text)],
  };
}

/** Returns a call as an item of a response. `isDone`: its arguments are sent. */
function callItemOf({ run, turn }: ResponsePlace, call: ToolCall, isDone: boolean) {
  return {
    id: `fc_${turn}_${call.id}`,
    type: 'function_call',
    status: isDone ? 'completed' : 'in_progress',
    call_id: clientCallId({ run, call: call.id }),
    name: call.name,
    arguments: isDone ? argumentsOf(call) : '',
  };
}

/** Returns what the client executes: the arguments as the tool gets them. */
export function argumentsOf({ parsed, arguments: written }: ToolCall): string {
  return parsed?.arguments ?? written;
}

function partOf(text: string) {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

const STATUSES = {
  completed: 'completed',
  stopped: 'incomplete',
  cancelled: 'cancelled',
  failed: 'failed',
} as const;

/** Returns a response in OpenAI's form. */
export function toResponse(state: ResponseState) {
  const { place, model, createdAt, texts, calls, outcome, previous } = state;
  const usage = place.after === undefined ? (outcome?.usage ?? state.usage) : state.usage;
  const isPaused = calls.length > 0;
  const messages = texts
    .filter((text) => text !== null)
    .map((text, index) => itemOf(place, index, text));
  const failure = outcome?.error ?? outcome?.reason ?? '';
  return {
    id: responseId(place),
    object: 'response',
    created_at: createdAt,
    status: isPaused ? 'completed' : outcome === null ? 'in_progress' : STATUSES[outcome.status],
    background: place.isBackground === true,
    error: outcome?.status === 'failed' ? { code: 'server_error', message: failure } : null,
    incomplete_details: outcome?.status === 'stopped' ? { reason: 'max_output_tokens' } : null,
    instructions: null,
    metadata: { run: place.run, ...(outcome && { reason: outcome.reason }) },
    model,
    output: isPaused
      ? [...messages, ...calls.map((call) => callItemOf(place, call, true))]
      : outcome === null
        ? []
        : messages,
    parallel_tool_calls: true,
    temperature: null,
    top_p: null,
    tool_choice: 'auto',
    tools: [],
    previous_response_id: previous,
    conversation: null,
    usage: usage
      ? {
          input_tokens: usage.inputTokens,
          input_tokens_details: { cached_tokens: usage.cachedTokens },
          output_tokens: usage.outputTokens,
          output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
          total_tokens: usage.inputTokens + usage.outputTokens,
        }
      : null,
  };
}

/** An event of a response's stream. */
export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  /** The text of a delta, which ends at its sequence number. */
  readonly delta?: string;
  /** The text of an item that has ended. */
  readonly text?: string;
}

/**
 * Sequence numbers depend on what an event says, not on what was sent before: each reply has its range,
 * and in it, a delta has the number of its end. A stream that is read again, also after a restart in
 * which its deltas were lost, has the same numbers.
 */
const RANGE = 2 ** 22;
const FIRST = 10;
const startOf = (index: number): number => FIRST + index * RANGE;

/**
 * Returns the part of an event that a reader has not seen who knows everything up to a sequence number;
 * null if there is none. Deltas that were merged since may begin before it.
 */
export function eventAfter(event: ResponseEvent, after: number): ResponseEvent | null {
  const { sequence_number: end, delta } = event;
  if (end <= after) return null;
  if (delta === undefined) return event;
  const known = after - (end - delta.length);
  return known > 0 ? { ...event, delta: delta.slice(known) } : event;
}

function toEvent(type: string, sequence: number, fields: object): ResponseEvent {
  return { type, sequence_number: sequence, ...fields };
}

/** Returns the events with which a message ends, before the number `end`. */
function endEvents(
  item: ReturnType<typeof itemOf>,
  { text, ...at }: { readonly text: string; readonly output_index: number },
  end: number,
): ResponseEvent[] {
  return [
    toEvent('response.output_text.done', end - 4, { ...at, text, logprobs: [] }),
    toEvent('response.content_part.done', end - 3, { ...at, part: partOf(text) }),
    toEvent('response.output_item.done', end - 2, { output_index: at.output_index, item }),
  ];
}

/**
 * The replies of a turn as items of a response: one for each with a text. The last may be in progress. If a reply
 * has no text after all, because the attempt that was sent did not count, the next one has its item: a stream
 * that is read again does not know of it.
 */
function replyItems(place: ResponsePlace) {
  const texts: (string | null)[] = [];
  /** What was sent of the item in progress, and what the attempt at its reply has written. */
  let shown = '';
  let written = '';
  let isOpen = false;
  let isWhole = true;
  /** How many items have ended. */
  let count = 0;

  const at = () => ({
    item_id: itemOf(place, count, null).id,
    output_index: count,
    content_index: 0,
  });
  const open = (): ResponseEvent[] => {
    if (isOpen) return [];
    isOpen = true;
    const start = startOf(texts.length);
    const item = itemOf(place, count, null);
    return [
      toEvent('response.output_item.added', start, { output_index: count, item }),
      toEvent('response.content_part.added', start + 1, { ...at(), part: partOf('') }),
    ];
  };
  const show = (): ResponseEvent[] => {
    // Text of an attempt that does not continue what was sent waits for what is durable.
    if (!isWhole || written.length <= shown.length || !written.startsWith(shown)) return [];
    const delta = written.slice(shown.length);
    shown = written;
    const sequence = startOf(texts.length) + 2 + Math.min(shown.length, RANGE - 10);
    const fields = { ...at(), delta, logprobs: [] };
    return [...open(), toEvent('response.output_text.delta', sequence, fields)];
  };
  /** Ends the item in progress. `replies`: how many replies there are then. */
  const finish = (text: string, replies: number): ResponseEvent[] => {
    [written, isWhole] = [text, true];
    const before = [...show(), ...open()];
    const events = endEvents(itemOf(place, count, text), { ...at(), text }, startOf(replies));
    [shown, written, isOpen] = ['', '', false];
    count += 1;
    return [...before, ...events];
  };
  return {
    texts,
    count: () => count,
    write(text: string): ResponseEvent[] {
      written += text;
      return show();
    },
    /** What was written does not count. */
    void() {
      [written, isWhole] = ['', true];
    },
    /** Part of what is written is unknown until it is durable. */
    lose() {
      isWhole = false;
    },
    /** Ends a reply, which is an item if it has a text. `hasItem`: also if the text does not count. */
    close(text: string, hasItem = text !== ''): ResponseEvent[] {
      const events = hasItem ? finish(text, texts.length + 1) : [];
      [written, isWhole] = ['', true];
      texts.push(hasItem ? text : null);
      return events;
    },
    /** Ends the item in progress, if there is one, without a text. `isKept`: the response has it. */
    leave(replies: number, isKept: boolean): ResponseEvent[] {
      const events = isOpen ? finish('', replies) : [];
      if (isKept && events.length > 0) texts.push('');
      return events;
    },
  };
}

/** Returns the events of the calls with which a response ends, after its replies and items so far. */
function callEvents(
  place: ResponsePlace,
  calls: readonly ToolCall[],
  { replies, items }: { readonly replies: number; readonly items: number },
): readonly ResponseEvent[] {
  return calls.flatMap((call, at) => {
    const index = items + at;
    const [start, end] = [startOf(replies + at), startOf(replies + at + 1)];
    const item = callItemOf(place, call, true);
    const about = { item_id: item.id, output_index: index };
    const text = item.arguments;
    const added = { output_index: index, item: callItemOf(place, call, false) };
    const written = start + 2 + Math.min(text.length, RANGE - 10);
    return [
      toEvent('response.output_item.added', start, added),
      toEvent('response.function_call_arguments.delta', written, { ...about, delta: text }),
      toEvent('response.function_call_arguments.done', end - 3, {
        ...about,
        name: call.name,
        arguments: text,
      }),
      toEvent('response.output_item.done', end - 2, { output_index: index, item }),
    ];
  });
}

/** Returns the events of what a step says of the replies of a turn. */
function replyEvents(
  items: ReturnType<typeof replyItems>,
  step: StreamEvent,
  turn: number,
): readonly ResponseEvent[] {
  switch (step.type) {
    case 'delta':
      return step.turn === turn && step.kind === 'text' ? items.write(step.text) : [];
    case 'superseded':
      if (step.turn === turn) items.void();
      return [];
    case 'gap':
      if (step.turn === turn) items.lose();
      return [];
    case 'model-replied':
      return step.message.turn === turn ? items.close(step.message.text) : [];
    case 'answer-refused':
      return step.message.turn === turn ? items.close('', step.message.text !== '') : [];
    default:
      return [];
  }
}

/** Turns the events of one turn, or of a part of it, into those of a response. */
export function responseEncoder(
  given: Omit<ResponseState, 'texts' | 'outcome' | 'calls' | 'usage'>,
) {
  const { place } = given;
  const { turn } = place;
  const items = replyItems(place);
  const pauses = createPauseReader(place);
  const { texts } = items;
  let usage: TokenUsage | null = null;
  let last: ResponseState | null = null;
  const stateOf = (outcome: Outcome | null, calls: readonly ToolCall[] = []): ResponseState => ({
    ...given,
    texts,
    usage,
    outcome,
    calls,
  });
  const pause = (calls: readonly ToolCall[]): readonly ResponseEvent[] => {
    const replies = texts.length;
    const before = items.leave(replies, true);
    const events = callEvents(place, calls, { replies, items: items.count() });
    last = stateOf(null, calls);
    const sequence = startOf(replies + calls.length + 1);
    const response = toResponse(last);
    return [...before, ...events, toEvent('response.completed', sequence, { response })];
  };
  const end = (outcome: Outcome): ResponseEvent[] => {
    const { status } = outcome;
    // The same whether a reply is in progress or, in a stream that is read again, is not known any more.
    const replies = texts.length + 1;
    const sequence = startOf(replies);
    const [answer] = withAnswer(texts, outcome).slice(texts.length);
    const closed = answer ? items.close(answer) : items.leave(replies, status === 'completed');
    const type = status === 'cancelled' ? 'failed' : STATUSES[status];
    last = stateOf(outcome);
    const response = toResponse(last);
    return [...closed, toEvent(`response.${type}`, sequence, { response })];
  };
  const eventsOf = (step: StreamEvent): readonly ResponseEvent[] => {
    if (step.type === 'model-replied' || step.type === 'answer-refused') {
      if (step.message.turn === turn) usage = sumOf(usage, step.usage);
    }
    return replyEvents(items, step, turn);
  };
  return {
    begin(): readonly ResponseEvent[] {
      const response = toResponse(stateOf(null));
      const queued = { ...response, status: 'queued' };
      return [
        toEvent('response.created', 0, { response: queued }),
        toEvent('response.queued', 1, { response: queued }),
        toEvent('response.in_progress', 2, { response }),
      ];
    },
    /** Returns the events that a step of the run means, and whether they are the last ones. */
    advance(step: StreamEvent): {
      readonly events: readonly ResponseEvent[];
      readonly isOver: boolean;
    } {
      const calls = pauses.read(step);
      if (calls.length > 0) return { events: pause(calls), isOver: true };
      const isOver =
        step.type === 'run-ended' || (step.type === 'turn-ended' && step.turn === turn);
      if (isOver) return { events: end(step.outcome), isOver };
      return { events: pauses.hasBegun ? eventsOf(step) : [], isOver };
    },
    /** Whether the run waits only for calls that the client executes, at the place that was read. */
    asks: () => pauses.pending().length > 0,
    isAt: (pending: readonly Pick<Request, 'id'>[]) => pauses.isAt(pending),
    /** Returns the events of a response that ends with the calls for which its run waits. */
    wait: () => pause(pauses.pending()),
    /** What is known of the response at the place that was read. */
    state: (): ResponseState => last ?? stateOf(null),
  };
}

function sumOf(sum: TokenUsage | null, more: TokenUsage | undefined): TokenUsage | null {
  if (more === undefined) return sum;
  return {
    inputTokens: (sum?.inputTokens ?? 0) + more.inputTokens,
    outputTokens: (sum?.outputTokens ?? 0) + more.outputTokens,
    cachedTokens: (sum?.cachedTokens ?? 0) + more.cachedTokens,
    reasoningTokens: (sum?.reasoningTokens ?? 0) + (more.reasoningTokens ?? 0),
  };
}
