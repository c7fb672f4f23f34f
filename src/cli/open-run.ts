import type { Client } from '@temporalio/client';
import type { AgentDefinition } from '../core/definition/definition.js';
import { createAgentCatalog, ownHash, withCalled } from '../agents/agent-definition.js';
import { agentProblem, servedAgentProblem, unknownAgent } from '../client/fork-run.js';
import { storedId, unknownIdHint } from '../client/run-ids.js';
import { toRunStatus } from '../client/status.js';
import { NoRunError, NoServerError, RefusedError } from '../core/errors.js';
import { isLoaded } from '../core/rules/limits.js';
import { statusText } from '../core/state/status-text.js';
import { visible } from '../core/state/summaries.js';
import { nextTarget } from '../history/follow-history.js';
import { endOfRun } from '../history/pending-work.js';
import { type RunReading, readRun } from '../history/read-run.js';
import type { Archive } from '../storage/blob-store.js';
import { type ServedAgent, findServedAgent, hasLiveWorker } from '../temporal/pollers.js';
import { readResultTool } from '../tools/built-in/default-tools.js';
import { resolveTaskQueue } from '../temporal/task-queue.js';
import { type CliContext, CommandError, UsageError } from './context.js';
import { formatAgo, formatDateTime } from './format/format.js';
import { NothingRunsError, isServerNamed } from './hosting/hosting.js';
import { noteServer } from './hosting/server-notes.js';
import { configFile } from './input/load-config.js';
import { inFlags } from './input/run-settings.js';
import { nextCommand, nextCommandAbout, nextCommandFor } from './reports/next-command.js';

/** The run that a command works on, with the client that read it. */
export interface OpenedRun {
  readonly client: Client;
  readonly run: RunReading;
}

/**
 * Reads a run. With `archive`, also reads a run that the server has deleted, and notes which part
 * of it is unknown. For an unknown id, throws an error that names the command to list runs.
 */
export async function openRun(
  context: CliContext,
  id: string,
  { archive = false }: { readonly archive?: boolean } = {},
): Promise<OpenedRun> {
  if (id.trim() === '')
    throw new UsageError('id: expected the id of a run, got ""; see perdure list');
  noteServer(context, await context.server());
  const client = await context.client();
  const stores: { readonly archive?: Archive } = archive ? await context.stores() : {};
  const stored = await storedId(client, id, stores.archive);
  try {
    const run = await readRun(client, stored, stores);
    if (run.description === null) noteArchived(context, run, id);
    return { client, run };
  } catch (error) {
    if (!NoRunError.isInstance(error)) throw error;
    const isArchived =
      !archive &&
      (await readRun(client, stored, await context.stores()).then(
        () => true,
        () => false,
      ));
    if (isArchived) {
      throw new CommandError(
        'run_ended',
        `the server has deleted run ${visible(id)}, which has ended; read it from the archive with: ${nextCommandAbout(context, ['transcript', id])}`,
        { cause: error },
      );
    }
    const hint = await unknownIdHint(client, id);
    // The server knows the hash of an id that is hashed, and the user the id.
    const message = error.message.replaceAll(visible(stored), visible(id));
    const why = hint === null ? message : `there is no run "${visible(id)}"; ${hint}`;
    throw new Error(`${why}; list runs with: ${nextCommand(context, 'list')}`, { cause: error });
  }
}

/** Notes that the server has deleted a run, and how much of it the archive has. `id`: as the user named it. */
function noteArchived(context: CliContext, run: RunReading, id: string): void {
  const { archived } = toRunStatus(run, Date.now());
  const until = formatDateTime(archived?.at ?? 0);
  const rest =
    archived?.ended === true ? '' : '; what happened later, and how it ended, is unknown';
  context.note(
    `The server has deleted run ${visible(id)}. The archive has it until ${until}${rest}.`,
  );
}

