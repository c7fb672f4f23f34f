import { NoRunError, PerdureError } from '../../core/errors.js';
import { parseRunInput, isProblem } from '../../core/input/input.js';
import { visible } from '../../core/state/summaries.js';
import type { JsonObject } from '../../core/text/json.js';
import { type FollowTarget, nextTarget } from '../../history/follow-history.js';
import { endOfRun } from '../../history/pending-work.js';
import { runIdProblem } from '../../updates/start.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { checkHome } from '../hosting/hosting.js';
import { noteLastWorker, noteServer } from '../hosting/server-notes.js';
import { type HostedWorker, awaitWorker, withHostedWorker } from '../hosting/with-worker.js';
import { openTerminal } from '../input/confirm.js';
import { deciderName } from '../input/option-parsers.js';
import { withOptions } from '../input/options.js';
import { inFlags } from '../input/run-settings.js';
import { type OpenedRun, checkAgent, openRun, requireOpen, requireOpenRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';
import { reportEnd } from '../reports/report-run.js';
import { promptForDecision } from '../requests/decide-at-terminal.js';
import { viewedRequests } from '../requests/show-request.js';
import { type FollowOptions, followAndReport } from '../run-view/follow-and-report.js';
import { startRunNamed } from './run.js';
import { deliverTo } from './send.js';

interface ChatOptions {
  readonly agent: string;
  /** The words of the first message. */
  readonly message: readonly string[];
  readonly id?: string;
  /** Arguments of the agent's template. */
  readonly arg?: JsonObject;
  readonly by?: string;
}

/**
 * `chat AGENT`: talks with an agent at the terminal. Each line is a message to one open run, and
 * requests are decided in between. Ctrl-D leaves the run open, and `--id` continues it.
 */
export const chat: Command<ChatOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('<agent>', 'name of the agent')
        .argument('[message...]', 'the first message; default: it is asked for'),
      'id',
      'arg',
      'by',
    ),
  async run(context, { agent, message, id, arg, by }) {
    if (!context.isTty || context.options.json) {
      throw new UsageError(
        'chat: expected a terminal, and no --json; elsewhere, start a run with run --open, and continue it with send',
      );
    }
    const problem = id === undefined ? null : runIdProblem(id);
    if (problem !== null) throw new UsageError(`--${problem}`);
    const opened = id === undefined ? null : await openChat(context, { id, agent });
    const taskQueue = opened?.run.taskQueue ?? (await context.taskQueue());
    if (opened === null) {
      await checkAgent(context, { agent, args: arg }, { taskQueue, otherwise: 'hosted' });
      await checkHome(context);
    } else if (arg !== undefined) {
      throw new UsageError(
        `--arg: expected only for a new run, and ${visible(opened.run.id)} has begun; remove it, or choose another --id`,
      );
    }
    noteServer(context, await context.server());
    return await withHostedWorker(context, { taskQueue, agent }, async (host) => {
      const person = { by: deciderName(by), ...listenTo(context, host) };
      const first = message.join(' ').trim() || null;
      const started = opened ?? (await begin(context, host, { agent, id, arg, first, ...person }));
      if (typeof started === 'number') return started;
      return await talk(context, host, {
        opened: started,
        isNew: opened === null,
        first: opened && first,
        ...person,
      });
    });
  },
};

/**
 * Reads the run that a chat continues; null if there is none with this id. Throws a `UsageError` for a run
 * of another agent, and for one that takes no messages.
 */
async function openChat(
  context: CliContext,
  { id, agent }: { readonly id: string; readonly agent: string },
): Promise<OpenedRun | null> {
  const opened = await openRun(context, id).catch((error: unknown) => {
    if (error instanceof Error && NoRunError.isInstance(error.cause)) return null;
    throw error;
  });
  if (opened === null) return null;
  await requireOpen(context, opened);
  const { run } = opened;
  if (run.agent !== agent) {
    throw new UsageError(
      `agent: expected ${visible(run.agent)}, the agent of run ${visible(id)}, got ${visible(agent)}; correct it, or choose another --id`,
    );
  }
  if (run.view.input?.open !== true) {
    throw new UsageError(
      `--id: expected an open run, got ${visible(id)}, which ends with its answer; choose another id`,
    );
  }
  return opened;
}

/** Reads what a person types. */
interface Listener {
  /** Returns the next line that is not empty; null after Ctrl-D or Ctrl-C. */
  readonly nextLine: () => Promise<string | null>;
  /** Adds a line that was typed while another question was open. */
  readonly onLine: (line: string) => void;
}

