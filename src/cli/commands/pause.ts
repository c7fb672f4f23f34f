import { RefusedError } from '../../core/errors.js';
import { betweenTurnsText } from '../../core/run/no-turn.js';
import { visible, visibleMessage } from '../../core/state/summaries.js';
import {
  type FollowTarget,
  type FollowedRun,
  type Reached,
  followSegments,
  nextTarget,
  reached,
} from '../../history/follow-history.js';
import { hasLiveWorker } from '../../temporal/pollers.js';
import { cancelTurn, closeRun, pauseRun, resumeRun } from '../../updates/decide.js';
import {
  type CliContext,
  type Command,
  CommandError,
  EXIT,
  type ExitCode,
  UsageError,
} from '../context.js';
import { withWorker } from '../hosting/with-worker.js';
import { deciderName } from '../input/option-parsers.js';
import { withOptions } from '../input/options.js';
import {
  type OpenedRun,
  requireNotCanceled,
  requireOpenRun,
  requireWorker,
  startHint,
} from '../open-run.js';
import { hasMessages, nextCommandFor, nextCommandOf } from '../reports/next-command.js';
import { openLines, reportEnd, reportOpen, reportTurn } from '../reports/report-run.js';
import { viewedRequests } from '../requests/show-request.js';
import { requestCancel, signalAllRuns } from '../../client/control.js';
import { formatCount } from '../format/format.js';
import { noteServer } from '../hosting/server-notes.js';
import { noteNotUndone, noteOpenUndos } from '../reports/left-undos.js';
import { unknownAgentText } from './list.js';

/** `pause ID`: lets calls in flight finish; the run starts nothing else until `resume`. */
export const pause: Command<ControlOptions> = {
  declare: (entry) => withOptions(entry.argument('[id]', 'the run'), 'all', 'agent', 'by'),
  run: async (context, options) => await controlRuns(context, 'pause', options, pauseOne),
};

async function pauseOne(context: CliContext, named: string, by: string): Promise<ExitCode> {
  const opened = await requireOpenRun(context, named);
  const { client, run } = opened;
  const { id } = run;
  await withWorker(context, opened, {
    decision: 'pause',
    send: () => pauseRun(client, id, { by }),
  });
  const wasPaused = run.view.state?.paused === true;
  const resume = await nextCommandFor(context, run, ['resume', id]);
  const state = wasPaused
    ? 'was already paused'
    : 'is pausing: calls in flight finish, and nothing new starts';
  context.note(`Run ${visible(id)} ${state}. Resume it with: ${resume}`);
  if (context.options.json) context.out(JSON.stringify({ id, paused: true, wasPaused }));
  return EXIT.completed;
}

/**
 * `resume ID`: continues a paused run, and retries a blocked run at once instead of at its next
 * probe.
 */
export const resume: Command<ControlOptions> = {
  declare: (entry) => withOptions(entry.argument('[id]', 'the run'), 'all', 'agent', 'by'),
  run: async (context, options) => await controlRuns(context, 'resume', options, resumeOne),
};

async function resumeOne(context: CliContext, named: string, by: string): Promise<ExitCode> {
  const opened = await requireOpenRun(context, named);
  const { client, run } = opened;
  const { id } = run;
  const wasBlocked = run.view.blocked.size > 0;
  const wasPaused = run.view.state?.paused === true;
  const [request] = viewedRequests(run.view, id);
  if (request !== undefined && !wasBlocked && !wasPaused) {
    const see = await nextCommandFor(context, run, ['inbox', id]);
    throw new CommandError(
      'waits_for_decision',
      `resume cannot decide for a person: request ${visible(request.id)} (${request.kind}) waits for a ` +
        `decision. See the commands for it with: ${see}`,
    );
  }
  const starts: string[] = [];
  await withWorker(context, opened, {
    decision: 'resume',
    send: () => resumeRun(client, id, { by }),
    left: (start) => starts.push(start),
  });
  const changes = wasPaused || wasBlocked;
  const text = resumeText({ paused: wasPaused, blocked: wasBlocked });
  const [start] = starts;
  if (start !== undefined) {
    const when = changes ? ' when a worker runs' : '';
    context.note(`Run ${visible(id)} ${text}${when}. No worker is running. ${start}`);
  } else if (nextTarget(run.view) === null) {
    context.note(`Run ${visible(id)} ${text}. It waits for a message.`);
    for (const line of await openLines(context, run)) context.note(line);
  } else {
    const follow = await nextCommandFor(context, run, ['attach', id]);
    context.note(`Run ${visible(id)} ${text}. Follow it with: ${follow}`);
  }
  if (context.options.json) {
    context.out(JSON.stringify({ id, resumed: changes, wasBlocked, wasPaused }));
  }
  return EXIT.completed;
}

