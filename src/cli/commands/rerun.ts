import { visible } from '../../core/state/summaries.js';
import { readRecording } from '../../recordings/recording-files.js';
import { rerun as rerunRecording } from '../../recordings/rerun.js';
import { nearestFirst } from '../../validation/check-options.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { withOptions } from '../input/options.js';
import { WHICH, candidate } from './eval.js';

interface RerunCommandOptions {
  readonly file: readonly string[];
  /** The name of a model to call; absent: the recorded replies. */
  readonly model?: string;
}

/**
 * `rerun FILE…`: executes recorded runs with the agents of the configuration, the recorded replies,
 * and the recorded results. Needs no server, model, or key.
 */
export const rerun: Command<RerunCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<file...>', 'recordings, as record writes them'),
      'model',
    ).addHelpText('after', WHICH),
  run: rerunFiles,
};

async function rerunFiles(
  context: CliContext,
  { file: files, model: modelName }: RerunCommandOptions,
): Promise<ExitCode> {
  const { agents } = await context.config();
  const model = modelName === undefined ? undefined : await candidate(context, modelName);
  const rows: { readonly file: string; readonly ok: boolean; readonly divergence: unknown }[] = [];
  for (const file of files) {
    const recording = await readRecording(file);
    const name = recording.runs[0]?.agent ?? '';
    const agent = agents.find((one) => one.name === name);
    if (agent === undefined) {
      const known = nearestFirst(
        name,
        agents.map((one) => one.name),
      );
      throw new UsageError(
        `${visible(file)}: agent: expected one of ${known.map(visible).join(', ')}, got "${visible(name)}"; give the config of that agent with --config`,
      );
    }
    const { divergence } = await rerunRecording(recording, { agent, ...(model && { model }) });
    rows.push({ file, ok: divergence === null, divergence });
    const verdict = divergence === null ? 'same' : `differs: ${divergence.text}`;
    if (!context.options.json) context.out(`${visible(file)}: ${verdict}`);
  }
  if (context.options.json) context.out(JSON.stringify(rows));
  return rows.every(({ ok }) => ok) ? EXIT.completed : EXIT.failed;
}
