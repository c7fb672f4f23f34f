import type { CancelRequest } from '../../core/state/status.js';
import type { AgentDefinition, Limits, ModelSettings } from '../../core/definition/definition.js';
import { isOutcome } from '../../core/guards/recorded.js';
import type { RunInput } from '../../core/input/input.js';
import type { Run } from '../../core/interpret/loop.js';
import { isLoaded } from '../../core/rules/limits.js';
import { replyUsage } from '../../core/rules/spending.js';
import type { RunEvent } from '../../core/run/events.js';
import {
  type CarriedState,
  NewerStateError,
  STATE_VERSION,
  newerSchema,
} from '../../core/segments/migrations.js';
import { type Begun, readCarriedState, readStart } from '../../core/segments/start.js';
import { runCancelled } from '../../core/state/change.js';
import {
  type FinishedTurn,
  DECIDED_PROBE_PATCH,
  NO_ACTIVITIES_PATCH,
  type RecordedDecision,
  type RunState,
  SEMANTICS_PATCH,
} from '../../core/state/state.js';
import { currentDefinition } from '../../core/state/turn-definition.js';
import { getOutcome } from '../../core/state/turn.js';
import { WORK, blocks } from '../../core/state/work.js';
import type { Message } from '../../core/transcript/messages.js';
import type { Blocked, Outcome, Usage } from '../../core/transcript/outcome.js';
import type { HistoryEvent } from '../history-event.js';
import { type Noted, moveRetried } from './attempts.js';
import type { Worked } from './visits.js';

/** Why work is blocked, and since which event of the history. */
export interface BlockedSince extends Blocked {
  readonly since: number;
}

export type EventOf<T extends HistoryEvent['type']> = Extract<HistoryEvent, { type: T }>;

export type EndedEvent = EventOf<'ended'>;

/**
 * A turn that has ended, with the definition that the run had pinned then. `at`: Unix time in ms.
 */
export interface EndedTurnOf extends FinishedTurn {
  readonly definition: AgentDefinition;
  /** Those of the agent, with those of the turn's prompt and messages. */
  readonly settings: ModelSettings;
  readonly at: number;
}

/** A decision of a person, and the limits that apply after it. */
export interface DecisionView {
  readonly decision: RecordedDecision;
  readonly limits: Limits;
}

/** The mutable data that a reader of a history keeps in addition to the run's state. */
interface Remembered extends Noted {
  input: RunInput | null;
  /** All messages in the events, by number. The run's state drops those that were summarized. */
  readonly messages: Message[];
  /** The usage of each model call, by the number of the message that it produced. */
  readonly usageByMessage: Map<number, Usage>;
  /** The decisions of people in this segment, with the limits of the run after each. */
  readonly decisions: DecisionView[];
  /** Turns that have ended in this segment. */
  readonly turns: EndedTurnOf[];
  /** How long the run had waited for people before each message, by its number, in ms. */
  readonly waitedByMessage: Map<number, number>;
  /** The reason for each block, and the event since which it applies, by the name of the work. */
  readonly blockedSince: Map<string, { readonly reason: string; readonly since: number }>;
  ended: EndedEvent | null;
  /** The run's own outcome, once it has ended. */
  outcome: Outcome | null;
  cancelRequested: boolean;
  /** The first request to cancel the run; absent until then. */
  cancel?: CancelRequest;
  startedAt: number | null;
}

/** The states before and after an event of the run. */
export interface States {
  readonly before: RunState;
  readonly after: RunState;
}

/** An event of the run that was applied. */
export interface Change extends States {
  readonly event: RunEvent;
}

/** The run that a reader follows. `state` is undefined until a worker has begun the run. */
export interface ReadRun extends Remembered, Worked {
  state: RunState | undefined;
  /** Called after each event of the run. */
  readonly onChange: ((change: Change) => void) | undefined;
}

export function emptyRun(onChange: ReadRun['onChange']): ReadRun {
  return {
    state: undefined,
    onChange,
    input: null,
    messages: [],
    usageByMessage: new Map(),
    retriedByMessage: new Map(),
    retriedWork: new Map(),
    decisions: [],
    turns: [],
    inFlight: new Map(),
    visits: new Map(),
    waitedByMessage: new Map(),
    waitedMs: 0,
    waitsSince: null,
    blockedSince: new Map(),
    ended: null,
    outcome: null,
    cancelRequested: false,
    startedAt: null,
  };
}

