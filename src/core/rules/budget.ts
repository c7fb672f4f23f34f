import { amount, fields, flag, guard, optional, table, text, yes } from '../text/shape.js';

/** What a budget counts. */
type BudgetUnit = 'costUsd' | 'tokens';

/** One budget of a day, shared by all runs of a tenant, or with a tag. */
export interface SharedBudget {
  readonly of: 'tenant' | 'tag';
  /** The tenant, or the tag. */
  readonly name: string;
  /** The hash that the server has in place of the name of the tenant; absent if it has the name. */
  readonly stored?: string;
  readonly unit: BudgetUnit;
  readonly limit: number;
}

/** What the holder of one worker has said, and what it has been given. Both never decrease. */
interface Account {
  /** What it has spent since it began, on all days. */
  readonly total: number;
  /** Up to which total it may spend. The difference is its lease, which ends with the day. */
  readonly ceiling: number;
  /** It has said nothing on this day. */
  readonly quiet?: true;
}

/** What a budget remembers of its day. */
export interface Books {
  /** The day in UTC, counted from 1970-01-01. */
  readonly day: number;
  /** What was spent on this day, as far as holders have said. */
  readonly spent: number;
  readonly limit: number;
  /** By the id of a holder. */
  readonly accounts: Readonly<Record<string, Account>>;
  /** The holder whose call may cost more than what is left. There is one at most. */
  readonly last?: string;
}

/** What a holder says when it needs no more. */
export interface Settlement {
  readonly holder: string;
  /** What it has spent since it began. */
  readonly total: number;
  /** The part of it that it knows to be recorded. */
  readonly settled: number;
  /** Reserved for its calls in progress, in addition to the total. */
  readonly reserved: number;
  /** The worker shuts down. */
  readonly closing?: true;
}

/** What a holder asks for. To ask again changes nothing: it says up to which total it would spend. */
export interface LeaseAsk extends Settlement {
  readonly limit: number;
  readonly ceiling: number;
  /** What the call that waits longest may cost. */
  readonly need: number;
  /** Its call in progress may cost more than what was left when it began. */
  readonly isOver: boolean;
}

/** What a holder may spend until the end of the day. */
export interface Lease {
  readonly day: number;
  /** Milliseconds until the day ends. */
  readonly endsInMs: number;
  /** Up to which total of its own the holder may spend. */
  readonly ceiling: number;
  /** One call may begin although it may cost more than what is left. */
  readonly isLast: boolean;
  /** What all holders have spent on this day. */
  readonly spent: number;
  /** What other holders may still spend. */
  readonly held: number;
}

/** A budget as a report shows it. */
export type BudgetReading = Pick<Books, 'day' | 'spent' | 'limit'> & Pick<Lease, 'held'>;

export const DAY_MS = 24 * 60 * 60_000;

/** The share of a budget that one lease has, unless a call may cost more. */
const LEASE_SHARE = 0.01;
/** A smaller share of a budget counts as nothing: sums of amounts are not exact. */
const NOTHING = 1e-6;

const settlement = {
  holder: text,
  total: amount,
  settled: amount,
  reserved: amount,
  closing: optional(yes),
} as const;

/** What a holder may say; another version of perdure may have sent it. */
export const isSettlement = guard(fields<Settlement>(settlement));
export const leaseAsk = fields<LeaseAsk>({
  ...settlement,
  limit: amount,
  ceiling: amount,
  need: amount,
  isOver: flag,
});

/** Whether a value is the books that a segment has passed on. */
export const areBooks = guard(
  fields<Books>({
    day: amount,
    spent: amount,
    limit: amount,
    accounts: table(fields<Account>({ total: amount, ceiling: amount, quiet: optional(yes) })),
    last: optional(text),
  }),
);

/** Returns the UTC day of a Unix time in ms, counted from 1970-01-01. */
export function dayOf(now: number): number {
  return Math.floor(now / DAY_MS);
}

/** Returns the milliseconds until the day of a Unix time in ms ends. */
export function msLeftOf(now: number): number {
  return (dayOf(now) + 1) * DAY_MS - now;
}

