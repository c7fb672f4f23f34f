import { randomUUID } from 'node:crypto';
import type { SentMessage } from '../../updates/deliver-or-record.js';
import { askRun, recordMessage } from '../../updates/control.js';
import { hasLiveWorker } from '../../temporal/probe-worker.js';
import { PerdureError } from '../../core/errors.js';
import type { FollowTarget } from '../../history/follow-target.js';
import { askProblem, askRefusal } from '../../core/ask.js';
import type { Ask } from '../../core/inbox.js';
import type { Attachment } from '../../core/transcript/messages.js';
import { visible } from '../../core/text/summaries.js';
import { attachedFiles, ownAttachments } from '../input/attached-files.js';
import { osUser } from '../input/os-user.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { openLivingRun, workerCommands } from '../decision.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { awaitWorker, withHostedWorker } from '../hosting/with-hosted-worker.js';
import { nextCommandFor, type OpenedRun } from '../open-run.js';
import { followAndReport } from '../run-view/follow-and-report.js';

export interface SendOptions {
  readonly id: string;
  /** The words of the message. */
  readonly message: readonly string[];
  readonly steer?: boolean;
  readonly messageId?: string;
  readonly pin?: boolean;
  readonly refresh?: boolean;
  /** Files, and addresses of images. */
  readonly attach?: readonly string[];
  /** `--no-wait` makes it false. */
  readonly wait: boolean;
}

/** `send ID MESSAGE`: gives a run a message and follows the turn that it begins or joins. */
export const send: Command<SendOptions> = async (context, options) => {
  const ask = askOf(options, await attachedFiles(context, options.attach));
  const opened = await openLivingRun(context, options.id);
  if (!options.wait) return await sendOnly(context, opened, ask);
  const { id, runId, taskQueue, view: joined } = opened.run;
  return await withHostedWorker(context, taskQueue, async (host) => {
    const retriedUpTo = await awaitWorker(opened, host);
    const sent = await give(context, opened, ask);
    const { messageId } = sent;
    if (!sent.delivered) return EXIT.completed;
    const until: FollowTarget = joined.input?.open ? { turn: sent.turn } : 'end';
    const past = { joined, knowsPast: true, retriedUpTo };
    const seen = { id, runId, messageId, until, ...past, ...host };
    return await followAndReport(context, seen, { wait: true });
  });
};

/** Given to a worker elsewhere; where none answers, recorded for one that comes. */
async function sendOnly(context: CliContext, opened: OpenedRun, ask: Ask): Promise<ExitCode> {
  const { id, runId, taskQueue } = opened.run;
  const isTaken = await hasLiveWorker(opened.client, taskQueue);
  const sent = await (isTaken ? give : record)(context, opened, ask);
  context.note(`Follow it with: ${await nextCommandFor(context, opened.run, ['attach', id])}`);
  if (context.options.json) context.out(JSON.stringify({ id, runId, ...sent }));
  return EXIT.completed;
}

async function give(context: CliContext, opened: OpenedRun, ask: Ask): Promise<SentMessage> {
  const { client, run } = opened;
  try {
    const sent = await askRun(client, run.id, await messageOf(context, opened, ask));
    if (!sent.delivered) return await recorded(context, opened, sent.messageId);
    const again = sent.duplicate ? '; it was here before, under the same id' : '';
    context.note(`The message is taken for turn ${sent.turn}${again}.`);
    return sent;
  } catch (error) {
    if (!(error instanceof PerdureError)) throw error;
    throw new Error(inFlags(error.message), { cause: error });
  }
}

async function record(context: CliContext, opened: OpenedRun, ask: Ask): Promise<SentMessage> {
  const { client, run } = opened;
  const message = await messageOf(context, opened, ask);
  // The run itself would say so only when a worker comes.
  const { state } = run.view;
  const refusal = state && askRefusal(state, message, message.id);
  if (refusal !== null) throw new Error(inFlags(refusal));
  await recordMessage(client, run.id, message);
  return await recorded(context, opened, message.id);
}

async function recorded(
  context: CliContext,
  { run }: OpenedRun,
  messageId: string,
): Promise<SentMessage> {
  context.note(
    `The message is recorded, and not delivered yet: no worker is running on task queue "${visible(run.taskQueue)}". ` +
      `Start one with: ${await workerCommands(context, run)}`,
  );
  context.note(`Its id is ${visible(messageId)}; the status shows it if the run refuses it then.`);
  return { delivered: false, messageId };
}

/** The message under an id, as this user's, with what is attached as this run's. */
async function messageOf(
  context: CliContext,
  { run }: OpenedRun,
  ask: Ask,
): Promise<Ask & { readonly id: string }> {
  const attached = await ownAttachments(context, run.id, ask);
  return { ...ask, ...attached, id: ask.id ?? randomUUID(), by: osUser() };
}

/** Checked before anything is opened; the run would refuse the same. */
function askOf(
  { message, messageId, steer, pin, refresh }: SendOptions,
  attachments: readonly Attachment[],
): Ask {
  const ask: Ask = {
    message: message.join(' '),
    ...(messageId !== undefined && { id: messageId }),
    ...(steer && { mode: 'steer' }),
    ...(pin && { pin }),
    ...(refresh && { refresh }),
    ...(attachments.length > 0 && { attachments }),
  };
  const problem = askProblem(ask);
  if (problem === null) return ask;
  throw new UsageError(inFlags(problem.replace(/^id: /, '--message-id: ')));
}

/** What the run calls by the names of its input, in the words of the command line. */
function inFlags(text: string): string {
  return text
    .replace(/^refresh: /, '--refresh: ')
    .replace(/^attachments/, '--attach')
    .replaceAll('mode "steer"', '--steer')
    .replace('sent again with id', 'sent again with --message-id');
}
