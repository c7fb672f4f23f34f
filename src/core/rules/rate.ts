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

/** The pace of an allowance that nobody has used. */
export const UNUSED: Pace = { requestsUntil: 0, tokensUntil: 0 };

/** What one holder asks for. */
export interface BlockAsk {
  readonly rate: Rate;
  /** How many uses, at most; the block ends earlier with its window. */
  readonly uses: number;
  /** The estimated tokens of each use. */
  readonly tokens: number;
  /** The tokens that earlier uses took beyond their estimates; negative if they took fewer. */
  readonly owed: number;
}

/** The uses that a holder may make, each at its own time. */
export interface Block {
  /** Milliseconds from now at which each use may begin. Empty: ask again after `againMs`. */
  readonly inMs: readonly number[];
  readonly againMs: number;
}

/** The share of an allowance that is handed out. The rest absorbs delays on the way to the provider. */
const HANDED_OUT = 0.97;
/** The share of the allowance's time that one block covers: what a lost holder costs at most. */
const BLOCK_SHARE = 1 / 20;
const MAX_BLOCK_MS = 5_000;

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
  const perRequest = perMs / requests / HANDED_OUT;
  const perToken = perMs / allowed / HANDED_OUT;
  const blockMs = Math.min(perMs * BLOCK_SHARE, MAX_BLOCK_MS);
  let { requestsUntil } = pace;
  let tokensUntil = pace.tokensUntil + owed * perToken;
  const next = (): number => Math.max(now, requestsUntil, tokensUntil);
  const from = next();
  const inMs: number[] = [];
  // No holder gets far ahead of the others: the block before its own has begun.
  if (from - now <= blockMs) {
    for (let at = from; inMs.length < uses && (inMs.length === 0 || at < from + blockMs); ) {
      inMs.push(at - now);
      requestsUntil = at + perRequest;
      tokensUntil = Math.max(at, tokensUntil) + tokens * perToken;
      at = next();
    }
  }
  const againMs = Math.max(0, from - now - blockMs);
  return { pace: { requestsUntil, tokensUntil }, block: { inMs, againMs } };
}
