import { summaryText } from './text/compaction-text.js';
import type { Compaction } from './definition/definition.js';
import { failed } from './make-outcome.js';
import { end } from './change.js';
import type { Message } from './transcript/messages.js';
import type { RecordedReply } from './reply.js';
import { addReply } from './spend.js';
import type { RunState } from './state.js';
import {
  append,
  chunkedLength,
  emptyTranscript,
  messageTokens,
  type Transcript,
} from './transcript/transcript.js';

/** Shares of the model's window: where a compaction is due, and how much of the newest stays as it is. */
export const COMPACTION: Compaction = { at: 0.75, keep: 0.25 };

/** A compaction that failed, or brought little, is tried again when the prompt has grown by this. */
const GROWTH = 1.25;

/** Where the prompt shall be cut now: messages before it are summarized. Null: nothing is due. */
export function compactionDue(state: RunState): number | null {
  const { compaction, config } = state;
  const settings = settingsOf(state);
  if (settings === null) return null;
  if (compaction.wanted) return compactionCut(state);
  if (config.window === undefined || compaction.promptTokens < compaction.notBelow) return null;
  return compaction.promptTokens > settings.at * config.window ? compactionCut(state) : null;
}

/** Whether a prompt that the provider found too long can be made shorter. */
export function canCompact(state: RunState): boolean {
  return settingsOf(state) !== null && compactionCut(state) !== null;
}

function settingsOf({ config }: RunState): Compaction | null {
  const { compaction } = config.definition;
  return compaction === undefined ? COMPACTION : compaction;
}

/**
 * The newest messages that fit the share to keep stay, the step under way whatever its size; what is
 * before them goes, all of what lies in chunks included. Null where too little would go.
 */
function compactionCut(state: RunState): number | null {
  const { transcript, compaction, config } = state;
  const { messages } = transcript;
  const room = (settingsOf(state)?.keep ?? 0) * (config.window ?? compaction.promptTokens);
  let tokens = 0;
  const last = messages.findLastIndex((message) => {
    tokens += messageTokens(message);
    return tokens > room;
  });
  let from = last + 1;
  // A result without its call would be refused by the provider.
  while (messages[from]?.role === 'tool') from += 1;
  const newest = messages.findLastIndex(({ role }) => role !== 'tool');
  from = Math.min(from, Math.max(newest, 0));
  // Older than what is in memory they cannot be parted from their calls any more.
  if (messages[from]?.role === 'tool') return null;
  const chunked = chunkedLength(transcript);
  const going = messages.slice(0, from).filter((message) => !stays(state, message));
  return chunked + going.length >= 2 ? chunked + from : null;
}

/** What people pinned, and what they said in the turn under way, is never put in other words. */
export function stays(state: RunState, message: Message): boolean {
  if (message.role !== 'user') return false;
  return message.pinned === true || (message.turn === state.turn.number && !message.origin);
}

/** The prompt after a compaction: what stays of the old part, the summary, the newest messages. */
export function compact(
  state: RunState,
  event: { cut: number; reply: RecordedReply | null; at: number },
): RunState {
  const { cut, reply, at } = event;
  // What the provider counted was the prompt of the summary, not that of the run.
  const { compaction } = state;
  const paid = reply === null ? state : addReply(state, { reply, deciding: false });
  const counted = { ...paid, compaction };
  if (reply === null || reply.text.trim() === '' || reply.finish !== 'stop') return vain(counted);
  const { transcript, config, turn } = counted;
  const place = cut - chunkedLength(transcript);
  const old = [...transcript.keptAside, ...transcript.messages.slice(0, place)];
  const tail = transcript.messages.slice(place);
  const compacts = { from: 0, to: (tail[0]?.n ?? transcript.next) - 1 };
  const text = summaryText({ ...compacts, model: config.definition.model, text: reply.text });
  const summary: Message = {
    n: transcript.next,
    turn: turn.number,
    step: turn.spent.steps,
    at,
    role: 'user',
    text,
    origin: 'perdure',
    compacts,
  };
  const kept = old.filter((message) => stays(counted, message));
  const fresh = emptyTranscript(config.definition);
  const made = [...kept, summary, ...tail].reduce<Transcript>(append, fresh);
  const shrunk = { ...made, next: transcript.next + 1 };
  return {
    ...counted,
    transcript: shrunk,
    compaction: { promptTokens: shrunk.tokens, wanted: false, notBelow: shrunk.tokens * GROWTH },
  };
}

function vain(state: RunState): RunState {
  const { promptTokens, wanted } = state.compaction;
  const later = { promptTokens, wanted: false, notBelow: promptTokens * GROWTH };
  const next = { ...state, compaction: later };
  if (!wanted) return next;
  const message =
    'the conversation is longer than the model reads, and it could not be summarized; ' +
    'start a new run, or use a model with a larger window';
  return end(next, failed(next, { reason: 'context_too_long', message }));
}
