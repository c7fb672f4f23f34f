import { isDeepStrictEqual } from 'node:util';
import { toRunStatus } from '../../src/client/status.js';
import { isObject, textField } from '../../src/core/text/json.js';
import type { RunStatus, TranscriptPage } from '../../src/core/state/status.js';
import type { Message } from '../../src/core/transcript/messages.js';
import { nextAction } from '../../src/core/run/next-action.js';
import type { RunState } from '../../src/core/state/state.js';
import { reduce } from '../../src/core/run/reduce.js';
import { parseCarriedState } from '../../src/core/segments/migrations.js';
import { transcriptPage } from '../../src/core/run/status.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import type { History, HistoryEvent } from '../../src/history/history-event.js';
import { createProjector, endOutcome, type Projection } from '../../src/history/projection.js';
import type { RunReading } from '../../src/history/read-run.js';

// The oracle: a reader of a run's history must show whatever the run itself reports.

/** The state of a reader that stops after one workflow task. */
export interface ReaderState {
  readonly view: Projection;
  readonly events: readonly HistoryEvent[];
}

/**
 * The fields of a status that the history determines. `doing` and `reports` also need a
 * description.
 */
const FIELDS = [
  'agent',
  'status',
  'reason',
  'message',
  'turn',
  'step',
  'segments',
  'queued',
  'limits',
  'usage',
  'pending',
  'grants',
  'undoable',
  'outcome',
  'forkedFrom',
  'left',
  'refused',
  'decisions',
] as const satisfies readonly (keyof RunStatus)[];

/**
 * Events that a worker creates by completing a workflow task. They follow the completion directly.
 */
const MADE_BY_TASK: readonly HistoryEvent['type'][] = [
  'scheduled',
  'local',
  'update',
  'memo',
  'child-started',
  'command',
  'activity-cancel-requested',
  // Includes the completion of an update, and others that change nothing.
  'other',
];

/**
 * Returns the state of a reader after the workflow task that started at event `historyLength`: all
 * events before it, and those that the task created. Later events are left out, even if the history
 * has them.
 *
 * The server drops a workflow task in which the run only refused an update, and reuses its ids for
 * other events. The run is not informed, so the newest task in the history counts.
 */
export function readerAt(history: History, historyLength: number): ReaderState {
  return stopAfter((history.events ?? []).map(decodeEvent), historyLength);
}

/**
 * Returns the state of a reader before the task at `historyLength`, if that task may have reused
 * the ids of a dropped one after the run answered. This requires that an update, rather than an
 * event, caused it. Null otherwise.
 */
export function readerBefore(history: History, historyLength: number): ReaderState | null {
  const all = (history.events ?? []).map(decodeEvent);
  const started = all.findIndex(({ id }) => id === historyLength);
  if (all[started]?.type !== 'task-started' || all[started + 2]?.type !== 'update') return null;
  const before = stopAfter(all, historyLength - 1);
  return before.events.length === started - 1 ? before : null;
}

/**
 * Returns the state of a reader before the end of a run that was terminated or timed out at event
 * `historyLength`. A run that is queried after such an end is replayed up to the end, including
 * events that no complete task has processed. Null for another event.
 */
export function readerBeforeEnd(history: History, historyLength: number): ReaderState | null {
  const all = (history.events ?? []).map(decodeEvent);
  const end = all.findIndex(({ id }) => id === historyLength);
  const ended = all[end];
  if (ended?.type !== 'ended' || isMadeByTask(ended)) return null;
  return readerOf(all.slice(0, end));
}

/**
 * Returns how many events a history has up to its last complete workflow task, including those that
 * the task created.
 */
export function endOfLastTask(history: History): number {
  return readerAt(history, Number.MAX_SAFE_INTEGER).events.length;
}