/** Returns the books of a day on which nothing was spent. */
export function openBooks(now: number): Books {
  return { day: dayOf(now), spent: 0, limit: 0, accounts: {} };
}

/** Returns the size of a lease. */
export function leaseSize({ limit }: Pick<SharedBudget, 'limit'>): number {
  return limit * LEASE_SHARE;
}

/** Returns whether an amount is more than what a sum may be wrong by. */
export function isSome(left: number, { limit }: Pick<SharedBudget, 'limit'>): boolean {
  return left > limit * NOTHING;
}

/**
 * Gives a holder what is left of the day, at most what it asks for. What all holders have spent and may
 * spend is never more than the budget. The last of it goes to one call, which may cost more.
 */
export function takeLease(
  books: Books,
  ask: LeaseAsk,
  now: number,
): { readonly books: Books; readonly lease: Lease } {
  const { holder, limit, reserved, need, isOver } = ask;
  const { today, own } = settle(books, ask, now);
  const { total, ceiling: before } = own;
  const held = heldBy(today, holder);
  const left = limit - today.spent - held;
  const ceiling = Math.max(total, Math.min(ask.ceiling, Math.max(before, total + left)));
  const free = ceiling - total - reserved;
  const isOthers = today.last !== undefined && today.last !== holder;
  const isLast = !isOver && !isOthers && need > free && isSome(free, ask);
  const accounts = { ...today.accounts, [holder]: { total, ceiling } };
  const { day, spent } = today;
  return {
    books: withLast({ day, spent, limit, accounts }, lastOf(today, holder, isLast || isOver)),
    lease: { day, endsInMs: msLeftOf(now), ceiling, isLast, spent, held },
  };
}

/** Records what a holder has spent, and takes back what its calls in progress do not need. */
export function settleLease(books: Books, said: Settlement, now: number): Books {
  const { holder, reserved, closing } = said;
  const { today, own } = settle(books, said, now);
  const { [holder]: _, ...others } = today.accounts;
  const ceiling = Math.min(own.ceiling, own.total + reserved);
  const accounts = closing ? others : { ...others, [holder]: { total: own.total, ceiling } };
  const { day, spent, limit } = today;
  return withLast({ day, spent, limit, accounts }, lastOf(today, holder, false));
}

/** Returns the books of the day with what the holder has spent since it was heard last. */
function settle(
  books: Books,
  { holder, total, settled }: Pick<Settlement, 'holder' | 'total' | 'settled'>,
  now: number,
): { readonly today: Books; readonly own: Account } {
  const today = dayOf(now) > books.day ? nextDay(books, dayOf(now)) : books;
  const { [holder]: known = { total: settled, ceiling: settled } } = today.accounts;
  // A message that was overtaken by a later one says less.
  const own = { total: Math.max(total, known.total), ceiling: Math.max(total, known.ceiling) };
  const spent = today.spent + own.total - known.total;
  return { today: { ...today, spent }, own };
}

/** All leases end with the day. What holders have said stays for a day, since totals do not begin anew. */
function nextDay({ accounts, limit }: Books, day: number): Books {
  const heard = Object.entries(accounts).filter(([, { quiet }]) => quiet === undefined);
  const kept = heard.map(([holder, { total }]) => [
    holder,
    { total, ceiling: total, quiet: true } as const,
  ]);
  return { day, spent: 0, limit, accounts: Object.fromEntries(kept) };
}

function heldBy({ accounts }: Books, except?: string): number {
  return Object.entries(accounts)
    .filter(([holder]) => holder !== except)
    .reduce((sum, [, { total, ceiling }]) => sum + Math.max(0, ceiling - total), 0);
}

function lastOf({ last }: Books, holder: string, isLast: boolean): string | undefined {
  if (isLast) return holder;
  return last === holder ? undefined : last;
}

function withLast(books: Omit<Books, 'last'>, last: string | undefined): Books {
  return { ...books, ...(last !== undefined && { last }) };
}

/** Returns a budget as a report shows it. */
export function readBooks(books: Books, now: number): BudgetReading {
  const today = dayOf(now) > books.day ? nextDay(books, dayOf(now)) : books;
  const { day, spent, limit } = today;
  return { day, spent, limit, held: heldBy(today) };
}
