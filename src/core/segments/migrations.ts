import { isObject } from '../json.js';
import { fields, count, list, optional, text } from '../guards/shape.js';
import { show } from '../text/format-value.js';
import { blockedWorkShape, type BlockedWork } from '../blocked-work.js';
import { stateShape } from '../guards/state.js';
import type { RunState } from '../state.js';

/** The form of a run's state as it is carried from segment to segment. */
export const SCHEMA = 1;

export interface AnyCarried {
  readonly schema: number;
  readonly state: RunState;
  readonly shown: string;
  readonly blocked?: readonly BlockedWork[];
}

/** The guard of this version's form. Whoever adds a step below also changes this. */
const carriedShape = fields<AnyCarried>({
  schema: count,
  state: stateShape,
  shown: text,
  blocked: optional(list(blockedWorkShape)),
});

/** From each older form to the next; a form, once released, stays readable. */
const STEPS: Readonly<Record<number, (older: Record<string, unknown>) => Record<string, unknown>>> =
  {};

/** The state was written by a newer version, which may still take the run. */
export class NewerStateError extends Error {
  override readonly name = 'NewerStateError';
}

/**
 * Checks what a segment has handed over, and brings an older form up to this version. Returns what is
 * wrong with it as text. Throws a `NewerStateError` for a form that is newer than this version: the
 * workflow task is then retried until a worker takes it that can read it, and nothing is lost.
 */
export function readForm(
  value: unknown,
): { readonly form: AnyCarried } | { readonly problem: string } {
  const schema = isObject(value) ? value['schema'] : undefined;
  if (!isObject(value) || !Number.isSafeInteger(schema) || Number(schema) < 1) {
    return { problem: `carried.schema: expected a whole number from 1, got ${show(schema)}` };
  }
  if (Number(schema) > SCHEMA) return { form: migrate(value) };
  let form: AnyCarried;
  try {
    form = migrate(value);
  } catch {
    return { problem: `carried: expected the state of form ${String(schema)}` };
  }
  const problem = carriedShape(form, 'carried');
  return problem === null ? { form } : { problem };
}

/**
 * Brings carried state into the form of this version, step by step, without a check of its content.
 * Throws a `NewerStateError` where no step leads on.
 */
export function migrate(value: Record<string, unknown>, steps = STEPS, to = SCHEMA): AnyCarried {
  let form = value;
  for (;;) {
    const { schema } = form;
    if (schema === to) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by `readForm`
      return form as unknown as AnyCarried;
    }
    const step = typeof schema === 'number' ? steps[schema] : undefined;
    if (step === undefined) {
      throw new NewerStateError(
        `the run's state has form ${String(schema)}, this version reads up to ${to}; deploy the version that wrote it`,
      );
    }
    form = step(form);
  }
}
