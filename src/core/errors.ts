import type { RefusalReason } from './transcript/request.js';

export const PERDURE_ERROR_CODES = [
  'archive',
  'blob',
  'deployment',
  'id_taken',
  'input',
  'live_options',
  'model',
  'no_run',
  'no_schedule',
  'no_server',
  'not_delivered',
  'parse',
  'refused',
  'result_lost',
  'run_token',
  'sdk_copies',
  'tool',
  'unreadable',
] as const;

/**
 * The stable codes of perdure's errors. A code never changes its meaning; new ones may be added.
 *
 * | code            | class               | meaning                                                             |
 * | --------------- | ------------------- | ------------------------------------------------------------------- |
 * | `archive`       | `ArchiveError`      | an archive cannot be read or written                                |
 * | `blob`          | `BlobError`         | a blob store cannot read or write a text, or lacks it               |
 * | `deployment`    | `DeploymentError`   | a worker's build could not be made the current one                  |
 * | `id_taken`      | `IdTakenError`      | a run with this id exists, or existed; or a schedule has it         |
 * | `input`         | `InputError`        | an argument or a definition is invalid; nothing was sent            |
 * | `live_options`  | `LiveOptionsError`  | a worker cannot serve live streams with these options               |
 * | `model`         | `ModelError`        | a model call failed; `details.kind` identifies who can fix it       |
 * | `no_run`        | `NoRunError`        | no run has this id                                                  |
 * | `no_schedule`   | `NoScheduleError`   | no schedule has this id                                             |
 * | `no_server`     | `NoServerError`     | no Temporal server answers                                          |
 * | `not_delivered` | `NotDeliveredError` | no answer: a message or decision may be lost, or may still arrive   |
 * | `parse`         | `ParseError`        | an answer does not fit the agent's output; the model tries again    |
 * | `refused`       | `RefusedError`      | the run refused a message or decision; it has no effect             |
 * | `result_lost`   | `ResultLostError`   | a turn has ended, and its outcome can no longer be read             |
 * | `run_token`     | `RunTokenError`     | a token for live streams cannot be made with these options          |
 * | `sdk_copies`    | `SdkCopiesError`    | the process has two copies of Temporal's SDK                        |
 * | `tool`          | `ToolError`         | a tool call failed in a way that no retry can fix                   |
 * | `unreadable`    | `UnreadableError`   | recorded data is encoded, and the client lacks the codec or the key |
 */
export type PerdureErrorCode = (typeof PERDURE_ERROR_CODES)[number];

/** Shared by all copies of this package in a process. */
const MARKER = Symbol.for('perdure.error');

/** A class of perdure's errors, as `isInstance` is called on it. */
export type PerdureErrorClass<T extends PerdureError> = (abstract new (...given: never[]) => T) & {
  readonly code?: PerdureErrorCode;
};

/**
 * The base class of the errors that perdure's functions document.
 *
 * @example
 * ```ts
 * import { createClient, PerdureError } from 'perdure';
 *
 * try {
 *   await createClient();
 * } catch (error) {
 *   if (!PerdureError.isInstance(error)) throw error;
 *   console.error(error.code, error.message);
 * }
 * ```
 */
export abstract class PerdureError extends Error {
  /** Stable across releases, unlike the message. */
  abstract readonly code: PerdureErrorCode;

  static {
    Object.defineProperty(this.prototype, MARKER, { value: true });
  }

  /**
   * Whether a value is an error of this class. Unlike `instanceof`, this also recognizes the errors
   * of another copy of this package: two versions may be installed, or a bundle may hold its own.
   */
  static isInstance<T extends PerdureError>(
    this: PerdureErrorClass<T>,
    value: unknown,
  ): value is T {
    if (value instanceof this) return true;
    if (typeof value !== 'object' || value === null || !(MARKER in value)) return false;
    // A subclass without its own code inherits its parent's code, but is a different class.
    if (!Object.hasOwn(this, 'code')) return Object.is(this, PerdureError);
    return 'code' in value && value.code === this.code;
  }
}

/** An argument or a definition is invalid. The message names the field, the value, and the fix. Nothing was sent. */
export class InputError extends PerdureError {
  static readonly code = 'input';
  override readonly name = 'InputError';
  override readonly code = InputError.code;
}

/** No server answers: Temporal's, or for `httpClient` that of perdure. The message names what was tried, and the fix. */
export class NoServerError extends PerdureError {
  static readonly code = 'no_server';
  override readonly name = 'NoServerError';
  override readonly code = NoServerError.code;
}

/** The id is taken by a running or ended run, or by a schedule; an id names only one. */
export class IdTakenError extends PerdureError {
  static readonly code = 'id_taken';
  override readonly name = 'IdTakenError';
  override readonly code = IdTakenError.code;
}

/** No run has this id: no workflow has it, or the workflow is not a perdure agent. */
export class NoRunError extends PerdureError {
  static readonly code = 'no_run';
  override readonly name = 'NoRunError';
  override readonly code = NoRunError.code;
}

