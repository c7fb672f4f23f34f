import { isOutcome } from '../../core/guards/recorded.js';
import { isAwaited } from '../../core/interpret/interpret.js';
import { INLINE } from '../../core/interpret/inline-calls.js';
import {
  apply,
  closeFailedTurn,
  isAtOnce,
  nextActionAt,
  record,
  toEvents,
} from '../../core/interpret/loop.js';
import type { SegmentFacts } from '../../core/run/carry.js';
import type { Fact, Task } from '../../core/run/events.js';
import { NEVER_FULL } from '../../core/run/next-action.js';
import { firstState } from '../../core/segments/start.js';
import { type RunState, SEMANTICS_PATCH } from '../../core/state/state.js';
import { inTurn, openCallById } from '../../core/state/turn.js';
import { type JsonObject, isObject } from '../../core/text/json.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import type { HistoryEvent, UpdateRequest } from '../history-event.js';
import { noteRetried } from './attempts.js';
import {
  type EventOf,
  type ReadRun,
  asRun,
  copyRun,
  emptyRun,
  endRun,
  noteAttempt,
  noteBlocks,
  readBegun,
  remember,
} from './run-view.js';
import { beginWait, endWait, noteVisit } from './visits.js';

/** Local activities. The history has only their results. */
const LOCAL_TASKS: readonly Task[] = [{ activity: 'loadAgent', input: { local: true } }, INLINE];

/**
 * Returns the fact that an event of the history records; null if it records none. `at`: the
 * workflow's clock.
 */
function toFact(run: ReadRun, event: HistoryEvent, at: number): Fact | null {
  switch (event.type) {
    case 'cancel-requested':
      return { type: 'cancel-requested', at };
    case 'update': {
      const { request, updateId: id } = event;
      return request && { type: 'update', ...request, id, at };
    }
    case 'signal':
      return { type: 'signal', name: event.name, input: event.input, at };
    case 'local': {
      const task = LOCAL_TASKS.find(({ activity }) => activity === event.activity);
      if (task === undefined) return null;
      const { failure, result } = event;
      if (failure !== undefined) return { type: 'failed', task, failure, at };
      return { type: 'completed', task, result, at };
    }
    case 'scheduled':
      return { type: 'scheduled', task: { activity: event.activity, input: event.input }, at };
    case 'completed': {
      const task = run.inFlight.get(event.scheduled);
      return task ? { type: 'completed', task, result: event.result, at } : null;
    }
    case 'failed': {
      const task = run.inFlight.get(event.scheduled);
      return task ? { type: 'failed', task, failure: event.failure, at } : null;
    }
    case 'cancelled': {
      const task = run.inFlight.get(event.scheduled);
      return task ? { type: 'cancelled', task, details: event.details, at } : null;
    }
    case 'activity-cancel-requested': {
      const task = run.inFlight.get(event.scheduled);
      return task && !isAwaited(task.activity) ? { type: 'cancelled', task, at } : null;
    }
    case 'child-started':
      return { type: 'scheduled', task: { activity: 'agent', input: childInput(event) }, at };
    case 'child-existed':
      return { type: 'child-existed', call: event.call, at };
    case 'child-ended': {
      const { call, message, result } = event;
      const outcome = isOutcome(result) ? result : null;
      return { type: 'child-ended', call, outcome, message, at };
    }
    default:
      return null;
  }
}

function childInput({
  call,
  child,
}: {
  readonly call: string;
  readonly child: string;
}): JsonObject {
  return { call, run: child };
}

/** A workflow task, as far as the run depends on it. */
interface WorkflowTask {
  /** The workflow's clock in it: Unix time in ms. */
  readonly at: number;
  readonly segment: SegmentFacts;
}

/**
 * Follows a run through the events of its history, in the order in which the workflow learns of
 * them.
 *
 * The workflow learns of new events at the beginning of a workflow task, and the history shows the
 * results only after the task: first the accepted updates, then the commands. Events therefore wait
 * in `queue` until the first command, or the next event, shows that the task is complete. They are
 * then interpreted in the workflow's order: signals, updates, a cancellation, and the rest in the
 * order of the history. After that, the loop performs its next actions.
 */
