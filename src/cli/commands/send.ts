import { randomUUID } from 'node:crypto';
import { UndecidedError } from '../../client/answered.js';
import { askRun, type SentMessage } from '../../client/control.js';
import type { Until } from '../../client/until.js';
import { askProblem } from '../../core/ask.js';
import type { Ask } from '../../core/inbox.js';
import type { Attachment } from '../../core/messages.js';
import { visible } from '../../core/summaries.js';
import { attachedFiles } from '../attached-files.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { demandWorker, openLivingRun } from '../decision.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { broughtTo, hosted } from '../hosted.js';
import { adviceFor, type OpenedRun } from '../open-run.js';
import { seeThrough } from '../see-through.js';

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
  return await hosted(context, taskQueue, async (host) => {
    const retriedUpTo = await broughtTo(opened, host);
    const { messageId, turn } = await give(context, opened, ask);
    const until: Until = joined.input?.open ? { turn } : 'end';
    const past = { joined, knowsPast: true, retriedUpTo };
    const seen = { id, runId, messageId, until, ...past, ...host };
    return await seeThrough(context, seen, { wait: true });
  });
};

/** Given to a worker elsewhere. */
async function sendOnly(context: CliContext, opened: OpenedRun, ask: Ask): Promise<ExitCode> {
  await demandWorker(context, opened, 'send --no-wait');
  const { id, runId } = opened.run;
  const sent = await give(context, opened, ask);
  context.say(`Follow it with: ${await adviceFor(context, opened.run, ['attach', id])}`);
  if (context.options.json) context.out(JSON.stringify({ id, runId, ...sent }));
  return EXIT.completed;
}

async function give(
  context: CliContext,
  { client, run }: OpenedRun,
  ask: Ask,
): Promise<SentMessage> {
  const messageId = ask.id ?? randomUUID();
  try {
    const sent = await askRun(client, run.id, { ...ask, id: messageId });
    const again = sent.duplicate ? '; it was here before, under the same id' : '';
    context.say(`The message is taken for turn ${sent.turn}${again}.`);
    return sent;
  } catch (error) {
    if (!(error instanceof UndecidedError)) throw error;
    if (!error.isUncertain) throw new Error(inFlags(error.message), { cause: error });
    throw new Error(
      `${error.message}. It may have been taken: sent again with --message-id ${visible(messageId)} it is the same message`,
      { cause: error },
    );
  }
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
    .replaceAll('mode "steer"', '--steer');
}
