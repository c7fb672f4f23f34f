import type { Json } from '../text/json.js';
import type { ToolCall } from '../transcript/messages.js';
import type { Blocked } from '../transcript/outcome.js';
import type { AskedByServer, Decision, RaisedRequest } from '../transcript/request.js';
import { type Turn, openCallById } from './turn.js';
import type { KeptCall } from './undo.js';

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

/** What all work has, whatever it does. */
interface Progress {
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
}

/** The loading of the agent. */
interface AgentFields {
  /** Why the worker of the first workflow task could not load the agent. */
  readonly missing?: string;
  /** The worker needs more time to load the agent than the first attempt has. */
  readonly slow?: true;
}

/** Work whose paid replies the next attempt takes up: a model call, or a node that makes some. */
interface PaidFields {
  /** For a model call: a reply that only needs to be checked. For a node: all replies so far. */
  readonly paid?: Json;
}

interface ModelFields extends PaidFields {
  /** The place in the prompt before which the model call summarizes. */
  readonly cut?: number;
}

interface ArchiveFields {
  /** The archiving at the end of the run; only its end follows. */
  readonly last?: true;
}

/** Work about which a person decides: a call, its undoing, or a limit. */
interface AskFields {
  /** The request that waits for a decision. It is open while it is stored here. */
  readonly request?: RaisedRequest;
  /** A decision about the request that must be checked on a worker before it takes effect. */
  readonly proposal?: Proposal;
}

/** A call of a tool or of a node, or the undoing of one. */
interface CallFields extends AskFields, PaidFields {
  /** A worker that has the tool was found. */
  readonly found?: true;
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
  /** For an undo: who requested it, and the interface that has verified that; absent: unknown. */
  readonly by?: string;
  readonly door?: string;
}

/** What each work that is not a call has in addition to its progress. */
interface NamedFields {
  readonly agent: AgentFields;
  readonly archive: ArchiveFields;
  readonly fork: unknown;
  readonly model: ModelFields;
  readonly retrieve: unknown;
  readonly remember: unknown;
  readonly limit: AskFields;
}

type Name = keyof NamedFields;

/** Names of work that is not a tool call. */
export const WORK = {
  agent: 'agent',
  archive: 'archive',
  fork: 'fork',
  model: 'model',
  retrieve: 'retrieve',
  remember: 'remember',
  limit: 'limit',
} as const satisfies { readonly [N in Name]: N };

/** Work of one name, with the fields that it may have. */
type NamedWork<N extends Name> = Progress & Phase & NamedFields[N];

/**
 * One piece of work that the run has begun and not finished. It is part of the state, so a segment
 * can pass it on and a reader of the history has the same data as the workflow. Its name shows what
 * it does, and so which of the fields it may have: see `findWork`.
 */
export type Work = Progress & Phase & AgentFields & ArchiveFields & ModelFields & CallFields;

/** Work on a call, or on its undoing. */
export type CallWork = Progress & Phase & CallFields;

/** Work that waits for a decision. */
export type AskingWork = CallWork & { readonly request: RaisedRequest };

/** The part of a run's state that holds the work under way. */
interface HasWork {
  readonly work: readonly Work[];
}

/**
 * Returns work by its name; undefined if there is none under way. What is not a call has only the
 * fields of its own kind.
 */
export function findWork<N extends Name>(state: HasWork, name: N): NamedWork<N> | undefined;
export function findWork(state: HasWork, name: string): Work | undefined;
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
export function begunCall(
  { name, asked, starts, approved, by, door, ...work }: CallWork,
  key = work.key,
): CallWork {
  return {
    name,
    ...(by !== undefined && { by }),
    ...(door !== undefined && { door }),
    ...(asked && { asked }),
    ...(key !== undefined && { key }),
    ...(starts !== undefined && { starts }),
    ...(approved && { approved }),
    phase: 'waiting',
  };
}

/** Whether a call's work shows that it was executed at least once. */
export function hasBegun({ key, unknown, starts, probeMs }: CallWork): boolean {
  return [key, unknown, starts, probeMs].some((trace) => trace !== undefined);
}
