import { applyStoredMessages, beginSegment } from './segments/carry.js';
import type { LimitSet, Limits } from './definition/definition.js';
import type { PersonEvent, SegmentEvent } from './events.js';
import { beginWithFork } from './input/fork.js';
import { withDecision } from './decisions.js';
import { addMessage, refuse } from './inbox.js';
import { freshTurn, nothingSpent, type Ending, type RunConfig, type RunState } from './state.js';
import { emptyTranscript, fixedTokens } from './transcript/transcript.js';

/** What people say and decide, and the run's life beyond its turns. */
export function applyControlEvent(state: RunState, event: PersonEvent | SegmentEvent): RunState {
  switch (event.type) {
    case 'message-received':
      return { ...state, inbox: addMessage(state.inbox, event.message) };
    case 'message-refused':
      return { ...state, inbox: refuse(state.inbox, event.refused) };
    case 'decided':
      return { ...state, decisions: withDecision(state.decisions, event.decision) };
    case 'ending':
      return { ...state, ending: graver(state.ending, event.by) };
    case 'paused':
      return { ...state, paused: event.paused };
    case 'limits-set':
      return withLimits(state, event.limits);
    case 'tool-accepted': {
      const accepted = { ...state.accepted, [event.tool]: event.definition };
      return { ...state, accepted };
    }
    case 'agent-loaded':
      return loaded(state, event.config);
    case 'forked':
      return beginWithFork(state, event);
    case 'agent-refreshed':
      return refreshed(state, event.config);
    case 'messages-kept':
      return applyStoredMessages(state, event);
    case 'segment-begun':
      return beginSegment(state);
  }
}

const GRAVITY: readonly (Ending | null)[] = [null, 'closed', 'wallMs', 'cancelled'];

function graver(before: Ending | null, by: Ending): Ending | null {
  return GRAVITY.indexOf(by) > GRAVITY.indexOf(before) ? by : before;
}

/** Named limits are replaced, the others stay; a person who watches the run may also raise them. */
function withLimits(state: RunState, { run, ...turn }: Limits): RunState {
  const { limits } = state.config;
  const merged = { turn: merge(limits.turn, turn), run: merge(limits.run, run ?? {}) };
  return { ...state, config: { ...state.config, limits: merged } };
}

function merge(before: LimitSet, set: LimitSet): LimitSet {
  return { ...before, ...set };
}

/** Nothing has been said or spent yet; what people have sent meanwhile waits on. */
function loaded(state: RunState, config: RunConfig): RunState {
  const transcript = emptyTranscript(config.definition);
  return {
    ...state,
    config,
    transcript,
    total: nothingSpent(config.price),
    turn: freshTurn(0, config.price),
    compaction: { promptTokens: transcript.tokens, wanted: false, notBelow: 0 },
  };
}

/** The agent as it is now; what was said, spent and set by people stays. */
function refreshed(state: RunState, config: RunConfig | null): RunState {
  // All of the turn: a message that was steered to the first one may be the one that asked for it.
  const [first] = state.inbox.waiting;
  const waiting = state.inbox.waiting.map((message) => {
    const { refresh: _, ...asked } = message;
    return message.turn === first?.turn ? asked : message;
  });
  const next = { ...state, inbox: { ...state.inbox, waiting } };
  if (config === null) return next;
  const { definition, price, window } = config;
  const { window: _, ...before } = state.config;
  const grown = fixedTokens(definition) - fixedTokens(before.definition);
  const { transcript, compaction } = state;
  return {
    ...withoutDropped(next),
    config: { ...before, definition, price, ...(window !== undefined && { window }) },
    transcript: { ...transcript, tokens: transcript.tokens + grown },
    compaction: { ...compaction, promptTokens: compaction.promptTokens + grown },
  };
}

/** Another model may understand what the one before refused. */
function withoutDropped(state: RunState): RunState {
  const { dropped: _, ...rest } = state;
  return rest;
}
