import type { ModelReply } from './model.js';

/** Calls of one reply. A run executes 128 of them at most; a reply with more than this is none. */
const MOST_CALLS = 1_024;
/** UTF-16 units of text, arguments and thoughts together; the longest honest reply has about 2 million. */
const MOST_CHARACTERS = 8 * 1024 * 1024;
/** Items of one response, whatever their kind. */
const MOST_ITEMS = 10_000;
/** Events of one stream. */
const MOST_EVENTS = 1_000_000;
/** Brackets and commas of one JSON text; each may become a value of 50 bytes and more. */
const MOST_STRUCTURE = 2_000_000;
/** Shorter texts cannot have so many. */
const SMALL_JSON = MOST_STRUCTURE / 2;

/** A reply is beyond what any model says. It is not used, and not asked for again: it has been paid for. */
export class ReplyTooLargeError extends Error {
  override readonly name = 'ReplyTooLargeError';
}

/** Counts a reply while it is assembled. Each method throws a `ReplyTooLargeError` at the first unit too many. */
export interface ReplyMeter {
  event(): void;
  call(): void;
  item(): void;
  text(...texts: readonly string[]): void;
}

export function createReplyMeter(): ReplyMeter {
  const counted = { events: 0, calls: 0, items: 0, characters: 0 };
  const count = (what: keyof typeof counted, units: number, most: number): void => {
    counted[what] += units;
    if (counted[what] > most) throw new ReplyTooLargeError(`more than ${most} ${what}`);
  };
  return {
    event: () => count('events', 1, MOST_EVENTS),
    call: () => count('calls', 1, MOST_CALLS),
    item: () => count('items', 1, MOST_ITEMS),
    text(...texts) {
      for (const text of texts) count('characters', text.length, MOST_CHARACTERS);
    },
  };
}

/** Throws a `ReplyTooLargeError` for a reply that came whole and has too much of something. */
export function assertWithinLimits({ text, calls }: ModelReply): void {
  const meter = createReplyMeter();
  meter.text(text);
  for (const { name, arguments: args } of calls) {
    meter.call();
    meter.text(name, args);
  }
}

/** JSON as a value; throws a `ReplyTooLargeError` for one with more values than memory is worth. */
export function parseBounded(json: string): unknown {
  let structure = 0;
  if (json.length > SMALL_JSON) {
    for (let at = 0; at < json.length; at += 1) {
      const unit = json.charCodeAt(at);
      if (unit === 0x2c || unit === 0x5b || unit === 0x7b) structure += 1;
    }
  }
  if (structure > MOST_STRUCTURE)
    throw new ReplyTooLargeError(`more than ${MOST_STRUCTURE} values`);
  return JSON.parse(json);
}
