import type { BudgetName } from '../definition/definition.js';
import type { EndOf, FactOf, RunEvent } from '../run/events.js';
import type { RunState } from '../state/state.js';
import { openCallById } from '../state/turn.js';
import { type Block, type Work, findWork } from '../state/work.js';
import { type Json, isObject } from '../text/json.js';
import {
  amount,
  fields,
  guard,
  json,
  list,
  oneOf,
  optional,
  tagged,
  text,
  yes,
} from '../text/shape.js';
import {
  refusedShape,
  replyUsageShape,
  reportShape,
  usageShape,
} from '../transcript/message-shapes.js';
import type { RefusedPart } from '../transcript/messages.js';
import {
  type AttemptReport,
  BLOCKED_REASONS,
  type BlockedReason,
  FAIL_REASONS,
  type FailReason,
  type ReplyUsage,
  type Usage,
} from '../transcript/outcome.js';

/**
 * The problem in an activity's failure, as the only entry of its details. The failure's type is
 * `Blocked`, `Failed`, or `Retry`.
 */
export type ActivityProblem =
  | {
      readonly type: 'blocked';
      readonly reason: BlockedReason;
      /** For people: what is wrong, and the fix. */
      readonly message: string;
      /** Milliseconds to wait before the next attempt; default: the engine's own delays. */
      readonly waitMs?: number;
      /** Another worker may succeed at once, so the first probe follows soon. */
      readonly elsewhere?: true;
      /** For `tool_changed`: the tool's current form, which a person may accept. */
      readonly definition?: string;
      /** For `storage`: SHA-256 of the blob that must become readable first. */
      readonly blob?: string;
      /**
       * For a model call: a reply already paid for; the next call checks it instead of calling the
       * model.
       */
      readonly paid?: Json;
      readonly reports?: readonly AttemptReport[];
      readonly used?: ReplyUsage;
      readonly spent?: Usage;
    }
  | {
      readonly type: 'failed';
      readonly reason: FailReason;
      readonly message: string;
      /** What of the prompt the provider refused; absent if the prompt is not at fault. */
      readonly refused?: RefusedPart;
      /** The limit that allowed a decision function no further model call. */
      readonly limit?: BudgetName;
      readonly reports?: readonly AttemptReport[];
      readonly used?: ReplyUsage;
      readonly spent?: Usage;
    };

/**
 * Reads the problem from a failure's details. Returns null if there is none, because an operator
 * can fail an activity with any details.
 */
export function parseProblem(
  details: readonly unknown[] | null | undefined,
): ActivityProblem | null {
  const [first] = details ?? [];
  return isActivityProblem(first) ? first : null;
}

/**
 * The paid model calls of a decision function or a node whose activity ended without a result, from
 * the details of its failure or cancellation. They count exactly once, regardless of the cause.
 */
export interface Payment {
  /** Tokens that no earlier end of the call reported. */
  readonly used?: ReplyUsage;
  /** For a node: tokens and cost, because its calls may go to several models. */
  readonly spent?: Usage;
  /** The replies, for the next attempt. */
  readonly paid?: Json;
}

/** Reads the payment from the details of a failure or a cancellation. */
export function parsePayment(details: readonly unknown[] | null | undefined): Payment {
  const [first] = details ?? [];
  if (!isObject(first)) return {};
  const { used, spent, paid } = first;
  return {
    ...(isUsage(used) && { used }),
    ...(isSpent(spent) && { spent }),
    ...(isJson(paid) && { paid }),
  };
}

const isUsage = guard(replyUsageShape);
const isSpent = guard(usageShape);
const isJson = guard(json);

const isActivityProblem = guard(
  tagged<ActivityProblem, 'type'>('type', {
    blocked: fields<Extract<ActivityProblem, { type: 'blocked' }>>({
      type: oneOf('blocked'),
      reason: oneOf(...BLOCKED_REASONS),
      message: text,
      waitMs: optional(amount),
      elsewhere: optional(yes),
      definition: optional(text),
      blob: optional(text),
      paid: optional(json),
      reports: optional(list(reportShape)),
      used: optional(replyUsageShape),
      spent: optional(usageShape),
    }),
    failed: fields<Extract<ActivityProblem, { type: 'failed' }>>({
      type: oneOf('failed'),
      reason: oneOf(...FAIL_REASONS),
      message: text,
      refused: optional(refusedShape),
      limit: optional(oneOf('tokens', 'costUsd')),
      reports: optional(list(reportShape)),
      used: optional(replyUsageShape),
      spent: optional(usageShape),
    }),
  }),
);

/** Delay in ms of the first probe of blocked work; it doubles for each further probe. */
const FIRST_PROBE_MS = 30_000;
/**
 * Delay in ms of the first search for a worker. It is short because a search is cheap and another
 * worker may be ready.
 */
