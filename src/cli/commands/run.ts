import type { Client } from '@temporalio/client';
import { forkRun } from '../../client/fork-run.js';
import type { NodeVisit } from '../../core/definition/graph-definition.js';
import { IdTakenError, InputError, UnreadableError } from '../../core/errors.js';
import { type RunInput, isProblem, parseRunInput } from '../../core/input/input.js';
import type { RunStatusName } from '../../core/state/status.js';
import { visible } from '../../core/state/summaries.js';
import type { JsonObject } from '../../core/text/json.js';
import type { Attachment } from '../../core/transcript/messages.js';
import { isEnding, nextTarget, reached } from '../../history/follow-history.js';
import { endOfRun } from '../../history/pending-work.js';
import { type StartedRun, runIdProblem } from '../../updates/start.js';
import {
  type CliContext,
  type Command,
  CommandError,
  EXIT,
  type ExitCode,
  UsageError,
} from '../context.js';
import { NothingRunsError, checkHome, isWorkedElsewhere } from '../hosting/hosting.js';
import { noteServer } from '../hosting/server-notes.js';
import { awaitWorker, withHostedWorker } from '../hosting/with-worker.js';
import {
  type ArtifactFiles,
  artifactFiles,
  attachedFiles,
  ownArtifacts,
  ownAttachments,
} from '../input/attached-files.js';
import { checkWritten, deciderName } from '../input/option-parsers.js';
import { withOptions } from '../input/options.js';
import {
  RUN_SETTINGS,
  type RunSettingOptions,
  inFlags,
  runSettings,
} from '../input/run-settings.js';
import { type OpenedRun, checkAgent, idTakenError, openRun, requireWorker } from '../open-run.js';
import { nothingToFork } from '../reports/fork-hint.js';
import { hasMessages, nextCommand, nextCommandFor } from '../reports/next-command.js';
import {
  haltedText,
  openLines,
  reportEnd,
  reportStarted,
  reportTurn,
} from '../reports/report-run.js';
import { type FollowOptions, followAndReport, waits } from '../run-view/follow-and-report.js';

interface RunOptions extends FollowOptions, RunSettingOptions {
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
    const lead = options.tenant === undefined ? undefined : `${options.tenant}/`;
    const files = await attachedFiles(context, options.attach, lead);
    const input = await inputOf(context, options, files);
    const taskQueue = await context.taskQueue();
    const otherwise = options.detach ? 'required' : 'hosted';
    await checkAgent(context, input, { taskQueue, otherwise });
    const artifacts = await artifactFiles(options.artifact);
    const place = { ...options, artifacts, mayReuse: true };
    if (options.detach) return await startDetached(context, input, place);
    await checkHome(context);
    // Temporal's worker takes a moment to load; the server is located in parallel.
    import('../../worker/create-worker.js').catch(() => undefined);
    noteServer(context, await context.server());
    const client = await context.client();
    return await withHostedWorker(context, { taskQueue, agent: input.agent }, async (host) => {
      const started = await startRunNamed(context, client, { input, taskQueue, place });
      const until = input.open ? { turn: 1 } : 'end';
      const followed = { ...started, ...host, joined: null, retriedUpTo: 0, until } as const;
      return await followAndReport(context, followed, options).catch((error: unknown) => {
        throw namingRun(started.id, error);
      });
    });
  },
};

/** Names a run in the error that it cannot be read, since it goes on. */
function namingRun(id: string, error: unknown): unknown {
  if (!UnreadableError.isInstance(error)) return error;
  const message = `run ${visible(id)} was started, and cannot be read here: ${error.message}`;
  return new UnreadableError(message, { cause: error });
}

/** The id of a run, and the files that are stored for it. */
interface Place extends Pick<RunOptions, 'id' | 'reuseId'> {
  readonly artifacts: ArtifactFiles;
  /** The command can reuse the id of a run that has ended. */
  readonly mayReuse?: boolean;
}

/** Starts a run for a worker elsewhere. Throws an error with the code `no_worker` if none is running. */
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
  const started = await startRunNamed(context, client, { input, taskQueue, place });
  return await reportStarted(context, { taskQueue }, started);
}