function resumeText(was: { readonly paused: boolean; readonly blocked: boolean }): string {
  if (was.paused) return 'resumes';
  return was.blocked ? 'retries' : 'is neither paused nor blocked, so nothing changes';
}

interface CancelOptions {
  readonly id: string;
  /** Cancel only the current turn. */
  readonly turn?: boolean;
  readonly detach?: boolean;
  readonly by?: string;
}

const END_WITHIN_MS = 10_000;
const ALREADY_REQUESTED = 'Cancellation was already requested';
const NOT_ENDED = `has not ended within ${END_WITHIN_MS / 1_000} s`;

/** `cancel ID`: cancels the run, or only its current turn, and waits up to 10 s for the end. */
export const cancel: Command<CancelOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run; what it has done so far is kept'),
      'turn',
      'detach',
      'by',
    ),
  async run(context, { id, turn, detach = false, by }) {
    const actor = deciderName(by);
    const opened = await requireOpenRun(context, id);
    return turn
      ? await cancelCurrentTurn(context, opened, { detach, by: actor })
      : await cancelRun(context, opened, { detach, by: actor });
  },
};

async function cancelRun(
  context: CliContext,
  opened: OpenedRun,
  { detach, by }: { readonly detach: boolean; readonly by: string },
): Promise<ExitCode> {
  const { client, run } = opened;
  const { id } = run;
  const wasRequested = run.view.cancelRequested || run.view.state?.ending === 'cancelled';
  const requested = wasRequested ? ALREADY_REQUESTED : 'Cancellation requested';
  // If the run ended after it was read, this throws an error that reports how.
  if (!wasRequested && !(await requestCancel(client, id, by))) await requireOpenRun(context, id);
  if (detach) return reportRequested(context, opened, `${requested}.`);
  if (!(await hasLiveWorker(client, run.taskQueue))) {
    const text =
      `${requested}. It takes effect when a worker is running, and none answers on task ` +
      `queue "${visible(run.taskQueue)}". ${await startHint(context, run)}`;
    return reportRequested(context, opened, text);
  }
  const arrival = await followWithin(opened, 'end', { ms: END_WITHIN_MS });
  if (arrival === null) {
    const see = await nextCommandFor(context, run, ['status', id]);
    const text = `${requested}; the run ${NOT_ENDED}. See: ${see}`;
    return reportRequested(context, opened, text);
  }
  const code = await reportEnd(context, { id, ...arrival.last });
  noteNotUndone(context, arrival.last);
  return exitCode(context, code);
}

function reportRequested(context: CliContext, { run }: OpenedRun, text: string): ExitCode {
  context.note(text);
  const { id, runId } = run;
  if (context.options.json) {
    context.out(JSON.stringify({ id, runId, status: 'working', reason: 'cancel_requested' }));
  }
  return EXIT.completed;
}

