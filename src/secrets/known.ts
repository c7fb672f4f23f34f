import { type Secret, partsOfValue } from './forms.js';
import { type Matcher, compileMatcher } from './matcher.js';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Matches a segment of a variable's name that marks its value as secret. */
const SEGMENT = /^(?:.*(?:KEY|TOKEN|SECRET|PASSWORD)|PASS|PWD|PAT|DSN|CREDENTIALS?|AUTH)$/i;

/** Variables that name folders and sockets, although one of their segments looks like a secret. */
const HARMLESS = /^(?:PATH|PWD|OLDPWD|.*_SOCK|.*_PATH)$/i;

/** Shorter values of variables with a secret name are flags and numbers. */
const MIN_DETECTED_CHARACTERS = 8;
/** Redacting shorter values of declared secrets would garble every text. */
const MIN_DECLARED_CHARACTERS = 6;

/** Values that test setups often use as passwords and that are ordinary words in texts. */
const ORDINARY = new Set(
  (
    'password passw0rd changeme changeit disabled required optional anonymous localhost postgres ' +
    'postgresql temporal username undefined default1 development production kubernetes basic-auth ' +
    'scram-sha-256 anything your-api-key placeholder not-needed'
  ).split(' '),
);

/** Matches a URL without anything secret, such as `https://host:443`. */
const HOST_ALONE = /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@]*\/?$/i;

/** Returns whether a variable of this name counts as secret. */
export function isSecretName(name: string): boolean {
  return !HARMLESS.test(name) && name.split('_').some((segment) => SEGMENT.test(segment));
}

/**
 * Returns the secrets among the variables of an environment: the values of those with a secret
 * name, the values of those in `declared`, and the user info of every URL in any other.
 */
export function secretsOf(env: Environment, declared: ReadonlySet<string>): readonly Secret[] {
  return Object.entries(env).flatMap(([name, value]): readonly Secret[] => {
    if (value === undefined || value === '') return [];
    const isDeclared = declared.has(name);
    const isSecret = isDeclared || isSecretName(name);
    const shortest = isDeclared ? MIN_DECLARED_CHARACTERS : MIN_DETECTED_CHARACTERS;
    const parts = partsOfValue(value, { isSecret, isSecretName });
    return parts
      .filter((part) => part.length >= shortest && (isDeclared || !isOrdinary(part)))
      .map((part) => ({ name, value: part }));
  });
}

/** Returns the secrets of a key that is not from the environment; none if it is too short. */
function secretValue(value: string, name = ''): readonly Secret[] {
  const parts = partsOfValue(value, { isSecret: true, isSecretName });
  return parts
    .filter((part) => part.length >= MIN_DECLARED_CHARACTERS)
    .map((part) => ({ name, value: part }));
}

/**
 * Returns whether redacting a value would garble texts: a word, host, short number, or `xxxxxxxx`.
 */
function isOrdinary(value: string): boolean {
  if (ORDINARY.has(value.toLowerCase()) || new Set(value).size < 4) return true;
  if (HOST_ALONE.test(value)) return true;
  return value.length < 12 && /^\d+$/.test(value);
}

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

/**
 * Returns why a value is not a list of names of environment variables; null if it is one. `at` is the
 * prefix of the message.
 */
export function secretNamesProblem(names: unknown, at: string): string | null {
  if (names === undefined) return null;
  const list: readonly unknown[] = Array.isArray(names) ? names : [names];
  const wrong = list.findIndex((name) => typeof name !== 'string' || !/^[^\s=]+$/.test(name));
  if (Array.isArray(names) && wrong === -1) return null;
  // The value may be the secret itself.
  const got = Array.isArray(names) ? `something else at [${wrong}]` : typeof names;
  return (
    `${at}: secrets: expected a list of names of environment variables, got ${got}; write for example ` +
    "secrets: ['LICENSE_ID']"
  );
}
