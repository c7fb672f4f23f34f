import type { Typed, TypedPrompts } from '../core/definition/output-type.js';
import type { Json } from '../core/json.js';

/** A run that was started, with the type of its agent's output. */
export interface RunHandle<Output = Json, Prompts = unknown>
  extends Typed<Output>, TypedPrompts<Prompts> {
  readonly id: string;
  /** Run id of the first segment. */
  readonly runId: string;
}

/** A run: the result of `start`, or its id. */
export type RunLike<Output = Json, Prompts = unknown> =
  | string
  | (Typed<Output> & TypedPrompts<Prompts> & { readonly id: string });

/** Returns the id of a run. */
export function idOf(run: RunLike<unknown>): string {
  return typeof run === 'string' ? run : run.id;
}
