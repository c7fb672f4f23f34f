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
