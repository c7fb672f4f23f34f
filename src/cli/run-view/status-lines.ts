import { inOneLine } from '../../core/requests/presentation.js';
import type { ReadStatus } from '../../client/below.js';
import { startOf } from '../../client/run-row.js';
import type { RecordedDecision } from '../../core/state/state.js';
import type { Undoable } from '../../core/state/undo.js';
import type { RunReading } from '../../history/read-run.js';
import { waitingFor } from '../../history/projection.js';
import { isOpenStatus, statusName, type RunStatus } from '../../core/state/status.js';
import { isChecking, shownReason, statusText, withReason } from '../../core/state/status-text.js';
import { listInLine, visible, visibleMessage, actorText } from '../../core/state/summaries.js';
import { stepOfLimit } from '../../core/state/turn-definition.js';
import { headOf, printable, withoutTail } from '../../core/text/text.js';
import { runMs, startOfRun } from '../../history/run-time.js';
import { NO_MODEL } from '../../core/definition/definition.js';
import { modelText } from '../reports/report-run.js';
import { leftLines } from './step-lines.js';
import {
  type Palette,
  columns,
  entries,
  formatAgo,
  formatDateTime,
  formatTime,
  formatSpan,
  formatCount,
  formatDuration,
  formatUsage,
  wrapped,
} from '../format/format.js';

const ANSWER_CHARACTERS = 1_200;

/** The columns of the names of the entries, with the gap after them. */
const NAME_COLUMNS = 10;

interface StatusView {
  readonly run: RunReading;
  readonly status: ReadStatus;
  /** The workers of the task queue, as text. */
  readonly worker: string;
  /** The page of the run in the Temporal UI. */
  readonly link: string | null;
  /** The limit that stopped the newest turn; null if none did. */
  readonly limit: string | null;
  /** The commands that a person can run now. */
  readonly next: readonly string[];
  /** Unix time in ms. */
  readonly now: number;
  /** The width of a line in columns. */
  readonly width: number;
}

/** Formats the status of a run as a table. */
export function statusLines(view: StatusView, paint: Palette): readonly string[] {
  const { run, status, worker, link, limit, next } = view;
  const isOpen = isOpenStatus(status.status);
  return entries(
    [
      { name: 'run', lines: [paint.bold(printable(status.id)), ...optional(link)] },
      {
        name: 'id',
        lines: optional(status.givenId === undefined ? null : visible(status.givenId)),
      },
      { name: 'agent', lines: [agentLine(run, status)] },
      {
        name: 'tenant',
        lines: optional(
          status.tenant === undefined ? null : visible(status.givenTenant ?? status.tenant),
        ),
      },
      { name: 'forked', lines: forkLines(status) },
      { name: 'without', lines: leftLines(status) },
      { name: 'status', lines: [statusWord(status, paint), ...messageLines(status)] },
      { name: 'doing', lines: optional(status.doing) },
      { name: 'waits', lines: waitLines(view) },
      { name: 'step', lines: [stepLine(run, status)] },
      { name: 'limit', lines: optional(limit) },
      { name: 'queued', lines: optional(queueLine(status)) },
      { name: 'spent', lines: [formatUsage(status.usage)] },
      { name: 'started', lines: [timeLine(view)] },
      {
        name: 'worker',
        lines: isOpen ? [`${worker} (task queue ${printable(run.taskQueue)})`] : [],
      },
      { name: 'canceled', lines: cancelLines(status) },
      { name: 'refused', lines: refusedLines(status) },
      { name: 'decided', lines: decidedLines(status, view.width - NAME_COLUMNS) },
      { name: 'grants', lines: grantLines(status) },
      { name: 'undo', lines: undoLines(view) },
      { name: 'failures', lines: reportLines(status) },
      { name: 'answer', lines: answerLines(status) },
      { name: 'next', lines: next },
    ],
    paint,
  );
}

function optional(line: string | null): readonly string[] {
  return line === null ? [] : [line];
}

function agentLine({ view }: RunReading, { agent }: RunStatus): string {
  const model = modelText(view);
  const name = agent === '' ? 'not named in the input' : visible(agent);
  if (model !== null) return `${name}, ${model}`;
  if (view.state?.config.definition.model === NO_MODEL) return name;
  const why = view.ended === null ? 'no worker has' : 'the run ended before a worker had';
  return `${name} (${why} loaded it${view.ended === null ? ' yet' : ''})`;
}

