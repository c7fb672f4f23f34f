import { BLOCKED_REASONS, type BlockedReason } from './blocked.js';
import type { BudgetName } from './definition/definition.js';
import { isObject, type Json } from './json.js';
import { FAIL_REASONS, type FailReason } from './outcome.js';
import { refusedShape } from './guards/message.js';
import { replyUsageShape, reportShape, usageShape } from './guards/outcome.js';
import type { ReplyUsage } from './reply.js';
import type { Usage } from './outcome.js';
import type { AttemptReport } from './report.js';
import type { RefusedPart } from './transcript/messages.js';
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
} from './guards/shape.js';

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
