import { partsOfValue, type Secret } from './values.js';

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
export function secretValue(value: string, name = ''): readonly Secret[] {
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