function stopAfter(all: readonly HistoryEvent[], historyLength: number): ReaderState {
  const started = all.findLastIndex(
    (event, index) =>
      event.type === 'task-started' &&
      event.id <= historyLength &&
      all[index + 1]?.type === 'task-completed',
  );
  const behind = all.findIndex((event, index) => index > started + 1 && !isMadeByTask(event));
  return readerOf(started < 0 ? [] : all.slice(0, behind < 0 ? all.length : behind));
}

function readerOf(events: readonly HistoryEvent[]): ReaderState {
  const projector = createProjector();
  for (const event of events) projector.push(event);
  // All of these events are processed, so the reader may also show those that it holds back.
  return { view: projector.view(), events };
}

function isMadeByTask(event: HistoryEvent): boolean {
  if (event.type === 'ended') return event.how !== 'terminated' && event.how !== 'timed_out';
  return MADE_BY_TASK.includes(event.type);
}

/** Returns the differences between a reader and the run: one line for each field. */
export function compare(
  status: RunStatus,
  page: TranscriptPage,
  reader: ReaderState,
): readonly string[] {
  const read = statusOfReader(status, reader);
  const { state, messages } = reader.view;
  const own = state === null ? [] : heldMessages(state);
  return [
    ...FIELDS.flatMap((field) => linesOf(field, status[field], read[field])),
    ...linesOf('total', page.total, state?.transcript.next ?? 0),
    ...linesOf('in memory', numbersOf(page.messages), numbersOf(own)),
    ...messageLines(page.messages, messages),
  ];
}

/** The messages that a state holds in memory, from all pages. */
function heldMessages({ transcript }: RunState): readonly Message[] {
  const held: Message[] = [];
  for (;;) {
    const from = (held.at(-1)?.n ?? -1) + 1;
    const { messages } = transcriptPage(transcript, { from, side: true });
    if (messages.length === 0) return held;
    held.push(...messages);
  }
}

/** Returns why the state that a segment passes on cannot be read; null if it can, or if there is none. */
export function carriedProblem(history: History): string | null {
  const { end } = stopBeforeEnd(history);
  if (end?.type !== 'ended' || end.how !== 'continued') return null;
  const read = parseCarriedState(end.carried);
  return 'problem' in read ? read.problem : null;
}

/**
 * Returns the differences between the state that a segment passes to the next one and the state of
 * a reader that stops before the end of the segment. Empty if the segment does not end that way.
 */
export function carriedDifferences(history: History): readonly string[] {
  const { end, state } = stopBeforeEnd(history);
  if (end?.type !== 'ended' || end.how !== 'continued') return [];
  const read = parseCarriedState(end.carried);
  if ('problem' in read) return [];
  if (state === null) return ['the reader has no state at the end of the segment'];
  const { transcript: run, ...carried } = read.carried.state;
  const { firstRunId, ...known } = state;
  // Form 1 did not name the run.
  const isNamed = read.carried.state.firstRunId !== undefined && firstRunId !== undefined;
  const begun = reduce({ ...known, ...(isNamed && { firstRunId }) }, { type: 'segment-begun' });
  const { transcript: reader, ...reached } = begun;
  return [
    ...linesOf('carried', carried, reached),
    ...linesOf('carried.transcript', { ...run, messages: 0 }, { ...reader, messages: 0 }),
    ...linesOf('in memory', numbersOf(run.messages), numbersOf(reader.messages)),
    ...messageLines(run.messages, reader.messages),
  ];
}

/**
 * Returns how the recorded outcome of a run differs from the one expected by a reader that stops
 * before the run's end. Empty if the history does not end with an outcome of the run's own.
 */
export function endDifferences(history: History): readonly string[] {
  const { end, state } = stopBeforeEnd(history);
  const recorded = end?.type === 'ended' ? endOutcome(end) : null;
  if (recorded === null || recorded.reason === 'input') return [];
  const action = state && nextAction(state);
  if (action?.type !== 'finish') return [`next action: expected "finish", got ${show(action)}`];
  return linesOf('outcome', recorded, action.outcome);
}

