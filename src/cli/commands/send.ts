import { randomUUID } from 'node:crypto';
import { type SentMessage, askRun, recordMessage } from '../../updates/ask.js';
import { hasLiveWorker } from '../../temporal/pollers.js';
import { InputError, PerdureError, RefusedError } from '../../core/errors.js';
import type { FollowTarget } from '../../history/follow-history.js';
import { askProblem, askRefusal } from '../../core/run/ask.js';
import { type Ask, otherMessageProblem, repeatedReceipt } from '../../core/input/inbox.js';
import { mayAnswer, messageAnswer } from '../../core/requests/answer-by-message.js';
import { SHOWN_DIGITS, commandLine } from '../../core/requests/commands.js';
import type { Request } from '../../core/transcript/request.js';
import type { Json, JsonObject } from '../../core/text/json.js';
import type { Attachment } from '../../core/transcript/messages.js';
import { visible } from '../../core/state/summaries.js';
import { NO_REASON, reasonOfNo } from '../../core/text/refusal-words.js';
import {
  artifactFiles,
  ownArtifacts,
  attachedFiles,
  ownAttachments,
} from '../input/attached-files.js';
import { checkWritten, deciderName } from '../input/option-parsers.js';
import { inFlags } from '../input/run-settings.js';
import { withOptions } from '../input/options.js';
import {
  type Command,
  type CliContext,
  CommandError,
  EXIT,
  UsageError,
  type ExitCode,
} from '../context.js';
import { awaitWorker, withHostedWorker } from '../hosting/with-worker.js';
import { checkDigestForm, denyingCommand } from '../requests/decide.js';
import { viewedRequests } from '../requests/show-request.js';
import { requireNotCanceled, requireOpenRun, startHint, type OpenedRun } from '../open-run.js';
import { nextCommandAbout, nextCommandFor } from '../reports/next-command.js';
import { followAndReport, type FollowOptions } from '../run-view/follow-and-report.js';

interface SendOptions extends FollowOptions {
  readonly id: string;
  /** The words of the message. */
  readonly message: readonly string[];
  readonly steer?: boolean;
  readonly messageId?: string;
  readonly pin?: boolean;
  readonly refresh?: boolean;
  /** The name of a prompt of the agent, instead of a message. */
  readonly prompt?: string;
  /** Arguments of the prompt. */
  readonly arg?: JsonObject;
  /** Settings of the model for the turn. */
  readonly setting?: JsonObject;
  /** The digest of the request that the message answers, or its beginning. */
  readonly digest?: string;
  /** Paths of files, and URLs of images. */
  readonly attach?: readonly string[];
  /** `NAME=FILE`. */
  readonly artifact?: readonly string[];
  /** JSON for the functions of the turn. */
  readonly context?: unknown;
  readonly detach?: boolean;
  readonly by?: string;
}

/**
 * `send ID MESSAGE`: sends a message to a run and follows the turn that the message starts or
 * joins.
 */
export const send: Command<SendOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run').argument('[message...]', 'the message; or --prompt'),
      'steer',
      'messageId',
      'pin',
      'refresh',
      'prompt',
      'arg',
      'setting',
      'context',
      'digest',
      'attach',
      'artifact',
      'detach',
      'noWait',
      'by',
    ),
  async run(context, options) {
    const { digest } = options;
    if (digest !== undefined) checkDigestForm(digest);
    const message = askOf(options, await attachedFiles(context, options.attach, options.id));
    const files = await artifactFiles(options.artifact);
    const opened = await requireOpenRun(context, options.id);
    await requireNotCanceled(context, opened, 'a message');
    const ask = {
      ...message,
      ...(await ownArtifacts(context, opened.run.id, files)),
      ...answersOf(context, opened, { message, digest }),
    };
    if (options.detach) return await sendOnly(context, opened, ask);
    const { id, runId, view } = opened.run;
    return await withHostedWorker(context, opened.run, async (host) => {
      const retriedUpTo = await awaitWorker(opened, host);
      const sent = await deliver(context, opened, ask);
      const { messageId } = sent;
      if (!sent.delivered) {
        if (context.options.json) context.out(JSON.stringify({ id, runId, ...sent }));
        return EXIT.completed;
      }
      const until: FollowTarget = view.input?.open ? { turn: sent.turn } : 'end';
      const past = { joined: opened.run, knowsPast: true, retriedUpTo };
      const followed = { id, runId, messageId, until, ...past, ...host };
      return await followAndReport(context, followed, options);
    });
  },
};

