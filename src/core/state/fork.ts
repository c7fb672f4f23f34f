import type { NodeVisit } from '../definition/graph-definition.js';
import type { JsonObject } from '../text/json.js';
import {
  type Message,
  type RunArtifact,
  type SuppliedMessage,
  isSide,
  withoutRefused,
} from '../transcript/messages.js';
import type { PromptChunk } from '../transcript/transcript.js';
import type { Conversation, ForkPoint, GraphState, RunState } from './state.js';
import { findNode, graphOf, isOfDecide } from './turn-definition.js';
import { isNoteAbout, isUndoNote } from './undo.js';

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
  /**
   * Number of the first message that is not copied, or the visit of a node before which the copy
   * ends; absent: all messages are copied.
   */
  readonly at?: number | NodeVisit;
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
  /** For the model, with the first message: which of the copied calls were undone since. */
  readonly notes?: readonly string[];
  /** The state of the graph with which the run begins at a node; absent if it does not. */
  readonly graph?: ForkedGraph;
}

/** Adds the copied messages to an empty run. The run's own messages are numbered from `from.at`. */
export function beginWithFork(state: RunState, forked: Forked): RunState {
  const { from, chunk, head, tokens, pinned, latest, artifacts, notes, graph } = forked;
  const { transcript, compaction } = state;
  const all = transcript.tokens + tokens;
  return {
    ...state,
    forkedFrom: from,
    ...(graph && { graph: beginsAt(graph) }),
    ...(artifacts && { artifacts }),
    ...(notes && { notes }),
    transcript: {
      ...transcript,
      next: from.at,
      chunks: chunk.count === 0 ? [] : [chunk],
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

/** The state of a graph at the beginning of a visit, with which another run begins. */
export interface ForkedGraph {
  /** The name of the node. */
  readonly begins: string;
  /** The number of the visit in the other run, from 1. */
  readonly visit: number;
  readonly values: JsonObject;
  readonly conversations?: readonly Conversation[];
}

/**
 * Returns the state of a graph before the first turn of a fork. Visits count anew, and a plan that a
 * person has confirmed for the other run is not confirmed for this one.
 */
function beginsAt({ begins, values, conversations }: ForkedGraph): GraphState {
  return { values, at: null, visited: [], begins, ...(conversations && { conversations }) };
}

/** A run at the beginning of a visit of a node. */
export interface BegunVisit {
  readonly graph: ForkedGraph;
  /** Number of the next message. */
  readonly at: number;
  readonly artifacts: readonly RunArtifact[];
}

/**
 * Returns the number of the visit at which a run may be forked, or why it may not. `state`: the
 * newest one of that run. `meantBy`: returns the known name that an unknown one may be a misspelling of.
 */
export function forkableVisit(
  state: RunState,
  { node: name, visit }: NodeVisit,
  meantBy: (name: string, known: readonly string[]) => string | undefined,
): { readonly visit: number } | { readonly problem: string } {
  const graph = graphOf(state);
  if (graph === undefined) {
    return { problem: 'fork.at: the run has no graph; give the number of a message' };
  }
  const visited = (state.graph?.visited ?? []).filter(({ total }) => total > 0);
  const names = visited.map(({ node, total }) => (total === 1 ? node : `${node} (${total} times)`));
  const been = names.length === 0 ? 'none yet' : names.join(', ');
  const node = findNode(graph, name);
  if (node === undefined) {
    const known = graph.nodes.map((one) => one.name);
    const meant = meantBy(name, known);
    const nearest = meant === undefined ? '' : ` (nearest: ${meant})`;
    return {
      problem: `fork.at: expected a node of the run's graph (${known.join(', ')}), got "${name}"${nearest}`,
    };
  }
  const total = visited.find((one) => one.node === name)?.total ?? 0;
  if (total === 0)
    return {
      problem: `fork.at: expected a node that the run has visited (${been}), got "${name}"`,
    };
  if (isOfDecide(node)) {
    return {
      problem: `fork.at: node "${name}" executes the call that the node before it decided on; fork from that node`,
    };
  }
  if (visit === undefined || visit <= total) return { visit: visit ?? total };
  return {
    problem: `fork.at.visit: expected at most ${total}, the visits of node "${name}", got ${visit}`,
  };
}

/**
 * Returns a run at the beginning of a visit, if this state is the first one after that beginning;
 * null if the visit has not begun in this state.
 */
export function visitBegun(state: RunState, node: string, visit: number): BegunVisit | null {
  const { graph, transcript, artifacts = [] } = state;
  const found = graph?.visited.find((one) => one.node === node);
  if (graph === undefined || found === undefined || found.total < visit) return null;
  const { values, conversations } = graph;
  const last = transcript.messages.at(-1);
  // The message of a node that asks the model is added again, and so is the answer of a turn.
  const isAdded =
    last?.n === transcript.next - 1 &&
    last.role !== 'tool' &&
    last.origin === 'graph' &&
    (last.role === 'user'
      ? last.node === graph.at?.node
      : graph.at === null && last.node === undefined);
  return {
    graph: { begins: node, visit, values, ...(conversations && { conversations }) },
    at: transcript.next - (isAdded ? 1 : 0),
    artifacts,
  };
}

/** The part of a prompt that a fork copies. */
interface PromptPart {
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

/**
 * Returns the notes about calls before message number `at` that were undone after it. `all`: the messages of the
 * run; `pending`: its notes that no message has yet.
 */
export function notesOfUndone(
  all: readonly Message[],
  at: number,
  pending: readonly string[],
): readonly string[] {
  const calls = all.flatMap((one) =>
    one.role === 'assistant' && one.n < at ? (one.calls ?? []) : [],
  );
  const later = all.flatMap((one) => (one.n >= at && isUndoNote(one) ? [one.text] : []));
  return [...later, ...pending].filter((text) => calls.some(({ id }) => isNoteAbout(text, id)));
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
