import { stat } from 'node:fs/promises';
import { InputError } from '../../core/errors.js';
import { visible } from '../../core/state/summaries.js';
import { escapeJson } from '../../core/text/text.js';
import { type Keyring, keyringFrom } from '../../encryption/keyring.js';
import { countReplies } from '../../recordings/generated-replies.js';
import { recordFrom } from '../../recordings/record-run.js';
import type { Recording } from '../../recordings/recording.js';
import { readFiles, recordingText, withKey, writeFiles } from '../../recordings/recording-files.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { formatCount } from '../format/format.js';
import { withOptions } from '../input/options.js';
import { unwritable } from '../input/output-file.js';
import { noteClear, openRun } from '../open-run.js';
import { WHICH } from './eval.js';

interface RecordCommandOptions {
  readonly id: string;
  /** The file, with a folder for large texts beside it; absent: all of it goes to stdout. */
  readonly out?: string;
  /** Overwrites a file that is not a recording of this run. */
  readonly force?: boolean;
  readonly redact?: boolean;
  readonly clear?: boolean;
  /** The id of the key that encrypts. */
  readonly key?: string;
}

/**
 * `record ID`: writes a run that has happened to a file, with which `rerun` tests the agent. Needs no
 * worker.
 */
export const record: Command<RecordCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run'),
      'out',
      'force',
      'redact',
      'clear',
      'key',
    ).addHelpText('after', WHICH),
  run: recordToFile,
};

async function recordToFile(
  context: CliContext,
  { id: named, out, force = false, redact = false, clear = false, key }: RecordCommandOptions,
): Promise<ExitCode> {
  const opened = await openRun(context, named, { archive: true });
  const { client } = opened;
  const { id } = opened.run;
  const keyring = await keysFor(context, { id, clear, key });
  const stores = await context.stores();
  if (out !== undefined && !force) await assertOwnFile(context, out, id);
  const recording = await recordFrom({ client, ...stores }, id, { redact });
  const noteForm = (): void => {
    if (keyring === null) return noteClear(context, client);
    context.note(
      `It is encrypted with key "${keyring.current}": rerun and eval need that key. --clear writes it in clear.`,
    );
  };
  if (out === undefined) {
    context.out(escapeJson(recordingText(recording, keyring)));
    noteUnanswered(context, recording);
    noteForm();
    return EXIT.completed;
  }
  try {
    await writeFiles(out, recording, keyring);
  } catch (error) {
    throw unwritable({ option: '--out', file: out }, error);
  }
  const facts = recording.runs.flatMap((run) => run.facts);
  const count = (type: string): number => facts.filter((fact) => fact.type === type).length;
  const [{ replies }, results] = [countReplies(recording), count('result')];
  const runs = recording.runs.length;
  const blobs = Object.keys(recording.blobs).length;
  context.note(
    `${[formatCount(replies, 'reply', 'replies'), formatCount(results, 'result')].join(' and ')} of ` +
      `${formatCount(runs, 'run')} written to ${visible(out)}`,
  );
  noteUnanswered(context, recording);
  noteForm();
  const encrypted = keyring === null ? {} : { key: keyring.current };
  if (context.options.json)
    context.out(JSON.stringify({ id, file: out, runs, replies, results, blobs, ...encrypted }));
  return EXIT.completed;
}

/** Throws a `UsageError` if a file exists and is not a recording of the run with this id. */
async function assertOwnFile(context: CliContext, file: string, id: string): Promise<void> {
  const found = await stat(file).catch(() => null);
  // The writer reports a folder, and a file that it cannot read.
  if (found?.isFile() !== true) return;
  const { encryption } = await context.config();
  const known = await readFiles(file, () => keyringFrom(encryption, context.env)).catch(() => null);
  const [run] = known?.runs ?? [];
  if (run?.id === id) return;
  const what =
    run === undefined
      ? 'no recording that can be read here'
      : `a recording of "${visible(run.id)}"`;
  throw new UsageError(
    `--out: expected a new file, or a recording of "${visible(id)}", got ${visible(file)}, which is ${what}; name another file, or overwrite it with --force`,
  );
}

/** Says which model calls `rerun` cannot answer from the recording. */
function noteUnanswered(context: CliContext, recording: Recording): void {
  const { decided, unmatched } = countReplies(recording);
  const lacking = [
    ...(decided > 0 ? [`${formatCount(decided, 'model call')} of a \`decide\` function`] : []),
    ...(unmatched > 0
      ? [`${formatCount(unmatched, 'request')} of \`generate\`, which an earlier version made`]
      : []),
  ];
  if (lacking.length === 0) return;
  context.note(
    `The history lacks ${lacking.join(' and ')}: rerun reports a difference there, unless --model names a model that replies.`,
  );
}

/** Returns the keys with which the recording is written; null for one in clear. */
async function keysFor(
  context: CliContext,
  {
    id,
    clear,
    key,
  }: { readonly id: string; readonly clear: boolean; readonly key: string | undefined },
): Promise<Keyring | null> {
  const { encryption } = await context.config();
  const keyring = clear ? null : keyringFrom(encryption, context.env);
  try {
    return withKey(keyring, key ?? keyring?.keyFor(id));
  } catch (error) {
    throw InputError.isInstance(error) ? new UsageError(`--${error.message}`) : error;
  }
}
