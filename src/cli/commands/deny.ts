import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { UsageError } from '../exit-codes.js';
import { submitDecision } from '../requests/decide.js';

export interface DenyOptions {
  readonly id: string;
  readonly request: string;
  readonly digest?: string;
  /** The reason, for the model. */
  readonly note?: string;
  readonly by?: string;
}

const MAX_NOTE_CHARACTERS = 2_000;

/** `deny ID REQUEST`: refuses a call, and gives the model the reason. */
export const deny: Command<DenyOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run').argument('<request>', 'the request, as inbox shows it'),
      'digest',
      'note',
      'by',
    ),
  async run(context, { note, ...given }) {
    const what = { as: 'deny', command: 'deny', ...noteOf(note) } as const;
    return await submitDecision(context, { ...given, ...what });
  },
};

/** Returns the note for the model. Throws a `UsageError` if it is too long. */
export function noteOf(note: string | undefined): { readonly note?: string } {
  if (note === undefined) return {};
  if (note.length <= MAX_NOTE_CHARACTERS) return { note };
  throw new UsageError(
    `--note: expected at most ${MAX_NOTE_CHARACTERS} characters, got ${note.length}; shorten it`,
  );
}
