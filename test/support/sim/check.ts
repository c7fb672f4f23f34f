import fc from 'fast-check';
import { play, type Played, type Watching } from './play.js';

const numbers = fc.array(fc.nat(1_000_000), { maxLength: 400, size: 'max' });

/** The same runs each time, so that a failure is one of the change; PERDURE_SEED plays others. */
const SEED = Number(process.env['PERDURE_SEED'] ?? 20_261_122);

/** A failure is made smaller for so long; then it is shown as it is. */
const LIMIT_MS = 40_000;

/** Checks something about the random choices of simulated runs. */
export async function checkChoices(
  assertion: (numbers: readonly number[]) => Promise<void>,
  numRuns = 200,
): Promise<void> {
  const property = fc.asyncProperty(numbers, assertion);
  await fc.assert(property, { numRuns, seed: SEED, interruptAfterTimeLimit: LIMIT_MS });
}

/** Checks something about simulated runs. `watching` is made anew for each. */
export async function checkRuns(
  assertion: (played: Played) => void,
  watching: () => Watching = () => ({}),
): Promise<void> {
  await checkChoices(async (given) => assertion(await play(given, watching())));
}
