import { visible } from '../../core/state/summaries.js';
import { escapeJson } from '../../core/text/text.js';
import { recordFrom } from '../../recordings/record-run.js';
import { writeRecording } from '../../recordings/recording-files.js';
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
}

/**
 * `record ID`: writes a run that has happened to a file, with which `rerun` tests the agent. Needs no
 * worker.
 */
export const record: Command<RecordCommandOptions> = {
  declare: (entry) =>
    withOptions(entry.argument('<id>', 'the run'), 'out', 'redact').addHelpText('after', WHICH),
  run: recordToFile,
};

async function recordToFile(
  context: CliContext,
  { id, out, redact = false }: RecordCommandOptions,
): Promise<ExitCode> {
  const { client } = await openRun(context, id, { archive: true });
  const stores = await context.stores();
  const recording = await recordFrom({ client, ...stores }, id, { redact });
  if (out === undefined) {
    context.out(escapeJson(JSON.stringify(recording, null, 2)));
    noteClear(context, client);
    return EXIT.completed;
  }
  try {
    await writeRecording(out, recording);
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
  noteClear(context, client);
  if (context.options.json)
    context.out(JSON.stringify({ id, file: out, runs, replies, results, blobs }));
  return EXIT.completed;
}
