import type { Agent } from '../../agents/agent.js';
import { listInLine, visible } from '../../core/state/summaries.js';
import { printable } from '../../core/text/text.js';
import type { Divergence } from '../../recordings/divergence.js';
import type { Model } from '../../models/model.js';
import { type Keyring, keyringFrom } from '../../encryption/keyring.js';
import { readFiles } from '../../recordings/recording-files.js';
import { rerun as rerunRecording } from '../../recordings/rerun.js';
import { namesHint } from '../../validation/near-names.js';
import { type CliContext, type Command, EXIT, type ExitCode } from '../context.js';
import { withOptions } from '../input/options.js';
import { runnableText } from '../reports/next-command.js';
import { WHICH, candidateModel } from './eval.js';

interface RerunCommandOptions {
  readonly file: readonly string[];
  /** The name of a model to call; absent: the recorded replies. */
  readonly model?: string;
}

/**
 * `rerun FILE…`: executes recorded runs with the agents of the configuration, the recorded replies,
 * and the recorded results. Needs no server or model, and a key only for an encrypted recording.
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
  const { agents, encryption } = await context.config();
  const keys = (): Keyring | null => keyringFrom(encryption, context.env);
  const model = modelName === undefined ? undefined : await candidateModel(context, modelName);
  const rows: RerunRow[] = [];
  for (const file of files) {
    const found = await rerunFile(file, { agents, keys, ...(model && { model }) });
    const error = found.error && runnableText(context, found.error);
    const row = { ...found, ...(error !== undefined && { error }) };
    rows.push(row);
    const { ok, divergence } = row;
    const differs = divergence === null ? `error: ${error}` : `differs: ${divergence.text}`;
    if (!context.options.json) context.out(`${visible(file)}: ${ok ? 'same' : differs}`);
  }
  if (context.options.json) context.out(JSON.stringify(rows));
  return rows.every(({ ok }) => ok) ? EXIT.completed : EXIT.failed;
}

/** What became of one file. */
interface RerunRow {
  readonly file: string;
  readonly ok: boolean;
  readonly divergence: Divergence | null;
  /** Why it could not be executed; absent if it was. */
  readonly error?: string;
}

/** Executes one recording. An error, also an agent that the configuration lacks, is that of the file. */
async function rerunFile(
  file: string,
  {
    agents,
    keys,
    model,
  }: {
    readonly agents: readonly Agent[];
    readonly keys: () => Keyring | null;
    readonly model?: Model;
  },
): Promise<RerunRow> {
  try {
    const recording = await readFiles(file, keys);
    const name = recording.runs[0]?.agent ?? '';
    const agent = agents.find((one) => one.name === name);
    if (agent === undefined) {
      const hint = namesHint(
        name,
        agents.map((one) => visible(one.name)),
      );
      throw new Error(
        `agent: expected an agent of the configuration, got "${visible(name)}" (${hint}); give the config of that agent with --config`,
      );
    }
    const { divergence } = await rerunRecording(recording, { agent, ...(model && { model }) });
    return { file, ok: divergence === null, divergence };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // The row has the name of the file, with which some errors begin.
    const own = `${visible(file)}: `;
    const rest = message.startsWith(own) ? message.slice(own.length) : message;
    return {
      file,
      ok: false,
      divergence: null,
      error: printable(listInLine(rest)).replaceAll('\n', ' '),
    };
  }
}