export interface HistoryReader {
  readonly run: ReadRun;
  /** Events that no completed workflow task has processed. */
  queue: HistoryEvent[];
  /** The workflow task is complete, and its updates are being collected. */
  isDue: boolean;
  task: WorkflowTask;
  /** Whether the workflow has adopted `SEMANTICS` for what it receives from now on. */
  isPatched: boolean;
  /** The requests of updates that the server sent again after a reset, by update id. */
  readonly admitted: Map<string, UpdateRequest>;
  /** The first event. */
  started: EventOf<'started'> | null;
}

export function createReader(onChange?: ReadRun['onChange']): HistoryReader {
  return {
    run: emptyRun(onChange),
    queue: [],
    isDue: false,
    task: { at: 0, segment: NEVER_FULL },
    isPatched: false,
    admitted: new Map(),
    started: null,
  };
}

/** Returns a copy that can be changed independently. */
export function copyReader(reader: HistoryReader): HistoryReader {
  return {
    ...reader,
    run: copyRun(reader.run),
    queue: [...reader.queue],
    admitted: new Map(reader.admitted),
  };
}

/** Takes the next event. */
export function readEvent(reader: HistoryReader, event: HistoryEvent): void {
  const { run } = reader;
  run.startedAt ??= event.at;
  switch (event.type) {
    case 'started':
      reader.started = event;
      return begin(run, event);
    case 'update':
      // A further update of an already processed task came after everything else in it.
      reader.queue.push({
        ...event,
        request: event.request ?? reader.admitted.get(event.updateId) ?? null,
      });
      if (!reader.isDue) processTask(reader, event.id);
      return;
    case 'update-admitted':
      processTaskIfDue(reader, event.id);
      reader.admitted.set(event.updateId, event.request);
      return;
    case 'task-started':
      processTaskIfDue(reader, event.id);
      reader.task = { at: Math.floor(event.at), segment: event.segment };
      return;
    case 'task-completed':
      processTaskIfDue(reader, event.id);
      reader.isDue = true;
      return;
    case 'signal':
    case 'completed':
    case 'failed':
    case 'cancelled':
    case 'child-ended':
    case 'child-existed':
    case 'cancel-requested':
      processTaskIfDue(reader, event.id);
      reader.queue.push(event);
      if (event.type === 'cancel-requested') noteCancel(run, event);
      return;
    case 'timer-fired':
    case 'task-scheduled':
      return processTaskIfDue(reader, event.id);
    case 'attempted':
      return noteAttempt(run, event);
    case 'child-began':
    case 'other':
      return;
    case 'patched':
      // The marker of a task follows the events that the workflow received in it.
      reader.isPatched ||= event.patch === SEMANTICS_PATCH;
      return processTask(reader, event.id);
    default:
      processTask(reader, event.id);
      command(reader, event);
      noteBlocks(run, event.id);
  }
}

function noteCancel(run: ReadRun, { at, by, from }: EventOf<'cancel-requested'>): void {
  const who = by ?? from;
  run.cancelRequested = true;
  run.cancel ??= { at, ...(who !== undefined && { by: who }) };
}

function begin(run: ReadRun, event: EventOf<'started'>): void {
  const read = readBegun(event);
  run.input = read?.input ?? null;
  const state = read?.before?.state;
  if (state === undefined) return;
  run.state = state;
  run.messages.push(...state.transcript.messages);
  run.messages.sort((one, other) => one.n - other.n);
}

/** Applies a command of the workflow, which shows its actions in the task. */
function command(reader: HistoryReader, event: HistoryEvent): void {
  const { run, task } = reader;
  switch (event.type) {
    case 'local':
      // A local activity takes time within its task.
      reader.task = { ...task, at: Math.max(task.at, event.completedAt) };
      interpretEvent(reader, event);
      return advance(reader);
    case 'scheduled':
    case 'child-started':
      interpretEvent(reader, event);
      return begun(run, event);
    case 'activity-cancel-requested':
      interpretEvent(reader, event);
      removeEnded(run, event);
      return advance(reader);
    case 'memo':
      return memoChanged(reader, event);
    case 'ended':
      return endRun(run, event);
    default:
  }
}

function processTaskIfDue(reader: HistoryReader, event: number): void {
  if (reader.isDue) processTask(reader, event);
}

