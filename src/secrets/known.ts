import { secretsOf, secretValue, type Environment } from './environment.js';
import { compileMatcher, type Matcher } from './matcher.js';
import type { Secret } from './values.js';

/** Reading a whole environment takes up to a millisecond, so it is not done for every text. */
const REREAD_MS = 1_000;
/** Keys that change every hour add up; the oldest are forgotten beyond this number. */
const MOST_SECRETS = 5_000;

/** What this process must not let out, by value. A value that was secret once remains so. */
const known = new Map<string, Secret>();
const declared = new Set<string>();
let matcher: Matcher | null = null;
let rereadAt = -Infinity;

/**
 * Makes secrets known to this process: those of an environment (default: none but the process's own),
 * the values of the variables in `names`, and keys that came by another way.
 */
export function learnSecrets(given: {
  readonly env?: Environment;
  readonly names?: readonly string[];
  readonly values?: readonly string[];
}): void {
  const { env, names = [], values = [] } = given;
  for (const name of names) declared.add(name);
  if (env !== undefined && env !== process.env) add(secretsOf(env, declared));
  for (const value of values) add(secretValue(value));
  if (env !== undefined || names.length > 0) reread();
}

/** Returns the search for all known secrets. Changes of the process's environment are seen within a second. */
export function knownSecrets(): Matcher {
  if (performance.now() - rereadAt >= REREAD_MS) reread();
  matcher ??= compileMatcher([...known.values()]);
  return matcher;
}

function reread(): void {
  add(secretsOf(process.env, declared));
  rereadAt = performance.now();
}

function add(secrets: readonly Secret[]): void {
  for (const secret of secrets) {
    const before = known.get(secret.value);
    if (before !== undefined && (before.name !== '' || secret.name === '')) continue;
    known.set(secret.value, secret);
    matcher = null;
  }
  for (const [oldest] of known) {
    if (known.size <= MOST_SECRETS) break;
    known.delete(oldest);
  }
}