/** Creates the error for a workflow id that is in use. `mayReuse`: the command has `--reuse-id`. */
export async function idTakenError(
  context: CliContext,
  run: { readonly id: string; readonly taskQueue: string },
  cause: unknown,
  { mayReuse = false }: { readonly mayReuse?: boolean } = {},
): Promise<UsageError> {
  const hasEnded = await openRun(context, run.id).then(
    (opened) => endOfRun(opened.run) !== null,
    () => false,
  );
  if (hasEnded) {
    const see = await nextCommandFor(context, run, ['status', run.id]);
    const reuse = mayReuse ? ', add --reuse-id to use it again,' : '';
    return new UsageError(
      `--id: expected an unused id, got ${visible(run.id)}, that of a run that has ended; choose another one${reuse} or see that run with: ${see}`,
      { cause },
    );
  }
  const follow = await nextCommandFor(context, run, ['attach', run.id]);
  return new UsageError(
    `--id: expected an unused id, got ${visible(run.id)}; choose another one, or follow that run with: ${follow}`,
    { cause },
  );
}

/** Reads a run that has not ended. Otherwise throws an error that reports how and when it ended. */
export async function requireOpenRun(
  context: CliContext,
  id: string,
  why?: string,
): Promise<OpenedRun> {
  const opened = await openRun(context, id);
  await requireOpen(context, opened, why);
  return opened;
}

/** Throws an error that reports how and when a run ended, if it has. `why`: a sentence that says what that prevents. */
export async function requireOpen(
  context: CliContext,
  { run }: OpenedRun,
  why?: string,
): Promise<void> {
  const { id } = run;
  const end = endOfRun(run);
  if (end === null) return;
  const how = statusText({ status: end.outcome.status, reason: end.reason });
  const when = formatAgo(run.view.ended?.at ?? Date.now(), Date.now());
  const see = await nextCommandFor(context, run, ['status', id]);
  const about = why === undefined ? '' : ` ${why}`;
  throw new CommandError(
    'run_ended',
    `run ${visible(id)} has ended: ${how}, ${when}.${about} See: ${see}`,
  );
}

/**
 * Throws a `RefusedError` if a cancel of the run is requested, which it carries out first. `what`: the command
 * that would have no effect. One that resumes may let a run end that is blocked.
 */
export async function requireNotCanceled(
  context: CliContext,
  { run }: OpenedRun,
  what: string,
): Promise<void> {
  const { cancelRequested, state, blocked } = run.view;
  const isEnding = state?.ending === 'cancelled';
  if (!cancelRequested && !isEnding) return;
  if (what === 'resume' && isEnding && blocked.size > 0) return;
  const see = await nextCommandFor(context, run, ['status', run.id]);
  throw new RefusedError(
    `run ${visible(run.id)} is being canceled, and ends when a worker carries that out; ${what} would have no effect. See: ${see}`,
  );
}

/**
 * Throws within seconds if no worker answers on the run's task queue: the run itself accepts
 * decisions, and it needs a worker for that. `follows`: whether to name the command that also follows the run;
 * default true.
 */
export async function requireWorker(
  context: CliContext,
  { client, run }: OpenedRun,
  decision: string,
  { follows = true }: { readonly follows?: boolean } = {},
): Promise<void> {
  if (await hasLiveWorker(client, run.taskQueue)) return;
  throw new CommandError(
    'no_worker',
    `${decision} needs a worker, and none answers on task queue "${visible(run.taskQueue)}". ` +
      `${await (follows ? startHint : workerHint)(context, run)}; then run this command again.`,
  );
}

/**
 * Returns why a worker of this configuration cannot continue a run: it does not have the run's agent,
 * so it would block the run. Null if it has the agent, or if the agent is not known.
 */
export async function agentLack(
  context: CliContext,
  { agent }: Pick<RunReading, 'agent'>,
): Promise<string | null> {
  const { agents } = await context.config();
  if (agent === '' || withCalled(agents).some(({ name }) => name === agent)) return null;
  return `This configuration does not have agent "${visible(agent)}": start the program that has it`;
}

/**
 * Says that a worker has started a run with another version of its agent than the configuration file has, such as one
 * that was started before the file was edited. Returns false while the run has not loaded its agent.
 */
