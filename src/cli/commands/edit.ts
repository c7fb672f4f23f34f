import { isObject, type Json } from '../../core/json.js';
import { show } from '../../core/text/format-value.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { UsageError } from '../exit-codes.js';
import { submitDecision } from '../requests/decide.js';

export interface EditOptions {
  readonly id: string;
  readonly request: string;
  readonly digest?: string;
  /** Parsed JSON. */
  readonly arguments: Json;
  readonly by?: string;
}

/**
 * `edit ID REQUEST`: lets a run execute a call with other arguments. The rules apply to them again.
 */
export const edit: Command<EditOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run').argument('<request>', 'the request, as inbox shows it'),
      'digest',
      'arguments',
      'by',
    ),
  async run(context, { arguments: value, ...given }) {
    if (!isObject(value)) {
      throw new UsageError(
        `--arguments: expected an object with all arguments, got ${show(value)}; give for example {"euros": 20}`,
      );
    }
    const what = { as: 'edit', command: 'edit', arguments: value } as const;
    return await submitDecision(context, { ...given, ...what });
  },
};