function noWorkerError(context: CliContext, taskQueue: string): CommandError {
  return new CommandError(
    'no_worker',
    `--detach: expected a worker on task queue "${visible(taskQueue)}", got none; ` +
      `start one with: ${nextCommand(context, 'worker')} (or omit --detach; if a worker runs, it may be too busy to be seen: try again)`,
  );
}

/** Starts a run under its id, with its files. Throws a `UsageError` if the id is taken. */
export async function startRunNamed(
  context: CliContext,
  client: Client,
  given: { readonly input: RunInput; readonly taskQueue: string; readonly place: Place },
): Promise<StartedRun> {
  const [{ startRun }, { nameRun }] = await Promise.all([
    import('../../updates/start.js'),
    import('../../client/run-ids.js'),
  ]);
  const { taskQueue, place } = given;
  const { reuseId, artifacts } = place;
  const { agent, tenant } = given.input;
  const name = await nameRun(client, { id: place.id, agent, tenant, reuseId });
  const { id } = name;
  const input = {
    ...given.input,
    ...(await ownAttachments(context, id, given.input)),
    ...(await ownArtifacts(context, id, artifacts)),
  };
  try {
    return await startRun(client, input, { ...name, taskQueue, reuseId });
  } catch (error) {
    if (!(error instanceof IdTakenError)) throw error;
    const taken = { id: name.givenId ?? id, taskQueue };
    throw await idTakenError(context, taken, error, place);
  }
}

const NO_MESSAGE =
  'message: expected a message after the agent, or --prompt, or for a graph --input; got none';

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
  if (isEmpty && message.join('').trim() === '') throw new UsageError(NO_MESSAGE);
  checkWritten('message', message.join(' '));
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

interface ForkCommandOptions extends FollowOptions, RunSettingOptions {
  /** The run whose messages are copied. */
  readonly run: string;
  /** The words of the message. */
  readonly message: readonly string[];
  readonly at?: number;
  /** The node at which the run begins. */
  readonly node?: NodeVisit;
  /** Fields of the graph's state. */
  readonly input?: JsonObject;
  /** Id of the new run. */
  readonly id?: string;
  readonly open?: boolean;
  readonly detach?: boolean;
}

/** `fork RUN MESSAGE`: starts a run with the messages of another run, and follows it. */
export const fork: Command<ForkCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('<run>', 'the run to copy messages from')
        .argument('[message...]', 'the next message; optional with --node'),
      'at',
      'node',
      'input',
      'id',
      'open',
      'detach',
      'noWait',
      ...RUN_SETTINGS,
    ),
  async run(context, options) {
    const { open = false, detach = false } = options;
    const problem = options.id === undefined ? null : runIdProblem(options.id);
    if (problem !== null) throw new UsageError(`--${problem}`);
    if (options.node !== undefined && options.at !== undefined) {
      throw new UsageError('--node: expected without --at, which is the number of a message');
    }
    checkWritten('message', options.message.join(' '));
    const opened = await openRun(context, options.run, { archive: true });
    const { agent, taskQueue } = opened.run;
    if (options.node === undefined && options.message.length === 0) {
      throw new UsageError(nothingToFork(opened.run));
    }
    const message = options.message.length === 0 ? {} : { message: options.message.join(' ') };
    // It has the arguments of the other run.
    const given = { agent, ...message, ...runSettings(options), input: options.input, args: null };
    const place = { taskQueue, otherwise: detach ? 'required' : 'hosted' } as const;
    await checkAgent(context, given, { ...place, forks: opened.run.id });
    if (detach) {
      await requireWorker(context, opened, 'fork --detach', { follows: false });
      return await reportStarted(context, opened.run, await startFork(context, opened, options));
    }
    return await withHostedWorker(context, { taskQueue, agent }, async (host) => {
      const started = await startFork(context, opened, options);
      context.note(`run ${visible(started.id)} is forked from run ${visible(options.run)}`);
      const until = open ? { turn: 1 } : 'end';
      const handle = { ...started, ...host, joined: null, retriedUpTo: 0, until } as const;
      return await followAndReport(context, handle, options);
    });
  },
};

