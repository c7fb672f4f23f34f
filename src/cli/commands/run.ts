import { IdTakenError } from '../../core/errors.js';
import type { Client } from '@temporalio/client';
import { runIdProblem, type StartedRun } from '../../updates/start.js';
import { isProblem, parseRunInput, type RunInput } from '../../core/input/input.js';
import type { JsonObject } from '../../core/json.js';
import type { Attachment } from '../../core/transcript/messages.js';
import { visible } from '../../core/text/summaries.js';
import { nextCommand } from '../reports/next-command.js';
import { reportStarted } from '../reports/report-pause.js';
import { artifactFiles, ownArtifacts, type ArtifactFiles } from '../input/artifact-files.js';
import { attachedFiles, ownAttachments } from '../input/attached-files.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { UsageError, type ExitCode } from '../exit-codes.js';
import { withHostedWorker } from '../hosting/with-hosted-worker.js';
import { checkHome, isWorkedElsewhere } from '../hosting/hosting.js';
import { followAndReport, type FollowOptions } from '../run-view/follow-and-report.js';
import { noteServer } from '../hosting/note-server.js';
import {
  inFlags,
  RUN_SETTINGS,
  runSettings,
  type RunSettingOptions,
} from '../input/run-settings.js';
import { checkAgent } from '../check-agent.js';
import { idTakenError } from '../open-run.js';
import { NothingRunsError } from '../hosting/open-server.js';

export interface RunOptions extends FollowOptions, RunSettingOptions {
  readonly agent: string;
  /** The words of the message. */
  readonly message: readonly string[];
  readonly id?: string;
  readonly reuseId?: boolean;
  readonly open?: boolean;
  readonly detach?: boolean;
  /** The name of a prompt of the agent, instead of a message. */
  readonly prompt?: string;
  /** Arguments of the agent's template, and of the prompt. */
  readonly arg?: JsonObject;
  /** Fields of the state of a graph. */
  readonly input?: unknown;
  /** Settings of the model for the turn. */
  readonly setting?: JsonObject;
  /** Paths of files, and URLs of images. */
  readonly attach?: readonly string[];
  /** `NAME=FILE`. */
  readonly artifact?: readonly string[];
}

/** `run AGENT MESSAGE…`: starts a run and follows it. Hosts a worker if none is running. */
export const run: Command<RunOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('<agent>', 'name of the agent')
        .argument('[message...]', 'the task; or --prompt, or for a graph --input'),
      'id',
      'reuseId',
      'open',
      'detach',
      'noWait',
      ...RUN_SETTINGS,
      'prompt',
      'arg',
      'setting',
      'input',
      'attach',
      'artifact',
      'ui',
    ),
  async run(context, options) {
    const input = await inputOf(context, options, await attachedFiles(context, options.attach));
    await checkAgent(context, input);
    const place = { ...options, artifacts: await artifactFiles(options.artifact) };
    if (options.detach) return await startDetached(context, input, place);
    await checkHome(context);
    // Temporal's worker takes a moment to load; the server is located in parallel.
    import('../../worker.js').catch(() => undefined);
    noteServer(context, await context.server());
    const client = await context.client();
    const taskQueue = await context.taskQueue();
    return await withHostedWorker(context, taskQueue, async (host) => {
      const started = await start(context, client, { input, taskQueue, place });
      const until = input.open ? { turn: 1 } : 'end';
      const followed = { ...started, ...host, joined: null, retriedUpTo: 0, until } as const;
      return await followAndReport(context, followed, options);
    });
  },
};

/** The id of a run, and the files that are stored for it. */
interface Place extends Pick<RunOptions, 'id' | 'reuseId'> {
  readonly artifacts: ArtifactFiles;
}

