const HIDDEN = '[hidden]';

/** What looks like a key wherever it comes from: `sk-…` as OpenAI and others write it, and tokens in headers. */
const KEY_SHAPES = [/\bsk-[\w*-]{4,}/g, /\bBearer\s+\S+/gi];

/** Shorter "keys" are placeholders such as `none`; hiding them would garble ordinary words. */
const SHORTEST_KEY = 6;

/** The longest piece of a provider's text that enters a message. */
const SAMPLE_CHARACTERS = 300;

/** The text without the given keys and without anything shaped like one. */
function scrub(text: string, keys: readonly string[] = []): string {
  const withoutKeys = keys
    .filter((key) => key.length >= SHORTEST_KEY)
    .reduce((rest, key) => rest.replaceAll(key, HIDDEN), text);
  return KEY_SHAPES.reduce((rest, shape) => rest.replace(shape, HIDDEN), withoutKeys);
}

/** One printable line of at most `SAMPLE_CHARACTERS` characters; scrubbed before it is cut, so that no cut key slips through. */
export function sample(text: string, keys: readonly string[] = []): string {
  const line = scrub(text, keys)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return line.length <= SAMPLE_CHARACTERS ? line : `${line.slice(0, SAMPLE_CHARACTERS - 1)}…`;
}