/** Returns a copy that can be changed independently, without a listener. */
export function copyRun(run: ReadRun): ReadRun {
  return {
    ...run,
    onChange: undefined,
    messages: [...run.messages],
    usageByMessage: new Map(run.usageByMessage),
    retriedByMessage: new Map(run.retriedByMessage),
    retriedWork: new Map(run.retriedWork),
    decisions: [...run.decisions],
    turns: [...run.turns],
    inFlight: new Map(run.inFlight),
    visits: new Map(run.visits),
    waitedByMessage: new Map(run.waitedByMessage),
    blockedSince: new Map(run.blockedSince),
  };
}

/**
 * Returns the run in the form of the loop, which records messages, costs, and turns as they occur.
 */
export function asRun(run: ReadRun, state: RunState): Run {
  return {
    get state() {
      return run.state ?? state;
    },
    set state(next) {
      run.state = next;
    },
    applied: (event, before) => remember(run, event, before),
  };
}

/** Returns the messages that an event of the run has added, in order. */
export function freshMessages({ before, after }: States): readonly Message[] {
  const { next } = before.transcript;
  if (after.transcript.next === next) return [];
  const { messages, pruned = [] } = after.transcript;
  return [...messages, ...pruned]
    .filter(({ n }) => n >= next)
    .toSorted((one, other) => one.n - other.n);
}

/** Records what an event of the run has changed. */
export function remember(run: ReadRun, event: RunEvent, before: RunState): void {
  const { state } = run;
  if (state === undefined) return;
  run.onChange?.({ event, before, after: state });
  if (event.type === 'decision-recorded') {
    run.decisions.push({ decision: event.decision, limits: state.config.limits });
  }
  if (event.type === 'turn-recorded' && before.turn.phase.type === 'over') {
    const { definition } = before.config;
    const { outcome } = before.turn.phase;
    const { settings } = currentDefinition(before);
    run.turns.push({ turn: before.turn.number, outcome, definition, settings, at: event.at });
    run.retriedWork.clear();
  }
  if (state.transcript.messages !== before.transcript.messages) noteRefused(run, state);
  const fresh = freshMessages({ before, after: state });
  run.messages.push(...fresh);
  for (const message of fresh) {
    if (run.waitedMs > 0) run.waitedByMessage.set(message.n, run.waitedMs);
    if (message.role === 'tool') moveRetried(run, message.callId, message.n);
  }
  if (event.type !== 'model-replied' && event.type !== 'transcript-compacted') return;
  const made = fresh.find(isFromModel);
  if (made === undefined || event.reply === null) return;
  moveRetried(run, WORK.model, made.n);
  run.usageByMessage.set(made.n, replyUsage(event.reply, before.config.price));
}

/** Records the attempts of an activity that has ended. */
export function noteAttempt(
  { inFlight }: ReadRun,
  { scheduled, attempt, failure }: EventOf<'attempted'>,
): void {
  const work = inFlight.get(scheduled);
  const lastFailure = failure && { lastFailure: failure };
  if (work !== undefined) inFlight.set(scheduled, { ...work, attempts: attempt, ...lastFailure });
}

/** Marks the messages that a provider has refused. */
function noteRefused({ messages }: ReadRun, { transcript }: RunState): void {
  for (const message of transcript.messages) {
    if (message.refused === undefined) continue;
    const place = messages.findLastIndex(({ n }) => n === message.n);
    if (place >= 0) messages[place] = message;
  }
}

function isFromModel(message: Message): boolean {
  if (message.role === 'assistant') return message.origin === undefined;
  return message.role === 'user' && !!message.compacts;
}

/** Records the event since which each piece of work is blocked. */
export function noteBlocks({ state, blockedSince }: ReadRun, event: number): void {
  const now = state === undefined ? [] : blocks(state);
  for (const name of blockedSince.keys()) {
    if (!now.some((one) => one.name === name)) blockedSince.delete(name);
  }
  for (const { name, reason } of now) {
    if (blockedSince.get(name)?.reason !== reason) blockedSince.set(name, { reason, since: event });
  }
}

