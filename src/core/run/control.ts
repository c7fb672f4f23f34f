import type { LimitSet, Limits } from '../definition/definition.js';
import { addMessage, addRefusal } from '../input/inbox.js';
import { withTurn } from '../state/change.js';
import { grantsLeft, withGrant } from '../state/consent.js';
import { withDecision } from '../state/decisions.js';
import { beginWithFork } from '../state/fork.js';
import type { Ending, RunConfig, RunState } from '../state/state.js';
import { stepsOf } from '../state/turn-definition.js';
import { freshTurn, getOpenBatch, nothingSpent } from '../state/turn.js';
import { newestOf, undoNote, withExecuted, withKept, withUndoState } from '../state/undo.js';
import { type Work, findWork, withWork, withoutWork } from '../state/work.js';
import type { RequestedCall, ToolCall } from '../transcript/messages.js';
import { emptyTranscript, fixedTokens } from '../transcript/transcript.js';
import { applyStoredMessages, beginSegment, keepSegment } from './carry.js';
import type { PersonEvent, RunEvent, SegmentEvent } from './events.js';

type EventOf<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

/** Opens a request about work, replaces its previous one, and assigns the next id. */
function raiseRequest(
  state: RunState,
  { work: name, request }: EventOf<'request-raised'>,
): RunState {
  const number = (state.requests ?? 0) + 1;
  const { proposal: _, ...before }: Partial<Work> = findWork(state, name) ?? {};
  const raised = { ...request, id: `r${number}` };
  // Blocked work keeps being retried, because its cause may disappear by itself.
  const isBlocked = before.block !== undefined || request.kind === 'tool_changed';
  const phase = isBlocked ? 'waiting' : 'asking';
  return { ...withWork(state, { ...before, name, request: raised, phase }), requests: number };
}

/** Records that a notification was sent for a request. */
function notified(state: RunState, id: string): RunState {
  const work = state.work.find(({ request }) => request?.id === id);
  if (work?.request === undefined) return state;
  return withWork(state, { ...work, request: { ...work.request, notified: true } });
}

/** Records the result of an undo. The model learns of it with the next message. */
function undoChanged(
  state: RunState,
  { call: id, state: undo, message }: EventOf<'undo-changed'>,
): RunState {
  const change = { state: undo, ...(message !== undefined && { message }) };
  const kept = withUndoState(state.kept, id, change);
  const call = kept.find((one) => one.call.id === id)?.call;
  if (undo !== 'undone' || call === undefined) return { ...state, kept };
  const forgotten = state.config.revised ? forgetRepeats(state, id) : state;
  return { ...forgotten, kept, notes: [...(state.notes ?? []), undoNote(call)] };
}

/** Lets the turn make a call again that was undone: its record no longer says what holds. */
function forgetRepeats(state: RunState, id: string): RunState {
  const succeeded = state.turn.succeeded.filter((done) => !done.endsWith(` ${id}`));
  return withTurn(state, { succeeded });
}

/** Stores the rules' verdict on an open call of a graph's node. */
export function recordVerdict(
  state: RunState,
  { id, verdict, parsed, summary }: Omit<EventOf<'verdict-recorded'>, 'type'>,
): RunState {
  const batch = getOpenBatch(state);
  if (batch === null) return state;
  const known = { ...(parsed && { parsed }), ...(summary !== undefined && { summary }) };
  const calls = batch.calls.map((one) => (one.id === id ? { ...one, verdict, ...known } : one));
  return withTurn(state, { phase: { type: 'acting', batch: { ...batch, calls } } });
}

/** Keeps a call that can be undone. */
export function undoEnabled(state: RunState, { kept, at }: EventOf<'undo-enabled'>): RunState {
  if (!state.config.revised) return { ...state, kept: newestOf([...(state.kept ?? []), kept]) };
  const executed = { turn: state.turn.number, step: stepsOf(state), at };
  return { ...state, kept: withKept(state.kept, withExecuted(kept, executed)) };
}

/** Stores what the tool of a call that a person may undo gets. */
export function undoParsed(
  state: RunState,
  { call: id, parsed }: EventOf<'undo-parsed'>,
): RunState {
  const kept = state.kept?.map((one) =>
    one.call.id === id ? { ...one, call: { ...one.call, parsed } } : one,
  );
  return { ...state, ...(kept && { kept }) };
}

/** Replaces the arguments of an open call with those from a person. */
export function editCall(
  state: RunState,
  { id, call }: { id: string; call: RequestedCall },
): RunState {
  const batch = getOpenBatch(state);
  if (batch === null) return state;
  const calls = batch.calls.map((one): ToolCall =>
    one.id === id ? { ...call, id, edited: true, ...(one.node && { node: one.node }) } : one,
  );
  return withTurn(state, { phase: { type: 'acting', batch: { ...batch, calls } } });
}

