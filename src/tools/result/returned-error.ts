import { isObject } from '../../core/json.js';
import { toPlain } from './plain.js';

const KEYS = ['error', 'code'];

/**
 * Returns the message of an error that a tool returns instead of throwing: an `Error`, an object
 * with only `error` and perhaps `code`, or one with `success: false`. Returns null for all other
 * values, which are data even if they have an `error`.
 */
export function returnedError(value: unknown): string | null {
  if (value instanceof Error) return value.message || value.name;
  if (isObject(value) && value['success'] === false) return failureText(value);
  if (!isObject(value) || !Object.keys(value).every((key) => KEYS.includes(key))) return null;
  const { error, code } = value;
  if (error === undefined || error === null || error === '' || error === false) return null;
  const message = messageOf(error);
  const suffix = code === undefined || code === null ? '' : messageOf(code);
  if (suffix === '') return message;
  return suffix.includes('\n') ? `${message}\ncode:\n${suffix}` : `${message} (code ${suffix})`;
}

/**
 * Returns a result's description of its failure: `error`, else `message`, else the whole result.
 */
export function failureText(value: unknown): string {
  const { error, message } = isObject(value) ? value : {};
  const text = [error, message].find((one) => one !== undefined && one !== null && one !== '');
  return messageOf(text ?? value);
}

function messageOf(value: unknown): string {
  if (value instanceof Error) return value.message || value.name;
  const plain = toPlain(value);
  return typeof plain === 'string' ? plain : JSON.stringify(plain);
}
