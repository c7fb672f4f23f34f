import { stateShape } from '../guards/state.js';
import type { RunState } from '../state/state.js';
import type { Work } from '../state/work.js';
import { type Json, isObject } from '../text/json.js';
import {
  absent,
  amount,
  count,
  fields,
  json,
  list,
  oneOf,
  optional,
  tagged,
  text,
  yes,
} from '../text/shape.js';
import { show } from '../text/text.js';
import { reportShape, safetyShape } from '../transcript/message-shapes.js';
import type { SafetyCheck } from '../transcript/messages.js';
import { type AttemptReport, BLOCKED_REASONS, type BlockedReason } from '../transcript/outcome.js';

/** Reasons for blocked work that are requests in the current schema. */
const REQUESTED = ['outcome_unknown', 'safety_check'] as const;
type RequestReason = (typeof REQUESTED)[number];

interface UnknownPending {
  readonly type: 'outcome_unknown';
  readonly call: string;
  readonly tool: string;
  readonly arguments: string;
  readonly idempotencyKey: string;
  readonly fix: string;
}

interface SafetyPending {
  readonly type: 'safety_check';
  readonly call: string;
  readonly tool: string;
  readonly arguments: string;
  readonly checks: readonly SafetyCheck[];
  readonly idempotencyKey?: undefined;
  readonly fix: string;
}

type Pending = UnknownPending | SafetyPending;

interface Resolution {
  readonly call: string;
  readonly as: 'happened' | 'retry' | 'abandon' | 'accept';
  readonly result?: Json;
  readonly definition?: string;
}

/** Blocked work in the first schema, which stored it separately from the state. */
interface BlockedWork {
  /** Call id, `model`, `retrieve`, or `agent`. */
  readonly name: string;
  readonly reason: BlockedReason | RequestReason;
  readonly message: string;
  readonly reports?: readonly AttemptReport[];
  /** For `tool_changed`: the tool's current form, which a person may accept. */
  readonly definition?: string;
  /** For `storage`: SHA-256 of the blob that must become readable first. */
  readonly blob?: string;
  /** Milliseconds before the next probe. */
  readonly probeMs: number;
  /** `resume` was called after the work was deferred: it is attempted at once. */
  readonly asked?: true;
  /** The pending decision of a person. */
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
  reason: oneOf(...BLOCKED_REASONS, ...REQUESTED),
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

/** Returns blocked work of the first schema as work of the second one. */
function toWork(blocked: BlockedWork, number: number): Work {
  const { name, reason, message, probeMs, asked, pending, resolution: _, ...rest } = blocked;
  const { reports, definition, blob } = rest;
  // Request a last-moment decision again, because executing a call twice would be worse.
  if (reason === 'outcome_unknown' || reason === 'safety_check') {
    const key = pending?.idempotencyKey;
    const request = { id: `r${number}`, kind: reason, why: message, raisedAt: 0 };
    return { name, ...(key !== undefined && { key }), request, phase: 'asking' };
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
 * Migrates the first schema: its blocked work was separate from the state, and its turn had a field
 * for each phase. Malformed parts stay unchanged and fail the check of the new schema.
 */
function fromSchema1({ blocked = [], state, ...rest }: StoredState): StoredState {
  if (!isObject(state) || blockedShape(blocked, 'blocked') !== null) return { ...rest, schema: 2 };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its shape was checked
  const work = (blocked as readonly BlockedWork[]).map((one, index) => toWork(one, index + 1));
  const counted = work.length > 0 && { requests: work.length };
  const turn = isObject(state['turn']) ? turnFrom(state['turn']) : state['turn'];
  const archives = state['open'] === true && { archives: true };
  return {
    ...rest,
    schema: 2,
    state: { ...state, schema: 2, turn, work, ...archives, ...counted },
  };
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
}: StoredState): StoredState {
  const limit = deadlineReached === true ? 'wallMs' : (callsRefused ?? clippedBy ?? null);
  return { ...turn, limit, phase: phaseFrom({ batch, branch, closing, outcome, recorded, turn }) };
}

function phaseFrom({ batch, branch, closing, outcome, recorded, turn }: StoredState): StoredState {
  if (outcome !== null) return { type: recorded === true ? 'idle' : 'over', outcome };
  if (isObject(turn) && turn['number'] === 0) return { type: 'idle', outcome: null };
  if (closing !== null) return { type: 'closing', reason: closing };
  if (batch !== null) return { type: 'acting', batch };
  return branch ? { type: 'repairing', branch } : { type: 'deciding' };
}

/**
 * The version of the schema in which a run's state is carried from segment to segment. Raise it
 * whenever a field is added that an older version would drop: its worker then waits visibly for a
 * newer one instead of losing what the field says.
 */
export const STATE_VERSION = 3;

/**
 * The state that a segment receives. The field names are recorded: never rename them.
 */
export interface CarriedState {
  readonly schema: number;
  readonly state: RunState;
  /** The status currently in the search attributes. */
  readonly shown: string;
}

/** The shape of this schema version. Change it whenever you add a step below. */
const carriedShape = fields<CarriedState>({ schema: count, state: stateShape, shown: text });

type StoredState = Record<string, unknown>;

/** The migration from each older schema version to the next. Released ones must stay readable. */
const STEPS: Readonly<Record<number, (older: StoredState) => StoredState>> = {
  1: fromSchema1,
  // Only fields were added, all optional: settings and requesters of messages, parsed arguments,
  // places of references, refused messages, totals of bounded lists, and the decision `some`.
  2: (older) => ({ ...older, schema: 3 }),
};

/** Thrown for a state written by a newer version. A worker of that version can continue the run. */
export class NewerStateError extends Error {
  override readonly name = 'NewerStateError';
}

/** Returns why a state of this schema version cannot be read. */
export function newerSchema(schema: unknown, known = STATE_VERSION): string {
  return `the run's state has schema version ${String(schema)}, and this version reads up to ${known}; deploy the version that wrote it`;
}

/**
 * Checks the state that a segment received, and migrates it from an older schema version. Returns the
 * problem as text if there is one. Throws a `NewerStateError` for a version above `STATE_VERSION`: the workflow
 * task is then retried until a worker can read it, and nothing is lost.
 */
export function parseCarriedState(
  value: unknown,
): { readonly carried: CarriedState } | { readonly problem: string } {
  const schema = isObject(value) ? value['schema'] : undefined;
  if (!isObject(value) || !Number.isSafeInteger(schema) || Number(schema) < 1) {
    return { problem: `carried.schema: expected a whole number from 1, got ${show(schema)}` };
  }
  if (Number(schema) > STATE_VERSION) return { carried: migrate(value) };
  let carried: CarriedState;
  try {
    carried = migrate(value);
  } catch {
    return { problem: `carried: expected a state of schema version ${String(schema)}` };
  }
  const problem = carriedShape(carried, 'carried');
  return problem === null ? { carried } : { problem };
}

/**
 * Migrates a state to the schema version `to`, step by step, without checking its content. Throws a
 * `NewerStateError` if there is no step for its version.
 */
export function migrate(value: StoredState, steps = STEPS, to = STATE_VERSION): CarriedState {
  let stored = value;
  for (;;) {
    const { schema } = stored;
    if (schema === to) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by `parseCarriedState`
      return stored as unknown as CarriedState;
    }
    const step = typeof schema === 'number' ? steps[schema] : undefined;
    if (step === undefined) {
      throw new NewerStateError(newerSchema(schema, to));
    }
    const next = step(stored);
    if (next['schema'] === schema)
      throw new Error(`schema version ${String(schema)} cannot be read`);
    stored = next;
  }
}
