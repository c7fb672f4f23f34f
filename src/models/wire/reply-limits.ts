import { quoteLargeIntegers } from '../../core/foreign-json.js';
import type { ModelReply } from '../model.js';

/** Maximum calls of one reply. A run executes at most 128 of them. */
const MAX_CALLS = 1_024;
/**
 * Maximum UTF-16 units of text, arguments, and reasoning; the longest legitimate reply has about 2
 * million.
 */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Maximum items of one response, of any type. */
const MAX_ITEMS = 10_000;
/** Maximum events of one stream. */
const MAX_EVENTS = 1_000_000;
/** Maximum brackets and commas of one JSON text; each may become a value of 50 bytes or more. */
const MAX_STRUCTURE = 2_000_000;
/** A shorter text is not searched for structure. */
const SMALL_JSON = MAX_STRUCTURE / 2;

/**
 * A reply exceeds a limit. It is neither used nor requested again, because it has been paid for.
 */
export class ReplyTooLargeError extends Error {
  override readonly name = 'ReplyTooLargeError';
}

/** Counts a reply during assembly. Each method throws a `ReplyTooLargeError` beyond its limit. */
export interface ReplyMeter {
  event(): void;
  call(): void;
  item(): void;
  text(...texts: readonly string[]): void;
}

export function createReplyMeter(): ReplyMeter {
  const counts = { events: 0, calls: 0, items: 0, characters: 0 };
  const add = (what: keyof typeof counts, units: number, limit: number): void => {
    counts[what] += units;
    if (counts[what] > limit) throw new ReplyTooLargeError(`more than ${limit} ${what}`);
  };
  return {
    event: () => add('events', 1, MAX_EVENTS),
    call: () => add('calls', 1, MAX_CALLS),
    item: () => add('items', 1, MAX_ITEMS),
    text(...texts) {
      for (const text of texts) add('characters', text.length, MAX_CHARACTERS);
    },
  };
}

/** Throws a `ReplyTooLargeError` if a reply that was not streamed exceeds a limit. */
export function assertWithinLimits({ text, calls }: ModelReply): void {
  const meter = createReplyMeter();
  meter.text(text);
  for (const { name, arguments: args } of calls) {
    meter.call();
    meter.text(name, args);
  }
}

/**
 * Parses JSON. Throws a `ReplyTooLargeError` if it has too many values, and a `SyntaxError` as
 * `JSON.parse` does.
 */
export function parseBounded(json: string): unknown {
  let structure = 0;
  if (json.length > SMALL_JSON) {
    for (let at = 0; at < json.length; at += 1) {
      const unit = json.charCodeAt(at);
      if (unit === 0x2c || unit === 0x5b || unit === 0x7b) structure += 1;
    }
  }
  if (structure > MAX_STRUCTURE) throw new ReplyTooLargeError(`more than ${MAX_STRUCTURE} values`);
  // Some servers send the arguments of a call as an object; its numbers must stay exact.
  return JSON.parse(quoteLargeIntegers(json));
}