/** Returns why work is blocked, by name. */
export function blockedIn({ state, blockedSince, ended }: ReadRun): Map<string, BlockedSince> {
  if (state === undefined || ended !== null) return new Map();
  return new Map(
    blocks(state).map(({ name, ...block }) => [
      name,
      { ...block, since: blockedSince.get(name)?.since ?? 0 },
    ]),
  );
}

/**
 * Returns the state that one segment carries over to the next. Null if there is none or it cannot
 * be read: a starter can pass any value, and a newer version may use another schema version.
 */
function readCarried(carried: unknown): CarriedState | null {
  try {
    const read = readCarriedState(carried);
    return 'carried' in read ? read.carried : null;
  } catch {
    return null;
  }
}

/**
 * Returns the initial data of a segment; null if the run refuses it, or if a newer version wrote
 * it.
 */
export function readBegun({ start, ...args }: EventOf<'started'>): Begun | null {
  try {
    const read = readStart(start, args);
    return 'problem' in read ? null : read;
  } catch {
    return null;
  }
}

const PATCHES: readonly string[] = [SEMANTICS_PATCH, NO_ACTIVITIES_PATCH, DECIDED_PROBE_PATCH];

/**
 * Returns why a segment cannot be read, because a newer version of perdure wrote its state or a patch
 * marker that this version does not know; null if this version can read it.
 */
export function writtenByNewer(events: readonly HistoryEvent[]): string | null {
  const patches = events.flatMap((event) => (event.type === 'patched' ? [event.patch] : []));
  const unknown = newerPatch(patches);
  if (unknown !== null) return unknown;
  const why = newerState(events[0]);
  return why === null ? null : newer(why);
}

/**
 * Returns why a run cannot be read whose history has these patches, if this version does not know one
 * of them; else null. The server lists the patches of a run without its history.
 */
export function newerPatch(patches: readonly string[]): string | null {
  const unknown = patches.find((patch) => !PATCHES.includes(patch));
  if (unknown === undefined) return null;
  return newer(
    `the run's history has the patch ${JSON.stringify(unknown)}, which this version does not know; deploy the version that wrote it`,
  );
}

/**
 * Returns why a run cannot be read whose memo names this schema version, if it is newer than this
 * version's; else null.
 */
export function newerMemo(schema: unknown): string | null {
  const isNewer = typeof schema === 'number' && schema > STATE_VERSION;
  return isNewer ? newer(newerSchema(schema)) : null;
}

function newer(why: string): string {
  return `a newer version of perdure wrote the run: ${why}; nothing is lost meanwhile`;
}

function newerState(started: HistoryEvent | undefined): string | null {
  if (started?.type !== 'started') return null;
  try {
    readStart(started.start, started);
    return null;
  } catch (error) {
    return error instanceof NewerStateError ? error.message : null;
  }
}

/** Returns the state that one segment carries over to the next; null if it cannot be read. */
export function carriedState(carried: unknown): RunState | null {
  return readCarried(carried)?.state ?? null;
}

/**
 * Returns the outcome that the workflow recorded, regardless of how it ended; null if it recorded
 * none.
 */
export function endOutcome({ result }: EndedEvent): Outcome | null {
  return isOutcome(result) ? result : null;
}

/** Applies the end of a segment: the end of the run, or the state for the next segment. */
export function endRun(run: ReadRun, event: EndedEvent): void {
  run.ended = event;
  run.inFlight.clear();
  const { state } = run;
  if (event.how === 'continued') {
    const carried = carriedState(event.carried);
    if (carried !== null && isLoaded(carried)) run.state = carried;
    return;
  }
  const recorded = endOutcome(event);
  run.outcome = recorded ?? (state === undefined ? null : outcomeWithoutRecord(state, event));
  // The outcome of an open run is not the outcome of its last turn.
  if (state !== undefined && !state.open && recorded !== null) {
    run.state = { ...state, turn: { ...state.turn, phase: { type: 'idle', outcome: recorded } } };
  }
}

/** A canceled workflow has no result in its history. */
function outcomeWithoutRecord(state: RunState, { how }: EndedEvent): Outcome | null {
  if (how !== 'cancelled') return null;
  return state.open ? runCancelled(state) : (getOutcome(state) ?? runCancelled(state));
}
