import { type Below, isIdle } from '../../client/below.js';
import { NO_MODEL } from '../../core/definition/definition.js';
import type { FinishedTurn } from '../../core/state/state.js';
import { statusText } from '../../core/state/status-text.js';
import { visible, visibleMessage } from '../../core/state/summaries.js';
import { parseJson } from '../../core/text/json.js';
import { printable } from '../../core/text/text.js';
import type { Outcome } from '../../core/transcript/outcome.js';
import { type FollowedRun, nextTarget } from '../../history/follow-history.js';
import { endOfRun } from '../../history/pending-work.js';
import type { Projection } from '../../history/projection.js';
import { runMs } from '../../history/run-time.js';
import type { ServerHandle } from '../../server/server-settings.js';
import { type CliContext, EXIT, type ExitCode } from '../context.js';
import {
  type Palette,
  formatCount,
  formatDuration,
  formatUsage,
  palette,
} from '../format/format.js';
import { noteOtherVersion } from '../open-run.js';
import { belowLines } from '../requests/below.js';
import {
  type AskingRun,
  ownStanding,
  shownRequest,
  viewedRequests,
  viewedStatus,
} from '../requests/show-request.js';
import type { Screen } from '../run-view/live-text.js';
import { forkHint } from './fork-hint.js';
import { nextCommandAbout, nextCommandFor, runnableText } from './next-command.js';
import { uiLink } from './run-pages.js';
import { limitLine } from './stopped-run.js';

/** A run that has ended. */
interface EndedRun {
  readonly id: string;
  readonly runId: string;
  readonly view: Projection;
  /** Why the run was terminated, if that is known. */
  readonly terminatedWhy?: string;
}

const CODES: Readonly<Record<Outcome['status'], ExitCode>> = {
  completed: EXIT.completed,
  stopped: EXIT.stopped,
  cancelled: EXIT.cancelled,
  failed: EXIT.failed,
};

/** Reports how a run ended: as one line of data with `--json`, else as the answer and a message. */
export async function reportEnd(context: CliContext, run: EndedRun): Promise<ExitCode> {
  const { id, runId, view } = run;
  const end = endOfRun({ terminatedWhy: '', ...run });
  if (end === null) throw new Error(`run ${visible(id)} has not ended`);
  const { outcome, reason } = end;
  const tookMs = runMs(view) ?? 0;
  const line = { ...outcome, reason, id, runId };
  const next = await nextLine(context, { id, view }, outcome);
  return await report(context, { outcome, reason, tookMs, title: '', line, next });
}

/** An ended turn of a run that continues. */
interface ReportedTurn extends FinishedTurn {
  readonly id: string;
  readonly runId: string;
  readonly view: Projection;
  /** The id of the message that the turn answers, if this command sent it. */
  readonly messageId?: string | undefined;
}

/** Reports how a turn ended, in the same form as `reportEnd`. */
export async function reportTurn(context: CliContext, ended: ReportedTurn): Promise<ExitCode> {
  const { id, runId, view, turn, outcome, messageId } = ended;
  const times = view.messages.filter((message) => message.turn === turn).map(({ at }) => at);
  const tookMs = times.length === 0 ? 0 : Math.max(...times) - Math.min(...times);
  const line = { ...outcome, id, runId, turn, ...(messageId !== undefined && { messageId }) };
  const { reason } = outcome;
  const next = await nextLine(context, { id, view }, outcome);
  return await report(context, { outcome, reason, tookMs, title: `turn ${turn} `, line, next });
}

interface Report {
  readonly outcome: Outcome;
  /** The outcome's reason; `terminated` or `timed_out` if Temporal ended the run. */
  readonly reason: string;
  readonly tookMs: number;
  /** Text before the status. */
  readonly title: string;
  /** The line for `--json`. */
  readonly line: object;
  /** The line about the limit that stopped it, or how to go on at the node that failed; null if neither did. */
  readonly next: string | null;
}

