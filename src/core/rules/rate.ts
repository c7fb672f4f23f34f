import { amount, count, fields, guard, optional, shape } from '../text/shape.js';

/** One allowance of a provider, shared by all workers. At least one of the two counts is given. */
export interface Rate {
  readonly requests?: number;
  readonly tokens?: number;
  /** The time in ms to which the counts belong. */
  readonly perMs: number;
}

/** Until when each kind is spoken for, in Unix ms. This is all that the allowance remembers. */
export interface Pace {
  readonly requestsUntil: number;
  readonly tokensUntil: number;
}

/** The pace of an allowance that no call has used. */
export const UNUSED: Pace = { requestsUntil: 0, tokensUntil: 0 };

/** What one holder asks for. */
export interface BlockAsk {
  readonly rate: Rate;
  /** How many uses, at most; the block ends earlier with its time. */
  readonly uses: number;
  /** The estimated tokens of each use. */
  readonly tokens: number;
  /** The tokens that earlier uses took beyond their estimates; negative if they took fewer. */
  readonly owed: number;
}

/** The uses that a holder may make, each at its own time. */
export interface Block {
  /** When it was handed out, in Unix ms. */
  readonly at: number;
  /** Milliseconds from then on at which each use may begin. Empty: ask again after `againMs`. */
  readonly inMs: readonly number[];
  readonly againMs: number;
}

/** The share of an allowance that is handed out. The rest absorbs delays on the way to the provider. */
const HANDED_OUT = 0.97;
/** The shares of the allowance's time, and of the time between two uses, by which a use may be late. */
const LATE_SHARES = { time: (1 - HANDED_OUT) / 2, gap: 3 / 4 };
/** The share of the allowance's time that one block covers: what a lost holder costs at most. */
const BLOCK_SHARE = 1 / 20;
const [MIN_BLOCK_MS, MAX_BLOCK_MS] = [1_000, 5_000];
const MAX_USES = 1_000;
/** No block begins later than this. */
const MAX_AHEAD_MS = 60_000;

const finite = shape<number>('a number', Number.isFinite);
const positive = shape<number>(
  'a number above 0',
  (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
);

/** What a holder may ask for; another version of perdure may have sent it. */
export const blockAsk = fields<BlockAsk>({
  rate: fields<Rate>({ requests: optional(positive), tokens: optional(positive), perMs: positive }),
  uses: count,
  tokens: amount,
  owed: finite,
});

/** Whether a value is the pace that a segment has passed on. */
export const isPace = guard(fields<Pace>({ requestsUntil: finite, tokensUntil: finite }));

/** Returns the time in ms that a block covers. */
export function blockMs({ perMs }: Rate): number {
  return Math.min(Math.max(perMs * BLOCK_SHARE, MIN_BLOCK_MS), MAX_BLOCK_MS);
}

/** Returns the ms between two uses of all holders together, if each takes so many tokens. */
export function gapMs({ requests = Infinity, tokens = Infinity, perMs }: Rate, each = 0): number {
  return (perMs / HANDED_OUT) * Math.max(1 / requests, each / tokens);
}

/**
 * Returns by how many ms a use may be late; later, it is lost. It must not catch up with the next one, and
 * must fit into a window that slides.
 */
export function graceMs({ requests = 1, perMs }: Rate): number {
  return Math.min(perMs * LATE_SHARES.time, (perMs / requests) * LATE_SHARES.gap);
}

/**
 * Hands out the next block of an allowance (GCRA without bursts): each use follows the one before
 * it, of any holder, by the time that both its request and its tokens are worth.
 */
export function takeBlock(
  pace: Pace,
  { rate, uses, tokens, owed }: BlockAsk,
  now: number,
): { readonly pace: Pace; readonly block: Block } {
  const { requests = Infinity, tokens: allowed = Infinity, perMs } = rate;
  const perRequest = gapMs({ requests, perMs });
  const perToken = gapMs({ tokens: allowed, perMs }, 1);
  let { requestsUntil } = pace;
  let tokensUntil = Math.max(pace.tokensUntil, owed > 0 ? now : 0) + owed * perToken;
  const next = (): number => Math.max(now, requestsUntil, tokensUntil);
  const from = next();
  const inMs: number[] = [];
  const againMs = Math.max(0, from - now - MAX_AHEAD_MS);
  const end = from + blockMs(rate);
  const most = againMs > 0 ? 0 : Math.min(Math.max(uses, 1), MAX_USES);
  for (let at = from; inMs.length < most && (inMs.length === 0 || at < end); at = next()) {
    inMs.push(at - now);
    requestsUntil = at + perRequest;
    tokensUntil = Math.max(at, tokensUntil) + tokens * perToken;
  }
  return { pace: { requestsUntil, tokensUntil }, block: { at: now, inMs, againMs } };
}
