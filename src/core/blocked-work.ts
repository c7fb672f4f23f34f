import { BLOCKED_REASONS, type BlockedReason } from './blocked.js';
import type { Resolution } from './calls/call-result.js';
import { safetyShape } from './guards/message.js';
import { reportShape } from './guards/outcome.js';
import type { AttemptReport } from './report.js';
import {
  absent,
  amount,
  fields,
  json,
  list,
  oneOf,
  optional,
  tagged,
  text,
  yes,
} from './guards/shape.js';
import type { Pending, SafetyPending, UnknownPending } from './status.js';

/** Blocked work that a segment passes to the next one, where it stays blocked for the same reason. */
export interface BlockedWork {
  /** Call id, `model`, `retrieve`, or `agent`. */
  readonly name: string;
  readonly reason: BlockedReason;
  readonly message: string;
  readonly reports?: readonly AttemptReport[];
  /** For `tool_changed`: the tool's current form, which a person may accept. */
  readonly definition?: string;
  /** For `storage`: SHA-256 of the blob that has to be readable first. */
  readonly blob?: string;
  /** Milliseconds before the next probe. */
  readonly probeMs: number;
  /** `resume` was called after the work was deferred: it is attempted at once. */
  readonly asked?: true;
  /** The decision that a person has to make. */
  readonly pending?: Pending;
  /** A person's decision that came after the work was deferred. */
  readonly resolution?: Resolution;
}

const unknownPending = fields<UnknownPending>({
  type: oneOf('outcome_unknown'),
  call: text,
  tool: text,
  arguments: text,
  idempotencyKey: text,
  fix: text,
});
const safetyPending = fields<SafetyPending>({
  type: oneOf('safety_check'),
  call: text,
  tool: text,
  arguments: text,
  checks: list(safetyShape),
  idempotencyKey: absent,
  fix: text,
});

export const blockedWorkShape = fields<BlockedWork>({
  name: text,
  reason: oneOf(...BLOCKED_REASONS),
  message: text,
  reports: optional(list(reportShape)),
  definition: optional(text),
  blob: optional(text),
  probeMs: amount,
  asked: optional(yes),
  pending: optional(
    tagged<Pending, 'type'>('type', {
      outcome_unknown: unknownPending,
      safety_check: safetyPending,
    }),
  ),
  resolution: optional(
    fields<Resolution>({
      call: text,
      as: oneOf('happened', 'retry', 'abandon', 'accept'),
      result: optional(json),
      definition: optional(text),
    }),
  ),
});
