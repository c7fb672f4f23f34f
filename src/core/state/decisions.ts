import type { RecordedDecision } from './state.js';
import type { Work } from './work.js';

/** Number of decisions that a run remembers. */
export const REMEMBERED_DECISIONS = 20;

/** Returns the earlier decision by an update with this id; undefined if there is none. */
export function decidedBefore(
  decisions: readonly RecordedDecision[] | undefined,
  id: string,
): RecordedDecision | undefined {
  return decisions?.find((decision) => decision.id === id);
}

/** The decisions with which a person gives the result of a call. */
const GIVES_RESULT: readonly string[] = ['answer', 'happened'];

/** Returns the decision by which a person has given the result of a call in place of its tool; undefined if there is none. */
export function givenResult(
  decisions: readonly RecordedDecision[] = [],
  call: string,
): RecordedDecision | undefined {
  return decisions.findLast(
    ({ call: id, as = '', refused }) =>
      id === call && refused === undefined && GIVES_RESULT.includes(as),
  );
}

/** The decisions in a run's state, and the work that they may be about. */
interface Decided {
  readonly decisions?: readonly RecordedDecision[];
  readonly decisionsTotal?: number;
  readonly work: readonly Pick<Work, 'name' | 'request'>[];
}

/** Returns the state with one more decision. The oldest are dropped, except those that an open request needs. */
export function withDecision<State extends Decided>(
  state: State,
  decision: RecordedDecision,
): State {
  const all = [...(state.decisions ?? []), decision];
  const older = all.slice(0, -REMEMBERED_DECISIONS);
  const kept = older.filter((one, at) => isNeeded(state, one, all.slice(at + 1)));
  return {
    ...state,
    decisions: [...kept, ...all.slice(-REMEMBERED_DECISIONS)],
    decisionsTotal: countDecisions(state) + 1,
  };
}

/**
 * Whether an open request needs an older decision: the newest about it that a worker has refused, or the
 * newest answer at its node, whose request it has replaced.
 */
function isNeeded(
  { work }: Pick<Decided, 'work'>,
  { what, call, request, refused }: RecordedDecision,
  later: readonly RecordedDecision[],
): boolean {
  if (what !== 'resolve') return false;
  return work.some(({ name, request: open }) => {
    if (open === undefined) return false;
    if (refused !== undefined) {
      return open.id === request && !later.some((one) => one.request === request);
    }
    const node = nodeIn(name);
    const isAnswer = (one: string | undefined): boolean => node !== '' && nodeIn(one) === node;
    return isAnswer(call) && !later.some((one) => one.refused === undefined && isAnswer(one.call));
  });
}

/** Returns the id of a node's call without the number of its visit. */
export function nodeIn(call = ''): string {
  return call.split('_').slice(0, -2).join('_');
}

/** Returns the number of all decisions. States of older versions have only the list. */
export function countDecisions({
  decisions = [],
  decisionsTotal = decisions.length,
}: Pick<Decided, 'decisions' | 'decisionsTotal'>): number {
  return decisionsTotal;
}