/** The turn is over, and its outcome can no longer be read. */
export class ResultLostError extends PerdureError {
  static readonly code = 'result_lost';
  override readonly name = 'ResultLostError';
  override readonly code = ResultLostError.code;
}

/** No schedule has this id, or perdure did not create the schedule that has it. */
export class NoScheduleError extends PerdureError {
  static readonly code = 'no_schedule';
  override readonly name = 'NoScheduleError';
  override readonly code = NoScheduleError.code;
}

/**
 * A history or a memo is encoded, for example encrypted, and the client lacks the payload codec or the
 * key; or a newer version of perdure wrote it. The message names the encoding and the key, or what this
 * version does not know. Nothing else is known about the run.
 */
export class UnreadableError extends PerdureError {
  static readonly code = 'unreadable';
  override readonly name = 'UnreadableError';
  override readonly code = UnreadableError.code;
}

/** A worker's build could not become the current one. The message has the reason and the fix. */
export class DeploymentError extends PerdureError {
  static readonly code = 'deployment';
  override readonly name = 'DeploymentError';
  override readonly code = DeploymentError.code;
}

/** A worker cannot serve live streams with these options. The message names the fix. */
export class LiveOptionsError extends PerdureError {
  static readonly code = 'live_options';
  override readonly name = 'LiveOptionsError';
  override readonly code = LiveOptionsError.code;
}

/** A token for live streams cannot be made with these options. */
export class RunTokenError extends PerdureError {
  static readonly code = 'run_token';
  override readonly name = 'RunTokenError';
  override readonly code = RunTokenError.code;
}

/**
 * Why no worker answered: `missing`, no worker polls the run's task queue; `silent`, one polls it
 * but does not answer because it is frozen, disconnected, or busy. Null: unknown, or another reason.
 */
export type WorkerState = 'missing' | 'silent' | null;

/** Options of a `RefusedError`; see its fields. */
export interface RefusedErrorOptions extends ErrorOptions {
  /** The code of the refusal; default: null, where there is none. */
  readonly reason?: RefusalReason | null;
}

/**
 * The run refused a message or a decision, which has no effect, however often it is sent.
 *
 * @example
 * ```ts
 * import { createClient } from 'perdure';
 * import { RefusedError } from 'perdure/client';
 *
 * await using client = await createClient();
 * const { requests } = await client.requests({ agent: 'desk' });
 * for (const { run, id, digest } of requests) {
 *   try {
 *     await client.resolve(run, { request: id, digest, as: 'deny', by: 'ann' });
 *   } catch (error) {
 *     if (!RefusedError.isInstance(error) || error.reason !== 'decided') throw error;
 *   }
 * }
 * ```
 */
export class RefusedError extends PerdureError {
  static readonly code = 'refused';
  override readonly name = 'RefusedError';
  override readonly code = RefusedError.code;
  /** Why a decision about a request was refused; null for any other refusal. */
  readonly reason: RefusalReason | null;

  constructor(message: string, { reason = null, ...options }: RefusedErrorOptions = {}) {
    super(message, options);
    this.reason = reason;
  }
}

/** Options of a `NotDeliveredError`; see its fields. */
export interface NotDeliveredErrorOptions extends ErrorOptions {
  readonly mayArrive: boolean;
  /** Why no worker answered; default: null, where that is unknown or not the reason. */
  readonly worker?: WorkerState;
  /** The id under which the message may be sent again. Default: none, as for a decision. */
  readonly messageId?: string | undefined;
}

/**
 * A message or a decision got no answer. The error's message explains why.
 *
 * @example
 * ```ts
 * import { createClient } from 'perdure';
 * import { NotDeliveredError } from 'perdure/client';
 *
 * await using client = await createClient();
 * try {
 *   await client.send('desk-1', 'Is my order sent?');
 * } catch (error) {
 *   if (!NotDeliveredError.isInstance(error) || error.messageId === null) throw error;
 *   // The same id makes it the same message, even if the first one arrives.
 *   await client.send('desk-1', { message: 'Is my order sent?', id: error.messageId });
 * }
 * ```
 */
export class NotDeliveredError extends PerdureError {
  static readonly code = 'not_delivered';
  override readonly name = 'NotDeliveredError';
  override readonly code = NotDeliveredError.code;
  /** Whether the run may have accepted it, or may still do so. If not, sending it again is safe. */
  readonly mayArrive: boolean;
  /** Why no worker answered; null if this is unknown or not the reason. */
  readonly worker: WorkerState;
  /** The id that makes it safe to send a message again. Null for a decision. */
  readonly messageId: string | null;

  constructor(
    message: string,
    { mayArrive, worker = null, messageId, ...options }: NotDeliveredErrorOptions,
  ) {
    super(message, options);
    this.mayArrive = mayArrive;
    this.worker = worker;
    this.messageId = messageId ?? null;
  }
}

/** The process has two copies of Temporal's SDK, which do not work together. The message names both. */
export class SdkCopiesError extends PerdureError {
  static readonly code = 'sdk_copies';
  override readonly name = 'SdkCopiesError';
  override readonly code = SdkCopiesError.code;
}
