import { basename, relative, resolve, sep } from 'node:path';
import { CommanderError } from 'commander';
import { NoServerError, PerdureError, RefusedError } from '../../core/errors.js';
import {
  commandLine,
  runCommands,
  withProgram,
  withRequestTexts,
  withTexts,
} from '../../core/requests/commands.js';
import type { RunStatus } from '../../core/state/status.js';
import { shownPeople, visible } from '../../core/state/summaries.js';
import { undoProblem } from '../../core/state/undo-problem.js';
import { printable, shellLine, shellWord, visibleJson } from '../../core/text/text.js';
import { REFUSAL_CODES } from '../../core/transcript/request.js';
import { nextTarget } from '../../history/follow-history.js';
import type { Projection } from '../../history/projection.js';
import type { RunReading } from '../../history/read-run.js';
import { redactMessage } from '../../secrets/redact.js';
import { perdureHome } from '../../storage/files.js';
import { grpcCode } from '../../temporal/grpc.js';
import {
  type CliContext,
  CommandError,
  EXIT,
  type ErrorCode,
  type ExitCode,
  type GlobalOptions,
  UsageError,
} from '../context.js';
import { columns } from '../format/format.js';
import { failedNode } from './failed-node.js';
import { permissionFlags } from '../input/option-parsers.js';

const PLACE_OPTIONS = [
  ['config', '--config'],
  ['address', '--address'],
  ['namespace', '--namespace'],
  ['taskQueue', '--task-queue'],
] as const satisfies readonly (readonly [keyof GlobalOptions, string])[];

/** What printed commands depend on. */
export type Place = Pick<CliContext, 'options' | 'env'>;

/**
 * Returns a command line to copy. It runs the program as this process was run, on the same server
 * and queue.
 */
export function nextCommand(place: Place, command: string): string {
  const flags = placeFlags(place.options).map((flag) => shellWord(flag));
  return [programFor(place), command, ...flags].join(' ');
}

/** Returns a command line of words, which are quoted for the shell. */
export function nextCommandOf(place: Place, [command = '', ...rest]: readonly string[]): string {
  const words = [...rest, ...placeFlags(place.options)];
  return shellLine({ program: `${programFor(place)} ${command}`, operands: [], options: words });
}

/**
 * Returns a command line about a run or a schedule. `words`: the command, the id, further operands,
 * and the options. An id may be any text, also one that looks like an option.
 */
export function nextCommandAbout(place: Place, words: readonly string[]): string {
  return commandLine(programFor(place), words, placeFlags(place.options));
}

/**
 * Like `nextCommandAbout`. It includes the run's task queue if that differs from ours.
 */
export async function nextCommandFor(
  context: CliContext,
  { taskQueue }: { readonly taskQueue: string },
  words: readonly string[],
): Promise<string> {
  const here = await context.taskQueue();
  const options = here === taskQueue ? context.options : { ...context.options, taskQueue };
  return nextCommandAbout({ options, env: context.env }, words);
}

/** Returns the flags that select the server, the queue, the configuration, and the permissions. */
export function placeFlags(options: GlobalOptions): readonly string[] {
  const places = PLACE_OPTIONS.flatMap(([name, flag]) => {
    const value = options[name];
    if (value === false) return ['--no-config'];
    return value === undefined ? [] : [flag, value];
  });
  return [...places, ...permissionFlags(options)];
}

/** How each package manager runs a program of the project. */
const RUNNERS: Readonly<Record<string, string>> = {
  pnpm: 'pnpm exec perdure',
  yarn: 'yarn perdure',
  bun: 'bunx perdure',
};

/**
 * Returns the words that start this program again. `near`: whether they may depend on the folder of this
 * process; default true.
 */
