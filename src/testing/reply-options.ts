import { type OptionNames, assertOptionNames } from '../validation/option-names.js';
import type { JsonObject } from '../core/text/json.js';
import type { Duration } from '../core/text/text.js';

/**
 * How an answer is cut: by a reset, by closing the connection, or by ending the HTTP message too
 * early.
 */
export type CutHow = 'reset' | 'close' | 'end';

/** How a streamed answer is written; by default complete and in order. */
export interface SseOptions {
  /** The end of each line; default `\n`. */
  readonly lineEnd?: '\n' | '\r\n';
  /** Whether a comment line comes before each event, as proxies add it to keep a connection alive; default false. */
  readonly comments?: boolean;
  /** Characters of text or arguments in one event; default: all in one. */
  readonly charactersPerEvent?: number;
  /** Replaces the data of the event with this number, from 0. Default: none. */
  readonly malformed?: { readonly event: number; readonly data: string };
  /** `finish`: omits everything from the finish reason onward; `done`: omits only `[DONE]`. Default: omits nothing. */
  readonly endBefore?: 'finish' | 'done';
  /** Whether each event is sent twice; default false. In the Responses API the two have the same `sequence_number`. */
  readonly twice?: boolean;
}

/**
 * How an answer is delivered. Waits happen in the order of the fields; by default there are none.
 */
export interface Delivery {
  /** The name of a barrier to wait at before anything is sent. Default: none. */
  readonly holdBeforeHeaders?: string;
  /** How long to wait before anything is sent. A duration: ms, or words such as '2 seconds'. Default: no time. */
  readonly delay?: Duration;
  /** The name of a barrier to wait at once the headers are sent. Default: none. */
  readonly holdAfterHeaders?: string;
  /** Waits at a barrier after this many events of a stream. Default: none. */
  readonly holdAfterEvent?: { readonly event: number; readonly barrier: string };
  /** Sends the body in parts of this many bytes; `every` is a duration. Default: all at once. */
  readonly drip?: { readonly bytes: number; readonly every: Duration };
  /** Cuts the answer after this many bytes of the body. Default: it is sent whole. */
  readonly cut?: { readonly afterBytes: number; readonly how: CutHow };
  /** Headers in addition to the stub's own. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How the events of a stream are written. Default: complete and in order. */
  readonly sse?: SseOptions;
}

/** A token of the answer; `top`: the probabilities of it and its alternatives, from 0 to 1 each. */
export interface StubToken {
  readonly token: string;
  readonly top: Readonly<Record<string, number>>;
}

/**
 * What a reply has beside its text or calls, and how the stub delivers it. A scripted model uses
 * `usage` and `finish`; the rest is only for the stub.
 */
export interface CompletionOptions extends Delivery {
  /** The usage in the wire format; `null` omits it. Default: 10 tokens in, 5 out. */
  readonly usage?: JsonObject | null;
  /** Sent whether the request asks for them or not; absent by default. */
  readonly logprobs?: readonly StubToken[];
  /** The finish reason: any text, or `null`; default `stop`, with calls `tool_calls`. Responses gets a matching status. */
  readonly finish?: string | null;
  /** The reasoning: `reasoning_content`, or an item of the Responses API, encrypted if asked for. Default: none. */
  readonly reasoning?: string;
  /** Responses API only: further output items, such as searches, after the reasoning. Default: none. */
  readonly items?: readonly JsonObject[];
}

const DELIVERY_OPTIONS: OptionNames<Delivery> = {
  holdBeforeHeaders: true,
  delay: true,
  holdAfterHeaders: true,
  holdAfterEvent: true,
  drip: true,
  cut: true,
  headers: true,
  sse: true,
};

/** The options of replies of text and calls. */
export const COMPLETION_OPTIONS: OptionNames<CompletionOptions> = {
  ...DELIVERY_OPTIONS,
  usage: true,
  logprobs: true,
  finish: true,
  reasoning: true,
  items: true,
};

/** Returns how a reply is delivered. Throws an `InputError` for an option that does not exist. */
export function checkedDelivery(delivery: Delivery): Delivery {
  assertOptionNames<Delivery>(delivery, DELIVERY_OPTIONS);
  return delivery;
}
