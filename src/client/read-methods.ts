import type { Client } from '@temporalio/client';
import type { MessageRange, TranscriptRange } from '../core/state/status.js';
import type { CallPair } from '../core/transcript/transcript.js';
import { type EventsOptions, followEvents } from '../history/follow-events.js';
import type { DurableEvent } from '../history/durable-steps.js';
import { readRun } from '../history/read-run.js';
import {
  type RunTranscript,
  type TurnLog,
  readCalls,
  readTranscript,
  readTurns,
} from '../history/run-transcript.js';
import type { StreamOptions, createRunStreams } from '../live/run-streams.js';
import type { StreamEvent } from '../live/stream.js';
import type { Archive } from '../storage/blob-store.js';
import { assertOptionNames } from '../validation/option-names.js';
import type { RunLike } from './control.js';
import type { ListFilter } from './list-filter.js';
import type { RunList } from './list.js';
import { storedId } from './run-ids.js';
import { type Runnable, runnableStatus } from './runnable-texts.js';
import { type ReadStatus, listWithBelow, readStatus } from './below.js';

/** Options of `text`: the turn, and what to do when text that was shown does not count. */
export interface TextOptions extends StreamOptions {
  /** The turn to read; default: the newest turn of the run. */
  readonly turn?: number;
  /**
   * Called when the reply in progress does not count, because its attempt failed or its answer was
   * refused. `kept` is the text of the turn that still counts; what comes next continues it. Without
   * this function, the text goes on after an empty line with the reply that counts.
   */
  readonly onReset?: (kept: string) => void;
}

const BREAK = '\n\n';

/**
 * Yields the text of one turn of a run as it is written, and ends with the turn. Joined, it is the
 * text of the turn's replies, with an empty line between two replies. A repeated attempt that writes
 * the same text goes on where the first one stopped. What was not streamed comes whole, when it is
 * durable.
 */
export async function* textOfTurn(
  events: AsyncIterable<StreamEvent>,
  { turn, onReset }: Pick<TextOptions, 'onReset'> & { readonly turn: number },
): AsyncGenerator<string, void, undefined> {
  /** The text of the replies that are durable. */
  let kept = '';
  /** What was yielded of the reply in progress, and what its attempt has written so far. */
  let shown = '';
  let written = '';
  let isComplete = true;
  /** Whether void text was yielded, so that the next text begins a line of its own. */
  let isBroken = false;

  function* advance(target: string): Generator<string, void, undefined> {
    if (!target.startsWith(shown)) {
      shown = '';
      isBroken = onReset === undefined;
      onReset?.(kept);
    }
    const rest = target.slice(shown.length);
    if (rest === '') return;
    const begins = shown === '' && (kept !== '' || isBroken);
    shown = target;
    isBroken = false;
    yield begins ? BREAK + rest : rest;
  }
  const close = (text: string): void => {
    if (text !== '') kept = kept === '' ? text : kept + BREAK + text;
    shown = '';
    written = '';
    isComplete = true;
  };

  for await (const event of events) {
    if (event.type === 'run-ended') return;
    if (turnOf(event) !== turn) continue;
    if (event.type === 'delta' && event.kind === 'text') {
      written += event.text;
      // An attempt that has written less than was shown may still catch up.
      if (isComplete && !shown.startsWith(written)) yield* advance(written);
    } else if (event.type === 'superseded') {
      written = '';
      isComplete = true;
    } else if (event.type === 'gap') {
      isComplete = false;
    } else if (event.type === 'model-replied') {
      const { text, blob } = event.message;
      // Of a long text, the history has only the head and the tail.
      const whole = blob !== undefined && shown.length > text.length ? shown : text;
      yield* advance(whole);
      close(whole);
    } else if (event.type === 'answer-refused') {
      yield* advance('');
      close('');
    } else if (event.type === 'turn-ended') {
      const { answer, blob } = event.outcome;
      if (answer !== null && blob === undefined && !kept.endsWith(answer)) yield* advance(answer);
      return;
    }
  }
}

function turnOf(event: StreamEvent): number | null {
  switch (event.type) {
    case 'delta':
    case 'superseded':
    case 'gap':
    case 'turn-ended':
      return event.turn;
    case 'model-replied':
    case 'answer-refused':
      return event.message.turn;
    default:
      return null;
  }
}

/**
 * The part of a client that reads runs. It needs no worker, except for the live part of `stream`.
 */
