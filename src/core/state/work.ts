import type { AgentDefinition } from '../definition/definition.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import type { Json } from '../text/json.js';
import { formatDuration } from '../text/text.js';
import type { BlobRef, ToolCall } from '../transcript/messages.js';
import type { Blocked } from '../transcript/outcome.js';
import type { AskedByServer, Decision, RaisedRequest } from '../transcript/request.js';
import { callSummary } from './summaries.js';
import { type Turn, openCallById } from './turn.js';

/** A call that can be undone, or whose undo was attempted. */
export interface Undoable {
  /** The call's id. */
  readonly call: string;
  readonly tool: string;
  /** For people. */
  readonly shown: string;
  /** Unix time in ms after which it can no longer be undone. */
  readonly until: number;
  /** Absent until an undo is requested. */
  readonly state?: UndoState;
  /** For `failed` and `denied`: why. */
  readonly message?: string;
}

/** How far the undoing of a call is; `denied`: a person or a rule refused it. */
export type UndoState = 'undoing' | 'undone' | 'failed' | 'denied';

/** The data that a run keeps of a call that can be undone. */
export interface KeptCall {
  readonly call: ToolCall;
  readonly turn: number;
  readonly step: number;
  /** The call's idempotency key. */
  readonly key: string;
  /** The call's result. */
  readonly text: string;
  readonly blob?: BlobRef;
  /** Unix time in ms. */
  readonly until: number;
  readonly state?: UndoState;
  readonly message?: string;
}

/** The part of a run's state that holds these calls. */
interface Keeper {
  readonly kept?: readonly KeptCall[];
}

/** Number of newest calls that can be undone and are passed from segment to segment. */
const KEPT_CALLS = 20;
const KEPT_CHARACTERS = 128 * 1024;

/** Returns the list with one more call; the oldest are dropped. */
export function withKept(
  kept: readonly KeptCall[] | undefined,
  call: KeptCall,
): readonly KeptCall[] {
  const all = [...(kept ?? []), call].slice(-KEPT_CALLS);
  let characters = 0;
  const from = all.findLastIndex((one) => {
    characters += JSON.stringify(one).length;
    return characters > KEPT_CHARACTERS;
  });
  return all.slice(from + 1);
}

/** Returns the data to keep of a successful call; null if its tool cannot undo it. */
export function keptOf(
  tool: Pick<ToolDefinition, 'undoMs'>,
  made: Omit<KeptCall, 'until'> & { readonly at: number },
): KeptCall | null {
  const { undoMs } = tool;
  if (undoMs === undefined) return null;
  const { at, ...kept } = made;
  return { ...kept, until: at + undoMs };
}

/** Returns the list with the result of an undo. */
export function withUndoState(
  kept: readonly KeptCall[] | undefined,
  id: string,
  change: Pick<KeptCall, 'state' | 'message'>,
): readonly KeptCall[] {
  return (kept ?? []).map((one) => (one.call.id === id ? { ...one, ...change } : one));
}

/** Returns the calls for people, newest last. */
export function undoableCalls({ kept = [] }: Keeper): readonly Undoable[] {
  return kept.map(({ call, until, state, message }) => ({
    call: call.id,
    tool: call.name,
    shown: callSummary(call),
    until,
    ...(state && { state }),
    ...(message !== undefined && { message }),
  }));
}

/**
 * Returns the call that an update asks to undo: the one it names, or the last one that can be
 * undone.
 */
export function callToUndo(
  { kept = [] }: Keeper,
  id: string | undefined,
  now: number,
): KeptCall | undefined {
  if (id !== undefined) return kept.find(({ call }) => call.id === id);
  return kept.findLast(({ state, until }) => state === undefined && until > now);
}

/** The part of a run's state that has the tools of its agent. */
interface HasTools {
  readonly config: { readonly definition: Pick<AgentDefinition, 'tools'> };
}

/**
 * Returns why no worker can undo a call, or null: a newer form of the agent may lack the call's
 * tool.
 */
export function undoFault({ config }: HasTools, { name }: Pick<ToolCall, 'name'>): string | null {
  const tool = config.definition.tools.find((one) => one.name === name);
  if (tool === undefined) return `the agent no longer has tool "${name}"`;
  return tool.undoMs === undefined ? `the tool "${name}" can no longer undo` : null;
}

