/** The mutants of this process. At most one is active; the others behave like the original code. */
export interface Switch {
  active: number | null;
  /** The mutants that the code has reached since this set was last cleared. */
  reached: Set<number>;
  /** How many more times the code may reach a mutant. Below 0, it counts as an infinite loop. */
  left: number;
}

export const mutation: Switch = { active: null, reached: new Set(), left: Infinity };

/** Returns whether this mutant is active. Rewritten modules call it. */
function isActive(id: number): boolean {
  mutation.reached.add(id);
  mutation.left -= 1;
  if (mutation.left < 0) throw new Error('the code never ends');
  return mutation.active === id;
}

Object.assign(globalThis, { __m: isActive });
