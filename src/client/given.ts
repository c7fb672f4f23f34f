import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { RunLike } from './control.js';

/** Returns the id of a run. Throws an `InputError` for anything else. */
export function idOf(run: RunLike<unknown>): string {
  const given: unknown = run;
  const id = isObject(given) ? given['id'] : given;
  if (typeof id === 'string' && id !== '') return id;
  throw new InputError(
    `run: expected what \`start\` returns, or the id of a run, got ${shownWrong(given)}`,
  );
}

/**
 * Returns the fields of a message. Throws an `InputError` for anything but a text or its fields.
 * `isOptional`: an options object may have the message instead.
 */
export function messageFields<Fields extends object>(
  message: string | Fields,
  isOptional = false,
): Fields | { readonly message: string } {
  if (typeof message === 'string') return { message };
  // A `Date`, a `Map`, or bytes would lose what they are.
  const isFields = Object.prototype.toString.call(message) === '[object Object]';
  if (isFields || (isOptional && message === undefined)) return message;
  throw new InputError(
    `message: expected a text, or an object with its fields, got ${shownWrong(message)}`,
  );
}

/** Returns a value of the wrong type for a message, with what to do about a promise. */
function shownWrong(value: unknown): string {
  return value instanceof Promise ? 'a promise; await it' : show(value);
}
