/** How probable each class is. */
export interface Classification<Class extends string = string> {
  /** The most probable class; of equals the one that is listed first. */
  readonly best: Class;
  /** In the order of the classes; sum to 1. */
  readonly classes: readonly { readonly name: Class; readonly probability: number }[];
  /** The share, from 0 to 1, that belonged to no class before normalising. */
  readonly outside: number;
  /** How undecided the model is, in bits: 0 when certain, log2 of the number of classes when even. */
  readonly entropyBits: number;
  /** Classes of which nothing was seen: less probable than what was, so taken for 0. */
  readonly unseen: readonly Class[];
  /** How many answers were counted, where the classes were voted on. */
  readonly samples?: number;
}

/** Masses of the classes, which need not sum to 1 but must not all be 0, as a classification. */
export function distribution(
  names: readonly string[],
  {
    masses,
    unseen,
    whole = 1,
  }: { masses: readonly number[]; unseen: readonly string[]; whole?: number },
): Classification {
  const sum = masses.reduce((total, mass) => total + mass, 0);
  const classes = names.map((name, index) => ({ name, probability: (masses[index] ?? 0) / sum }));
  const best = classes.reduce((most, one) => (one.probability > most.probability ? one : most));
  const entropy = classes.reduce(
    (bits, { probability }) =>
      probability > 0 ? bits - probability * Math.log2(probability) : bits,
    0,
  );
  return {
    best: best.name,
    classes,
    // Alternatives are rounded one by one and may sum to a little more than all there is.
    outside: Math.max(0, 1 - sum / whole),
    entropyBits: Math.max(0, entropy),
    unseen,
  };
}