export function programName({ near = true }: { readonly near?: boolean } = {}): string {
  const file = process.argv[1] ?? '';
  const agent = process.env['npm_config_user_agent'] ?? '';
  if (file.endsWith('perdure.js')) {
    const path = relative(process.cwd(), file);
    return `node ${shellWord(!near || path.startsWith('..') ? file : path)}`;
  }
  const at = file.indexOf(`${sep}node_modules${sep}`);
  if (basename(file) === 'perdure') {
    // A program on the PATH, such as one that was installed globally.
    if (at < 0) return 'perdure';
    // It was called by its path; a package manager finds it only in its project.
    const isInProject = !relative(file.slice(0, at), process.cwd()).startsWith('..');
    if (agent === '' && !(near && isInProject)) return shellWord(file);
  }
  return RUNNERS[agent.split('/')[0] ?? ''] ?? 'npx perdure';
}

/** Returns a text in which each command can be pasted: it names this program and the same place. */
export function runnableText(place: Place, text: string): string {
  const flags = placeFlags(place.options).map((flag) => shellWord(flag));
  return withProgram(text, programFor(place), flags);
}

/** Returns a status whose commands can be pasted. */
export function runnableStatus<Status extends RunStatus>(place: Place, status: Status): Status {
  return withTexts(status, (text) => runnableText(place, text));
}

/**
 * Like `runnableText`, for a reader in another shell, as that of a chat client is: it has neither this
 * process's folder nor its variables. The commands that such a command prints carry the variables,
 * too.
 */
export function runnableTextElsewhere({ options, env }: Place, text: string): string {
  const { config } = options;
  const place = typeof config === 'string' ? { ...options, config: resolve(config) } : options;
  return runnableText({ options: place, env: { ...env, [HINTS]: FULL } }, text);
}

/**
 * The variable that says that the others were set for this command alone, so that each command that
 * it prints needs them, too.
 */
const HINTS = 'PERDURE_HINTS';
const FULL = 'full';

/** Returns the words before a command: those that start the program, after the variables it needs. */
function programFor({ options, env }: Place): string {
  if (env[HINTS] !== FULL) return programName();
  const variables = placeVariables(options, env);
  const mark = variables.length === 0 ? [] : [`${HINTS}=${FULL}`];
  return [...variables, ...mark, programName({ near: false })].join(' ');
}

/** The variables that select the server and the stores, without secrets. */
const PLACE_VARIABLES: Readonly<Record<string, keyof GlobalOptions | null>> = {
  PERDURE_HOME: null,
  PERDURE_SERVER: null,
  PERDURE_STORE: null,
  PERDURE_TASK_QUEUE: 'taskQueue',
  TEMPORAL_ADDRESS: 'address',
  TEMPORAL_NAMESPACE: 'namespace',
  TEMPORAL_CONFIG_FILE: null,
  TEMPORAL_PROFILE: null,
  TEMPORAL_CLI_PATH: null,
};
const PATHS = new Set(['PERDURE_HOME', 'TEMPORAL_CONFIG_FILE', 'TEMPORAL_CLI_PATH']);

/** Returns the assignments before a command that select the same place, except what an option selects. */
function placeVariables(options: GlobalOptions, env: Place['env']): readonly string[] {
  return Object.entries(PLACE_VARIABLES).flatMap(([name, option]) => {
    const value = env[name];
    if (!value || (option !== null && options[option] !== undefined)) return [];
    if (name === 'PERDURE_HOME' && value === perdureHome({})) return [];
    return [`${name}=${shellWord(PATHS.has(name) ? resolve(value) : value)}`];
  });
}

/** Returns requests whose commands can be pasted. */
export function runnableFixes<One extends { readonly fix: string; readonly why?: string }>(
  place: Place,
  requests: readonly One[],
): readonly One[] {
  return requests.map((one) => withRequestTexts(one, (text) => runnableText(place, text)));
}

interface StatusReading {
  readonly run: RunReading;
  readonly status: RunStatus;
  /** Whether a worker seems to be running. */
  readonly hasWorker: boolean;
  /** Whether a worker of this command could continue the run. */
  readonly canHost: boolean;
  /** The tools whose calls a worker of this command could undo. */
  readonly undoes: readonly string[];
}

/**
 * Returns the command lines that a person can run now, each with its purpose. The commands for
 * decisions are shown elsewhere. `now`: Unix time in ms.
 */