async function nextLine(
  context: CliContext,
  run: Pick<EndedRun, 'id' | 'view'>,
  outcome: Outcome,
): Promise<string | null> {
  const goOn = limitLine(context, run, outcome) ?? (await forkHint(context, run, outcome));
  if (outcome.status !== 'failed' || outcome.reason !== 'invalid_output') return goOn;
  const refused = nextCommandAbout(context, ['transcript', run.id, '--side']);
  const read = `Read the refused answers with: ${refused}`;
  return goOn === null ? read : `${read}\n${goOn}`;
}

async function report(context: CliContext, result: Report): Promise<ExitCode> {
  const { outcome, line, next } = result;
  context.note(endLine(context, result));
  if (next !== null) context.note(next);
  if (context.options.json) {
    context.out(JSON.stringify(line));
  } else {
    const answer = formatAnswer(await fullAnswer(context, outcome), outcome);
    // Programs that need every character as the model wrote it use `--json`.
    if (answer !== null) context.out(printable(answer));
  }
  return CODES[outcome.status];
}

function endLine(context: CliContext, { outcome, reason, tookMs, title }: Report): string {
  const paint = palette(context.color);
  const { status, steps, toolCalls, usage, error, lost = [] } = outcome;
  const text = `${title}${statusText({ status, reason })}`;
  const color = {
    completed: paint.green,
    failed: paint.red,
    stopped: paint.yellow,
    cancelled: paint.yellow,
  };
  const figures = [
    formatCount(steps, 'step'),
    formatCount(toolCalls, 'call'),
    formatUsage(usage),
    formatDuration(tookMs),
  ];
  const end = [
    color[status](
      error === undefined ? text : `${text}: ${visibleMessage(runnableText(context, error))}`,
    ),
    paint.dim(figures.join(' · ')),
  ].join(' · ');
  return [end, ...lost.map((loss) => paint.yellow(`lost: ${visible(loss)}`))].join('\n');
}

/** Returns the answer, indented if it is JSON that a tool returned; null if there is none. */
function formatAnswer(answer: string | null, { reason }: Outcome): string | null {
  const value = answer === null || reason !== 'tool' ? null : parseJson(answer);
  return typeof value === 'object' && value !== null ? JSON.stringify(value, null, 2) : answer;
}

/**
 * Reads a large answer from the blob store. Falls back to its head and tail if the store is
 * elsewhere.
 */
async function fullAnswer(context: CliContext, outcome: Outcome): Promise<string | null> {
  const { answer, blob } = outcome;
  if (blob === undefined) return answer;
  try {
    return await (await context.stores()).blobs.get(blob);
  } catch (error) {
    context.note(
      `The answer is truncated: ${error instanceof Error ? error.message : String(error)}`,
    );
    return answer;
  }
}

/** The first lines about a run: its id with its page in the Temporal UI, and then its model and its version. */
export interface RunHeader {
  /** Shows the first line at once, and the others as soon as they are known. */
  show(view: Projection | null, screen: Screen): Promise<void>;
}

/**
 * Creates the header of a run, which remembers what it has shown. Whether the version of the agent is that of the
 * configuration is said only of a new run: the file may have changed since a joined one began.
 */
export async function runHeader(
  context: CliContext,
  { id, joined }: { readonly id: string; readonly joined: object | null },
  paint: Palette,
): Promise<RunHeader> {
  const server = await context.server();
  let isVersionKnown = joined !== null;
  let shown = false;
  let named = false;
  return {
    async show(view, screen) {
      const model = modelText(view);
      if (!shown) screen.line(runLine(server, id, paint));
      if (!named && model !== null) screen.line(model);
      shown = true;
      named ||= model !== null;
      if (view !== null) isVersionKnown ||= await noteOtherVersion(context, view, screen);
    },
  };
}

/** Returns the first line about a run. */
function runLine(server: ServerHandle, id: string, paint: Palette): string {
  const link = uiLink(server, id);
  const run = paint.bold(`run ${visible(id)}`);
  return link === null ? run : `${run} · ${paint.dim(link)}`;
}

/**
 * Returns the model as text; null until the definition is loaded, which takes longer with tools of
 * MCP servers, and for an agent that calls no model. The demo model must never be mistaken for an LLM.
 */
export function modelText(view: Projection | null): string | null {
  const model = view?.state?.config.definition.model ?? '';
  if (model === '' || model === NO_MODEL) return null;
  return model === 'demo' ? 'demo model (code, not an LLM)' : `model ${visible(model)}`;
}