async function cancelCurrentTurn(
  context: CliContext,
  opened: OpenedRun,
  { detach, by }: { readonly detach: boolean; readonly by: string },
): Promise<ExitCode> {
  const { client, run } = opened;
  const { id, runId } = run;
  await requireNotCanceled(context, opened, 'cancel --turn');
  await requireTurn(context, opened);
  await requireWorker(context, opened, 'cancel --turn');
  const under = run.view.state?.turn;
  const wasRequested = under?.interruption === 'cancelTurn';
  const turn = wasRequested ? under.number : await cancelTurn(client, id, { by });
  const isOpen = run.view.input?.open === true;
  const until = isOpen ? { turn } : 'end';
  const arrival = detach ? null : await followWithin(opened, until, { ms: END_WITHIN_MS });
  if (arrival === null) {
    const late = detach ? '' : ` It ${NOT_ENDED}.`;
    const see = await nextCommandFor(context, run, ['status', id]);
    context.note(
      `Cancellation of turn ${turn} of run ${visible(id)} ${wasRequested ? 'was already ' : ''}requested.${late} See: ${see}`,
    );
    const line = { id, runId, turn, status: 'working', reason: 'cancel_requested' };
    if (context.options.json) context.out(JSON.stringify(line));
    return EXIT.completed;
  }
  const { last, how } = arrival;
  const ended = { id, runId: last.runId, view: last.view };
  const code =
    how.type === 'turn-ended'
      ? await reportTurn(context, { ...how.ended, ...ended })
      : await reportEnd(context, ended);
  // A message that was queued has begun the next turn.
  if (isOpen) await reportOpen(context, { ...run, last, wasHosting: false });
  return exitCode(context, code);
}

/** Throws an error that says what the run waits for, with the commands that work now, if no turn is under way. */
async function requireTurn(context: CliContext, { run }: OpenedRun): Promise<void> {
  const { id, view } = run;
  const { state } = view;
  if (state === null || !state.open || nextTarget(view) !== null) return;
  const end = await nextCommandFor(context, run, ['cancel', id]);
  const fixes = [...(await openLines(context, run)), `Cancel it as a whole with: ${end}`];
  const lines = [
    `no turn is under way in run ${visible(id)}: ${betweenTurnsText(state)}`,
    ...fixes,
  ];
  throw new RefusedError(lines.join('\n'));
}

/** Returns the exit code. A cancellation that arrives too late counts as a failure. */
function exitCode(context: CliContext, code: ExitCode): ExitCode {
  if (code === EXIT.cancelled) return EXIT.completed;
  context.note('It ended before the cancellation arrived.');
  return EXIT.failed;
}

/** `close ID`: an open run accepts no more messages and ends after those it already has. */
export const close: Command<{ readonly id: string; readonly by?: string }> = {
  declare: (entry) => withOptions(entry.argument('<id>', 'the open run'), 'by'),
  async run(context, { id: named, by }) {
    const actor = deciderName(by);
    const opened = await requireOpenRun(context, named);
    const { client, run } = opened;
    const { id } = run;
    if (run.view.input?.open !== true) {
      const follow = await nextCommandFor(context, run, ['attach', id]);
      const end = await nextCommandFor(context, run, ['cancel', id]);
      throw new UsageError(
        `id: expected an open run, got ${visible(id)}, a task run, which ends with its turn; follow it with: ${follow}; or cancel it with: ${end}`,
      );
    }
    await requireNotCanceled(context, opened, 'close');
    const wasClosing = run.view.state?.ending === 'closed';
    const isIdle = nextTarget(run.view) === null && run.view.state?.paused !== true;
    const send = async (): Promise<Arrival | null> => {
      await closeRun(client, id, { by: actor });
      return isIdle ? await followWithin(opened, 'end', { ms: END_WITHIN_MS }) : null;
    };
    const starts: string[] = [];
    const arrival = wasClosing
      ? null
      : await withWorker(context, opened, {
          decision: 'close',
          send,
          left: (start) => starts.push(start),
        });
    const ended = arrival !== null;
    const isPaused = run.view.state?.paused === true;
    const next = ended ? 'transcript' : isPaused ? 'resume' : 'attach';
    const see = await nextCommandFor(context, run, [next, id]);
    const [start] = starts;
    const follow =
      start === undefined ? `Follow it with: ${see}` : `No worker is running. ${start}`;
    const how = isPaused ? `It is paused; resume it with: ${see}` : follow;
    context.note(
      ended
        ? `Run ${visible(id)} is closed.${hasMessages(run.view) ? ` Read its messages with: ${see}` : ''}`
        : `Run ${visible(id)} ${wasClosing ? 'is already closed: it ' : ''}accepts no more messages and ends after the messages it already has. ${how}`,
    );
    if (ended) noteNotUndone(context, arrival.last);
    else await noteOpenUndos(context, run);
    if (context.options.json) context.out(JSON.stringify({ id, closing: true, ended, wasClosing }));
    return EXIT.completed;
  },
};