/**
 * Binds a message to the request that it answers: to the one with this digest, or without a digest
 * to the question that the run asks now. Throws if no open request has the digest.
 */
function answersOf(
  context: CliContext,
  { run }: OpenedRun,
  { message, digest }: { readonly message: Ask; readonly digest: string | undefined },
): Pick<Ask, 'answers' | 'sentAt'> {
  const open = viewedRequests(run.view, run.id);
  const bind = ({ id: request, digest: whole }: Request): Pick<Ask, 'answers'> => {
    context.note(
      `The message answers request ${visible(request)}, ${whole.slice(0, SHOWN_DIGITS)}.`,
    );
    return { answers: { request, digest: whole } };
  };
  if (digest !== undefined) {
    const request = open.find((one) => one.digest.startsWith(digest.toLowerCase()));
    if (request !== undefined) return bind(request);
    const known = open.map(({ id }) => visible(id)).join(', ') || 'none';
    throw new CommandError(
      'changed',
      `--digest: expected that of an open request as it is now (open: ${known}), got ${visible(digest)}; read the request again: ${commandLine('perdure', ['inbox', run.id])}`,
    );
  }
  const { state } = run.view;
  if (state === null) return {};
  const found = messageAnswer(state, message, { now: Date.now() });
  const request = found.type === 'decides' ? found.work.request.id : undefined;
  const asked = open.find(({ id }) => id === request);
  if (asked !== undefined) return bind(asked);
  return mayAnswer(message.message ?? '') ? { sentAt: Date.now() } : {};
}

/** Sends a message that answers the question that the run asks, if its words do. Throws what `send` throws. */
export async function deliverTo(
  context: CliContext,
  opened: OpenedRun,
  message: Ask,
): Promise<SentMessage> {
  const answers = answersOf(context, opened, { message, digest: undefined });
  return await deliver(context, opened, { ...message, ...answers });
}

/** Delivers the message to a worker elsewhere, or records it for a later one if none answers. */
async function sendOnly(context: CliContext, opened: OpenedRun, ask: Ask): Promise<ExitCode> {
  const { id, runId, taskQueue } = opened.run;
  const hasWorker = await hasLiveWorker(opened.client, taskQueue);
  const sent = await (hasWorker ? deliver : record)(context, opened, ask);
  const isPaused = opened.run.view.state?.paused === true;
  const next = await nextCommandFor(context, opened.run, [isPaused ? 'resume' : 'attach', id]);
  // How to start a worker names the command that also follows the run.
  const isNamed = !sent.delivered && (await startHint(context, opened.run)).includes(next);
  if (isPaused) {
    context.note(`Run ${visible(id)} is paused, so the message waits. Resume it with: ${next}`);
  } else if (!isNamed) context.note(`Follow it with: ${next}`);
  if (context.options.json) context.out(JSON.stringify({ id, runId, ...sent }));
  return EXIT.completed;
}

async function deliver(context: CliContext, opened: OpenedRun, ask: Ask): Promise<SentMessage> {
  const { client, run } = opened;
  try {
    const sent = await askRun(client, run.id, await messageOf(context, opened, ask));
    if (!sent.delivered) return await recorded(context, opened, sent.messageId);
    const again = sent.duplicate ? '; the run already had a message with this id' : '';
    context.note(`Message accepted for turn ${sent.turn}${again}.`);
    return sent;
  } catch (error) {
    if (!(error instanceof PerdureError)) throw error;
    const text = await withCommands(context, run, { text: error.message, said: ask });
    if (InputError.isInstance(error)) throw new UsageError(asOptions(text), { cause: error });
    throw new Error(asOptions(text), { cause: error });
  }
}

async function record(context: CliContext, opened: OpenedRun, ask: Ask): Promise<SentMessage> {
  const { client, run } = opened;
  const message = await messageOf(context, opened, ask);
  // Without a worker, the run cannot refuse the message, so this process checks it.
  const { state } = run.view;
  const repeated = state && repeatedReceipt(state.inbox, message.id);
  const problem = otherMessageProblem(message, repeated?.digest);
  if (problem !== null) throw new UsageError(asOptions(problem));
  const refusal = state && askRefusal(state, message, { id: message.id, now: Date.now() });
  if (refusal !== null) {
    const text = await withCommands(context, run, { text: refusal.message, said: message });
    throw new RefusedError(asOptions(text), { reason: refusal.reason ?? null });
  }
  await recordMessage(client, run.id, message);
  return await recorded(context, opened, message.id);
}

