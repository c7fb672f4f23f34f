/**
 * Throws an `Error` unless `names` is a list of names of environment variables. `at` identifies the
 * options.
 */
export function assertSecretNames(names: unknown, at: string): void {
  if (names === undefined) return;
  const list: readonly unknown[] = Array.isArray(names) ? names : [names];
  const wrong = list.findIndex((name) => typeof name !== 'string' || !/^[^\s=]+$/.test(name));
  if (Array.isArray(names) && wrong === -1) return;
  // The value may be the secret itself.
  const got = Array.isArray(names) ? `something else at [${wrong}]` : typeof names;
  throw new Error(
    `${at}: secrets: expected a list of names of environment variables, got ${got}; write for example ` +
      "secrets: ['LICENSE_ID']",
  );
}