function forkLines({ forkedFrom }: RunStatus): readonly string[] {
  if (forkedFrom === undefined) return [];
  const { run, at, node, visit = 1 } = forkedFrom;
  const place = node === undefined ? '' : ` at visit ${visit} of node ${printable(node)}`;
  return [`from ${printable(run)}${place}, with its messages before #${at}`];
}

function statusWord(status: ReadStatus, paint: Palette): string {
  const word = statusName(status);
  const { reason, blockedBelow } = status;
  const checking = isChecking(status);
  const text = withReason(word, shownReason({ status: word, reason, blockedBelow, checking }));
  switch (word) {
    case 'working':
      return paint.cyan(text);
    case 'completed':
      return paint.green(text);
    case 'failed':
      return paint.red(text);
    default:
      return paint.yellow(text);
  }
}

function messageLines({ message }: RunStatus): readonly string[] {
  return message === null ? [] : printable(message).split('\n');
}

function stepLine({ view }: RunReading, reading: RunStatus): string {
  const { step, turn, status, outcome } = reading;
  const place = view.state === null ? `${step}` : stepOfLimit(view.state, step);
  const calls = formatCount(view.state?.turn.spent.toolCalls ?? 0, 'call');
  // A run that has not ended has the outcome of its last turn.
  const over = !isOpenStatus(status) || outcome === null ? '' : ` · ${statusText(outcome)}`;
  return `${place} in turn ${turn} · ${calls}${over}`;
}

function waitLine({ run, now }: StatusView): string | null {
  const waiting = waitingFor(run.view);
  if (waiting?.type === 'message') return 'for a message';
  if (waiting?.type !== 'time') return null;
  return `until ${formatDateTime(waiting.until)}, in ${formatSpan(waiting.until - now)}, or until a message arrives`;
}

/** What a run waits for, and its undos, which wait for a decision while the run waits for a message. */
function waitLines(view: StatusView): readonly string[] {
  const { undoable = [], pending } = view.status;
  const undos = undoable.flatMap(({ call, request }) => {
    if (!pending.some(({ id }) => id === request)) return [];
    return [`the undo of ${visible(call)} waits for request ${visible(request ?? '')}`];
  });
  const { status, paused = false } = view.status;
  const held = paused && status !== 'paused' ? 'until it is resumed, since it is paused' : null;
  return [...optional(waitLine(view)), ...undos, ...optional(held)];
}

function queueLine({ queued }: RunStatus): string | null {
  return queued === 0 ? null : `${formatCount(queued, 'message')} not read yet`;
}

function timeLine({ run, status, now }: StatusView): string {
  const { description } = run;
  const startedAt =
    description === null ? (startOfRun(run.view) ?? 0) : startOf(description).getTime();
  const tookMs = runMs(run.view);
  const started = `${formatDateTime(startedAt)}, ${formatAgo(startedAt, now)}`;
  const segments = status.segments > 1 ? `; in ${formatCount(status.segments, 'segment')}` : '';
  if (tookMs === null) return `${started}${segments}`;
  return `${started}; ended after ${formatDuration(tookMs)}${segments}`;
}

/** Says who has requested the cancel of the run. The message of a run that goes on says it as well. */
function cancelLines({ cancel, status }: RunStatus): readonly string[] {
  if (cancel?.by === undefined || isOpenStatus(status)) return [];
  return columns([[formatTime(cancel.at), `by ${actorText(cancel)}`]]);
}

/** Lists messages that were recorded without a worker and refused by the run later. */
function refusedLines({ refused = [], refusedTotal }: RunStatus): readonly string[] {
  const rows = refused.map(({ id, reason, at }) => [
    formatTime(at),
    id === null ? 'a message without an id' : `message ${visible(id)}`,
    visible(reason),
  ]);
  return newestOf(refusedTotal, rows);
}

/** Formats the newest rows of a list, which says how many older ones it had. */
function newestOf(total = 0, rows: readonly (readonly string[])[]): readonly string[] {
  const older = total - rows.length;
  return [...(older > 0 ? [`the newest ${rows.length}, and ${older} more`] : []), ...columns(rows)];
}

