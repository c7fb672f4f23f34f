import { secretsOf, secretValue, type Environment } from './environment.js';
import { compileMatcher, type Matcher } from './matcher.js';
import type { Secret } from './values.js';

/**
 * How often the environment is read again: reading it takes up to a millisecond, which is too long
 * to do for every text.
 */
const REREAD_MS = 1_000;
/** Keys that change every hour accumulate; beyond this number, the oldest are dropped. */
const MAX_SECRETS = 5_000;

/** The secrets of this process by value. A value that was secret once stays secret. */
const known = new Map<string, Secret>();
const declared = new Set<string>();
let matcher: Matcher | null = null;
let rereadAt = -Infinity;

/**
 * Makes secrets known to this process: those of an environment (default: only the process's own),
 * the values of the variables in `names`, and keys that are not from an environment.
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

/**
 * Returns the matcher of all known secrets. It includes changes of the process's environment after
 * a second.
 */
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
    if (known.size <= MAX_SECRETS) break;
    known.delete(oldest);
  }
}
