const SECRET_NAME = /(?:KEY|TOKEN|SECRET|PASSWORD)$/i;
const MIN_LENGTH = 8;

/**
 * Replaces the values of secret environment variables by their names, raw and as JSON writes them.
 *
 * Secret is what is named …KEY, …TOKEN, …SECRET or …PASSWORD and has at least 8 characters. This is
 * the last line of defence: it knows only secrets that this process was given.
 */
export function redact(
  text: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  return secretsOf(environment).reduce(
    (rest, { name, value }) =>
      rest.includes(value) ? rest.replaceAll(value, () => `[redacted ${name}]`) : rest,
    text,
  );
}

/** Longest first, so that a secret that contains another leaves nothing behind. */
function secretsOf(
  environment: Readonly<Record<string, string | undefined>>,
): { readonly name: string; readonly value: string }[] {
  return Object.entries(environment)
    .filter(([name]) => SECRET_NAME.test(name))
    .flatMap(([name, raw]) => {
      const value = raw?.trim() ?? '';
      if (value.length < MIN_LENGTH) return [];
      return [...new Set([value, JSON.stringify(value).slice(1, -1)])].map((form) => ({
        name,
        value: form,
      }));
    })
    .toSorted((a, b) => b.value.length - a.value.length);
}
