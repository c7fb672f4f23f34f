import { isProblem, parseRunInput, type RunInput } from '../input/input.js';
import type { CarriedState } from './migrations.js';
import { readCarriedState } from './carried-state.js';

/** How Temporal started a segment, as its history records it. */
export interface SegmentStart {
  /** Empty if there is none. */
  readonly cronSchedule: string;
  readonly hasRetryPolicy: boolean;
  /** A workflow started the run. */
  readonly hasParent: boolean;
  /** The segment continues another one of the same run. */
  readonly isContinued: boolean;
}

/** The initial data of a segment. `before` is null in the first one. */
export interface Begun {
  readonly input: RunInput;
  readonly before: CarriedState | null;
}

/**
 * Reads the arguments of a segment. Returns a problem if the run refuses them; such a run never has
 * a state. Throws a `NewerStateError` for a state that a newer version wrote.
 */
export function readStart(
  start: SegmentStart,
  { input: argument, carried }: { readonly input: unknown; readonly carried: unknown },
): Begun | { readonly problem: string } {
  const notStartable = startProblem(start);
  if (notStartable !== null) return { problem: notStartable };
  const before = readBefore(start, carried);
  if (before !== null && 'problem' in before) return before;
  const input = parseRunInput(argument, { continued: before !== null });
  if (isProblem(input)) return { problem: input.problem };
  const problem = before === null ? inputProblem(start, input) : null;
  return problem === null ? { input, before } : { problem };
}

/**
 * Returns why a run may not begin as it was started, or null. With a cron schedule or a retry
 * policy, the server starts the workflow again with its starter's arguments, and the run could not
 * tell them from its own state.
 */
function startProblem({ cronSchedule, hasRetryPolicy }: SegmentStart): string | null {
  if (cronSchedule !== '') {
    return `cronSchedule: expected none, got ${JSON.stringify(cronSchedule)}; use a Temporal schedule that starts the agent`;
  }
  if (!hasRetryPolicy) return null;
  return 'retryPolicy: expected none; a run retries by itself, and a Temporal schedule starts it again at set times';
}

function readBefore(
  { isContinued }: SegmentStart,
  carried: unknown,
): CarriedState | { readonly problem: string } | null {
  if (carried === undefined || carried === null) return null;
  if (!isContinued) {
    return {
      problem: 'carried: expected no second argument; only the run itself passes its state',
    };
  }
  const read = readCarriedState(carried);
  return 'carried' in read ? read.carried : read;
}

/**
 * Returns why a first segment refuses its input, or null. Only a calling workflow may set these
 * fields.
 */
function inputProblem(
  { hasParent }: SegmentStart,
  { called, contextBlob, turnContext, requesters }: RunInput,
): string | null {
  if (hasParent) return null;
  if (called !== undefined) return 'called: expected a calling workflow; omit it';
  if (requesters !== undefined) return 'requesters: expected a calling workflow; give `by`';
  if (contextBlob === undefined && turnContext === undefined) return null;
  const field = contextBlob === undefined ? 'turnContext' : 'contextBlob';
  return `${field}: expected only from an agent that calls another; give \`context\``;
}
