import fc from 'fast-check';
import { play, type Played, type Watching } from './play.js';

const numbers = fc.array(fc.nat(1_000_000), { maxLength: 400, size: 'max' });

/**
 * The same runs each time, so that a failure is caused by the change; PERDURE_SEED selects others.
 */
const SEED = Number(process.env['PERDURE_SEED'] ?? 20_261_122);

/** A failure is shrunk for this long; then it is shown as it is. */
const LIMIT_MS = 40_000;

/** Checks a property of the random choices of simulated runs. */
export async function checkChoices(
  assertion: (numbers: readonly number[]) => Promise<void>,
  numRuns = 200,
): Promise<void> {
  const property = fc.asyncProperty(numbers, assertion);
  await fc.assert(property, { numRuns, seed: SEED, interruptAfterTimeLimit: LIMIT_MS });
}

/** Checks a property of simulated runs. `watching` is created anew for each. */
export async function checkRuns(
  assertion: (played: Played) => void,
  watching: () => Watching = () => ({}),
): Promise<void> {
  await checkChoices(async (given) => assertion(await play(given, watching())));
}
