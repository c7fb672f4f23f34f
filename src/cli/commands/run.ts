import { IdTakenError } from '../../core/errors.js';
import type { Client } from '@temporalio/client';
import type { StartedRun } from '../../updates/start.js';
import { isProblem, parseRunInput, type RunInput } from '../../core/input/input.js';
import type { JsonObject } from '../../core/json.js';
import type { Attachment } from '../../core/transcript/messages.js';
import { visible } from '../../core/text/summaries.js';
import { nextCommand } from '../reports/next-command.js';
import { attachedFiles, ownAttachments } from '../input/attached-files.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { withHostedWorker } from '../hosting/with-hosted-worker.js';
import { checkHome, isWorkedElsewhere } from '../hosting/hosting.js';
import { followAndReport, type FollowOptions } from '../run-view/follow-and-report.js';
import { noteServer } from '../hosting/note-server.js';
import { nextCommandFor } from '../open-run.js';
import { NothingRunsError } from '../hosting/open-server.js';
import { uiLink } from '../reports/run-header.js';

export interface RunOptions extends FollowOptions {
  readonly agent: string;
  /** The words of the message. */
  readonly message: readonly string[];
  readonly id?: string;
  readonly open?: boolean;
  readonly detach?: boolean;
  readonly maxSteps?: number;
  readonly context?: unknown;
  /** Of the agent's template. */
  readonly arg?: JsonObject;
  /** Files, and addresses of images. */
  readonly attach?: readonly string[];
}

export const run: Command<RunOptions> = async (context, options) => {
  const input = inputOf(options, await attachedFiles(context, options.attach));
  if (options.detach) return await detached(context, input, options.id);
  await checkHome(context);
  // Loading Temporal's worker takes a moment, in which the server is looked for.
  import('../../worker/create-worker.js').catch(() => undefined);
  noteServer(context, await context.server());
  const client = await context.client();
  const taskQueue = await context.taskQueue();
  return await withHostedWorker(context, taskQueue, async (host) => {
    const started = await start(context, client, { input, taskQueue, id: options.id });
    const until = input.open ? { turn: 1 } : 'end';
    const seen = { ...started, ...host, joined: null, retriedUpTo: 0, until } as const;
    return await followAndReport(context, seen, options);
  });
};

/** Started for a worker elsewhere to do; nobody would, if there were none. */
async function detached(
  context: CliContext,
  input: RunInput,
  wantedId: string | undefined,
): Promise<ExitCode> {
  const taskQueue = await context.taskQueue();
  const server = await context.server({ start: false }).catch((error: unknown) => {
    // A server that somebody named and that is not there is another mistake.
    if (error instanceof NothingRunsError) throw noWorkerError(context, taskQueue);
    throw error;
  });
  const client = await context.client();
  if (!(await isWorkedElsewhere(context, taskQueue))) throw noWorkerError(context, taskQueue);
  const { id, runId } = await start(context, client, { input, taskQueue, id: wantedId });
  const link = uiLink(server, id);
  context.note(`run ${visible(id)} is started${link === null ? '' : ` · ${link}`}`);
  context.note(`Follow it with: ${await nextCommandFor(context, { taskQueue }, ['attach', id])}`);
  const line = { id, runId, status: 'working', reason: null };
  context.out(context.options.json ? JSON.stringify(line) : id);
  return EXIT.completed;
}

function noWorkerError(context: CliContext, taskQueue: string): UsageError {
  return new UsageError(
    `--detach: no worker answers on task queue "${visible(taskQueue)}", so nobody would do the work. ` +
      `Start one with: ${nextCommand(context, 'worker')} (or leave --detach out)`,
  );
}

async function start(
  context: CliContext,
  client: Client,
  given: {
    readonly input: RunInput;
    readonly taskQueue: string;
    readonly id: string | undefined;
  },
): Promise<StartedRun> {
  const { newRunId, startRun } = await import('../../updates/start.js');
  const { taskQueue, id = newRunId(given.input.agent) } = given;
  const input = { ...given.input, ...(await ownAttachments(context, id, given.input)) };
  try {
    return await startRun(client, input, { id, taskQueue });
  } catch (error) {
    if (!(error instanceof IdTakenError)) throw error;
    const follow = await nextCommandFor(context, { taskQueue }, ['attach', id]);
    throw new UsageError(
      `--id ${visible(id)}: a run of this id exists. Follow it with: ${follow} (or choose another id)`,
      { cause: error },
    );
  }
}

/** Checked before anything is started; the workflow would refuse the same. */
function inputOf(
  { agent, message, open, maxSteps, context, arg }: RunOptions,
  attachments: readonly Attachment[],
): RunInput {
  const input = parseRunInput({
    agent,
    message: message.join(' '),
    ...(open && { open }),
    ...(maxSteps !== undefined && { limits: { steps: maxSteps } }),
    ...(context !== undefined && { context }),
    ...(arg !== undefined && { args: arg }),
    ...(attachments.length > 0 && { attachments }),
  });
  if (!isProblem(input)) return input;
  throw new UsageError(inFlags(input.problem));
}

/** What the workflow calls by the names of its input, in the words of the command line. */
function inFlags(problem: string): string {
  return problem
    .replace('limits.steps', '--max-steps')
    .replace(/^attachments/, '--attach')
    .replace(/^args/, '--arg');
}
