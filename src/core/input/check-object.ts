import { isTooDeep, tooDeep } from '../foreign-json.js';
import { isObject } from '../json.js';
import { jsonText, show } from '../text/format-value.js';

/**
 * Maximum UTF-16 code units of a message, a context, or arguments. Larger data belongs in a file.
 */
export const MAX_TEXT_CHARACTERS = 256 * 1024;

/** Returns what is wrong with the arguments of a template, or null. */
export function checkArgs(value: unknown): string | null {
  return checkObject('args', value, '{"city": "Rome"}');
}

/** Returns what is wrong with the input of a graph, or null. */
export function checkInput(value: unknown): string | null {
  return checkObject('input', value, '{"text": "Hello"}');
}

/** Returns what is wrong with the context of a run, or null. */
export function checkContext(value: unknown): string | null {
  if (value === undefined) return null;
  if (isTooDeep(value)) return tooDeep('context');
  const text = jsonText(value);
  if (text === undefined) return 'context: expected JSON; give what JSON.stringify can serialize';
  return tooLong('context', text.length);
}

function checkObject(field: string, value: unknown, example: string): string | null {
  if (value === undefined) return null;
  if (!isObject(value) || Array.isArray(value)) {
    return `${field}: expected an object, got ${show(value)}; give for example ${example}`;
  }
  if (isTooDeep(value)) return tooDeep(field);
  const text = jsonText(value);
  return text === undefined ? `${field}: expected JSON` : tooLong(field, text.length);
}

/** Returns a problem if a field has too many characters, else null. */
export function tooLong(field: string, characters: number): string | null {
  if (characters <= MAX_TEXT_CHARACTERS) return null;
  return (
    `${field}: expected at most ${MAX_TEXT_CHARACTERS} characters, got ${characters}; ` +
    'put the text into a file and name the file'
  );
}
