import type { Outcome } from '../core/transcript/outcome.js';
import type { BlobRef } from '../core/transcript/messages.js';
import type { StreamEvent } from '../live/stream.js';
import type { BlobStore } from '../storage/blob-store.js';
import type { Place } from './access.js';

/** A turn of a run, as a response of OpenAI's API. Its id says both, so no table is needed. */
export interface ResponsePlace {
  readonly run: string;
  readonly turn: number;
}

export function responseId({ run, turn }: ResponsePlace): string {
  return `resp_${turn}_${Buffer.from(run).toString('base64url')}`;
}

/** Returns the place that an id names; null if it is none. */
export function readResponseId(id: string): ResponsePlace | null {
  const [, turn, run] = /^resp_([1-9]\d{0,8})_([\w-]{1,4000})$/.exec(id) ?? [];
  if (turn === undefined || run === undefined) return null;
  return { run: Buffer.from(run, 'base64url').toString(), turn: Number(turn) };
}

/** What is known of a response. `texts`: one for each reply of the model, empty if it has none. */
export interface ResponseState {
  readonly place: ResponsePlace;
  readonly model: string;
  /** Unix time in seconds. */
  readonly createdAt: number;
  readonly texts: readonly string[];
  readonly outcome: Outcome | null;
  readonly isBackground: boolean;
  readonly previous: string | null;
}

/**
 * Returns the texts of a response that has ended: those of its replies, and its answer if no reply has it. A
 * turn that is canceled answers with the last text that a reply has, whatever came after it.
 */
export function withAnswer(
  texts: readonly string[],
  { answer, status }: Pick<Outcome, 'answer' | 'status'>,
): readonly string[] {
  const isCancelled = status === 'cancelled';
  const last = isCancelled ? texts.findLast((text) => text !== '') : texts.at(-1);
  return answer === null || answer === last ? texts : [...texts, answer];
}

