import fc from 'fast-check';
import type { Fact } from '../../../src/core/run/events.js';
import { play, type Played } from './play.js';
import type { World } from './world.js';

const numbers = fc.array(fc.nat(1_000_000), { maxLength: 400, size: 'max' });

/**
 * The same runs each time, so that a failure is caused by the change; PERDURE_SEED selects others.
 */
const SEED = Number(process.env['PERDURE_SEED'] ?? 20_261_122);

/** A failure is shrunk for this long; then it is shown as it is. */
const LIMIT_MS = 40_000;

/** A run after a fact. */
type Moment = Pick<World, 'run'>;

/** A run with its moments. The states in them do not change. */
export interface Watched {
  readonly played: Played;
  readonly facts: readonly (readonly [Moment, Fact])[];
}

/** The runs that were played, by their choices: several tests check the same ones. */
const watched = new Map<string, Promise<Watched>>();

async function watchRun(given: readonly number[]): Promise<Watched> {
  const facts: (readonly [Moment, Fact])[] = [];
  const noted = ({ run }: Moment, fact: Fact): void => void facts.push([{ run: { ...run } }, fact]);
  return { played: await play(given, { noted }), facts };
}

/** Checks something about simulated runs and their moments. */
export async function checkMoments(
  assertion: (run: Watched, given: readonly number[]) => Promise<void> | void,
): Promise<void> {
  const property = fc.asyncProperty(numbers, async (given) => {
    const key = given.join();
    const run = watched.get(key) ?? watchRun(given);
    watched.set(key, run);
    await assertion(await run, given);
  });
  await fc.assert(property, { numRuns: 200, seed: SEED, interruptAfterTimeLimit: LIMIT_MS });
}

/** Checks a property of simulated runs. `watching` is created anew for each. */
export async function checkRuns(
  assertion: (played: Played) => void,
  watching: () => { readonly noted?: (moment: Moment, fact: Fact) => void } = () => ({}),
): Promise<void> {
  await checkMoments(({ played, facts }) => {
    const { noted } = watching();
    for (const [moment, fact] of facts) noted?.(moment, fact);
    assertion(played);
  });
}