/**
 * Lists people's decisions, each with the reason if the run has refused it. A name that no interface has
 * verified is a claim. `width`: in columns.
 */
export function decidedLines(
  { decisions: recorded = [], decisionsTotal }: Pick<RunStatus, 'decisions' | 'decisionsTotal'>,
  width: number,
): readonly string[] {
  // A decision that a worker checks is recorded later than it was made.
  const decisions = recorded.toSorted((one, other) => one.at - other.at);
  const rows = decisions.map((decision) => [
    formatTime(decision.at),
    visible(decisionText(decision)),
    deciderText(decision),
  ]);
  const lines = newestOf(decisionsTotal, rows);
  const first = lines.length - rows.length;
  return lines.flatMap((line, at) => {
    const refused = decisions[at - first]?.refused;
    if (refused === undefined) return [line];
    return [
      line,
      ...wrapped(`refused: ${visibleMessage(inOneLine(refused))}`, width - REASON.length).map(
        (part) => REASON + part.trimEnd(),
      ),
    ];
  });
}

/** Indents a reason below the decision that it is about, beside the times. */
const REASON = ' '.repeat('00:00:00  '.length);

/** Returns who made a decision. That the time for one is over is the act of no one. */
function deciderText(decision: RecordedDecision): string {
  return decision.as === 'expired'
    ? 'no decision came within its time limit'
    : `by ${actorText(decision)}`;
}

/** Names a decision as the command does, with what it was about. */
function decisionText(decision: RecordedDecision): string {
  const { what, turn, call, grant, limits, request, as, actions = [] } = decision;
  const about = [request ?? call, request !== undefined && call !== undefined ? `(${call})` : ''];
  switch (what) {
    case 'resolve':
      return [as, ...actions, ...about]
        .filter((part) => part !== undefined && part !== '')
        .join(' ');
    case 'cancelTurn':
      return `cancel turn ${turn ?? ''}`.trim();
    case 'setLimits':
      return `limits ${limits ?? ''}`.trim();
    default:
      return [what, call ?? grant].filter((part) => part !== undefined).join(' ');
  }
}

/** Lists approvals that cover later calls. */
function grantLines({ grants = [] }: RunStatus): readonly string[] {
  return columns(
    grants.map(({ id, shown, at, ...who }) => [
      visible(id),
      visible(shown),
      formatTime(at),
      `by ${actorText(who)}`,
    ]),
  );
}

/** Lists calls that can be undone or whose undo was tried, newest last. */
function undoLines({ status: { undoable = [] }, now }: StatusView): readonly string[] {
  return columns(
    undoable.map(({ call, shown, until, state, message, request }) => [
      visible(call),
      visible(shown),
      undoWord(state) ??
        (until > now ? `possible for ${formatSpan(until - now)}` : 'no longer possible'),
      request === undefined
        ? visible(listInLine(message ?? ''))
        : `waits for request ${visible(request)}`,
    ]),
  );
}

function undoWord(state: Undoable['state']): string | undefined {
  return state === 'not_undone' ? 'not undone' : state;
}

/** Lists failed attempts of model calls. What a line above them says is not said again. */
function reportLines({ reports, message: shown }: RunStatus): readonly string[] {
  return columns(
    reports.map(({ at, type, status, attempt, waitMs, requestId, message }, index) => {
      const isSame = index > 0 && reports[index - 1]?.message === message;
      // The message of a failure is cut, that of the status is not.
      const isAbove = shown?.startsWith(withoutTail(message, /…/)) === true;
      return [
        formatTime(at),
        status === undefined || type.includes(String(status)) ? type : `${type} ${status}`,
        `attempt ${attempt}`,
        waitMs === 0 ? '' : `next after ${formatDuration(waitMs)}`,
        visible(requestId ?? ''),
        isAbove || isSame ? '' : visible(message),
      ];
    }),
  );
}

function answerLines({ outcome }: RunStatus): readonly string[] {
  const answer = outcome?.answer ?? null;
  if (answer === null) return [];
  const shown = printable(headOf(answer, ANSWER_CHARACTERS)).split('\n');
  const left = answer.length - ANSWER_CHARACTERS;
  return left > 0 ? [...shown, `… ${left} more characters`] : shown;
}
