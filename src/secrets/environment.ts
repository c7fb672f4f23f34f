import { partsOfValue, type Secret } from './values.js';

/** The environment variables of a process, or what stands for them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A segment of a variable's name that says that its value is secret. */
const SEGMENT = /^(?:.*(?:KEY|TOKEN|SECRET|PASSWORD)|PASS|PWD|PAT|DSN|CREDENTIALS?|AUTH)$/i;

/** Variables that name folders and sockets, although one of their segments looks like a secret. */
const HARMLESS = /^(?:PATH|PWD|OLDPWD|.*_SOCK|.*_PATH)$/i;

/** Shorter values of variables that only look secret by their names are flags and numbers. */
const SHORTEST_DETECTED = 8;
/** Shorter values of variables that somebody declared secret would garble every text. */
const SHORTEST_DECLARED = 6;

/** Values that many a test setup has for a password, and that texts use as ordinary words. */
const ORDINARY = new Set(
  (
    'password passw0rd changeme changeit disabled required optional anonymous localhost postgres ' +
    'postgresql temporal username undefined default1 development production kubernetes basic-auth ' +
    'scram-sha-256 anything your-api-key placeholder not-needed'
  ).split(' '),
);

/** `https://host:443`: there is nothing secret in it. */
const HOST_ALONE = /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@]*\/?$/i;

/** Says whether a variable of this name is taken for a secret. */
export function isSecretName(name: string): boolean {
  return !HARMLESS.test(name) && name.split('_').some((segment) => SEGMENT.test(segment));
}

/**
 * Returns the secrets among the variables of an environment: the values of those with a secret name,
 * the values of those in `declared`, and the user info of every URL in any other.
 */
export function secretsOf(env: Environment, declared: ReadonlySet<string>): readonly Secret[] {
  return Object.entries(env).flatMap(([name, value]): readonly Secret[] => {
    if (value === undefined || value === '') return [];
    const isDeclared = declared.has(name);
    const isSecret = isDeclared || isSecretName(name);
    const shortest = isDeclared ? SHORTEST_DECLARED : SHORTEST_DETECTED;
    const parts = partsOfValue(value, { isSecret, isSecretName });
    return parts
      .filter((part) => part.length >= shortest && (isDeclared || !isOrdinary(part)))
      .map((part) => ({ name, value: part }));
  });
}

/** Returns a key that came by another way than the environment; empty where it is too short to be one. */
export function secretValue(value: string, name = ''): readonly Secret[] {
  const parts = partsOfValue(value, { isSecret: true, isSecretName });
  return parts
    .filter((part) => part.length >= SHORTEST_DECLARED)
    .map((part) => ({ name, value: part }));
}

/** Words, hosts, short numbers, and runs of a few characters (`xxxxxxxx`) are not worth garbling texts for. */
function isOrdinary(value: string): boolean {
  if (ORDINARY.has(value.toLowerCase()) || new Set(value).size < 4) return true;
  if (HOST_ALONE.test(value)) return true;
  return value.length < 12 && /^\d+$/.test(value);
}
