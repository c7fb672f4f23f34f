declare const OUTPUT: unique symbol;

/** Has a type and no value: the type of `output` in a completed turn. */
export interface Typed<Output> {
  readonly [OUTPUT]?: Output;
}

declare const INPUT: unique symbol;

/** Has a type and no value: the type of the `input` with which a graph begins. */
export interface TypedInput<Input> {
  readonly [INPUT]?: Input;
}