export async function noteOtherVersion(
  context: CliContext,
  { state }: Pick<RunReading['view'], 'state'>,
  { line }: { readonly line: (text: string) => void },
): Promise<boolean> {
  if (state === null || !isLoaded(state)) return false;
  const { definition } = state.config;
  // Without a file, the user has no version of the agent; and secrets are replaced by those that a process knows.
  const file = configFile({
    file: context.options.config,
    folder: process.cwd(),
    env: context.env,
  });
  if (file === null || JSON.stringify(definition).includes('[redacted')) return true;
  // The run goes on, also if the configuration cannot be compared.
  const own = await ownVersion(context, definition).catch(() => undefined);
  if (own !== undefined && own !== ownHash(definition)) {
    line(
      `The worker of this run has another version of agent ${visible(definition.name)} than the configuration here. To use the version here, restart that worker; the command dev restarts its worker after each change.`,
    );
  }
  return true;
}

/** Returns the hash of the configuration's agent of the same name; undefined if it has none. */
async function ownVersion(
  context: CliContext,
  { name, model: defaultModel }: AgentDefinition,
): Promise<string | undefined> {
  const { agents } = await context.config();
  const { blobs } = await context.stores();
  // Each worker has a default model of its own.
  const options = { defaultModel, builtIn: [readResultTool(blobs)] };
  return createAgentCatalog(agents, options).named(name)?.definition.hash;
}

/**
 * Returns the names of the tools whose calls a worker of this configuration could undo: an agent of the same name in
 * another project may lack the tool, and the undo would fail.
 */
export async function undoingTools(
  context: CliContext,
  { agent }: Pick<RunReading, 'agent'>,
): Promise<readonly string[]> {
  const { agents } = await context.config();
  const tools = withCalled(agents).find(({ name }) => name === agent)?.tools.tools ?? [];
  return tools.filter((tool) => tool.undo !== undefined).map(({ name }) => name);
}

/**
 * Returns how to start a worker for a run, as a sentence without a period: a command, or the program to
 * start if a worker of this configuration would block the run.
 */
export async function workerHint(
  context: CliContext,
  run: Pick<RunReading, 'agent' | 'taskQueue'>,
): Promise<string> {
  const lack = await agentLack(context, run);
  return lack ?? `Start one with: ${await nextCommandFor(context, run, ['worker'])}`;
}

/** Returns how to start a worker for a run, and how to follow the run as well, as a sentence without a period. */
export async function startHint(context: CliContext, run: RunReading): Promise<string> {
  const start = await workerHint(context, run);
  if ((await agentLack(context, run)) !== null) return start;
  // `attach` does not stay with a run that has ended, such as the source of a fork, or that is idle.
  if (endOfRun(run) !== null || nextTarget(run.view) === null) return start;
  const attach = await nextCommandFor(context, run, ['attach', run.id]);
  return `${start}  (or, to follow the run as well: ${attach})`;
}

/** Where an agent is to run. */
interface AgentPlace {
  readonly taskQueue: string;
  /**
   * The worker if none answers: the command hosts one of the configuration, fails without one, or
   * leaves the work to one that starts later.
   */
  readonly otherwise: 'hosted' | 'required' | 'later';
  /** The run that is forked, whose agent the user has not named. */
  readonly forks?: string;
}

/**
 * Throws a `UsageError` if no worker can start the agent with these arguments. An agent of the
 * user's configuration is checked against it. Any other is checked against the worker that answers
 * on the task queue, if one does. If none does, and the user has chosen the server or the task
 * queue without a configuration, the agent may be that of a worker of their own: its name cannot
 * be checked, and the command notes that.
 */
