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

/** Blocked work as a segment hands it to the next one: there it is blocked on, for the same reason. */
export interface BlockedWork {
  /** Call id, `model`, `retrieve`, or `agent`. */
  readonly name: string;
  readonly reason: BlockedReason;
  readonly message: string;
  readonly reports?: readonly AttemptReport[];
  /** Of a tool that has changed: its form now, which a person may accept. */
  readonly definition?: string;
  /** Of storage: SHA-256 of the blob that has to be readable before the work can go on. */
  readonly blob?: string;
  /** Milliseconds before the next probe. */
  readonly probeMs: number;
  /** Somebody said `resume` in the last moment of the segment: the work is tried at once. */
  readonly asked?: true;
  /** What a person has to decide. */
  readonly pending?: Pending;
  /** What a person decided in the last moment of the segment. */
  readonly resolution?: Resolution;
}

const unknownPending = fields<UnknownPending>({
  type: oneOf('outcome_unknown'),
  call: text,
  tool: text,
  arguments: text,
  idempotencyKey: text,
  cure: text,
});
const safetyPending = fields<SafetyPending>({
  type: oneOf('safety_check'),
  call: text,
  tool: text,
  arguments: text,
  checks: list(safetyShape),
  idempotencyKey: absent,
  cure: text,
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
