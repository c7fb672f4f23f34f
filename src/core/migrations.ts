import type { RunState } from './state.js';

/** The form of a run's state as it is carried from segment to segment. */
export const SCHEMA = 1;

interface AnyCarried {
  readonly schema: number;
  readonly state: RunState;
  readonly shown: string;
}

/** From each older form to the next; a form, once released, stays readable for ever. */
const STEPS: Readonly<Record<number, (older: Record<string, unknown>) => Record<string, unknown>>> =
  {};

/**
 * Brings carried state into the form of this version, step by step.
 *
 * Throws a plain error for a form that is newer than this version: a workflow task that fails is
 * tried again until a worker takes it that can read it, and nothing is lost.
 */
export function migrate(value: Record<string, unknown>, steps = STEPS, to = SCHEMA): AnyCarried {
  let form = value;
  for (;;) {
    const { schema } = form;
    if (schema === to) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by a segment of ours
      return form as unknown as AnyCarried;
    }
    const step = typeof schema === 'number' ? steps[schema] : undefined;
    if (step === undefined) {
      throw new Error(
        `the run's state has form ${String(schema)}, this version reads up to ${to}; deploy the version that wrote it`,
      );
    }
    form = step(form);
  }
}
