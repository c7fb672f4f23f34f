/**
 * The random choices of one simulated run. When all are used up, each further choice is the first
 * one.
 */
export interface Dice {
  /** Returns a number from 0 to `sides - 1`; 0 is the uneventful choice. */
  roll(sides: number): number;
  pick<T>(options: readonly [T, ...T[]]): T;
  /** Returns true in one of `sides` cases, and never when the choices are used up. */
  chance(sides: number): boolean;
  isUsedUp(): boolean;
}

export function createDice(numbers: readonly number[]): Dice {
  let next = 0;
  const roll = (sides: number): number => {
    const number = numbers[next] ?? 0;
    next += 1;
    return number % sides;
  };
  return {
    roll,
    pick: (options) => options[roll(options.length)] ?? options[0],
    chance: (sides) => roll(sides) === 1,
    isUsedUp: () => next >= numbers.length,
  };
}
