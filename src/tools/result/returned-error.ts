import { isObject } from '../../core/json.js';
import { toPlain } from './plain.js';

const KEYS = ['error', 'code'];

/**
 * What a tool says has gone wrong by what it returns: an `Error`, or an object of `error` and at most
 * `code` beside it. Null for all else, which is data, also where it has an `error` among other things.
 */
export function returnedError(value: unknown): string | null {
  if (value instanceof Error) return value.message || value.name;
  if (!isObject(value) || !Object.keys(value).every((key) => KEYS.includes(key))) return null;
  const { error, code } = value;
  if (error === undefined || error === null || error === '' || error === false) return null;
  const said = messageOf(error);
  const number = code === undefined || code === null ? '' : messageOf(code);
  if (number === '') return said;
  return number.includes('\n') ? `${said}\ncode:\n${number}` : `${said} (code ${number})`;
}

function messageOf(value: unknown): string {
  if (value instanceof Error) return value.message || value.name;
  const plain = toPlain(value);
  return typeof plain === 'string' ? plain : JSON.stringify(plain);
}