interface Person extends Listener {
  readonly by: string;
}

/** Who decides between the lines, and what becomes of a line after `later`. */
type Decider = Pick<Person, 'by' | 'onLine'>;

/** What people type to leave other chats, and to learn what they can type. */
const LEAVE = /^\/(exit|quit|bye)$/i;
const HELP = /^\/(help|\?)$/i;

function listenTo(context: CliContext, { interrupt, hosting: { died } }: HostedWorker): Listener {
  /** Lines of a pasted text after the first one. */
  const early: string[] = [];
  const onLine = (line: string): void => {
    if (line.trim() !== '') early.push(line.trim());
  };
  return {
    onLine,
    async nextLine() {
      const { terminal, left } = openTerminal();
      terminal.on('line', onLine);
      const signal = AbortSignal.any([interrupt, died, left]);
      try {
        for (;;) {
          const line = early.shift() ?? (await terminal.question('> ', { signal })).trim();
          if (LEAVE.test(line)) return null;
          if (HELP.test(line)) {
            context.note(
              'Each line is a message. Ctrl-D or /exit leaves the chat; the run stays open.',
            );
          } else if (line !== '') return line;
        }
      } catch (error) {
        if (!signal.aborted) throw error;
        if (died.aborted) throw died.reason;
        // The line of the question is not complete.
        process.stderr.write('\n');
        return null;
      } finally {
        terminal.close();
      }
    },
  };
}

/** Starts the run with the first message, and follows its turn. Returns the exit code if nothing was typed, or the run has ended. */
async function begin(
  context: CliContext,
  host: HostedWorker,
  {
    agent,
    id,
    arg: args,
    first,
    by,
    nextLine,
    onLine,
  }: Person &
    Pick<ChatOptions, 'agent'> & {
      readonly id: string | undefined;
      readonly arg: JsonObject | undefined;
      readonly first: string | null;
    },
): Promise<OpenedRun | ExitCode> {
  if (first === null) context.note('Type a message; Ctrl-D in place of one leaves the chat.');
  const message = first ?? (await nextLine());
  if (message === null) {
    context.note('No run was started.');
    return host.interrupt.aborted ? EXIT.interrupted : EXIT.completed;
  }
  const input = parseRunInput({ agent, message, by, open: true, ...(args && { args }) });
  if (isProblem(input)) throw new UsageError(inFlags(input.problem));
  const place = { ...(id !== undefined && { id }), artifacts: {} };
  const { taskQueue } = host;
  const started = await startRunNamed(context, await context.client(), { input, taskQueue, place });
  const followed = {
    ...started,
    ...host,
    joined: null,
    retriedUpTo: 0,
    until: { turn: 1 },
  } as const;
  const code = await followAndReport(context, followed, inChat({ by, onLine }));
  if (code === EXIT.interrupted) return code;
  const opened = await openRun(context, started.id);
  return endOfRun(opened.run) === null ? opened : code;
}

/** Sends each line as a message, and follows its turn, until the person leaves or the run ends. */
async function talk(
  context: CliContext,
  host: HostedWorker,
  {
    opened: joined,
    isNew,
    first,
    by,
    nextLine,
    onLine,
  }: Person & {
    readonly opened: OpenedRun;
    readonly isNew: boolean;
    readonly first: string | null;
  },
): Promise<ExitCode> {
  const { id } = joined.run;
  // A message is delivered when a worker answers, and the worker of this process may be starting.
  await awaitWorker(joined, host);
  let opened = isNew ? joined : await requireOpenRun(context, id);
  let message = first;
  let until = turnUnderWay(opened);
  let isShown = isNew;
  let shownTurn = turnOf(opened);
  if (!isNew) await noteJoined(context, opened, until);
  const asked = new Set<string>();
  for (;;) {
    if (until !== null) {
      const code = await followTurn(context, host, { opened, until, by, onLine, isShown });
      isShown = true;
      opened = await openRun(context, id);
      if (code === EXIT.interrupted || endOfRun(opened.run) !== null) return code;
      shownTurn = until === 'end' ? turnOf(opened) : until.turn;
    }
    await decideOpen(context, host, { opened, by, onLine, asked });
    if (host.interrupt.aborted) break;
    message ??= await nextLine();
    // Others may have sent messages meanwhile, or ended the run.
    opened = await openRun(context, id);
    await noteOthers(context, opened, shownTurn);
    shownTurn = Math.max(shownTurn, turnOf(opened));
    if (message === null) break;
    await requireOpen(context, opened);
    until = await say(context, opened, { message, by });
    message = null;
  }
  if (endOfRun(opened.run) !== null) return await reportEnd(context, opened.run);
  const { agent } = opened.run;
  const again = await nextCommandFor(context, opened.run, ['chat', agent, '--id', id]);
  const close = await nextCommandFor(context, opened.run, ['close', id]);
  context.note(`Run ${visible(id)} stays open. Continue it with: ${again}`);
  context.note(`End it with: ${close}`);
  // An idle run needs no worker, and the commands that continue it host one.
  const isLeft = nextTarget(opened.run.view) !== null && (await host.hosting.isAlone());
  if (isLeft) await noteLastWorker(context, opened.run);
  return host.interrupt.aborted ? EXIT.interrupted : EXIT.completed;
}

