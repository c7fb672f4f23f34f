import { BLOCKED_REASONS, type BlockedReason } from './blocked.js';
import type { Json } from './json.js';
import { FAIL_REASONS, type FailReason } from './outcome.js';
import { reportShape } from './guards/outcome.js';
import type { AttemptReport } from './report.js';
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
} from './guards/shape.js';

/**
 * What an activity's failure says to the workflow, as the one entry of the failure's details.
 * The failure's type is `Blocked`, `Failed` or `Retry` accordingly.
 */
export type ActivityProblem =
  | {
      readonly type: 'blocked';
      readonly reason: BlockedReason;
      /** For people: what is wrong and the cure. */
      readonly message: string;
      /** Milliseconds before it is worth asking again; absent: the engine's own pace. */
      readonly waitMs?: number;
      /** Of a tool that has changed: its form now, which a person may accept. */
      readonly definition?: string;
      /** Of storage: SHA-256 of the blob that has to be readable before the work can go on. */
      readonly blob?: string;
      /** Of a model call: a reply that has been paid for, which the next call takes in place of asking again. */
      readonly paid?: Json;
      readonly reports?: readonly AttemptReport[];
    }
  | {
      readonly type: 'failed';
      readonly reason: FailReason;
      readonly message: string;
      readonly reports?: readonly AttemptReport[];
    };

/**
 * Reads a problem out of a failure's details. Null for a failure that says nothing of the kind: an
 * activity may also be failed by hand, with anything.
 */
export function parseProblem(
  details: readonly unknown[] | null | undefined,
): ActivityProblem | null {
  const [first] = details ?? [];
  return isActivityProblem(first) ? first : null;
}

const isActivityProblem = guard(
  tagged<ActivityProblem, 'type'>('type', {
    blocked: fields<Extract<ActivityProblem, { type: 'blocked' }>>({
      type: oneOf('blocked'),
      reason: oneOf(...BLOCKED_REASONS),
      message: text,
      waitMs: optional(amount),
      definition: optional(text),
      blob: optional(text),
      paid: optional(json),
      reports: optional(list(reportShape)),
    }),
    failed: fields<Extract<ActivityProblem, { type: 'failed' }>>({
      type: oneOf('failed'),
      reason: oneOf(...FAIL_REASONS),
      message: text,
      reports: optional(list(reportShape)),
    }),
  }),
);
