/** The probability of each class. */
export interface Classification<Class extends string = string> {
  /** The most probable class; the first of several equal ones. */
  readonly best: Class;
  /** The probabilities in the order of the classes; they sum to 1. */
  readonly classes: readonly { readonly name: Class; readonly probability: number }[];
  /** The probability, from 0 to 1, that belonged to no class before normalization. */
  readonly outside: number;
  /**
   * The entropy in bits: 0 if the model is certain, log2 of the number of classes if it is
   * undecided.
   */
  readonly entropyBits: number;
  /** Classes missing from the top logprobs; they have probability 0. */
  readonly unseen: readonly Class[];
  /** The number of answers, if the classes were determined by votes. */
  readonly samples?: number;
}

/** Normalizes the masses of the classes, which must not all be 0, into a classification. */
export function toClassification(
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
    // Alternatives are rounded one by one, so their sum may slightly exceed 1.
    outside: Math.max(0, 1 - sum / whole),
    entropyBits: Math.max(0, entropy),
    unseen,
  };
}