/** Interprets the events before the workflow task and performs the resulting actions. */
export function processTask(reader: HistoryReader, event: number): void {
  const { run } = reader;
  reader.isDue = false;
  endWait(run, reader.task.at);
  interpretQueue(reader);
  advance(reader);
  noteBlocks(run, event);
  beginWait(run, reader.task.at);
}

/** Event types that the workflow processes first in a task; the rest follow in order. */
const FIRST: readonly HistoryEvent['type'][] = ['signal', 'update', 'cancel-requested'];

/** Interprets the queue in the workflow's order. */
export function interpretQueue(reader: HistoryReader): void {
  const queue = reader.queue.splice(0);
  const first = FIRST.flatMap((type) => queue.filter((event) => event.type === type));
  const rest = queue.filter(({ type }) => !FIRST.includes(type));
  for (const event of [...first, ...rest]) {
    interpretEvent(reader, event);
    removeEnded(reader.run, event);
  }
}

function interpretEvent(reader: HistoryReader, event: HistoryEvent): void {
  const state = currentState(reader);
  const fact = toFact(reader.run, event, reader.task.at);
  if (state === null || fact === null) return;
  noteVisit(reader.run, event, state);
  noteRetried(reader.run, event);
  const isMarked = reader.isPatched && (fact.type === 'update' || fact.type === 'signal');
  record(asRun(reader.run, state), isMarked ? { ...fact, patched: true } : fact);
}

/** Performs instant actions, as the loop does. */
function advance(reader: HistoryReader): void {
  const { task, run } = reader;
  const state = currentState(reader);
  if (state === null || run.ended !== null) return;
  const followed = asRun(run, state);
  for (;;) {
    const action = nextActionAt(followed, task.segment, task.at);
    if (!isAtOnce(action)) return;
    for (const event of toEvents(action, task.at)) apply(followed, event);
  }
}

/** Returns the run's state, which begins with its first workflow task; null before that. */
function currentState({ run, task, started }: HistoryReader): RunState | null {
  if (run.state !== undefined) return run.state;
  if (run.input === null || started === null) return null;
  const state = firstState({
    input: run.input,
    at: task.at,
    root: started.root,
    firstRunId: started.firstRunId,
  });
  run.state = state;
  return state;
}

function begun(run: ReadRun, event: EventOf<'scheduled'> | EventOf<'child-started'>): void {
  const { id, at } = event;
  endWait(run, at);
  if (event.type === 'child-started') {
    const call = (run.state && openCallById(run.state, event.call)) ?? null;
    const child = { activity: 'agent', activityId: '', summary: event.child, call, at };
    run.inFlight.set(id, { ...child, input: { call: event.call, run: event.child } });
    return;
  }
  const { activity, activityId, summary } = event;
  const input = isObject(event.input) ? event.input : {};
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own workflow
  const call = isObject(input['call']) ? (input['call'] as unknown as ToolCall) : null;
  run.inFlight.set(id, { activity, activityId, summary, call, input, at });
}

function removeEnded(run: ReadRun, event: HistoryEvent): void {
  switch (event.type) {
    case 'completed':
    case 'failed':
    case 'cancelled':
      run.inFlight.delete(event.scheduled);
      return;
    case 'activity-cancel-requested':
      if (!isAwaited(run.inFlight.get(event.scheduled)?.activity ?? '')) {
        run.inFlight.delete(event.scheduled);
      }
      return;
    case 'child-ended':
    case 'child-existed':
      for (const [id, { activity, input }] of run.inFlight) {
        if (activity === 'agent' && input['call'] === event.call) run.inFlight.delete(id);
      }
      return;
    default:
  }
}

/**
 * Applies a changed memo, which records the end of each turn. A turn that ended because of a fault
 * of the engine, which the history does not show, also ends here.
 */
function memoChanged(reader: HistoryReader, { fields }: EventOf<'memo'>): void {
  const { run, task } = reader;
  const { state } = run;
  if (state === undefined) return;
  const followed = asRun(run, state);
  if (fields['kept'] === state.segments) record(followed, { type: 'segment-kept', at: task.at });
  if (fields['turn'] === state.turn.number && inTurn(state)) {
    const message = 'the run ended this turn; its history does not show why';
    run.state = closeFailedTurn(state, { message, at: task.at });
    remember(run, { type: 'turn-interrupted', by: 'cancelTurn', at: task.at }, state);
  }
  advance(reader);
}
