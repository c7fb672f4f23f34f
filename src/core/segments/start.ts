import { forksAtNode } from '../input/fork-input.js';
import { actorOf } from '../input/turn-context.js';
import { type RunInput, isProblem, parseRunInput } from '../input/input.js';
import { hasOwnHash, unloadedConfig } from '../rules/limits.js';
import { reduce } from '../run/reduce.js';
import { type RunState, initialState } from '../state/state.js';
import { type CarriedState, parseCarriedState } from './migrations.js';

/** The initial data of a run, as the server records it. */
interface Beginning {
  readonly input: RunInput;
  /** Unix time in ms, by the workflow's clock. */
  readonly at: number;
  /** The workflow id of the run above all callers of this one; its own id if no run calls it. */
  readonly root: string;
  /** First execution run id of the run. */
  readonly firstRunId: string;
}

/**
 * Returns the state of a new run. Its agent is not loaded yet; its first message, if any, is in the
 * inbox.
 */
export function firstState({ input, at, root, firstRunId }: Beginning): RunState {
  const { open = false, attachments, contextBlob, turnContext, fork, archive = open } = input;
  // A run that begins at a node has its state, and needs no message.
  const fields = input.input ?? (forksAtNode(fork) ? {} : undefined);
  const isEmpty =
    fields === undefined && input.prompt === undefined && input.messages === undefined;
  const text = input.message ?? (isEmpty ? undefined : '');
  const config = unloadedConfig(input.agent);
  const context = contextBlob && { contextBlob: { ...contextBlob, root } };
  const state: RunState = {
    ...initialState({ ...config, ...context }, { open, startedAt: at }),
    ...(archive && { archives: true }),
    ...(fork && { forks: true }),
    ...(input.unattended && { unattended: input.unattended }),
    firstRunId,
  };
  if (text === undefined) return state;
  const { requesters } = input;
  const message = {
    id: '',
    text,
    turn: 1,
    ...(attachments && { attachments }),
    ...(input.artifacts && { artifacts: input.artifacts }),
    ...(turnContext && { context: turnContext }),
    ...actorOf(input),
    ...(requesters && { requesters }),
    ...(fields && { input: fields }),
    ...(input.messages && { messages: input.messages }),
    ...(input.prompt !== undefined && { prompt: input.prompt }),
    ...(input.promptArgs && { args: input.promptArgs }),
    ...(input.settings && { settings: input.settings }),
  };
  return reduce(state, { type: 'message-received', message });
}

/**
 * Reads the state passed from one segment to the next. Returns the problem as text if the state is
 * malformed, or if its definition does not have the hash of its content: such a run fails before it
 * has a state. Throws a `NewerStateError` for a version that a newer worker wrote.
 */
export function readCarriedState(
  value: unknown,
): { readonly carried: CarriedState } | { readonly problem: string } {
  const read = parseCarriedState(value);
  if ('problem' in read || hasOwnHash(read.carried.state)) return read;
  return { problem: 'carried.state.config.definition.hash: expected that of the definition' };
}

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