const FIRST_SEARCH_MS = 1_000;
const MAX_PROBE_MS = 60 * 60_000;

type Blocking = Extract<ActivityProblem, { type: 'blocked' }>;

/** Returns the problem in a failure if it blocks the work for one of these reasons; else null. */
export function blockingProblem(
  { failure }: Pick<FactOf<'failed'>, 'failure'>,
  reasons: readonly BlockedReason[],
): Blocking | null {
  const problem = parseProblem(failure.details);
  return problem?.type === 'blocked' && reasons.includes(problem.reason) ? problem : null;
}

/** Returns the events of blocked work. It is retried later, or immediately on `resume`. */
export function blockWork(
  state: RunState,
  fact: Pick<EndOf<'failed'>, 'at' | 'work'>,
  problem: Blocking,
): readonly RunEvent[] {
  const { work: name } = fact;
  const begun: Partial<Work> = findWork(state, name) ?? {};
  const { resumed, block: _, found: __, request, proposal, ...work } = begun;
  const paid = problem.paid ?? work.paid;
  const { probeMs, checked, block } = blockUntil(work, problem, fact.at);
  const changed: Work = {
    ...work,
    name,
    probeMs,
    ...(checked.length > 0 && { checked }),
    ...(paid !== undefined && { paid }),
    // If `resume` arrived while the attempt was in flight, the next attempt follows at once.
    ...(!resumed && { block }),
    phase: 'waiting',
  };
  const { definition } = problem;
  // A person can decide only about a call.
  if (definition === undefined || openCallById(state, name) === undefined)
    return [{ type: 'work-changed', work: changed }];
  // A person may accept the tool's current form. The run asks about each form once.
  if (request?.definition === definition) {
    const waiting = { ...changed, request, ...(proposal && { proposal }) };
    return [{ type: 'work-changed', work: waiting }];
  }
  const toAccept = {
    kind: 'tool_changed',
    why: problem.message,
    raisedAt: fact.at,
    definition,
  } as const;
  return [
    { type: 'work-changed', work: changed },
    { type: 'request-raised', work: name, request: toAccept },
  ];
}

function blockUntil(
  work: Pick<Work, 'probeMs' | 'checked'>,
  problem: Blocking,
  at: number,
): { probeMs: number; checked: readonly string[]; block: Block } {
  const { reason, message, reports, definition, blob, waitMs = 0 } = problem;
  const probeMs = nextProbeMs(work.probeMs, problem);
  const before = work.checked ?? [];
  // The first check of each blob is immediate, because it is cheap. If a worker can read the blob
  // but the work still fails, the workers do not share one store, so the usual delays apply.
  const isImmediate = reason === 'storage' && !before.includes(blob ?? '');
  const block: Block = {
    reason,
    message,
    ...(reports && { reports }),
    ...(definition !== undefined && { definition }),
    ...(blob !== undefined && { blob }),
    until: isImmediate ? at : at + Math.max(probeMs, waitMs),
  };
  return { probeMs, checked: isImmediate ? [...before, blob ?? ''] : before, block };
}

function nextProbeMs(before: number | undefined, { reason, elsewhere }: Blocking): number {
  const isSearch = reason === 'tool_missing' || reason === 'agent_missing';
  if (before === undefined) return isSearch || elsewhere ? FIRST_SEARCH_MS : FIRST_PROBE_MS;
  return isSearch ? before : Math.min(2 * before, MAX_PROBE_MS);
}

/**
 * Returns the events of a task that was canceled although nothing interrupts the run. After
 * `resume`, the work is attempted at once. At the end of a segment, it stays blocked and the next
 * segment continues it. `paid`: the task's paid replies, if any.
 */
export function probeCanceled(
  state: RunState,
  fact: EndOf<'cancelled'>,
  paid?: Json,
): readonly RunEvent[] {
  const found = findWork(state, fact.work);
  if (found === undefined) return [];
  const work = { ...found, ...(paid !== undefined && { paid }) };
  return [{ type: 'work-changed', work: work.resumed ? unblocked(work) : stopped(work, fact.at) }];
}

function stopped(work: Work, at: number): Work {
  const { block } = work;
  return { ...work, ...(block && { block: { ...block, until: at } }), phase: 'waiting' };
}

/** Returns the work without its block, to be attempted at once. */
export function unblocked(work: Work): Work {
  const { block: _, found: __, resumed: ___, request: ____, proposal: _____, ...rest } = work;
  return { ...rest, phase: 'waiting' };
}

/** Returns the work after `resume`: blocked work is attempted at once. */
export function resumedWork(work: Work): Work {
  if (work.phase === 'in-flight') return { ...work, resumed: true };
  return work.phase === 'waiting' && work.block !== undefined ? unblocked(work) : work;
}