/** The options of `pause` and `resume`. */
interface ControlOptions {
  readonly id?: string;
  /** Signal every running run of the agent. */
  readonly all?: boolean;
  readonly agent?: string;
  readonly by?: string;
}

type Control = 'pause' | 'resume';

/** Controls the run that the options name, or with `--all` every running run of an agent. */
async function controlRuns(
  context: CliContext,
  what: Control,
  { id, all = false, agent, by }: ControlOptions,
  controlOne: (context: CliContext, id: string, by: string) => Promise<ExitCode>,
): Promise<ExitCode> {
  const actor = deciderName(by);
  if (all) {
    if (id !== undefined || agent === undefined) {
      throw new UsageError('--all: expected --agent NAME and no run; give the agent');
    }
    return await controlAll(context, what, { agent, by: actor });
  }
  if (id === undefined || agent !== undefined) {
    throw new UsageError(`${what}: expected the id of a run, or --all --agent NAME`);
  }
  return await controlOne(context, id, actor);
}

/** The number of runs after which another progress line is shown. */
const PROGRESS_RUNS = 100;

/** Signals every running run of an agent. Exits with 1 if a run was not signaled. */
async function controlAll(
  context: CliContext,
  what: Control,
  { agent, by }: { readonly agent: string; readonly by: string },
): Promise<ExitCode> {
  noteServer(context, await context.server());
  const client = await context.client();
  const result = await signalAllRuns(client, what, {
    agent,
    by,
    onProgress: ({ signaled, failed }) => {
      if ((signaled + failed) % PROGRESS_RUNS === 0) context.note(`${signaled} runs signaled …`);
    },
  });
  const { signaled, ended, failed, error } = result;
  const unknown =
    signaled + ended + failed > 0 ? null : await unknownAgentText(context, client, agent);
  if (unknown !== null) throw new UsageError(`${unknown}; correct the name`);
  const gone = ended === 0 ? '' : ` ${formatCount(ended, 'run')} ended meanwhile.`;
  const runs = `${formatCount(signaled, 'run')} of agent ${visible(agent)}`;
  // Which of them are paused while they wait for a person is known only to the runs.
  const effect =
    what === 'pause' ? 'each pauses' : 'each that is paused resumes, and a blocked one tries again';
  const hasWorker = signaled === 0 || (await hasLiveWorker(client, await context.taskQueue()));
  const when = hasWorker ? '' : ' when a worker processes the signal';
  context.note(
    signaled === 0
      ? `No run of agent ${visible(agent)} was signaled.${gone}`
      : `Signaled ${runs} to ${what}: ${effect}${when}.${gone}`,
  );
  if (failed > 0) {
    const again = nextCommandOf(context, [what, '--all', '--agent', agent]);
    context.note(
      `${formatCount(failed, 'run')} could not be signaled (${visibleMessage(error ?? 'no reason')}). Run it again: ${again}`,
    );
  }
  if (context.options.json) context.out(JSON.stringify({ agent, ...result }));
  return failed > 0 ? EXIT.failed : EXIT.completed;
}

/** A run that has reached its target. */
interface Arrival {
  readonly last: FollowedRun;
  readonly how: Reached;
}

/**
 * Follows a run silently for a limited time. Returns null if it does not reach the target in time.
 */
async function followWithin(
  { client, run }: OpenedRun,
  until: FollowTarget,
  { ms }: { readonly ms: number },
): Promise<Arrival | null> {
  const signal = AbortSignal.timeout(ms);
  for await (const last of followSegments(client, { id: run.id, runId: run.runId, signal })) {
    const how = reached(last.view, until);
    if (how !== null) return { last, how };
  }
  return null;
}