export async function nextSteps(
  context: CliContext,
  { run, status, hasWorker, canHost, undoes }: StatusReading,
  now: number,
): Promise<readonly string[]> {
  const { view } = run;
  const node = failedNode(run);
  const { undoable = [] } = status;
  const facts = {
    ...status,
    undoable: undoable.filter(
      ({ call, tool }) =>
        (hasWorker || undoes.includes(tool)) &&
        view.state !== null &&
        undoProblem(view.state, call, now) === null,
    ),
    ...(node !== undefined && { failedNode: node }),
    isBlocked: view.blocked.size > 0,
    isPaused: view.state?.paused === true,
    isIdle: nextTarget(view) === null,
    hasMessages: hasMessages(view),
    hasWorker,
    canHost,
  };
  // `attach` shows the run anywhere, and hosts no worker that would block it.
  const elsewhere =
    canHost || hasWorker
      ? ''
      : `; only the program with agent "${visible(status.agent)}" makes it go on`;
  const rows = runCommands(facts, now).map(async ({ words, purpose }) => [
    await nextCommandFor(context, run, words),
    words[0] === 'attach' ? `${purpose}${elsewhere}` : purpose,
  ]);
  return columns(await Promise.all(rows));
}

/** Whether `transcript` has something to print: a message, or the nodes of a graph. */
export function hasMessages({ state }: Pick<Projection, 'state'>): boolean {
  return state !== null && (state.transcript.next > 0 || state.graph !== undefined);
}

/**
 * Writes an error to stderr, and with `--json` also to stdout. Returns the exit code. Writes the
 * stack trace only if PERDURE_DEBUG is set.
 */
export function reportError(
  error: unknown,
  {
    env,
    json,
    options = {},
  }: { readonly env: NodeJS.ProcessEnv; readonly json: boolean; readonly options?: GlobalOptions },
): ExitCode {
  const text = redactMessage(messageOf(error));
  const message = runnableText({ options, env }, text);
  // Commander has already written its own errors to stderr.
  if (!(error instanceof CommanderError))
    process.stderr.write(`error: ${printable(shownPeople(message))}\n`);
  if (json) {
    const line = { code: errorCode(error), error: message.replace(/^error: /, '') };
    process.stdout.write(`${visibleJson(line)}\n`);
  }
  if (env['PERDURE_DEBUG'] && error instanceof Error) {
    process.stderr.write(`${printable(redactMessage(error.stack ?? ''))}\n`);
  }
  return exitCodeOf(error);
}

/** Returns the message of an error. Commander prints the help if a command is missing, and gives no message. */
function messageOf(error: unknown): string {
  if (error instanceof CommanderError && error.code === 'commander.help') {
    return 'command: expected one, got none; --help lists the commands';
  }
  return error instanceof Error ? error.message : String(error);
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommanderError || error instanceof UsageError) return EXIT.usage;
  return error instanceof NoServerError ? EXIT.noServer : EXIT.failed;
}

/** Returns the stable code of an error: its own, else that of the error that caused it. */
export function errorCode(error: unknown): ErrorCode {
  const chain = causes(error);
  const [code = 'unexpected'] = chain.flatMap((one) => ownCode(one) ?? []);
  // An error about an option may have a cause that says more, such as an id that is taken.
  const [known] = chain.flatMap((one) => (PerdureError.isInstance(one) ? one.code : []));
  if (code === 'usage' && known !== undefined && known !== 'input') return known;
  return code === 'unexpected' && grpcCode(error) !== null ? 'server' : code;
}

function ownCode(error: Error): ErrorCode | null {
  if (RefusedError.isInstance(error) && error.reason !== null) {
    return REFUSAL_CODES[error.reason] ?? error.code;
  }
  if (error instanceof CommandError || PerdureError.isInstance(error)) return error.code;
  return error instanceof CommanderError ? 'usage' : null;
}

const MAX_CAUSES = 8;

function causes(error: unknown): readonly Error[] {
  const found: Error[] = [];
  for (let at = error; at instanceof Error && found.length < MAX_CAUSES; at = at.cause) {
    found.push(at);
  }
  return found;
}
