import { isObject } from '../json.js';
import { show } from '../text/format-value.js';

/** Returns what is wrong with `fork` in an input, or null. */
export function checkFork(value: unknown): string | null {
  if (value === undefined) return null;
  if (!isObject(value)) {
    return `fork: expected an object, got ${show(value)}; give for example {"run": "id"}`;
  }
  const unknown = Object.keys(value).find((key) => key !== 'run' && key !== 'at');
  if (unknown !== undefined) return `fork.${unknown}: expected one of run, at; remove this field`;
  const { run, at } = value;
  if (typeof run !== 'string' || run === '') {
    return `fork.run: expected the id of the run to fork, got ${show(run)}`;
  }
  if (at === undefined || (Number.isInteger(at) && Number(at) >= 1)) return null;
  return `fork.at: expected the number of the first message not to copy, from 1, got ${show(at)}`;
}
