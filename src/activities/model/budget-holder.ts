import { randomUUID } from 'node:crypto';
import {
  DAY_MS,
  type Lease,
  type LeaseAsk,
  type Settlement,
  type SharedBudget,
  isSome,
  leaseSize,
} from '../../core/rules/budget.js';
import { ModelError } from '../../models/model.js';
import { normalizeError } from '../../tools/result/plain.js';
import { BUDGET, PATIENCE_MS } from './model-failures.js';

/** A call that waits until it may spend. */
interface SpendingCall {
  /** What it may cost. */
  readonly need: number;
  /** When its activity was first scheduled, in Unix ms: of all that wait, the oldest is next. */
  readonly since: number;
  readonly signal: AbortSignal;
}

/** The workflow that hands out the budget. */
export interface BudgetOffice {
  readonly take: (ask: LeaseAsk) => Promise<Lease>;
  /** Resolves with false if the workflow has ended with its day. */
  readonly settle: (said: Settlement) => Promise<boolean>;
}

/** Says what a call has cost, once. */
export type Settle = (spent: number) => void;

interface Waiting extends Pick<SpendingCall, 'need' | 'since'> {
  readonly begin: (settle: Settle) => void;
  readonly refuse: (error: ModelError) => void;
  /** The deadline of its wait, in ms on this worker's clock. */
  readonly until: number;
}

const [FIRST_RETRY_MS, MAX_RETRY_MS] = [500, 10_000];
/** How long calls wait for what other workers hold. */
const OTHERS_MS = 3_000;
/** How long all calls are refused after that. */
const REFUSED_MS = 25_000;
/** A worker without calls returns its lease after this time. */
const IDLE_MS = 10_000;
/** A worker that may spend more than so many leases, or calls, returns all but one: it has had a burst. */
const MAX_UNITS = 3;
/** How often a wait is looked at, in ms, at least. */
const MAX_TIMER_MS = 1_000;

/**
 * The holder of one budget in this worker. It takes leases, reserves what each call may cost, and counts
 * what it did cost. The lease of a worker that dies counts as spent until the day ends.
 */
export class BudgetHolder {
  readonly #budget: SharedBudget;
  readonly #id = randomUUID();
  /** By age, the oldest first. */
  readonly #waiting: Waiting[] = [];
  /** What was spent since the holder began, and the part of it that is recorded. */
  #total = 0;
  #settled = 0;
  /** Up to which total it may spend. */
  #ceiling = 0;
  #reserved = 0;
  #inProgress = 0;
  /** The size of a lease, or what the newest call may cost, whichever is more. */
  #unit = 0;
  /** The newest lease, and when the day ends on this worker's clock. */
  #lease: Lease | undefined;
  #endsAt = Infinity;
  #isLast = false;
  /** A call in progress may cost more than what was left. */
  #isOver = false;
  #isAsking = false;
  /** The request in flight, or the last one; it never rejects. */
  #request: Promise<void> = Promise.resolve();
  #isClosed = false;
  #askAt = -Infinity;
  #failures = 0;
  #failure: unknown;
  /** Since when answers were too small, on this worker's clock. */
  #shortSince: number | undefined;
  #refusedUntil = -Infinity;
  /** The total that need not be said again before the holder takes another lease. */
  #said = 0;
  #timer: NodeJS.Timeout | undefined;
  #office: BudgetOffice | undefined;

  constructor(budget: SharedBudget) {
    this.#budget = budget;
  }