/** Returns why a call cannot be undone, or null. `now`: Unix time in ms. */
export function undoProblem(state: Keeper & HasTools, id: unknown, now: number): string | null {
  if (id !== undefined && typeof id !== 'string') return 'call: expected the id of a call';
  const found = callToUndo(state, id, now);
  if (found === undefined) {
    const open = (state.kept ?? []).filter((one) => one.state === undefined && one.until > now);
    const known =
      open.length === 0
        ? 'nothing can be undone'
        : `undoable: ${open.map(({ call }) => call.id).join(', ')}`;
    return `call: ${id === undefined ? 'there is no call to undo' : `${JSON.stringify(id)} cannot be undone`}; ${known}`;
  }
  if (found.state === 'undoing') return `call: ${found.call.id} is being undone`;
  if (found.state === 'undone') return `call: ${found.call.id} is undone already`;
  if (found.until <= now) {
    const agoMs = now - found.until;
    return `call: the time to undo ${found.call.id} ended ${formatDuration(agoMs, { as: 'rounded' })} ago`;
  }
  const fault = undoFault(state, found.call);
  return fault === null ? null : `call: ${found.call.id} cannot be undone; ${fault}`;
}

/**
 * What is in flight for work. `attempt` and `probe` do the work, a probe while it is blocked.
 * `find` looks for a worker that has the tool, `check` waits for a blob, `verify` determines the
 * outcome of a call, `child` is the run of a called agent, `follow` follows one that existed
 * before, and `decide` checks a person's decision.
 */
export type Flight =
  | 'attempt'
  | 'probe'
  | 'find'
  | 'check'
  | 'verify'
  | 'child'
  | 'follow'
  | 'decide';

/** Why work is blocked, and when it is attempted again. */
export interface Block extends Blocked {
  /** Unix time in ms. */
  readonly until: number;
  /** For `storage`: SHA-256 of the blob that must become readable first. */
  readonly blob?: string;
}

/** The progress of work. */
type Phase =
  | { readonly phase: 'in-flight'; readonly as: Flight }
  /** Nothing is in flight: the work is blocked, paused, or about to start. */
  | { readonly phase: 'waiting' }
  /** A person must decide about `request`. */
  | { readonly phase: 'asking' };

/** A decision that is checked before it takes effect. */
export interface Proposal {
  /** The id of the update. */
  readonly id: string;
  readonly decision: Decision;
  /** Unix time in ms at which it was made. This time counts, not that of the check. */
  readonly at: number;
}

/** Names of work that is not a tool call. */
export const WORK = {
  agent: 'agent',
  archive: 'archive',
  fork: 'fork',
  model: 'model',
  retrieve: 'retrieve',
  remember: 'remember',
  limit: 'limit',
} as const;

/**
 * One piece of work that the run has begun and not finished. It is part of the state, so a segment
 * can pass it on and a reader of the history has the same data as the workflow.
 */
export type Work = {
  /** A call's id, or one of `WORK`. */
  readonly name: string;
  /** Why the work is blocked; absent while it is not. */
  readonly block?: Block;
  /** Milliseconds before the next probe. */
  readonly probeMs?: number;
  /** Blobs whose first, immediate check was made; later checks are delayed. */
  readonly checked?: readonly string[];
  /**
   * `resume` was called while an attempt was in flight; if that attempt is blocked, the next
   * follows at once.
   */
  readonly resumed?: true;
  /** A worker that has the tool was found. */
  readonly found?: true;
  /** For a model call: a paid reply that only needs to be checked. */
  readonly paid?: Json;
  /** Number of executions that failed before the tool started. */
  readonly starts?: number;
  /** Unix time in ms before which the work does not start again. */
  readonly startAt?: number;
  /** Number of executions within a workflow task that threw; they count as attempts. */
  readonly tries?: number;
  /** Why it is unknown whether the call took effect. */
  readonly unknown?: string;
  /** The call's idempotency key. */
  readonly key?: string;
  /** The request that waits for a decision. It is open while it is stored here. */
  readonly request?: RaisedRequest;
  /** A decision about the request that must be checked on a worker before it takes effect. */
  readonly proposal?: Proposal;
  /** For a call of an MCP server that asks before it acts. Its next attempt sends the answers. */
  readonly asked?: AskedByServer;
  /** A person approved the call, including any safety checks of the provider. */
  readonly approved?: true;
  /** The grant under which the call is made without asking again. */
  readonly grant?: string;
  /** The call is executed again although an earlier execution may have begun. */
  readonly retried?: true;
  /** Workflow id of the called agent's run, if the next visit of its node continues it. */
  readonly child?: string;
  /** A called agent ended without an outcome and runs again. */
  readonly again?: true;
  /** Why the worker of the first workflow task could not load the agent. */
  readonly missing?: string;
  /** The worker needs more time to load the agent than the first attempt has. */
  readonly slow?: true;
  /** The archiving at the end of the run; only its end follows. */
  readonly last?: true;
  /** The place in the prompt before which the model call summarizes. */
  readonly cut?: number;
} & Phase;

