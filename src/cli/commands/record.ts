import { InputError } from '../../core/errors.js';
import { visible } from '../../core/state/summaries.js';
import { escapeJson } from '../../core/text/text.js';
import { type Keyring, keyringFrom } from '../../encryption/keyring.js';
import { recordFrom } from '../../recordings/record-run.js';
import { recordingText, withKey, writeFiles } from '../../recordings/recording-files.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { formatCount } from '../format/format.js';
import { withOptions } from '../input/options.js';
import { noteClear, openRun } from '../open-run.js';
import { WHICH } from './eval.js';

interface RecordCommandOptions {
  readonly id: string;
  /** The file, with a folder for large texts beside it; absent: all of it goes to stdout. */
  readonly out?: string;
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
    withOptions(entry.argument('<id>', 'the run'), 'out', 'redact', 'clear', 'key').addHelpText(
      'after',
      WHICH,
    ),
  run: recordToFile,
};

async function recordToFile(
  context: CliContext,
  { id: named, out, redact = false, clear = false, key }: RecordCommandOptions,
): Promise<ExitCode> {
  const opened = await openRun(context, named, { archive: true });
  const { client } = opened;
  const { id } = opened.run;
  const keyring = await keysFor(context, { id, clear, key });
  const stores = await context.stores();
  const recording = await recordFrom({ client, ...stores }, id, { redact });
  const noteForm = (): void => {
    if (keyring === null) return noteClear(context, client);
    context.note(
      `It is encrypted with key "${keyring.current}": rerun and eval need that key. --clear writes it in clear.`,
    );
  };
  if (out === undefined) {
    context.out(escapeJson(recordingText(recording, keyring)));
    noteForm();
    return EXIT.completed;
  }
  try {
    await writeFiles(out, recording, keyring);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`--out: expected a writable file, got ${visible(out)} (${reason})`, {
      cause: error,
    });
  }
  const facts = recording.runs.flatMap((run) => run.facts);
  const count = (type: string): number => facts.filter((fact) => fact.type === type).length;
  const [replies, results] = [count('reply'), count('result')];
  const runs = recording.runs.length;
  const blobs = Object.keys(recording.blobs).length;
  context.note(
    `${[formatCount(replies, 'reply', 'replies'), formatCount(results, 'result')].join(' and ')} of ` +
      `${formatCount(runs, 'run')} written to ${visible(out)}`,
  );
  noteForm();
  const encrypted = keyring === null ? {} : { key: keyring.current };
  if (context.options.json)
    context.out(JSON.stringify({ id, file: out, runs, replies, results, blobs, ...encrypted }));
  return EXIT.completed;
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
