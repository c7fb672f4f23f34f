declare const OUTPUT: unique symbol;

/** Type-only: the type of `output` in a completed turn. */
export interface Typed<Output> {
  readonly [OUTPUT]?: Output;
}

declare const PROMPTS: unique symbol;

/** Type-only: the arguments and the output of each named prompt. */
export interface TypedPrompts<Prompts> {
  readonly [PROMPTS]?: Prompts;
}

/** The number of a turn that answers a named prompt, with the type of its output. */
export type TurnOf<Output> = number & { readonly [OUTPUT]: Output };

declare const INPUT: unique symbol;

/** Type-only: the type of a graph's `input`. */
export interface TypedInput<Input> {
  readonly [INPUT]?: Input;
}
