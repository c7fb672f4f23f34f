declare const OUTPUT: unique symbol;

/** Has a type and no value: the type of `output` in a completed turn. */
export interface Typed<Output> {
  readonly [OUTPUT]?: Output;
}