async function startFork(
  context: CliContext,
  { client, run: handle }: OpenedRun,
  { message, at: number, node, input, id, open, ...settings }: ForkCommandOptions,
): Promise<StartedRun> {
  const at = node ?? number;
  const flag = node === undefined ? '--at:' : '--node:';
  try {
    const given = {
      ...(message.length > 0 && { message: message.join(' ') }),
      ...runSettings(settings),
      ...(input !== undefined && { input }),
      ...(at !== undefined && { at }),
      ...(id !== undefined && { id }),
      ...(open && { open }),
    };
    return await forkRun(client, handle.id, given, await context.stores());
  } catch (error) {
    if (error instanceof InputError) {
      const text = error.message
        .replace(/^fork\.at(\.\w+)?:/, flag)
        .replace(/give the number of a message$/, 'give the next message, and --at for its place');
      throw new UsageError(inFlags(text), { cause: error });
    }
    if (!(error instanceof IdTakenError)) throw error;
    throw await idTakenError(context, { id: id ?? '', taskQueue: handle.taskQueue }, error);
  }
}

interface AttachCommandOptions extends FollowOptions {
  readonly id: string;
}

/**
 * `attach ID`: follows a run from its current state until it ends, or an open run until its turn
 * ends. Hosts a worker if none is running. An open run that waits for a message is shown with its
 * last turn.
 */
export const attach: Command<AttachCommandOptions> = {
  declare: (entry) => withOptions(entry.argument('<id>', 'the run'), 'noWait', 'by', 'ui'),
  async run(context, options) {
    if (options.by !== undefined) deciderName(options.by);
    const opened = await openRun(context, options.id);
    const { id, runId, view } = opened.run;
    if (endOfRun(opened.run) !== null) return await reportEnd(context, opened.run);
    const until = isEnding(view) ? 'end' : nextTarget(view);
    if (until === null) return await reportIdle(context, opened);
    // A run that waits for a person is shown as it is.
    const isWaiting = waits(opened.run, { id, runId, retriedUpTo: 0 });
    const isNeeded = !options.wait && !isWaiting;
    const rests = isWaiting && (!options.wait || !context.isTty);
    return await withHostedWorker(context, { ...opened.run, isNeeded }, async (host) => {
      const retriedUpTo = await awaitWorker(opened, host);
      const joined = { joined: opened.run, followsEnding: true, until, rests } as const;
      const handle = { id, runId, retriedUpTo, ...joined, ...host };
      return await followAndReport(context, handle, options);
    });
  },
};

/**
 * Reports an open run that waits for a message, as if its last turn had been followed to its end. A
 * paused run, and one that no longer keeps the outcome of that turn, are reported as they are.
 */
async function reportIdle(context: CliContext, { run: handle }: OpenedRun): Promise<ExitCode> {
  const { id, runId, view } = handle;
  const paused = view.state?.paused === true;
  const end = reached(view, { turn: view.state?.turn.number ?? 0 });
  const code =
    end?.type === 'turn-ended' && !paused
      ? await reportTurn(context, { ...end.ended, id, runId, view })
      : EXIT.waiting;
  context.note(`Run ${visible(id)} ${paused ? 'is paused and waits' : 'waits'} for a message.`);
  const left = { ...handle, last: { runId, view }, wasHosting: false };
  const halted = await haltedText(context, left, { isAsking: false });
  if (halted !== null) context.note(halted);
  for (const line of await openLines(context, handle)) context.note(line);
  if (code !== EXIT.waiting) return code;
  if (hasMessages(view)) {
    context.note(`Read it with: ${await nextCommandFor(context, handle, ['transcript', id])}`);
  }
  const status: RunStatusName = paused ? 'paused' : 'waiting_message';
  if (context.options.json) context.out(JSON.stringify({ id, runId, status, reason: null }));
  return code;
}
