import { COMPACTION } from '../core/compaction.js';
import type { Compaction } from '../core/definition/definition.js';

/** The shares in force. Throws for those that cannot work, with the value and the cure. */
export function compactionOf(
  name: string,
  given: Partial<Compaction> | false | undefined,
): Compaction | null | undefined {
  if (given === undefined) return undefined;
  if (given === false) return null;
  const { at, keep } = { ...COMPACTION, ...given };
  const fits = [at, keep].every((share) => typeof share === 'number' && share > 0 && share < 1);
  if (fits && keep < at) return { at, keep };
  throw new Error(
    `agent "${name}": compaction ${JSON.stringify(given)}: give { at, keep }, both between 0 and 1 ` +
      'and keep below at, or false',
  );
}
