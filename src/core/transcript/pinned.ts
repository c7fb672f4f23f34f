import { carriedBytes, jsonLength, type Incoming } from '../inbox.js';
import { promptText } from '../named-prompts/named-prompt.js';
import type { RunState } from '../state.js';

/** The largest message that can be pinned, in bytes. */
export const MAX_PINNED_BYTES = 16 * 1024;
/** Limit on all pinned messages together, because they are passed from segment to segment. */
export const MAX_PINNED_TOTAL_BYTES = 128 * 1024;

/** Returns the size in bytes of all pinned messages, including waiting ones. */
export function pinnedBytes(state: RunState): number {
  const waiting = state.inbox.waiting.filter((message) => message.pinned);
  return (
    pinnedInTranscript(state) +
    waiting.reduce((sum, message) => sum + messageBytes(state, message), 0)
  );
}

/**
 * Whether a message may stay pinned. A prompt that arrived before its agent was loaded may be too
 * long.
 */
export function fitsPinned(state: RunState, message: Incoming): boolean {
  if (message.prompt === undefined) return true;
  const bytes = messageBytes(state, message);
  return bytes <= MAX_PINNED_BYTES && pinnedInTranscript(state) + bytes <= MAX_PINNED_TOTAL_BYTES;
}

function pinnedInTranscript({ transcript }: RunState): number {
  return [...transcript.keptAside, ...transcript.messages]
    .filter((message) => message.role === 'user' && message.pinned)
    .reduce((sum, message) => sum + carriedBytes(message), 0);
}

/**
 * Returns the size in bytes of a message. For a prompt, that is its filled-in text, not the
 * arguments.
 */
function messageBytes({ config }: RunState, message: Incoming): number {
  const { prompt, args } = message;
  if (prompt === undefined) return carriedBytes(message);
  return jsonLength(promptText(config.definition, { prompt, ...(args && { args }) }));
}