export async function checkAgent(
  context: CliContext,
  input: Parameters<typeof agentProblem>[1],
  place: AgentPlace,
): Promise<void> {
  const { forks } = place;
  try {
    await checkStart(context, input, place);
  } catch (cause) {
    const isForeign = forks !== undefined && (await agentLack(context, input)) !== null;
    if (!isForeign || !(cause instanceof UsageError)) throw cause;
    throw new UsageError(
      `run: ${visible(forks)} is a run of agent "${visible(input.agent)}", which this configuration does not have; fork it in the project that has the agent, or name its configuration with --config`,
      { cause },
    );
  }
}

async function checkStart(
  context: CliContext,
  input: Parameters<typeof agentProblem>[1],
  { taskQueue, otherwise }: AgentPlace,
): Promise<void> {
  const { agents } = await context.config();
  const { agent } = input;
  const problem = agentProblem(agents, input);
  const isKnown = withCalled(agents).some(({ name }) => name === agent);
  const { config: file } = context.options;
  const isBuiltIn = configFile({ file, folder: process.cwd(), env: context.env }) === null;
  const mayBeTheirs = isBuiltIn && (await isPlaceChosen(context, taskQueue));
  if (!isKnown || mayBeTheirs) {
    const served = await findServed(context, { taskQueue, agent }, isBuiltIn);
    const lack = servedAgentProblem(agent, served, taskQueue);
    if (lack !== null) throw new UsageError(inFlags(lack));
    if (served.is === 'served' && (!isKnown || mayBeTheirs)) return;
    if (!isKnown && served.is === 'unknown' && isBuiltIn) return;
    if (served.is === 'silent' && mayBeTheirs && otherwise !== 'hosted') {
      if (otherwise === 'later') context.note(uncheckedNote(agent, taskQueue));
      if (!isKnown) return;
    }
  }
  if (problem === null) return;
  const [fix, names] = [noConfigFix(context), withCalled(agents).map(({ name }) => name)];
  const what =
    isKnown || fix === null
      ? problem
      : `${unknownAgent(agent, names, 'the built-in configuration')}; ${fix}`;
  const theirs = `; if a worker of your own has it, give the task queue of that worker with --task-queue, or start it on task queue "${visible(taskQueue)}" first`;
  throw new UsageError(inFlags(what) + (!isKnown && mayBeTheirs ? theirs : ''));
}

/** Returns what to do about an unknown agent in a folder without a configuration; null if one is in use, or none is wanted. */
export function noConfigFix(context: CliContext): string | null {
  const { config: file } = context.options;
  const folder = process.cwd();
  if (file === false || configFile({ file, folder, env: context.env }) !== null) return null;
  return `no perdure.config.ts was found in this folder, so only the built-in agents are known: go to the folder of your project, or write a configuration here with: ${nextCommand(context, 'init')}`;
}

function uncheckedNote(agent: string, taskQueue: string): string {
  return (
    `No worker answers on task queue "${visible(taskQueue)}", so the name of agent ` +
    `${visible(agent)} is not checked; its runs are blocked if the worker does not have it.`
  );
}

/** Returns whether the user has chosen the server, or a task queue other than the default one. */
async function isPlaceChosen(context: CliContext, taskQueue: string): Promise<boolean> {
  return taskQueue !== resolveTaskQueue({}, {}) || (await isServerNamed(context));
}

/**
 * Asks the workers on the task queue whether one has the agent. Starts no server. If the user has a
 * configuration, a named server that does not answer counts as silent here; starting the run reports it.
 */
async function findServed(
  context: CliContext,
  given: { readonly taskQueue: string; readonly agent: string },
  isBuiltIn: boolean,
): Promise<ServedAgent> {
  try {
    await context.server({ start: false });
  } catch (error) {
    const isSilent = error instanceof (isBuiltIn ? NothingRunsError : NoServerError);
    if (isSilent) return { is: 'silent' };
    throw error;
  }
  return await findServedAgent(await context.client(), given);
}

/** Says that what a command has written is in clear, if payloads are encoded, for example encrypted. */
export function noteClear(context: CliContext, client: Client): void {
  if (client.options.loadedDataConverter.payloadCodecs.length === 0) return;
  context.note('It is in clear, although the run is encrypted: keep it where the run may be read.');
}
