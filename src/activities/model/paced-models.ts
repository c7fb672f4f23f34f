import { AsyncLocalStorage } from 'node:async_hooks';
import { Context } from '@temporalio/activity';
import {
  type Rate,
  type Block,
  type BlockAsk,
  blockMs,
  gapMs,
  graceMs,
} from '../../core/rules/rate.js';
import type { ModelCatalog, ResolvedModel } from '../../models/model-catalog.js';
import { type ModelEntry, rateOf } from '../../models/model-entry.js';
import { type Model, type ModelRequest, estimateUsage, ModelError } from '../../models/model.js';
import { takeFromRate } from '../../updates/shared-limits.js';
import { formatDuration } from '../../core/text/text.js';
import { normalizeError } from '../../tools/result/plain.js';
import { checkedReply } from './checked-reply.js';
import { PATIENCE_MS, RATE } from './model-failures.js';

/** The tokens of a reply before any has been seen. */
const FIRST_REPLY_TOKENS = 500;
const NEWEST_SHARE = 0.1;

/**
 * Returns a catalog whose models with a `rate` share it with all workers of the namespace: each call waits
 * for its time in the allowance. Other models are those of the catalog.
 */
export function pacedModels(
  catalog: ModelCatalog,
  entries: Readonly<Record<string, ModelEntry>>,
): ModelCatalog {
  const paced = new Map<string, ResolvedModel>();
  for (const [name, entry] of Object.entries(entries)) {
    const rate = rateOf(entry);
    if (rate === null) continue;
    const resolved = catalog.resolve(name);
    paced.set(name, { ...resolved, model: pace(resolved.model, { name, rate }) });
  }
  if (paced.size === 0) return catalog;
  return { ...catalog, resolve: (name) => paced.get(name) ?? catalog.resolve(name) };
}

function pace(model: Model, { name, rate }: { readonly name: string; readonly rate: Rate }): Model {
  const holder = new RateHolder(name, rate);
  let replyTokens = FIRST_REPLY_TOKENS;
  // A request for a block is for all calls, so the end of one call's activity must not end it.
  const outside = AsyncLocalStorage.snapshot();
  return {
    async call(request, context) {
      const { client, info } = Context.current();
      const { taskQueue, scheduledTimestampMs: since } = info;
      const take: TakeBlock = async (ask) =>
        await outside(() => takeFromRate(client, { model: name, taskQueue }, ask));
      const counted = rate.tokens !== undefined;
      const tokens = counted ? promptTokens(request) + Math.round(replyTokens) : 0;
      await holder.enter({ tokens, since, signal: context.signal }, take);
      const reply = checkedReply(await model.call(request, context), request);
      if (!counted) return reply;
      const { inputTokens, outputTokens } = reply.usage ?? estimateUsage(request, reply);
      replyTokens += (outputTokens - replyTokens) * NEWEST_SHARE;
      holder.settle({ taken: inputTokens + outputTokens, estimated: tokens });
      return reply;
    },
  };
}

function promptTokens(request: ModelRequest): number {
  return estimateUsage(request, { text: '', calls: [], finish: 'stop' }).inputTokens;
}

/** A call that waits for its time. */
interface PacedCall {
  /** The estimated tokens of the call. */
  readonly tokens: number;
  /** When its activity was first scheduled, in Unix ms: of all that wait, the oldest is next. */
  readonly since: number;
  readonly signal: AbortSignal;
}

/** Takes a block of the allowance from the server. */
export type TakeBlock = (ask: BlockAsk) => Promise<Block>;

interface Waiting extends Pick<PacedCall, 'tokens' | 'since'> {
  readonly begin: () => void;
  readonly refuse: (error: ModelError) => void;
  /** The deadline of its wait, in ms on this worker's clock. */
  readonly until: number;
}

/** A use of the allowance, at its time on this worker's clock, with the tokens reserved for it. */
interface Permit {
  readonly at: number;
  readonly tokens: number;
}

