import { isObject } from '../json.js';
import { count, fields, text } from '../guards/shape.js';
import { show } from '../text/format-value.js';
import { stateShape } from '../guards/state.js';
import type { RunState } from '../state.js';
import { fromSchema1 } from './schema-1.js';

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
      throw new NewerStateError(
        `the run's state has schema version ${String(schema)}, and this version reads up to ${to}; deploy the version that wrote it`,
      );
    }
    const next = step(stored);
    if (next['schema'] === schema)
      throw new Error(`schema version ${String(schema)} cannot be read`);
    stored = next;
  }
}
