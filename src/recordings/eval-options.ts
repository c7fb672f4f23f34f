import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { type OptionNames, assertOptionNames } from '../validation/option-names.js';

/** The options that a module for the command may have given in another type. */
interface CheckedOptions {
  readonly agents?: unknown;
  readonly model: unknown;
  readonly onProgress?: unknown;
  readonly runs?: number;
  readonly atOnce?: number;
}

/** Throws an `InputError` for an option of `evaluate` that does not exist, or that has another type. */
export function assertEvaluateOptions<Options extends CheckedOptions>(
  options: Options,
  names: OptionNames<Options>,
): void {
  assertOptionNames(options, names);
  assertTypes(options);
  assertCount('runs', options.runs ?? 1);
  assertCount('atOnce', options.atOnce ?? 1);
}

const MAX_RUNS = 100;

function assertCount(name: string, count: number): void {
  if (Number.isInteger(count) && count >= 1 && count <= MAX_RUNS) return;
  throw new InputError(
    `${name}: expected a whole number from 1 to ${MAX_RUNS}, got ${show(count)}`,
  );
}

/** Throws an `InputError` for options of another type, which a module for the command may have. */
function assertTypes({ agents, model, onProgress }: CheckedOptions): void {
  if (agents !== undefined && !Array.isArray(agents)) {
    throw new InputError(`agents: expected a list of agents, got ${show(agents)}`);
  }
  if (typeof model !== 'string' && typeof model !== 'function' && !isObject(model)) {
    throw new InputError(
      `model: expected the name of a model, an entry, an adapter, or a function, got ${show(model)}`,
    );
  }
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw new InputError(`onProgress: expected a function, got ${show(onProgress)}`);
  }
}