interface Asked {
  readonly sentAt: number;
  readonly uses: number;
  readonly tokens: number;
}

const [FIRST_RETRY_MS, MAX_RETRY_MS] = [100, 5_000];
/** Blocks of fewer uses are not taken ahead unless a call waits: most would be lost. */
const MIN_AHEAD = 4;
/** How often a wait is looked at, in ms, at least. */
const MAX_TIMER_MS = 1_000;

/**
 * The holder of one model's allowance in this worker. It takes blocks of uses, each with its own time, as
 * many as its calls need, and the next block when half of one is used. Calls that follow each other closely
 * thus share one request to the server. The uses of a worker that dies are lost, and no others.
 */
export class RateHolder {
  readonly #model: string;
  readonly #rate: Rate;
  /** By age, the oldest first. */
  readonly #waiting: Waiting[] = [];
  #permits: Permit[] = [];
  /** When the latest uses began, on this worker's clock. */
  #begun: number[] = [];
  /** The number of uses of the newest block. */
  #blockSize = 0;
  /** Tokens that calls have taken beyond those reserved for them. */
  #owed = 0;
  /** The ms between two uses of this worker while others use the allowance too. */
  #gapMs: number;
  #isAsking = false;
  #askAt = -Infinity;
  #failures = 0;
  #failure: unknown;
  /** By how many ms this worker's clock is ahead of the allowance's, as of the fastest answer. */
  #clockAheadMs = Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(model: string, rate: Rate) {
    this.#model = model;
    this.#rate = rate;
    this.#gapMs = gapMs(rate);
  }

  /**
   * Resolves when the call may begin. Rejects with a `ModelError` if that would be later than a call
   * waits, and with the signal's reason. `take` is used from then on.
   */
  async enter({ tokens, since, signal }: PacedCall, take: TakeBlock): Promise<void> {
    signal.throwIfAborted();
    const now = performance.now();
    const younger = this.#waiting.findIndex((other) => other.since > since);
    const place = younger === -1 ? this.#waiting.length : younger;
    const waitMs = this.#waitMs(place, now);
    if (waitMs > PATIENCE_MS) throw this.#tooLate(waitMs);
    await new Promise<void>((resolve, reject) => {
      const end = (settle: () => void): void => {
        signal.removeEventListener('abort', leave);
        settle();
      };
      const call: Waiting = {
        tokens,
        since,
        until: now + PATIENCE_MS,
        begin: () => end(resolve),
        refuse: (error) => end(() => reject(error)),
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(call), 1);
        resolve();
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.splice(place, 0, call);
      this.#advance(take);
    });
    signal.throwIfAborted();
  }

  /** Corrects the estimate of a call by the tokens that it took. */
  settle(tokens: { readonly taken: number; readonly estimated: number }): void {
    this.#owed += tokens.taken - tokens.estimated;
  }

  #advance(take: TakeBlock): void {
    clearTimeout(this.#timer);
    const now = performance.now();
    const graceOfUse = graceMs(this.#rate);
    this.#permits = this.#permits.filter(({ at }) => at + graceOfUse >= now);
    while (this.#waiting.length > 0 && (this.#permits[0]?.at ?? Infinity) <= now) this.#begin(now);
    this.#refuseLate(now);
    this.#askIfNeeded(take, now);
    if (this.#waiting.length === 0) return;
    const next = this.#permits[0]?.at ?? (this.#isAsking ? Infinity : this.#askAt);
    const ms = Math.min(Math.max(1, Math.ceil(next - now)), MAX_TIMER_MS);
    this.#timer = setTimeout(() => this.#advance(take), ms);
  }

  #begin(now: number): void {
    const call = this.#waiting.shift();
    const permit = this.#permits.shift();
    if (call === undefined || permit === undefined) return;
    this.#owed += call.tokens - permit.tokens;
    this.#begun.push(now);
    call.begin();
  }

  #refuseLate(now: number): void {
    const opensAt = this.#permits.length === 0 ? this.#askAt : now;
    for (const call of this.#waiting.filter(({ until }) => until <= Math.max(now, opensAt))) {
      const place = this.#waiting.indexOf(call);
      this.#waiting.splice(place, 1);
      call.refuse(this.#tooLate(this.#waitMs(place, now)));
    }
  }

  /** Returns in how many ms the call behind so many others may begin, as far as it is known. */
  #waitMs(others: number, now: number): number {
    const permit = this.#permits[others];
    if (permit !== undefined) return Math.max(0, permit.at - now);
    const from = Math.max(now, this.#permits.at(-1)?.at ?? now, this.#askAt);
    return from - now + (others - this.#permits.length) * this.#gapMs;
  }

  #tooLate(waitMs: number): ModelError {
    const retryAfterMs = Math.max(1_000, Math.round(waitMs));
    const details = { kind: 'retry', type: RATE, retryAfterMs } as const;
    const subject = `the shared rate of model ${JSON.stringify(this.#model)}`;
    if (this.#failure === undefined) {
      const next = formatDuration(retryAfterMs, { as: 'rounded' });
      return new ModelError(`${subject} has no room for this call; try in about ${next}`, details);
    }
    const { message } = normalizeError(this.#failure);
    const fix = 'a worker of the task queue must run workflow type `rate`';
    return new ModelError(`${subject} does not answer: ${message}; ${fix}`, {
      ...details,
      cause: this.#failure,
    });
  }

  #askIfNeeded(take: TakeBlock, now: number): void {
    if (this.#isAsking || now < this.#askAt) return;
    if (this.#permits.length > this.#blockSize / 2) return;
    const since = now - blockMs(this.#rate);
    this.#begun = this.#begun.filter((at) => at > since);
    const open = this.#waiting.length - this.#permits.length;
    if (open <= 0 && this.#begun.length < MIN_AHEAD) return;
    void this.#ask(take, Math.max(open, this.#begun.length));
  }

  /** Never rejects. A request that fails may have taken a block, so what it settled is not repeated. */
  async #ask(take: TakeBlock, uses: number): Promise<void> {
    this.#isAsking = true;
    const owed = this.#owed;
    this.#owed = 0;
    const sentAt = performance.now();
    const tokens = this.#meanTokens();
    try {
      this.#accept(await take({ rate: this.#rate, uses, tokens, owed }), { sentAt, uses, tokens });
      this.#failure = undefined;
      this.#failures = 0;
    } catch (error) {
      this.#failure = error;
      this.#failures += 1;
      const pauseMs = FIRST_RETRY_MS * 2 ** (this.#failures - 1);
      this.#askAt = performance.now() + Math.min(pauseMs, MAX_RETRY_MS);
    }
    this.#isAsking = false;
    this.#advance(take);
  }

  #meanTokens(): number {
    const { length } = this.#waiting;
    if (this.#rate.tokens === undefined || length === 0) return 0;
    return Math.round(this.#waiting.reduce((sum, { tokens }) => sum + tokens, 0) / length);
  }

  #accept({ at, inMs, againMs }: Block, { sentAt, uses, tokens }: Asked): void {
    const receivedAt = performance.now();
    // It was handed out between the two. A slow answer must not delay its uses: those of the next block
    // would follow too closely.
    const handedOutAt = Math.min(Math.max(at + this.#clockAheadMs, sentAt), receivedAt);
    this.#clockAheadMs = handedOutAt - at;
    const before = this.#permits.at(-1)?.at ?? handedOutAt;
    this.#permits.push(...inMs.map((ms) => ({ at: handedOutAt + ms, tokens })));
    this.#blockSize = inMs.length;
    this.#askAt = againMs > 0 ? receivedAt + againMs : -Infinity;
    // It ended with its time, so all of the allowance is used.
    if (inMs.length === 0 || inMs.length >= uses) return;
    const last = this.#permits.at(-1)?.at ?? before;
    this.#gapMs = Math.max(gapMs(this.#rate), (last - before) / inMs.length);
  }
}