/** Starts a run for a worker elsewhere. Throws a `UsageError` if no worker is running. */
async function startDetached(
  context: CliContext,
  input: RunInput,
  place: Place,
): Promise<ExitCode> {
  const taskQueue = await context.taskQueue();
  await context.server({ start: false }).catch((error: unknown) => {
    // A named server that does not answer is a different error.
    if (error instanceof NothingRunsError) throw noWorkerError(context, taskQueue);
    throw error;
  });
  const client = await context.client();
  if (!(await isWorkedElsewhere(context, taskQueue))) throw noWorkerError(context, taskQueue);
  const started = await start(context, client, { input, taskQueue, place });
  return await reportStarted(context, { taskQueue }, started);
}

function noWorkerError(context: CliContext, taskQueue: string): UsageError {
  return new UsageError(
    `--detach: expected a worker on task queue "${visible(taskQueue)}", got none; ` +
      `start one with: ${nextCommand(context, 'worker')} (or omit --detach)`,
  );
}

async function start(
  context: CliContext,
  client: Client,
  given: {
    readonly input: RunInput;
    readonly taskQueue: string;
    readonly place: Place;
  },
): Promise<StartedRun> {
  const { newRunId, startRun } = await import('../../updates/start.js');
  const { taskQueue, place } = given;
  const { id = newRunId(given.input.agent), reuseId, artifacts } = place;
  const input = {
    ...given.input,
    ...(await ownAttachments(context, id, given.input)),
    ...(await ownArtifacts(context, id, artifacts)),
  };
  try {
    return await startRun(client, input, { id, taskQueue, reuseId });
  } catch (error) {
    if (!(error instanceof IdTakenError)) throw error;
    throw await idTakenError(context, { id, taskQueue }, error);
  }
}

/**
 * Returns the input of the run. Throws a `UsageError` before anything is started if the workflow
 * would reject it.
 */
async function inputOf(
  cli: CliContext,
  { agent, message, id, open, arg, prompt, input: fields, setting, ...settings }: RunOptions,
  attachments: readonly Attachment[],
): Promise<RunInput> {
  const isEmpty = fields === undefined && prompt === undefined;
  const input = parseRunInput({
    agent,
    ...((message.length > 0 || isEmpty) && { message: message.join(' ') }),
    ...runSettings(settings),
    ...(open && { open }),
    ...(setting !== undefined && { settings: setting }),
    ...(prompt !== undefined && { prompt }),
    ...(await argumentsOf(cli, { agent, prompt, arg })),
    ...(fields !== undefined && { input: fields }),
    ...(attachments.length > 0 && { attachments }),
  });
  const idProblem = id === undefined ? null : runIdProblem(id);
  if (idProblem !== null) throw new UsageError(`--${idProblem}`);
  if (!isProblem(input)) return input;
  throw new UsageError(inFlags(input.problem));
}

/**
 * Returns the arguments by destination. With a prompt, all go to the prompt, except those that only
 * the instructions declare.
 */
async function argumentsOf(
  context: CliContext,
  {
    agent,
    prompt,
    arg,
  }: { agent: string; prompt: string | undefined; arg: JsonObject | undefined },
): Promise<Pick<RunInput, 'args' | 'promptArgs'>> {
  if (arg === undefined) return {};
  if (prompt === undefined) return { args: arg };
  const { agents } = await context.config();
  const known = agents.find(({ name }) => name === agent);
  const ofPrompt = Object.keys(known?.prompts?.get(prompt)?.args?.shape ?? {});
  const ofTemplate = Object.keys(known?.template?.args.shape ?? {});
  const pick = (takes: (name: string) => boolean): JsonObject =>
    Object.fromEntries(Object.entries(arg).filter(([name]) => takes(name)));
  const args = pick((name) => ofTemplate.includes(name));
  const promptArgs = pick((name) => ofPrompt.includes(name) || !ofTemplate.includes(name));
  return {
    ...(Object.keys(args).length > 0 && { args }),
    ...(Object.keys(promptArgs).length > 0 && { promptArgs }),
  };
}
