import { type GeneratedReply, isOutcome, isToolResult } from '../../core/guards/recorded.js';
import { askingWork } from '../../core/requests/open-requests.js';
import type { RunState } from '../../core/state/state.js';
import type { HistoryEvent } from '../history-event.js';
import type { InFlight } from './attempts.js';

/** What a visit of a graph's node has done in a segment. */
export interface NodeWork {
  /** Model calls, including those of the node's function. */
  readonly modelCalls: number;
  /** Steps of the agents and graphs that the visit has called. */
  readonly steps: number;
  /** Activities that have ended, and their attempts together. */
  readonly activities: number;
  readonly attempts: number;
  /** How long the run waited for people during it. */
  readonly waitedMs: number;
}

const NO_WORK: NodeWork = { modelCalls: 0, steps: 0, activities: 0, attempts: 0, waitedMs: 0 };

/** What a reader of a history keeps about the work of nodes and the waits of the run. */
export interface Worked {
  /** Undefined until a worker has begun the run. */
  state: RunState | undefined;
  ended: Extract<HistoryEvent, { type: 'ended' }> | null;
  readonly inFlight: Map<number, InFlight>;
  /** The work of the visits of a graph's nodes in this segment, by `visitKey`. */
  readonly visits: Map<string, NodeWork>;
  /** How long the run has waited for people in this segment, in ms. */
  waitedMs: number;
  /** Since when it waits for a person: Unix time in ms; null while it does not. */
  waitsSince: number | null;
}

/**
 * Records that the run now waits for a person, if it does: it is paused, or a request is open, and
 * nothing is in flight.
 */
export function beginWait(run: Worked, at: number): void {
  const { state, inFlight, ended } = run;
  if (state === undefined || ended !== null || inFlight.size > 0) return;
  if (state.paused || askingWork(state).length > 0) run.waitsSince ??= at;
}

/** Records that the run no longer waits for a person. */
export function endWait(run: Worked, at: number): void {
  if (run.waitsSince === null) return;
  const ms = Math.max(0, at - run.waitsSince);
  run.waitsSince = null;
  run.waitedMs += ms;
  const place = run.state?.graph?.at;
  if (place) addWork(run, place, { ...NO_WORK, waitedMs: ms });
}

/** Names a visit of a node in `visits`. */
export function visitKey({
  node,
  visit,
}: {
  readonly node: string;
  readonly visit: number;
}): string {
  return `${visit} ${node}`;
}

/**
 * Returns how long a run waited for people in the ended visits of each node, given the visits of its
 * segments. `at`: the visit under way.
 */
export function waitedByNode(
  segments: readonly ReadonlyMap<string, NodeWork>[],
  at: Parameters<typeof visitKey>[0] | null,
): ReadonlyMap<string, number> {
  const waited = new Map<string, number>();
  for (const [key, { waitedMs }] of segments.flatMap((visits) => [...visits])) {
    if (at !== null && key === visitKey(at)) continue;
    const node = key.slice(key.indexOf(' ') + 1);
    waited.set(node, (waited.get(node) ?? 0) + waitedMs);
  }
  return waited;
}

/** Adds work that has ended to the visit of the node under way. */
export function noteVisit(run: Worked, event: HistoryEvent, { graph }: RunState): void {
  const at = graph?.at;
  const done = at ? workOf(run, event) : null;
  if (!at || done === null) return;
  addWork(run, at, done);
}

function addWork(run: Worked, place: Parameters<typeof visitKey>[0], done: NodeWork): void {
  const key = visitKey(place);
  const before = run.visits.get(key) ?? NO_WORK;
  run.visits.set(key, {
    modelCalls: before.modelCalls + done.modelCalls,
    steps: before.steps + done.steps,
    activities: before.activities + done.activities,
    attempts: before.attempts + done.attempts,
    waitedMs: before.waitedMs + done.waitedMs,
  });
}

/** Returns the work that an event ends; null if it ends none of a node. */
function workOf({ inFlight }: Worked, event: HistoryEvent): NodeWork | null {
  if (event.type === 'child-ended') {
    const steps = isOutcome(event.result) ? event.result.steps : 0;
    return { ...NO_WORK, steps };
  }
  if (event.type !== 'completed' && event.type !== 'failed') return null;
  const { activity = '', attempts = 1 } = inFlight.get(event.scheduled) ?? {};
  const isModel = activity === 'callModel';
  if (!isModel && activity !== 'runTool') return null;
  const modelCalls = isModel ? 1 : repliesIn(event).length;
  return { ...NO_WORK, modelCalls, activities: 1, attempts };
}

/** Returns the replies of models to the function of a node, as its activity has recorded them. */
export function repliesIn(event: HistoryEvent): readonly GeneratedReply[] {
  if (event.type !== 'completed' || !isToolResult(event.result)) return [];
  return 'generated' in event.result ? (event.result.generated ?? []) : [];
}
