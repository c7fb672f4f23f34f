declare const OUTPUT: unique symbol;

/** Carries a type and no value: what `output` of a completed turn holds. */
export interface Typed<Output> {
  readonly [OUTPUT]?: Output;
}
