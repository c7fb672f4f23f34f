import { nameInCalledId } from './calls/idempotency.js';
import { isObject, textField } from './json.js';
import type { Outcome } from './outcome.js';
import { UNDO, WORK, type Flight } from './work/work.js';

/** Why an activity failed: the innermost failure. */
export interface Failure {
  readonly message: string;
  /** The failure's type, as set by the worker; empty if it set none. */
  readonly type: string;
  readonly timedOut: boolean;
  readonly details: readonly unknown[];
}

/** An activity, or the run of a called agent, as recorded in the history. */
export interface Task {
  /** The activity's type; `agent` for the run of a called agent. */
  readonly activity: string;
  /** The recorded input. */
  readonly input: unknown;
}

interface Patched {
  /**
   * In a run without `semantics`: a version that has them received this, so it has their meaning.
   * The history shows it by a marker, `SEMANTICS_PATCH`.
   */
  readonly patched?: true;
}

/**
 * Something that happened to a run and is recorded in its history. The workflow receives it from
 * Temporal, a reader from the history; `interpret` turns it into events. `at`: the workflow's
 * clock, in Unix time in ms.
 */
export type Fact = { readonly at: number } & (
  | { readonly type: 'clock' }
  | { readonly type: 'cancel-requested' }
  | ({
      readonly type: 'update';
      readonly name: string;
      readonly id: string;
      readonly input: unknown;
    } & Patched)
  | ({ readonly type: 'signal'; readonly name: string; readonly input: unknown } & Patched)
  | { readonly type: 'scheduled'; readonly task: Task }
  | { readonly type: 'completed'; readonly task: Task; readonly result: unknown }
  | { readonly type: 'failed'; readonly task: Task; readonly failure: Failure }
  | {
      readonly type: 'cancelled';
      readonly task: Task;
      /** The activity's report when it stopped; absent if the run did not wait for it. */
      readonly details?: readonly unknown[];
    }
  /** The run of a called agent has ended. `outcome` is null if it left none. */
  | {
      readonly type: 'child-ended';
      readonly call: string;
      readonly outcome: Outcome | null;
      readonly message: string;
    }
  /** A run with the id of the called agent exists already; an activity follows it. */
  | { readonly type: 'child-existed'; readonly call: string }
  /** The state is too large for a new segment, so the run stays in the current one. */
  | { readonly type: 'segment-kept' }
);

export type FactOf<T extends Fact['type']> = Extract<Fact, { type: T }>;

/**
 * Returns the work to which a task belongs, and the task's role; null for an activity that belongs
 * to no run.
 */
export function toWork({ activity, input }: Task): { name: string; as: Flight } | null {
  const fields = isObject(input) ? input : {};
  const as = fields['blocked'] === undefined ? 'attempt' : 'probe';
  switch (activity) {
    case 'callModel':
      return { name: WORK.model, as };
    case 'retrieveDocuments':
      return { name: WORK.retrieve, as };
    case 'rememberTurn':
      return { name: WORK.remember, as };
    case 'archiveMessages':
      return { name: WORK.archive, as };
    case 'forkMessages':
      return { name: WORK.fork, as };
    case 'loadAgent':
      return { name: WORK.agent, as };
    case 'runTool':
      return { name: callId(fields), as: fields['find'] === true ? 'find' : as };
    case 'runFunction':
      return fields['function'] === 'undo'
        ? { name: `${UNDO}${callId(fields)}`, as: 'attempt' }
        : { name: callId(fields), as: 'verify' };
    case 'checkDecision':
      return { name: textField(fields, 'work'), as: 'decide' };
    case 'checkBlob':
      return { name: textField(fields, 'work'), as: 'check' };
    case 'followRun':
      return { name: nameInCalledId(textField(fields, 'run')), as: 'follow' };
    case 'agent':
      return { name: textField(fields, 'call'), as: 'child' };
    default:
      return null;
  }
}

function callId({ call }: Record<string, unknown>): string {
  return isObject(call) ? textField(call, 'id') : '';
}