export interface ReadMethods {
  /**
   * Returns a run's status. Needs no worker. For a run that the server has deleted, returns the
   * status from the archive, with `archived`. While a called agent works for the run, `below`
   * contains the requests of the runs below it.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { status, pending } = await client.status('desk-1');
   * console.log(status, pending);
   * ```
   */
  status(run: RunLike<unknown>): Promise<ReadStatus>;
  /**
   * Returns a run's messages, through all its segments. Messages that the server has deleted come
   * from the archive, if it has them. Needs no worker.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { messages } = await client.transcript('desk-1', { from: 10 });
   * for (const { role, text } of messages) console.log(role, text);
   * ```
   */
  transcript(run: RunLike<unknown>, range?: TranscriptRange): Promise<RunTranscript>;
  /**
   * Returns the calls that a run's messages request, each with its result. It reads what
   * `transcript` reads.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * for (const { call, result } of await client.calls('desk-1')) {
   *   console.log(call.name, call.arguments, result?.text ?? 'no result');
   * }
   * ```
   */
  calls(run: RunLike<unknown>, range?: MessageRange): Promise<readonly CallPair[]>;
  /**
   * Returns the turns of a run that have ended: agent, definition, model, settings, outcome with
   * usage, and failed attempts. It reads what `transcript` reads.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { turns } = await client.turns('desk-1');
   * for (const { turn, model, outcome } of turns) console.log(turn, model, outcome.usage.costUsd);
   * ```
   */
  turns(run: RunLike<unknown>): Promise<TurnLog>;
  /**
   * Yields durable events, past and future. Ends with the run.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * for await (const event of client.events('desk-1')) {
   *   console.log(event.type, event.offset);
   * }
   * ```
   */
  events(run: RunLike<unknown>, options?: EventsOptions): AsyncIterable<DurableEvent>;
  /**
   * Yields durable events, and in between the deltas of replies in progress, from workers that
   * serve live streams and share PERDURE_HOME with this client. All readers of a run share one
   * stream.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * for await (const event of client.stream('desk-1')) {
   *   if (event.type === 'delta') process.stdout.write(event.text);
   * }
   * ```
   */
  stream(run: RunLike<unknown>, options?: StreamOptions): AsyncIterable<StreamEvent>;
  /**
   * Yields the text of one turn as the model writes it, for a chat, and ends with the turn. By
   * default, it is the newest turn. Joined, the texts are what the turn's replies say; without live
   * deltas, each reply comes whole. A reply that does not count, because its attempt failed, is
   * followed by the one that counts: after an empty line, or after a call of `onReset`. What a model
   * writes for the function of a graph's node is not part of the answer; `stream` has it.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const sent = await client.send('desk-1', 'And order 18?');
   * if (!sent.delivered) throw new Error('no worker is running');
   * for await (const text of client.text('desk-1', { turn: sent.turn })) process.stdout.write(text);
   * ```
   */
  text(run: RunLike<unknown>, options?: TextOptions): AsyncIterable<string>;
  /**
   * Returns a page of the runs that match, by default at most 50. Filters can be combined. The
   * `cursor` of the page returns the next one. A run that the server has deleted is in no list;
   * `status` reads it from the archive. Rejects with an `InputError` (`input`) for an
   * invalid filter, and with a `NoServerError` (`no_server`) if the server does not answer.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const filter = { agent: 'desk', status: 'blocked', tag: 'billing', since: '3d' } as const;
   * const { rows, cursor } = await client.list(filter);
   * for (const { id, reason } of rows) console.log(id, reason);
   * if (cursor !== null) console.log((await client.list({ ...filter, cursor })).rows.length);
   * ```
   */
  list(filter?: ListFilter): Promise<RunList>;
}

/** Where runs are read in addition to the server. */
interface Sources {
  /** Contains what the server has deleted. */
  readonly archive: Archive;
  readonly streams: ReturnType<typeof createRunStreams>;
  readonly runnable: Runnable;
}

async function* flat<T>(batches: AsyncIterable<readonly T[]>): AsyncGenerator<T, void, undefined> {
  for await (const batch of batches) yield* batch;
}

const RANGE = { from: true, to: true } as const;
const STREAM = { after: true, signal: true } as const;

/** Returns the methods that read runs. */
export function readMethods(client: Client, { archive, streams, runnable }: Sources): ReadMethods {
  const idOf = async (run: RunLike<unknown>) => await storedId(client, run, archive);
  const read = async (run: RunLike<unknown>) => await readRun(client, await idOf(run), { archive });
  return {
    status: async (run) =>
      runnableStatus(await readStatus(client, await read(run), Date.now()), runnable),
    transcript: async (run, range = {}) => {
      assertOptionNames<TranscriptRange>(range, { ...RANGE, side: true }, 'transcript');
      return await readTranscript(client, await read(run), { ...range, archive });
    },
    calls: async (run, range = {}) => {
      assertOptionNames<MessageRange>(range, RANGE, 'calls');
      return await readCalls(client, await read(run), { ...range, archive });
    },
    turns: async (run) => await readTurns(client, await read(run), archive),
    events: (run, options = {}) => ({
      async *[Symbol.asyncIterator]() {
        assertOptionNames<EventsOptions>(options, { from: true, signal: true }, 'events');
        yield* followEvents(client, await idOf(run), options);
      },
    }),
    stream: (run, options = {}) => ({
      async *[Symbol.asyncIterator]() {
        assertOptionNames<StreamOptions>(options, STREAM, 'stream');
        yield* streams.read(await idOf(run), options);
      },
    }),
    text: (run, given = {}) => ({
      async *[Symbol.asyncIterator]() {
        assertOptionNames<TextOptions>(given, { ...STREAM, turn: true, onReset: true }, 'text');
        const { turn, onReset, ...options } = given;
        // The stream is opened first, so that a worker of this process begins to stream.
        const opened = await streams.open(await idOf(run), options);
        try {
          const number = turn ?? Math.max(1, (await read(run)).view.state?.turn.number ?? 1);
          yield* textOfTurn(flat(opened.batches), { turn: number, ...(onReset && { onReset }) });
        } finally {
          opened.close();
        }
      },
    }),
    list: async (filter = {}) => await listWithBelow(client, filter),
  };
}