function itemOf({ turn }: ResponsePlace, index: number, text: string | null) {
  return {
    id: `msg_${turn}_${index}`,
    type: 'message',
    role: 'assistant',
    status: text === null ? 'in_progress' : 'completed',
    content: text === null ? [] : [partOf(text)],
  };
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
  const { place, model, createdAt, texts, outcome, isBackground, previous } = state;
  const usage = outcome?.usage;
  const failure = outcome?.error ?? outcome?.reason ?? '';
  return {
    id: responseId(place),
    object: 'response',
    created_at: createdAt,
    status: outcome === null ? 'in_progress' : STATUSES[outcome.status],
    background: isBackground,
    error: outcome?.status === 'failed' ? { code: 'server_error', message: failure } : null,
    incomplete_details: outcome?.status === 'stopped' ? { reason: 'max_output_tokens' } : null,
    instructions: null,
    metadata: { run: place.run, ...(outcome && { reason: outcome.reason }) },
    model,
    output: outcome === null ? [] : texts.map((text, index) => itemOf(place, index, text)),
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

/** The replies of a turn as items of a response: one for each, of which the last may be in progress. */
function replyItems(place: ResponsePlace) {
  const texts: string[] = [];
  /** What was sent of the reply in progress, and what its attempt has written. */
  let shown = '';
  let written = '';
  let isOpen = false;
  let isWhole = true;

  const at = () => {
    const index = texts.length;
    return { item_id: `msg_${place.turn}_${index}`, output_index: index, content_index: 0 };
  };
  const open = (): ResponseEvent[] => {
    if (isOpen) return [];
    isOpen = true;
    const start = startOf(texts.length);
    const item = itemOf(place, texts.length, null);
    return [
      toEvent('response.output_item.added', start, { output_index: texts.length, item }),
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
  const finish = (text: string): ResponseEvent[] => {
    [written, isWhole] = [text, true];
    const before = [...show(), ...open()];
    const end = startOf(texts.length + 1);
    const item = { output_index: texts.length, item: itemOf(place, texts.length, text) };
    const events = [
      toEvent('response.output_text.done', end - 4, { ...at(), text, logprobs: [] }),
      toEvent('response.content_part.done', end - 3, { ...at(), part: partOf(text) }),
      toEvent('response.output_item.done', end - 2, item),
    ];
    [shown, written, isOpen] = ['', '', false];
    return [...before, ...events];
  };
  return {
    texts,
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
    close(text: string): ResponseEvent[] {
      const events = finish(text);
      texts.push(text);
      return events;
    },
    /** Ends the reply in progress, if there is one, which the response does not have. */
    drop: (): ResponseEvent[] => (isOpen ? finish('') : []),
  };
}

/** Turns the events of one turn into those of a response. */
export function responseEncoder(given: Omit<ResponseState, 'texts' | 'outcome'>) {
  const { turn } = given.place;
  const items = replyItems(given.place);
  const { texts } = items;
  const stateOf = (outcome: Outcome | null): ResponseState => ({ ...given, texts, outcome });
  const end = (outcome: Outcome): ResponseEvent[] => {
    const { status } = outcome;
    // The same whether a reply is in progress or, in a stream that is read again, is not known any more.
    const sequence = startOf(texts.length + 1);
    const [answer] = withAnswer(texts, outcome).slice(texts.length);
    const last = answer === undefined ? items.drop() : items.close(answer);
    const type = status === 'cancelled' ? 'failed' : STATUSES[status];
    const response = toResponse(stateOf(outcome));
    return [...last, toEvent(`response.${type}`, sequence, { response })];
  };
  const eventsOf = (step: StreamEvent): readonly ResponseEvent[] => {
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
        return step.message.turn === turn ? items.close('') : [];
      default:
        return [];
    }
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
      const isOver =
        step.type === 'run-ended' || (step.type === 'turn-ended' && step.turn === turn);
      return { events: isOver ? end(step.outcome) : eventsOf(step), isOver };
    },
  };
}

/** Reads what is known of a response, without its deltas. */
export async function readState(place: Place, id: ResponsePlace): Promise<ResponseState> {
  const [{ messages }, { turns }, status] = await Promise.all([
    place.api.transcript(id.run, { side: true }),
    place.api.turns(id.run),
    place.api.status(id.run),
  ]);
  const own = messages.filter(({ turn }) => turn === id.turn);
  const ended = turns.find(({ turn }) => turn === id.turn)?.outcome;
  const last = ended ?? (status.status === 'done' ? status.outcome : null);
  const outcome = last && (await withWholeAnswer(last, place.blobs));
  const replies = own.flatMap((one) =>
    one.role === 'assistant' && one.origin === undefined && one.supplied === undefined ? [one] : [],
  );
  const texts = await Promise.all(
    replies.map(async ({ side, text, blob }) =>
      side ? '' : await wholeOf(text, blob, place.blobs),
    ),
  );
  const createdAt = Math.floor((own[0]?.at ?? 0) / 1_000);
  return {
    place: id,
    model: status.agent,
    createdAt,
    texts: outcome === null ? texts : withAnswer(texts, outcome),
    outcome,
    isBackground: true,
    previous: null,
  };
}

/**
 * Returns the step with the whole text of its reply and its answer, of which the history has the head and
 * the tail if they are long; as it is if the blob store does not have them.
 */
export async function withWholeText(step: StreamEvent, blobs: BlobStore): Promise<StreamEvent> {
  if (step.type === 'model-replied') {
    const { text, blob } = step.message;
    return { ...step, message: { ...step.message, text: await wholeOf(text, blob, blobs) } };
  }
  if (step.type !== 'run-ended' && step.type !== 'turn-ended') return step;
  return { ...step, outcome: await withWholeAnswer(step.outcome, blobs) };
}

/** The same for an outcome. */
export async function withWholeAnswer(outcome: Outcome, blobs: BlobStore): Promise<Outcome> {
  const { answer, blob } = outcome;
  if (answer === null || blob === undefined) return outcome;
  return { ...outcome, answer: await wholeOf(answer, blob, blobs) };
}

async function wholeOf(
  shown: string,
  blob: BlobRef | undefined,
  blobs: BlobStore,
): Promise<string> {
  return blob === undefined ? shown : await blobs.get(blob).catch(() => shown);
}
