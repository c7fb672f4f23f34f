import { isSide, type Artifact, type Message } from '../transcript/messages.js';
import type { ForkPoint, RunState } from '../state.js';
import type { PromptChunk } from '../transcript/transcript.js';

/** What a run takes over from another one at its beginning. */
export interface Forked {
  readonly from: ForkPoint;
  /** All of it, in the order in which the model sees it. */
  readonly chunk: PromptChunk;
  readonly head: string;
  readonly tokens: number;
  /** Of these messages, those that a compaction keeps word for word. */
  readonly pinned: readonly Message[];
  /** What the calls among them have made. */
  readonly artifacts?: readonly Artifact[];
}

/** Nothing has been said yet; what is said goes on with the numbers of the other run. */
export function beginWithFork(state: RunState, given: Forked): RunState {
  const { from, chunk, head, tokens, pinned, artifacts } = given;
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
      keptAside: pinned,
      head,
      tokens: all,
    },
    compaction: { ...compaction, promptTokens: all },
    segmentFrom: { ...state.segmentFrom, message: from.at },
    archived: from.at,
  };
}

export interface PromptPart {
  /** The first number that is not taken; lower than asked for where that would part a call from its results. */
  readonly at: number;
  /** In the order in which the model saw them. */
  readonly messages: readonly Message[];
  /** The numbers that have to be known for this: all from here on, before `at`. */
  readonly needs: number;
}

/**
 * What the model of a run saw of the messages before number `at`: where a summary was made by then, it
 * and what it does not stand for. `said`: all of them, by number. `own`: the run's own messages begin
 * here; what is before it was said in the run that it was forked from, in turns of that run.
 */
export function promptBefore(
  said: readonly Message[],
  { at, own }: { readonly at: number; readonly own: number },
): PromptPart {
  const canonical = said.filter((message) => message.n < at && !isSide(message));
  const open = openStep(canonical);
  if (open !== null) return promptBefore(said, { at: open, own });
  const summary = canonical.findLast((message) => compactsOf(message) !== null);
  const last = summary === undefined ? -1 : (compactsOf(summary)?.to ?? -1);
  const stayed = canonical.filter(
    (message) =>
      summary !== undefined &&
      message.n <= last &&
      message.role === 'user' &&
      (message.pinned === true ||
        (message.n >= own && message.turn === summary.turn && !message.origin)),
  );
  const rest = canonical.filter((message) => message.n > last && compactsOf(message) === null);
  const messages = [...stayed, ...(summary === undefined ? [] : [summary]), ...rest];
  return { at, messages, needs: last + 1 };
}

/** Of the artifacts of a run, those that no message from number `at` on has made. */
export function artifactsBefore(
  artifacts: readonly Artifact[],
  said: readonly Message[],
  at: number,
): readonly Artifact[] {
  const later = new Set(
    said.map((message) => (message.role === 'tool' && message.n >= at ? message.callId : '')),
  );
  return artifacts.filter(({ call }) => !later.has(call));
}

function compactsOf(message: Message): { readonly to: number } | null {
  return message.role === 'user' ? (message.compacts ?? null) : null;
}

/** Number of the message whose calls do not all have their results; a provider would refuse it. */
function openStep(messages: readonly Message[]): number | null {
  const results = new Set(messages.map((one) => (one.role === 'tool' ? one.callId : '')));
  const asking = messages.find(
    (one) => one.role === 'assistant' && (one.calls ?? []).some(({ id }) => !results.has(id)),
  );
  return asking?.n ?? null;
}
