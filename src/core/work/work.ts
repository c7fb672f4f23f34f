import type { Json } from '../json.js';
import type { RunState } from '../state.js';
import type { Blocked } from '../status.js';

/**
 * What is in flight for work. `attempt` and `probe` do the work, a probe while it is blocked. `find`
 * looks for a worker that has the tool, `check` waits for a blob, `verify` finds out what became of a
 * call, `child` is the run of a called agent, and `follow` follows one that existed before.
 */
export type Flight = 'attempt' | 'probe' | 'find' | 'check' | 'verify' | 'child' | 'follow';

/** Why work is blocked, and when it is attempted again. */
export interface Block extends Blocked {
  /** Unix time in ms. */
  readonly until: number;
  /** For `storage`: SHA-256 of the blob that has to be readable first. */
  readonly blob?: string;
}

/** What is being done about work. */
type Phase =
  | { readonly phase: 'in-flight'; readonly as: Flight }
  /** Nothing is in flight: the work is blocked, paused, or about to start. */
  | { readonly phase: 'waiting' }
  /** A person has to decide. `message` is for people. */
  | {
      readonly phase: 'asking';
      readonly about: 'outcome_unknown' | 'safety_check';
      readonly message: string;
    };

/** Names of work that is not a tool call. */
export const WORK = {
  agent: 'agent',
  archive: 'archive',
  fork: 'fork',
  model: 'model',
  retrieve: 'retrieve',
} as const;

/**
 * One piece of work that the run has begun and not finished. It is a part of the state, so that a
 * segment can pass it on, and so that a reader of the history knows what the workflow knows.
 */
export type Work = {
  /** A call's id, or one of `WORK`. */
  readonly name: string;
  /** Why the work is blocked; absent while it is not. */
  readonly block?: Block;
  /** Milliseconds before the next probe. */
  readonly probeMs?: number;
  /** Blobs that were checked at once: later checks wait. */
  readonly checked?: readonly string[];
  /** `resume` was called while an attempt was in flight: if that is blocked, the next follows at once. */
  readonly resumed?: true;
  /** A worker that has the tool was found. */
  readonly found?: true;
  /** For a model call: a reply that is paid for, and that only has to be checked. */
  readonly paid?: Json;
  /** Executions that failed before the tool was entered. */
  readonly starts?: number;
  /** Unix time in ms before which the work does not start again. */
  readonly startAt?: number;
  /** Why it is unknown whether the call took effect. */
  readonly unknown?: string;
  /** The call's idempotency key. */
  readonly key?: string;
  /** A person has acknowledged the provider's safety checks. */
  readonly acknowledged?: true;
  /** The call is executed again although an earlier execution may have begun. */
  readonly retried?: true;
  /** A called agent ended without an outcome and runs again. */
  readonly again?: true;
  /** Why the worker of the first workflow task could not load the agent. */
  readonly missing?: string;
  /** The worker needs more time to load the agent than the first attempt has. */
  readonly slow?: true;
  /** The place in the prompt before which the model call summarizes. */
  readonly cut?: number;
} & Phase;

/** Returns work by its name; undefined if there is none under way. */
export function findWork({ work }: RunState, name: string): Work | undefined {
  return work.find((one) => one.name === name);
}

/** Returns the state with this work begun or changed. */
export function withWork(state: RunState, changed: Work): RunState {
  const known = state.work.some(({ name }) => name === changed.name);
  const work = known
    ? state.work.map((one) => (one.name === changed.name ? changed : one))
    : [...state.work, changed];
  return { ...state, work };
}

/** Returns the state without this work. */
export function withoutWork(state: RunState, name: string): RunState {
  return { ...state, work: state.work.filter((one) => one.name !== name) };
}

/** Whether anything is in flight. */
export function anyInFlight({ work }: RunState): boolean {
  return work.some(({ phase }) => phase === 'in-flight');
}

/** Returns why each piece of work is blocked, in the order in which the work began. */
export function blocks(state: RunState): readonly (Blocked & { readonly name: string })[] {
  return state.work.flatMap((work) => {
    const { name } = work;
    if (work.phase === 'asking') return { name, reason: work.about, message: work.message };
    if (work.block === undefined) return [];
    const { until: _, blob: __, ...block } = work.block;
    return { name, ...block };
  });
}
