import { storedId } from '../client/run-ids.js';
import { NoRunError } from '../core/errors.js';
import type { BlobRef, ToolCall } from '../core/transcript/messages.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { pastEvents } from '../history/follow-events.js';
import type { StreamEvent } from '../live/stream.js';
import type { BlobStore } from '../storage/blob-store.js';
import type { Place } from './access.js';
import { openRunStream } from './api-routes.js';
import { requestsAt, viewOf } from './chats.js';
import {
  type ResponseEvent,
  type ResponseState,
  responseEncoder,
  withAnswer,
} from './response-encoder.js';
import type { ResponsePlace } from './response-ids.js';

/** Reads what is known of a response, without its deltas. */
export async function readState(place: Place, id: ResponsePlace): Promise<ResponseState> {
  const state = await readTurn(place, id);
  const { called, ...turn } = state;
  if (id.after === undefined && called.length === 0) return turn;
  const { tools = [] } = (await viewOf(place, id.run)).state?.config.definition ?? {};
  const isClient = tools.some(({ name, kind }) => kind === 'client' && called.includes(name));
  return id.after !== undefined || isClient ? await readPart(place, id, turn) : turn;
}

/** Reads a response from the events of its run, as its stream would show them. */
async function readPart(
  place: Place,
  id: ResponsePlace,
  known: ResponseState,
): Promise<ResponseState> {
  const run = await storedId(place.client, id.run, place.archive);
  const encoder = responseEncoder(known);
  try {
    for await (const event of pastEvents(place.client, run)) {
      const whole = await withWholeText({ ...event, position: event.offset }, place.blobs);
      if (encoder.advance(whole).isOver) return encoder.state();
    }
  } catch (error) {
    // The server has deleted the run, and the archive has no events.
    if (!NoRunError.isInstance(error)) throw error;
    return known;
  }
  if (encoder.asks()) encoder.wait();
  return encoder.state();
}

/** Reads the state of a turn as a whole, and the names of the tools that it has called. */
async function readTurn(
  place: Place,
  id: ResponsePlace,
): Promise<ResponseState & { readonly called: readonly string[] }> {
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
    replies.map(async ({ side, text, blob }) => {
      if (text === '') return null;
      return side ? '' : await wholeOf(text, blob, place.blobs);
    }),
  );
  // Before a worker has taken the message, the turn has none.
  const createdAt = Math.floor((own[0]?.at ?? Date.now()) / 1_000);
  const called = replies.flatMap(({ calls = [] }) => calls.map(({ name }) => name));
  return {
    called,
    calls: [],
    usage: null,
    place: id,
    model: status.agent,
    createdAt,
    texts: outcome === null ? texts : withAnswer(texts, outcome),
    outcome,
    previous: null,
  };
}

/**
 * Returns the step with the whole text of its reply and its answer, of which the history has the head and
 * the tail if they are long; as it is if the blob store does not have them.
 */
async function withWholeText(step: StreamEvent, blobs: BlobStore): Promise<StreamEvent> {
  if (step.type === 'model-replied') {
    const { text, blob, calls } = step.message;
    const message = { ...step.message, text: await wholeOf(text, blob, blobs) };
    if (calls === undefined) return { ...step, message };
    return {
      ...step,
      message: { ...message, calls: await Promise.all(calls.map((one) => wholeCall(one, blobs))) },
    };
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

/** Returns a call with all of its arguments. */
async function wholeCall(call: ToolCall, blobs: BlobStore): Promise<ToolCall> {
  const { parsed, blob } = call;
  const written = await wholeOf(call.arguments, blob, blobs);
  if (parsed === undefined) return { ...call, arguments: written };
  const read = await wholeOf(parsed.arguments, parsed.blob, blobs);
  return { ...call, arguments: written, parsed: { ...parsed, arguments: read } };
}

async function wholeOf(
  shown: string,
  blob: BlobRef | undefined,
  blobs: BlobStore,
): Promise<string> {
  return blob === undefined ? shown : await blobs.get(blob).catch(() => shown);
}

/** Opens the stream of a response, and returns its events in batches, from its beginning to its end. */
export async function responseEvents(
  place: Place,
  id: ResponsePlace,
  { over }: { readonly over: AbortController },
): Promise<AsyncGenerator<readonly ResponseEvent[], void, undefined>> {
  const encoder = responseEncoder(await readTurn(place, id));
  const stream = await openRunStream(place, { run: id.run, over });
  async function* batches(): AsyncGenerator<readonly ResponseEvent[], void, undefined> {
    yield encoder.begin();
    for await (const batch of stream.batches) {
      for (const step of batch) {
        const { events, isOver } = encoder.advance(await withWholeText(step, place.blobs));
        if (events.length > 0) yield events;
        if (isOver) return;
      }
      const { signal } = over;
      const pending = await requestsAt(place, id.run, { reader: encoder, signal });
      if (pending !== null) return yield encoder.wait();
    }
  }
  return batches();
}

/** Waits for the end of a response that may end with calls for the client, and at most this long. */
export async function waitForPart(
  place: Place,
  id: ResponsePlace,
  { signal, waitMs }: { readonly signal: AbortSignal; readonly waitMs: number },
): Promise<void> {
  const over = new AbortController();
  const stop = (): void => over.abort();
  const ends = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
  ends.addEventListener('abort', stop, { once: true });
  try {
    for await (const _ of await responseEvents(place, id, { over })) if (ends.aborted) return;
  } catch (error) {
    if (!ends.aborted) throw error;
  } finally {
    over.abort();
    ends.removeEventListener('abort', stop);
  }
}