  /**
   * Resolves when the call may begin, with the function that settles it. Rejects with a `ModelError` if
   * the budget has no room for it, and with the signal's reason. `office` is used from then on.
   */
  async enter({ need, since, signal }: SpendingCall, office: BudgetOffice): Promise<Settle> {
    signal.throwIfAborted();
    this.#office = office;
    const settle = await new Promise<Settle | null>((resolve, reject) => {
      const end = (finish: () => void): void => {
        signal.removeEventListener('abort', leave);
        finish();
      };
      const call: Waiting = {
        need,
        since,
        until: performance.now() + PATIENCE_MS,
        begin: (settled) => end(() => resolve(settled)),
        refuse: (error) => end(() => reject(error)),
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(call), 1);
        resolve(null);
        this.#advance();
      };
      signal.addEventListener('abort', leave, { once: true });
      const younger = this.#waiting.findIndex((other) => other.since > since);
      this.#waiting.splice(younger === -1 ? this.#waiting.length : younger, 0, call);
      this.#advance();
    });
    if (settle !== null && !signal.aborted) return settle;
    settle?.(0);
    throw signal.reason;
  }

  /** Returns the lease, for the end of the worker. It makes no request after that. Never rejects. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#isClosed = true;
    // What it may still be given would be held until the day ends.
    await this.#request;
    if (this.#office === undefined) return;
    const said = { ...this.#saying(), closing: true } as const;
    await this.#office.settle(said).catch(() => undefined);
  }

  #advance(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const now = performance.now();
    if (now >= this.#endsAt) this.#endDay();
    for (let [next] = this.#waiting; next !== undefined; [next] = this.#waiting) {
      if (next.need > this.#left() && !this.#isLast) break;
      this.#begin(next);
    }
    this.#refuseSome(now);
    if (this.#waiting.length === 0) {
      this.#returnSome();
      return;
    }
    if (!this.#isAsking && now >= this.#askAt) this.#request = this.#ask();
    const next = this.#isAsking ? Infinity : this.#askAt - now;
    const ms = Math.min(Math.max(1, Math.ceil(next)), MAX_TIMER_MS);
    this.#timer = setTimeout(() => this.#advance(), ms);
  }

  #saying(): Settlement {
    const [holder, total, settled] = [this.#id, this.#total, this.#settled];
    return { holder, total, settled, reserved: this.#reserved };
  }

  #left(): number {
    return this.#ceiling - this.#total - this.#reserved;
  }

  #endDay(): void {
    this.#ceiling = this.#total;
    this.#isLast = false;
    this.#endsAt = Infinity;
    this.#refusedUntil = -Infinity;
    this.#askAt = -Infinity;
    this.#shortSince = undefined;
  }

  #begin(call: Waiting): void {
    this.#waiting.shift();
    const isOver = call.need > this.#left();
    if (isOver) [this.#isOver, this.#isLast] = [true, false];
    this.#shortSince = undefined;
    this.#failures = 0;
    this.#unit = Math.max(leaseSize(this.#budget), call.need);
    this.#reserved += call.need;
    this.#inProgress += 1;
    let isOpen = true;
    call.begin((spent) => {
      if (!isOpen) return;
      isOpen = false;
      this.#inProgress -= 1;
      this.#reserved = this.#inProgress === 0 ? 0 : this.#reserved - call.need;
      this.#total += spent;
      if (isOver) this.#isOver = false;
      this.#askAt = this.#failure === undefined ? -Infinity : this.#askAt;
      // Calls of other workers may wait for the end of this one.
      if (isOver && this.#waiting.length === 0 && !this.#isAsking) this.#request = this.#return();
      else this.#advance();
    });
  }

  #refuseSome(now: number): void {
    const isRefused = now < this.#refusedUntil;
    for (const call of this.#waiting.filter(({ until }) => isRefused || until <= now)) {
      this.#waiting.splice(this.#waiting.indexOf(call), 1);
      call.refuse(this.#refusal(now));
    }
  }

  #refusal(now: number): ModelError {
    const retryAfterMs = Math.max(1_000, Math.round(Math.min(this.#endsAt - now, DAY_MS)));
    const details = { kind: 'bad_request', type: BUDGET, retryAfterMs } as const;
    if (this.#failure !== undefined || this.#lease === undefined) {
      const { message } = normalizeError(this.#failure);
      const fix = 'a worker of the task queue must run workflow type `budget`';
      const text = `the budget of ${titleOf(this.#budget)} does not answer: ${message}; ${fix}`;
      return new ModelError(text, { ...details, retryAfterMs: 1_000, cause: this.#failure });
    }
    const spent = this.#lease.spent + (this.#total - this.#settled);
    return new ModelError(refusalText(this.#budget, { ...this.#lease, spent }), details);
  }

  /** Never rejects. A request that fails is repeated: to ask again changes nothing. */
  async #ask(): Promise<void> {
    const { limit } = this.#budget;
    const [next] = this.#waiting;
    if (this.#office === undefined || next === undefined) return;
    this.#isAsking = true;
    const sentAt = performance.now();
    const saying = this.#saying();
    const { total, reserved } = saying;
    const isOver = this.#isOver;
    const wanted = this.#waiting.reduce((sum, { need }) => sum + need, 0);
    try {
      const lease = await this.#office.take({
        ...saying,
        limit,
        ceiling: total + reserved + Math.max(leaseSize(this.#budget), wanted),
        need: next.need,
        isOver,
      });
      this.#failure = undefined;
      this.#failures = 0;
      this.#accept(lease, { total, sentAt, isOver });
    } catch (error) {
      this.#failure = error;
      this.#failures += 1;
      this.#askAt = performance.now() + retryMs(this.#failures);
    }
    this.#isAsking = false;
    this.#advance();
  }

  #accept(
    lease: Lease,
    {
      total,
      sentAt,
      isOver,
    }: { readonly total: number; readonly sentAt: number; readonly isOver: boolean },
  ): void {
    const now = performance.now();
    this.#lease = lease;
    this.#settled = total;
    this.#ceiling = lease.ceiling;
    this.#endsAt = sentAt + lease.endsInMs;
    this.#isLast = lease.isLast && !this.#isOver;
    this.#said = Number.NaN;
    const [next] = this.#waiting;
    if (next === undefined || next.need <= this.#left() || this.#isLast) return;
    this.#failures += 1;
    this.#askAt = now + retryMs(this.#failures);
    // What its own calls do not need comes back with their ends, and with the end of the one that may cost
    // more than what was left, another one may be that.
    if (this.#inProgress > 0 || (isOver && !this.#isOver)) return;
    this.#shortSince ??= now;
    if (!isSome(lease.held, this.#budget)) this.#refusedUntil = this.#endsAt;
    else if (now - this.#shortSince >= OTHERS_MS) this.#refusedUntil = now + REFUSED_MS;
    if (now < this.#refusedUntil) this.#shortSince = undefined;
  }

  #returnSome(): void {
    if (this.#isAsking || this.#lease === undefined) return;
    if (this.#left() > MAX_UNITS * this.#unit) this.#request = this.#return(this.#unit);
    if (this.#inProgress > 0 || this.#isAsking || this.#said === this.#total) return;
    this.#timer = setTimeout(() => {
      this.#request = this.#return();
    }, IDLE_MS);
    this.#timer.unref();
  }

  /** Gives the lease back, but `kept`. Never rejects. */
  async #return(kept = 0): Promise<void> {
    if (this.#office === undefined) return;
    this.#isAsking = true;
    const saying = this.#saying();
    const said = { ...saying, reserved: saying.reserved + kept };
    // A call that begins meanwhile has no more than that, or takes a new lease.
    this.#ceiling = said.total + said.reserved;
    this.#isLast = false;
    try {
      // A workflow that has ended learns of it with the next lease.
      if (await this.#office.settle(said)) this.#settled = said.total;
      this.#said = said.reserved === 0 ? said.total : Number.NaN;
    } catch {
      // It is said again.
    }
    this.#isAsking = false;
    this.#advance();
  }
}

function retryMs(failures: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS);
}

/** Says why a call may not begin, until when, and what helps. */
function refusalText(
  budget: SharedBudget,
  { day, spent, held }: Pick<Lease, 'day' | 'spent' | 'held'>,
): string {
  const { limit, unit } = budget;
  const [on, next] = [day, day + 1].map((each) => new Date(each * DAY_MS).toISOString());
  const words = unit === 'costUsd' ? 'USD' : 'tokens';
  const digits = unit === 'tokens' ? 0 : limit < 1 ? 6 : 2;
  const [used, others, all] = [spent, held, limit].map((each) => each.toFixed(digits));
  const kept = isSome(held, budget)
    ? `, and other workers hold ${others} (one that died, until the day ends)`
    : '';
  return (
    `the budget of ${titleOf(budget)} for ${on?.slice(0, 10)} has no room for this call: ${used} of ${all} ${words} spent${kept}; ` +
    `the run waits until ${next?.slice(0, 16)}Z, or raise \`${unit}\` of the budget in the config of the workers`
  );
}

/** Returns the name of a budget for people, such as `tenant "acme"`. */
function titleOf({ of, name }: Pick<SharedBudget, 'of' | 'name'>): string {
  return `${of} ${JSON.stringify(name)}`;
}