function stopBeforeEnd({ events = [] }: History): {
  readonly end: HistoryEvent | undefined;
  readonly state: Projection['state'];
} {
  const all = (events ?? []).map(decodeEvent);
  const projector = createProjector();
  for (const event of all.slice(0, -1)) projector.push(event);
  return { end: all.at(-1), state: projector.view().state };
}

/**
 * Returns the status that a reader shows, without the parts that only the server's description
 * provides.
 */
export function statusOfReader(
  { id, runId }: Pick<RunStatus, 'id' | 'runId'>,
  { view, events }: ReaderState,
): RunStatus {
  const [started] = events;
  const input = started?.type === 'started' && isObject(started.input) ? started.input : {};
  const reading = {
    id,
    runId,
    taskQueue: '',
    agent: textField(input, 'agent'),
    // The server would add its current state. While it has the run open, a reader would not show an end
    // that the run itself has processed.
    description: { status: { name: 'UNKNOWN' }, raw: {} },
    history: {},
    events,
    // People who look at the run before it has processed the cancel are told of it.
    view: { ...view, cancelRequested: false },
    terminatedWhy: '',
  } as unknown as RunReading;
  return toRunStatus(reading, 0);
}

/** Compares the messages that the run has; a reader may know more of them. */
function messageLines(reported: readonly Message[], read: readonly Message[]): readonly string[] {
  const numbers = new Set(numbersOf(reported));
  const known = read.filter(({ n }) => numbers.has(n));
  const byNumber = (messages: readonly Message[]): object =>
    Object.fromEntries(messages.map((message) => [message.n, message]));
  return linesOf('messages', byNumber(reported), byNumber(known));
}

function numbersOf(messages: readonly Message[]): readonly number[] {
  return messages.map(({ n }) => n);
}

interface Difference {
  /** Names of fields and places in lists, with dots. */
  readonly path: string;
  readonly run: unknown;
  readonly reader: unknown;
}

/** How far the SDK's clock may be from the time in the marker of a local activity. */
const CLOCK_MS = 5_000;

/**
 * Returns whether only the clock after a local activity differs. On a busy worker, it may be ahead
 * of the marker, which is all that a reader, and a replay, can know.
 */
function isClockOfLocalActivity({ path, run, reader }: Difference): boolean {
  const isTime = /(?:\.at|\.startedAt)$/.test(path);
  return isTime && Math.abs(Number(run) - Number(reader)) < CLOCK_MS;
}

/** Describes the differences of two values in JSON form: the first one of each field. */
function linesOf(name: string, run: unknown, reader: unknown): readonly string[] {
  const byField = new Map<string, Difference[]>();
  for (const difference of differencesIn(name, plain(run), plain(reader))) {
    if (isClockOfLocalActivity(difference)) continue;
    const field = difference.path.replaceAll(/\.\d+/g, '.*');
    byField.set(field, [...(byField.get(field) ?? []), difference]);
  }
  return [...byField.values()].flatMap(([first, ...rest]) => {
    if (first === undefined) return [];
    const more = rest.length > 0 ? ` (and ${rest.length} more)` : '';
    return `${first.path}: the run has ${show(first.run)}, the reader ${show(first.reader)}${more}`;
  });
}

function differencesIn(path: string, run: unknown, reader: unknown): readonly Difference[] {
  if (isDeepStrictEqual(run, reader)) return [];
  const areLists = Array.isArray(run) && Array.isArray(reader);
  if (!areLists && !(isObject(run) && isObject(reader))) return [{ path, run, reader }];
  const [mine, other] = [new Map(Object.entries(run)), new Map(Object.entries(reader))];
  return [...new Set([...mine.keys(), ...other.keys()])].flatMap((key) =>
    differencesIn(`${path}.${key}`, mine.get(key), other.get(key)),
  );
}

/** Returns a value in JSON form, as query results are. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 500 ? `${text.slice(0, 500)}…` : text;
}
