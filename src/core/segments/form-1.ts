import { BLOCKED_REASONS, needsPerson, type BlockedReason } from '../blocked.js';
import { isObject } from '../json.js';
import type { Resolution } from '../calls/call-result.js';
import { safetyShape } from '../guards/message.js';
import { reportShape } from '../guards/outcome.js';
import type { AttemptReport } from '../report.js';
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
} from '../guards/shape.js';
import type { Pending, SafetyPending, UnknownPending } from '../status.js';
import type { Work } from '../work/work.js';

type Form = Record<string, unknown>;

/** Blocked work as the first form of the state had it, beside the state. */
interface BlockedWork {
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

const blockedWorkShape = fields<BlockedWork>({
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

/** Returns blocked work of the first form as work of the second one. */
function toWork(blocked: BlockedWork): Work {
  const { name, reason, message, probeMs, asked, pending, resolution: _, ...rest } = blocked;
  const { reports, definition, blob } = rest;
  // A decision that came at the last moment is asked for again: executing a call twice is worse.
  if (needsPerson(reason)) {
    const key = pending?.idempotencyKey;
    const asking = { phase: 'asking', about: reason, message } as const;
    return { name, ...(key !== undefined && { key }), ...asking };
  }
  const block = {
    reason,
    message,
    ...(reports && { reports }),
    ...(definition !== undefined && { definition }),
    ...(blob !== undefined && { blob }),
    until: 0,
  };
  return { name, probeMs, ...(!asked && { block }), phase: 'waiting' };
}

const blockedShape = list(blockedWorkShape);

/**
 * Migrates the first form: its blocked work was beside the state, and its turn had a field for each
 * phase. What does not fit stays as it is, and fails the check of the new form.
 */
export function fromForm1({ blocked = [], state, ...rest }: Form): Form {
  if (!isObject(state) || blockedShape(blocked, 'blocked') !== null) return { ...rest, schema: 2 };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its shape was checked
  const work = (blocked as readonly BlockedWork[]).map(toWork);
  const turn = isObject(state['turn']) ? turnFrom(state['turn']) : state['turn'];
  const archives = state['open'] === true && { archives: true };
  return { ...rest, schema: 2, state: { ...state, schema: 2, turn, work, ...archives } };
}

function turnFrom({
  batch,
  branch,
  closing,
  outcome,
  recorded,
  callsRefused,
  deadlineReached,
  clippedBy,
  ...turn
}: Form): Form {
  const limit = deadlineReached === true ? 'wallMs' : (callsRefused ?? clippedBy ?? null);
  return { ...turn, limit, phase: phaseFrom({ batch, branch, closing, outcome, recorded, turn }) };
}

function phaseFrom({ batch, branch, closing, outcome, recorded, turn }: Form): Form {
  if (outcome !== null) return { type: recorded === true ? 'idle' : 'over', outcome };
  if (isObject(turn) && turn['number'] === 0) return { type: 'idle', outcome: null };
  if (closing !== null) return { type: 'closing', reason: closing };
  if (batch !== null) return { type: 'acting', batch };
  return branch ? { type: 'repairing', branch } : { type: 'deciding' };
}
