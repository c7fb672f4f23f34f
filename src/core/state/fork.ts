import {
  type Message,
  type RunArtifact,
  type SuppliedMessage,
  isSide,
  withoutRefused,
} from '../transcript/messages.js';
import type { PromptChunk } from '../transcript/transcript.js';
import type { ForkPoint, RunState } from './state.js';

/** Input of the activity that copies messages from another run. */
export interface ForkMessagesInput {
  /** The workflow id of the other run. */
  readonly run: string;
  /** Run id of the first segment of the other run; absent: of the newest run with the id. */
  readonly runId?: string;
  /** The agent of the new run. */
  readonly agent: string;
  /** Other agents whose messages this agent may read. */
  readonly forkFrom?: readonly string[];
  /** Number of the first message that is not copied; absent: all messages are copied. */
  readonly at?: number;
  /** How many of the last texts the result has, for `historyTo` of a graph; absent: none. */
  readonly latest?: number;
  /** This is a probe of a blocked run. */
  readonly blocked?: 'storage';
}

/** What a forked run copies from another one. */
export interface Forked {
  readonly from: ForkPoint;
  /** The messages, in the order in which the model sees them. */
  readonly chunk: PromptChunk;
  readonly head: string;
  readonly tokens: number;
  /** The messages that a compaction keeps word for word. */
  readonly pinned: readonly Message[];
  /** The last texts of the messages, for `historyTo` of a graph. */
  readonly latest?: readonly SuppliedMessage[];
  /** The artifacts of these messages' calls. */
  readonly artifacts?: readonly RunArtifact[];
}

/** Adds the copied messages to an empty run. The run's own messages are numbered from `from.at`. */
export function beginWithFork(state: RunState, forked: Forked): RunState {
  const { from, chunk, head, tokens, pinned, latest, artifacts } = forked;
  const { transcript, compaction } = state;
  const all = transcript.tokens + tokens;
  return {
    ...state,
    forkedFrom: from,
    ...(artifacts && { artifacts }),
    transcript: {
      ...transcript,
      next: from.at,
      chunks: [chunk],
      chunksHead: head,
      ...(latest && { latest }),
      keptAside: pinned,
      head,
      tokens: all,
    },
    compaction: { ...compaction, promptTokens: all },
    segmentFrom: { ...state.segmentFrom, message: from.at },
    archived: from.at,
  };
}

/** The part of a prompt that a fork copies. */
export interface PromptPart {
  /**
   * Number of the first message that is not copied; lower than requested if a call would otherwise
   * lose its results.
   */
  readonly at: number;
  /** The messages, in the order in which the model saw them. */
  readonly messages: readonly Message[];
  /** Number of the first message needed to build this part. */
  readonly needs: number;
}

/**
 * Returns the prompt of a run for the messages before number `at`: if a summary existed by then,
 * the summary and the messages that it does not replace. `all` has the messages by number. `own` is
 * the number of the run's first own message; earlier ones come from the run that it was forked
 * from, with that run's turn numbers.
 */
export function promptBefore(
  all: readonly Message[],
  { at, own }: { readonly at: number; readonly own: number },
): PromptPart {
  const canonical = withoutRefused(all).filter((message) => message.n < at && !isSide(message));
  const open = openStep(canonical);
  if (open !== null) return promptBefore(all, { at: open, own });
  const summary = canonical.findLast((message) => summarizedRange(message) !== null);
  const last = summary === undefined ? -1 : (summarizedRange(summary)?.to ?? -1);
  const verbatim = canonical.filter(
    (message) =>
      summary !== undefined &&
      message.n <= last &&
      message.role === 'user' &&
      (message.pinned === true ||
        (message.n >= own && message.turn === summary.turn && !message.origin)),
  );
  const rest = canonical.filter((message) => message.n > last && summarizedRange(message) === null);
  const messages = [...verbatim, ...(summary === undefined ? [] : [summary]), ...rest];
  return { at, messages, needs: last + 1 };
}

/** Returns the artifacts created before message number `at`. */
export function artifactsBefore(
  artifacts: readonly RunArtifact[],
  messages: readonly Message[],
  at: number,
): readonly RunArtifact[] {
  const later = new Set(
    messages.map((message) => (message.role === 'tool' && message.n >= at ? message.callId : '')),
  );
  return artifacts.filter(({ call, announcedBy }) =>
    announcedBy === undefined ? !later.has(call) : announcedBy < at,
  );
}

function summarizedRange(message: Message): { readonly to: number } | null {
  return message.role === 'user' ? (message.compacts ?? null) : null;
}

/**
 * Returns the number of the message with open calls, which a provider would refuse; null if there
 * is none.
 */
function openStep(messages: readonly Message[]): number | null {
  const results = new Set(messages.map((one) => (one.role === 'tool' ? one.callId : '')));
  const asking = messages.find(
    (one) => one.role === 'assistant' && (one.calls ?? []).some(({ id }) => !results.has(id)),
  );
  return asking?.n ?? null;
}