/** Applies the events outside a turn: messages, decisions, and changes of the run as a whole. */
export function applyControlEvent(state: RunState, event: PersonEvent | SegmentEvent): RunState {
  switch (event.type) {
    case 'message-received': {
      const { revised } = state.config;
      return { ...state, inbox: addMessage(state.inbox, event.message, revised) };
    }
    case 'message-refused':
      return { ...state, inbox: addRefusal(state.inbox, event.refused) };
    case 'decision-recorded':
      return withDecision(state, event.decision);
    case 'end-requested':
      return { ...state, ending: strongerEnding(state.ending, event.by) };
    case 'pause-changed':
      return { ...state, paused: event.paused };
    case 'limits-set':
      return withLimits(state, event.limits);
    case 'tool-accepted': {
      const accepted = { ...state.accepted, [event.tool]: event.definition };
      return { ...state, accepted };
    }
    case 'agent-loaded':
      return withAgent(state, event.config);
    case 'run-forked': {
      const { forks: _, ...rest } = state;
      return beginWithFork(rest, event);
    }
    case 'agent-refreshed':
      return withNewestAgent(state, event.config);
    case 'messages-archived':
      return applyStoredMessages(state, event);
    case 'segment-kept':
      return keepSegment(state, event.at);
    case 'segment-begun':
      return beginSegment(state);
    case 'limits-requested':
      return { ...state, requestedLimits: [...(state.requestedLimits ?? []), event.requested] };
    case 'inline-stopped': {
      const tools = new Set([...(state.notInline ?? []), ...event.tools]);
      return { ...state, notInline: [...tools] };
    }
    case 'work-changed':
      return withWork(state, event.work);
    case 'work-ended':
      return withoutWork(state, event.name);
    case 'request-raised':
      return raiseRequest(state, event);
    case 'decision-proposed': {
      const work = findWork(state, event.work);
      return work === undefined ? state : withWork(state, { ...work, proposal: event.proposal });
    }
    case 'request-notified':
      return notified(state, event.request);
    case 'grant-added':
      return { ...state, grants: withGrant(state.grants, event.grant) };
    case 'grant-revoked': {
      const grants = (state.grants ?? []).filter(({ id }) => id !== event.grant);
      return { ...state, grants };
    }
    case 'undo-changed':
      return undoChanged(state, event);
  }
}

/** Ordered from the weakest to the strongest. */
const STRENGTH: readonly (Ending | null)[] = [null, 'closed', 'wallMs', 'cancelled'];

function strongerEnding(before: Ending | null, by: Ending): Ending | null {
  return STRENGTH.indexOf(by) > STRENGTH.indexOf(before) ? by : before;
}

/** Replaces the specified limits; the others stay. A person may raise a limit. */
function withLimits(state: RunState, { run, ...turn }: Limits): RunState {
  const { limits } = state.config;
  const merged = { turn: merge(limits.turn, turn), run: merge(limits.run, run ?? {}) };
  return { ...state, config: { ...state.config, limits: merged } };
}

function merge(before: LimitSet, set: LimitSet): LimitSet {
  return { ...before, ...set };
}

/**
 * Sets the agent of a run that has not begun. Messages that have arrived in the meantime stay in
 * the inbox.
 */
function withAgent(state: RunState, config: RunConfig): RunState {
  const transcript = emptyTranscript(config.definition);
  const { requestedLimits: _, ...rest } = state;
  const { endsGrants: __, ...own } = config;
  // A called agent uses its caller's context.
  const { contextBlob } = state.config;
  return {
    ...rest,
    config: { ...own, ...(contextBlob && { contextBlob }) },
    transcript,
    total: nothingSpent(config.price),
    turn: freshTurn(0, config.price),
    compaction: { promptTokens: transcript.tokens, wanted: false, notBelow: 0 },
  };
}

/**
 * Replaces the agent's definition. Messages, costs, and limits set by people stay, and so do grants
 * of tools that are the same in the new definition.
 */
function withNewestAgent(state: RunState, config: RunConfig | null): RunState {
  // Any message of the turn may have requested the refresh, not only the first.
  const [first] = state.inbox.waiting;
  const waiting = state.inbox.waiting.map((message) => {
    const { refresh: _, ...rest } = message;
    return message.turn === first?.turn ? rest : message;
  });
  const next = { ...state, inbox: { ...state.inbox, waiting } };
  if (config === null) return next;
  const { definition, price, highestPrice, window, endsGrants } = config;
  const { window: _, highestPrice: __, ...before } = state.config;
  const grown = fixedTokens(definition) - fixedTokens(before.definition);
  const { transcript, compaction, grants } = state;
  return {
    ...withoutDropped(next),
    ...(grants && endsGrants && { grants: grantsLeft(grants, before.definition, definition) }),
    config: {
      ...before,
      definition,
      price,
      ...(highestPrice && { highestPrice }),
      ...(window !== undefined && { window }),
    },
    transcript: { ...transcript, tokens: transcript.tokens + grown },
    compaction: { ...compaction, promptTokens: Math.max(0, compaction.promptTokens + grown) },
  };
}

/** The new model may accept parameters that the previous one refused. */
function withoutDropped(state: RunState): RunState {
  const { dropped: _, ...rest } = state;
  return rest;
}
