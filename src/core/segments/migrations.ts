import { isObject } from '../json.js';
import { count, fields, text } from '../guards/shape.js';
import { show } from '../text/format-value.js';
import { stateShape } from '../guards/state.js';
import type { RunState } from '../state.js';
import { fromForm1 } from './form-1.js';

/** The version of the form in which a run's state is passed from segment to segment. */
export const SCHEMA = 2;

/**
 * What a segment receives, in the form of this version. The field names are recorded: never rename
 * them.
 */
export interface Carried {
  readonly schema: number;
  readonly state: RunState;
  /** The status currently in the search attributes. */
  readonly shown: string;
}

/** The shape of this version's form. Change it whenever you add a step below. */
const carriedShape = fields<Carried>({ schema: count, state: stateShape, shown: text });

type Form = Record<string, unknown>;

/** The migration from each older form to the next. Released forms must stay readable. */
const STEPS: Readonly<Record<number, (older: Form) => Form>> = {
  1: fromForm1,
};

/** Thrown for a state written by a newer version. A worker of that version can continue the run. */
export class NewerStateError extends Error {
  override readonly name = 'NewerStateError';
}

/**
 * Checks the state that a segment received, and migrates an older form to this version. Returns the
 * problem as text if there is one. Throws a `NewerStateError` for a form that is newer than this
 * version: the workflow task is then retried until a worker can read it, and nothing is lost.
 */
export function readForm(
  value: unknown,
): { readonly form: Carried } | { readonly problem: string } {
  const schema = isObject(value) ? value['schema'] : undefined;
  if (!isObject(value) || !Number.isSafeInteger(schema) || Number(schema) < 1) {
    return { problem: `carried.schema: expected a whole number from 1, got ${show(schema)}` };
  }
  if (Number(schema) > SCHEMA) return { form: migrate(value) };
  let form: Carried;
  try {
    form = migrate(value);
  } catch {
    return { problem: `carried: expected the state of form ${String(schema)}` };
  }
  const problem = carriedShape(form, 'carried');
  return problem === null ? { form } : { problem };
}

/**
 * Migrates a state to the form `to`, step by step, without checking its content. Throws a
 * `NewerStateError` if there is no step for its form.
 */
export function migrate(value: Form, steps = STEPS, to = SCHEMA): Carried {
  let form = value;
  for (;;) {
    const { schema } = form;
    if (schema === to) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by `readForm`
      return form as unknown as Carried;
    }
    const step = typeof schema === 'number' ? steps[schema] : undefined;
    if (step === undefined) {
      throw new NewerStateError(
        `the run's state has form ${String(schema)}, this version reads up to ${to}; deploy the version that wrote it`,
      );
    }
    const next = step(form);
    if (next['schema'] === schema) throw new Error(`form ${String(schema)} cannot be read`);
    form = next;
  }
}
