import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { unknownOption } from './unknown-option.js';

/** The names of all options of a function, so that the compiler finds one that is missing. */
export type OptionNames<Options> = {
  readonly [Name in keyof Options]-?: true;
};

/**
 * Throws an `InputError` for an option that does not exist: it would have no effect. `owner`: the function, which
 * the message begins with.
 */
export function assertOptionNames<Options extends object>(
  options: Options,
  names: OptionNames<Options>,
  owner?: string,
): void {
  const given: unknown = options;
  if (!isObject(given)) throw new InputError(`options: expected an object, got ${show(given)}`);
  const known = Object.keys(names).toSorted();
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    const where = owner === undefined ? '' : `${owner}: `;
    throw new InputError(where + unknownOption(name, known));
  }
}
