import { median } from '../statistics.js';

/** Milliseconds of both sides of a comparison, in the order measured. */
export interface Compared {
  readonly perdure: readonly number[];
  readonly bare: readonly number[];
}

/** Alternates between the two sides, so that other load on the machine affects both equally. */
export async function interleave(
  repeats: number,
  measure: { readonly perdure: () => Promise<number>; readonly bare: () => Promise<number> },
): Promise<Compared> {
  const perdure: number[] = [];
  const bare: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    bare.push(await measure.bare());
    perdure.push(await measure.perdure());
  }
  return { perdure, bare };
}

/** How many times as long perdure took, for each repeat. */
export function ratios({ perdure, bare }: Compared): readonly number[] {
  return perdure.map((value, index) => value / (bare[index] ?? Number.NaN));
}

export function medians({ perdure, bare }: Compared): { perdure: number; bare: number } {
  return { perdure: median(perdure), bare: median(bare) };
}