async function recorded(
  context: CliContext,
  { run }: OpenedRun,
  messageId: string,
): Promise<SentMessage> {
  context.note(
    `Message recorded, but not delivered yet: no worker is running on task queue "${visible(run.taskQueue)}". ` +
      (await startHint(context, run)),
  );
  context.note(`Its id is ${visible(messageId)}; status shows it if the run refuses it later.`);
  return { delivered: false, messageId };
}

/** Adds the id and the attachments, which belong to this run. */
async function messageOf(
  context: CliContext,
  { run }: OpenedRun,
  ask: Ask,
): Promise<Ask & { readonly id: string }> {
  const attached = await ownAttachments(context, run.id, ask);
  return { ...ask, ...attached, id: ask.id ?? randomUUID() };
}

/**
 * Returns the message. Throws a `UsageError` before anything is opened if the run would refuse it.
 */
function askOf(
  { message, messageId, steer, pin, refresh, prompt, arg, context, setting, by }: SendOptions,
  attachments: readonly Attachment[],
): Ask {
  if (message.length === 0 && prompt === undefined) {
    throw new UsageError(
      'message: expected a message after the id of the run, or --prompt; got none',
    );
  }
  checkWritten('message', message.join(' '));
  const ask: Ask = {
    by: deciderName(by),
    ...((message.length > 0 || prompt === undefined) && { message: message.join(' ') }),
    ...(prompt !== undefined && { prompt }),
    ...(arg !== undefined && { args: arg }),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parsed from JSON
    ...(context !== undefined && { context: context as Json }),
    ...(setting !== undefined && { settings: setting }),
    ...(messageId !== undefined && { id: messageId }),
    ...(steer && { mode: 'steer' }),
    ...(pin && { pin }),
    ...(refresh && { refresh }),
    ...(attachments.length > 0 && { attachments }),
  };
  const problem = askProblem(ask);
  if (problem === null) return ask;
  throw new UsageError(asOptions(problem));
}

/**
 * Names the commands that a text is about: the one that denies, where the message gives the reason of a
 * no, or else the one that shows a request, where the text asks the sender to read it.
 */
async function withCommands(
  context: CliContext,
  run: OpenedRun['run'],
  { text, said }: { readonly text: string; readonly said: Ask },
): Promise<string> {
  const [denied, ...others] = viewedRequests(run.view, run.id).filter(({ decisions }) =>
    decisions.includes('deny'),
  );
  const [open] = viewedRequests(run.view, run.id);
  if (open !== undefined && text.includes('accepts no more messages')) {
    const see = await nextCommandFor(context, run, ['inbox', run.id]);
    return `${text}. It waits for a decision about request ${visible(open.id)}; see how to decide with: ${see}`;
  }
  const note = reasonOfNo(said.message ?? '');
  if (denied !== undefined && note !== null && text.includes(NO_REASON)) {
    const command =
      others.length === 0
        ? await denyingCommand(context, { run, request: denied }, { note })
        : await nextCommandFor(context, run, ['inbox', run.id]);
    const how =
      others.length === 0 ? 'deny the request with' : 'deny one of the requests as shown by';
    const [what = ''] = text.split(NO_REASON);
    return `${what}; ${how}: ${command}`;
  }
  return text.replaceAll(/read request (\S+) and give answers: \{[^}]*\}/g, (_, id: string) => {
    const show = nextCommandAbout(context, ['inbox', run.id, id]);
    return said.answers === undefined
      ? `read it with: ${show}, and send the message again with its --digest`
      : `read it with: ${show}, and send one of the expected messages with the same --digest`;
  });
}

/** Replaces the field names of a message by options. */
function asOptions(text: string): string {
  return inFlags(text)
    .replace(/^id: /, '--message-id: ')
    .replaceAll(
      'answers: expected what the message answers',
      '--digest: expected the digest of what the message answers',
    )
    .replaceAll('mode "steer"', '--steer')
    .replaceAll('"open": true', '--open')
    .replace('sent again with id', 'sent again with --message-id');
}
