import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { likelyMeant } from './near-names.js';

/** The names of all options of a function, so that the compiler finds one that is missing. */
export type OptionNames<Options> = {
  readonly [Name in keyof Options]-?: true;
};

/** Throws an `InputError` for an option that does not exist: it would have no effect. */
export function assertOptionNames<Options extends object>(
  options: Options,
  names: OptionNames<Options>,
): void {
  const given: unknown = options;
  if (!isObject(given)) throw new InputError(`options: expected an object, got ${show(given)}`);
  const known = Object.keys(names).toSorted();
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    const meant = likelyMeant(name, known);
    const hint = meant === undefined ? '' : `did you mean ${meant}? `;
    throw new InputError(`${show(name)} is not an option; ${hint}Options: ${known.join(', ')}`);
  }
}