/** Work that waits for a decision. */
export type AskingWork = Work & { readonly request: RaisedRequest };

/** The part of a run's state that holds the work under way. */
interface HasWork {
  readonly work: readonly Work[];
}

/** Returns work by its name; undefined if there is none under way. */
export function findWork({ work }: HasWork, name: string): Work | undefined {
  return work.find((one) => one.name === name);
}

/** Returns the state with this work begun or changed. */
export function withWork<State extends HasWork>(state: State, next: Work): State {
  const changed = withoutStaleRole(next);
  const known = state.work.some(({ name }) => name === changed.name);
  const work = known
    ? state.work.map((one) => (one.name === changed.name ? changed : one))
    : [...state.work, changed];
  return { ...state, work };
}

/** Removes the `flight` of an earlier phase, because only work in flight has one. */
function withoutStaleRole(work: Work): Work {
  if (work.phase === 'in-flight' || !('as' in work)) return work;
  const {
    as: _,
    phase,
    ...rest
  }: Omit<Work, 'phase'> &
    Partial<Record<'as', unknown>> & {
      readonly phase: 'waiting' | 'asking';
    } = work;
  return { ...rest, phase };
}

/** Returns the state without this work. */
export function withoutWork<State extends HasWork>(state: State, name: string): State {
  if (!state.work.some((one) => one.name === name)) return state;
  return { ...state, work: state.work.filter((one) => one.name !== name) };
}

/** The work of undoing a call is named after it. */
export const UNDO = 'undo:';

/** Returns the work of the turn under way. Undoing an earlier call does not delay the turn. */
export function turnWork({ work }: HasWork): readonly Work[] {
  return work.some(isUndo) ? work.filter((one) => !isUndo(one)) : work;
}

/** Whether the work undoes an earlier call. */
export function isUndo({ name }: Pick<Work, 'name'>): boolean {
  return name.startsWith(UNDO);
}

/** Returns the call to which work belongs; undefined for other work and for an ended call. */
export function callOfWork(
  state: { readonly turn: Turn; readonly kept?: readonly KeptCall[] },
  name: string,
): ToolCall | undefined {
  if (!isUndo({ name })) return openCallById(state, name);
  return state.kept?.find(({ call }) => name === `${UNDO}${call.id}`)?.call;
}

/** Whether anything is in flight. */
export function anyInFlight({ work }: HasWork): boolean {
  return work.some(({ phase }) => phase === 'in-flight');
}

/** Returns why each piece of work is blocked, in the order in which the work began. */
export function blocks({ work }: HasWork): readonly (Blocked & { readonly name: string })[] {
  return work.flatMap((one) => {
    const { name } = one;
    // Work that needs a decision is waiting, not blocked.
    if (one.block === undefined || one.request !== undefined) return [];
    const { until: _, blob: __, ...block } = one.block;
    return { name, ...block };
  });
}

/** Returns a call's work that may begin now. What an earlier execution has left, such as its key, stays. */
export function begunCall({ name, asked, starts, approved, ...work }: Work, key = work.key): Work {
  return {
    name,
    ...(asked && { asked }),
    ...(key !== undefined && { key }),
    ...(starts !== undefined && { starts }),
    ...(approved && { approved }),
    phase: 'waiting',
  };
}

/** Whether a call's work shows that it was executed at least once. */
export function hasBegun({ key, unknown, starts, probeMs }: Work): boolean {
  return [key, unknown, starts, probeMs].some((trace) => trace !== undefined);
}
