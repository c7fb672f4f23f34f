// Adds perdure's matchers to vitest: `import 'perdure/vitest'`, or as a setup file.
import { expect } from 'vitest';
import { type CostBounds, matchers } from './testing/matchers.js';

export type { CheckedMessage, CheckedRequest, CheckedRun, CostBounds } from './testing/matchers.js';

expect.extend(matchers);

/** The matchers of a run, which `expect(run)` has. `toEndAs` and `toCost` also take an outcome alone. */
export interface RunMatchers {
  /** The run has ended so: a status, a reason, or some fields of the outcome. */
  toEndAs(expected: string | Readonly<Record<string, unknown>>): void;
  /** A tool was executed, with at least these fields in its input; `times`: exactly so often. */
  toHaveCalled(
    tool: string,
    input?: Readonly<Record<string, unknown>>,
    options?: { readonly times?: number },
  ): void;
  /** A person was asked: by the name of a tool or the kind of a request, with at least these arguments. */
  toHaveAsked(about: string, input?: Readonly<Record<string, unknown>>): void;
  /** The agent has said this: a part of one of its messages, or a pattern that one matches. */
  toHaveSaid(expected: string | RegExp): void;
  /** The run has used all replies, answers to requests, and messages of its script, and no more. */
  toUseWholeScript(): void;
  /** The run has cost at most this. A bound in dollars fails if a price is unknown. */
  toCost(bounds: CostBounds): void;
}

declare module 'vitest' {
  interface Matchers<T> extends RunMatchers {}
}