/** A run that stays open after the command ends. */
export interface LeftRun {
  readonly id: string;
  readonly runId: string;
  readonly taskQueue: string;
  readonly last: FollowedRun | null;
  /** Whether the worker was in this process; if so, the run makes no progress from now on. */
  readonly wasHosting: boolean;
  /** Why no worker of this configuration can continue the run; null or absent if one can. */
  readonly lack?: string | null;
  /** The words of the command that continues an interrupted one; default: `attach`. */
  readonly again?: readonly string[];
}

/** A run that waits, with the open requests of the runs of called agents below it. */
interface WaitingRun extends LeftRun, Pick<AskingRun, 'by'> {
  readonly below: Below;
}

/**
 * Reports a run that waits: each request with the commands to decide, or how to continue the run.
 */
export async function reportWaiting(context: CliContext, run: WaitingRun): Promise<ExitCode> {
  const { id, last, below } = run;
  const requests = last === null ? [] : viewedRequests(last.view, id);
  const asking = askingRun(run);
  for (const request of requests) {
    const { lines } = await shownRequest(context, { run: asking, request }, { to: 'stderr' });
    for (const line of lines) {
      context.note(line);
    }
  }
  for (const line of belowLines(context, below, 'stderr')) context.note(line);
  context.note(`The run is still open and waiting. ${await continueText(context, run)}`);
  const [kind] = [...requests, ...below.requests].map((request) => request.kind);
  const [blocked] = below.blocked;
  const status = kind !== undefined ? { status: 'waiting_decision', reason: kind } : null;
  writeJson(context, run, status ?? (blocked ? { status: 'blocked', reason: blocked.reason } : {}));
  const isBlocked = blocked !== undefined || (last !== null && last.view.blocked.size > 0);
  return status === null && isBlocked ? EXIT.blocked : EXIT.waiting;
}

function askingRun({ id, taskQueue, last, by }: WaitingRun): AskingRun {
  return { id, taskQueue, view: last?.view ?? { state: null }, by };
}

async function continueText(context: CliContext, run: WaitingRun): Promise<string> {
  const { id, last, wasHosting, below } = run;
  const requests = last === null ? [] : viewedRequests(last.view, id);
  const isAsking = below.requests.length > 0 || requests.length > 0;
  const halted = await haltedText(context, run, { isAsking });
  if (halted !== null) return halted;
  if (isAsking && !wasHosting)
    return 'A worker of its task queue continues the run after the decision.';
  if (isAsking) {
    const worker = await nextCommandFor(context, run, ['worker']);
    const asking = askingRun(run);
    const mayDecide =
      below.requests.length > 0 ||
      requests.some((one) => ownStanding(asking, one, run.by).name === 'own');
    const who = mayDecide ? 'You can decide now' : 'A person who may decide can do so now';
    return `The worker ran in this process. ${who}; the run continues when a worker runs: ${worker}`;
  }
  const [blocked] = below.blocked;
  if (blocked !== undefined) {
    const words = wasHosting ? ['attach', id] : ['resume', blocked.run];
    return `After a fix, run: ${await nextCommandFor(context, run, words)}`;
  }
  return `It is paused. Resume it with: ${await nextCommandFor(context, run, ['resume', id])}`;
}

/**
 * Returns what releases a run that is paused or blocked; null for any other run. No worker continues
 * a paused run, also not after a decision. `isAsking`: whether a request of it is open.
 */
export async function haltedText(
  context: CliContext,
  { id, taskQueue, last, wasHosting }: Omit<LeftRun, 'runId'>,
  { isAsking }: { readonly isAsking: boolean },
): Promise<string | null> {
  if (last === null) return null;
  const isBlocked = last.view.blocked.size > 0;
  const command = (word: string) => nextCommandFor(context, { taskQueue }, [word, id]);
  if (last.view.state?.paused === true) {
    const resume = await command('resume');
    if (isAsking) return `It is paused. After the decision, resume it with: ${resume}`;
    return `It is paused. ${isBlocked ? 'After a fix, resume' : 'Resume'} it with: ${resume}`;
  }
  // A worker of this process retries at once.
  if (!isBlocked || isAsking) return null;
  return `After a fix, run: ${await command(wasHosting ? 'attach' : 'resume')}`;
}

