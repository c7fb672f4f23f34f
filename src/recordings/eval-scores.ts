import { InputError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';

/** A score from 0 to 1, with its reason if the scorer gave one. */
interface ScoreOfRun {
  readonly score: number;
  readonly reason?: string;
}

/** Throws an `InputError` for a scorer that is not a function. */
export function assertScorers(scorers: unknown): void {
  if (!isObject(scorers)) {
    throw new InputError(`scorers: expected an object of functions, got ${show(scorers)}`);
  }
  for (const [name, scorer] of Object.entries(scorers)) {
    if (typeof scorer === 'function') continue;
    throw new InputError(`scorers.${visible(name)}: expected a function, got ${show(scorer)}`);
  }
}

/** The longest delay of a timer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Throws an `InputError` for a time that no timer has. */
export function assertScorerTimeout(ms: number): void {
  if (Number.isFinite(ms) && ms > 0 && ms <= MAX_TIMEOUT_MS) return;
  throw new InputError(
    `scorerTimeoutMs: expected a number of ms from 1 to ${MAX_TIMEOUT_MS}, got ${show(ms)}`,
  );
}

/** Returns the message of an error. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A scorer of a run of a case. */
type ScorerOf<Given> = (given: Given) => unknown;

/** Returns what each scorer makes of a run, and what went wrong. Never rejects. */
export async function scoresOf<Given extends { readonly name: string }>(
  scorers: Readonly<Record<string, ScorerOf<Given>>>,
  given: Given,
  timeoutMs: number,
): Promise<{
  readonly scores: Readonly<Record<string, ScoreOfRun>>;
  readonly error: string | null;
}> {
  const scores: Record<string, ScoreOfRun> = {};
  const errors: string[] = [];
  for (const [name, scorer] of Object.entries(scorers)) {
    try {
      const made = await scored(scorer, given, timeoutMs);
      const { score, reason } = isObject(made) ? made : { score: made, reason: undefined };
      const number = typeof score === 'boolean' ? Number(score) : score;
      if (typeof number !== 'number' || !(number >= 0 && number <= 1)) {
        throw new InputError(`expected a score from 0 to 1, or a boolean, got ${show(score)}`);
      }
      scores[name] = { score: number, ...(typeof reason === 'string' && { reason }) };
    } catch (error) {
      errors.push(`scorers.${visible(name)}: ${reasonOf(error)}`);
    }
  }
  return { scores, error: errors.length === 0 ? null : errors.join('; ') };
}

/** Returns what a scorer makes of a run. Rejects if it takes too long. */
async function scored<Given extends { readonly name: string }>(
  scorer: ScorerOf<Given>,
  given: Given,
  timeoutMs: number,
): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const message = `expected a score of case "${given.name}" within ${timeoutMs} ms, got none`;
      reject(new InputError(`${message}; it may hang: make it quicker, or raise scorerTimeoutMs`));
    }, timeoutMs);
  });
  try {
    return await Promise.race([scorer(given), late]);
  } finally {
    clearTimeout(timer);
  }
}