/** Returns the turn to follow; null if the run waits for a message, also for its first one. */
function turnUnderWay({ run: { view } }: OpenedRun): FollowTarget | null {
  const { input, state } = view;
  const hasBegun = [input?.message, input?.messages, input?.prompt, input?.input].some(
    (given) => given !== undefined,
  );
  return state === null && !hasBegun ? null : nextTarget(view);
}

/** Says what a run that the chat continues waits for. */
async function noteJoined(
  context: CliContext,
  { run }: OpenedRun,
  until: FollowTarget | null,
): Promise<void> {
  const name = visible(run.id);
  if (run.view.state?.paused === true) {
    const resume = await nextCommandFor(context, run, ['resume', run.id]);
    context.note(`Run ${name} is paused, so messages wait. Resume it with: ${resume}`);
  } else if (until === null) {
    const read = await nextCommandFor(context, run, ['transcript', run.id]);
    context.note(`Run ${name} waits for your message. Read the earlier ones with: ${read}`);
  }
}

/** Returns the number of the newest turn; 0 before the first one. */
function turnOf({ run }: OpenedRun): number {
  return run.view.state?.turn.number ?? 0;
}

/** Says that a run has had turns since the one that was shown last: others have sent messages. */
async function noteOthers(context: CliContext, opened: OpenedRun, shown: number): Promise<void> {
  const { run } = opened;
  const count = turnOf(opened) - shown;
  if (count <= 0) return;
  const turns = count === 1 ? `turn ${shown + 1}` : `turns ${shown + 1} to ${shown + count}`;
  const read = await nextCommandFor(context, run, ['transcript', run.id]);
  context.note(
    `Others have sent messages: ${turns} of run ${visible(run.id)}. Read them with: ${read}`,
  );
}

/** Asks for decisions about requests that are open between turns, such as to undo a call, once each. */
async function decideOpen(
  context: CliContext,
  host: HostedWorker,
  {
    opened: { client, run },
    by,
    onLine,
    asked,
  }: Decider & { readonly opened: OpenedRun; readonly asked: Set<string> },
): Promise<void> {
  for (const { digest } of viewedRequests(run.view, run.id)) {
    if (asked.has(digest) || host.interrupt.aborted) continue;
    asked.add(digest);
    await promptForDecision(context, client, { id: run.id, digest, by }, { ...host, onLine });
  }
}

async function followTurn(
  context: CliContext,
  host: HostedWorker,
  {
    opened,
    until,
    by,
    onLine,
    isShown,
  }: Decider & {
    readonly opened: OpenedRun;
    readonly until: FollowTarget;
    /** The header of the run has been shown. */
    readonly isShown: boolean;
  },
): Promise<ExitCode> {
  const { id, runId } = opened.run;
  const retriedUpTo = await awaitWorker(opened, host);
  const past = { joined: opened.run, knowsPast: true, knowsHeader: isShown, retriedUpTo };
  return await followAndReport(
    context,
    { id, runId, until, ...past, ...host },
    inChat({ by, onLine }),
  );
}

function inChat({ by, onLine }: Decider): FollowOptions {
  return { wait: true, by, onLine, chat: true };
}

/** Sends a message. Returns the turn to follow; null if the run has refused it, which is said. */
async function say(
  context: CliContext,
  opened: OpenedRun,
  ask: { readonly message: string; readonly by: string },
): Promise<FollowTarget | null> {
  try {
    const sent = await deliverTo(context, opened, ask);
    return sent.delivered ? { turn: sent.turn } : null;
  } catch (error) {
    if (!(error instanceof Error) || !(error.cause instanceof PerdureError)) throw error;
    context.note(error.message);
    return null;
  }
}