/** Reports how to continue an open run whose turn has ended. */
export async function reportOpen(context: CliContext, run: LeftRun): Promise<void> {
  const { id, last, wasHosting } = run;
  const next = last && nextTarget(last.view);
  if (next === null) {
    for (const line of await openLines(context, run)) context.note(line);
    return;
  }
  const follow = await nextCommandFor(context, run, ['attach', id]);
  const what = next === 'end' ? 'is ending' : `continues with turn ${next.turn}`;
  const noWorker = wasHosting
    ? ' once a worker runs again; the one of this process has stopped'
    : '';
  context.note(`The run ${what}${noWorker}. Follow it with: ${follow}`);
}

/** Returns the commands that send a message to an open run and that end it. */
export async function openLines(
  context: CliContext,
  run: Pick<LeftRun, 'id' | 'taskQueue'>,
): Promise<readonly string[]> {
  const send = await nextCommandFor(context, run, ['send', run.id, 'MESSAGE']);
  const close = await nextCommandFor(context, run, ['close', run.id]);
  return [`Send it the next message with: ${send}`, `End it with: ${close}`];
}

/** Reports a run that this command has started and does not follow. */
export async function reportStarted(
  context: CliContext,
  { taskQueue }: { readonly taskQueue: string },
  { id, runId }: { readonly id: string; readonly runId: string },
): Promise<ExitCode> {
  context.note(runLine(await context.server(), id, palette(context.color)));
  context.note(`Follow it with: ${await nextCommandFor(context, { taskQueue }, ['attach', id])}`);
  const line = { id, runId, status: 'working', reason: null };
  context.out(context.options.json ? JSON.stringify(line) : id);
  return EXIT.completed;
}

/** Reports that the command was interrupted, which does not end the run. */
export async function reportInterrupted(context: CliContext, run: LeftRun): Promise<ExitCode> {
  context.note(`Interrupted: run ${visible(run.id)} ${await interruptedText(context, run)}`);
  writeJson(context, run, { reason: 'interrupted' });
  return EXIT.interrupted;
}

/** Returns what an interrupted run does now, and how to go on. */
async function interruptedText(context: CliContext, run: LeftRun): Promise<string> {
  const { id, last, wasHosting, lack } = run;
  const next = await nextCommandFor(context, run, run.again ?? ['attach', id]);
  const requests = last === null ? [] : viewedRequests(last.view, id);
  const isAsking = last !== null && requests.length > 0 && isIdle(last.view);
  const halted = await haltedText(context, run, { isAsking });
  if (isAsking) {
    const show = await nextCommandFor(context, run, ['inbox', id]);
    const then = wasHosting
      ? 'It then needs a worker'
      : 'It then continues where a worker serves its task queue';
    const after = halted ?? `${then}. Follow it with: ${next}`;
    return `waits for ${formatCount(requests.length, 'decision')}; show ${requests.length === 1 ? 'it' : 'them'} with: ${show}\n${after}`;
  }
  if (halted !== null) return `is still open. ${halted}`;
  if (lack) return `is still open. ${lack}.`;
  return wasHosting
    ? `makes no progress without a worker; nothing is lost. Continue with: ${next}`
    : `continues where a worker serves its task queue. Follow it with: ${next}`;
}

/** Writes the `--json` line: the run's own status and reason, unless others are given. */
function writeJson(
  context: CliContext,
  run: LeftRun,
  given: { readonly status?: string; readonly reason?: string },
): void {
  if (!context.options.json) return;
  const { id, runId, last } = run;
  const own = last === null ? null : viewedStatus(last.view, id);
  const status = own?.status ?? 'working';
  const hasReason = status === 'blocked' || status === 'waiting_decision';
  // While a run works, its reason is that of its last turn.
  const reason = hasReason ? (own?.reason ?? null) : null;
  const line = { status, reason: reason ?? given.reason ?? null };
  context.out(JSON.stringify({ id, runId, ...line, ...(given.status !== undefined && given) }));
}
