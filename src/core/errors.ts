/**
 * The stable codes of perdure's errors. A code never changes its meaning; new ones may be added.
 *
 * | code            | class               | meaning                                                             |
 * | --------------- | ------------------- | ------------------------------------------------------------------- |
 * | `archive`       | `ArchiveError`      | an archive cannot be read or written                                |
 * | `blob`          | `BlobError`         | a blob store cannot read or write a text, or lacks it               |
 * | `deployment`    | `DeploymentError`   | a worker's build could not be made the current one                  |
 * | `id_taken`      | `IdTakenError`      | a run with this id exists, or existed                               |
 * | `input`         | `InputError`        | an argument is invalid; nothing was sent                            |
 * | `live_options`  | `LiveOptionsError`  | a worker cannot serve live streams with these options               |
 * | `model`         | `ModelError`        | a model call failed; `details.kind` says who can fix it             |
 * | `no_run`        | `NoRunError`        | there is no run with this id                                        |
 * | `no_schedule`   | `NoScheduleError`   | there is no schedule with this id                                   |
 * | `no_server`     | `NoServerError`     | no Temporal server answers                                          |
 * | `not_delivered` | `NotDeliveredError` | no answer: a message or decision may be lost, or may still arrive   |
 * | `parse`         | `ParseError`        | an answer does not fit the agent's output; the model tries again    |
 * | `refused`       | `RefusedError`      | the run refused a message or decision; it has no effect             |
 * | `result_lost`   | `ResultLostError`   | a turn is over and its outcome cannot be read any more              |
 * | `run_token`     | `RunTokenError`     | a token for live streams cannot be made with these options          |
 * | `sdk_version`   | `SdkVersionError`   | the process has two copies of Temporal's SDK                        |
 * | `tool`          | `ToolError`         | a tool call failed in a way that no retry can fix                   |
 */
export type PerdureErrorCode =
  | 'archive'
  | 'blob'
  | 'deployment'
  | 'id_taken'
  | 'input'
  | 'live_options'
  | 'model'
  | 'no_run'
  | 'no_schedule'
  | 'no_server'
  | 'not_delivered'
  | 'parse'
  | 'refused'
  | 'result_lost'
  | 'run_token'
  | 'sdk_version'
  | 'tool';

/** Shared by all copies of this package in a process. */
const MARKER = Symbol.for('perdure.error');

type ErrorClass<T extends PerdureError> = (abstract new (...given: never[]) => T) & {
  readonly code?: PerdureErrorCode;
};

/** The base class of the errors that perdure's functions document. */
export abstract class PerdureError extends Error {
  /** Stable across releases, unlike the message. */
  abstract readonly code: PerdureErrorCode;

  static {
    Object.defineProperty(this.prototype, MARKER, { value: true });
  }

  /**
   * Whether a value is an error of this class. Unlike `instanceof`, this also recognizes the errors of
   * another copy of this package: two versions may be installed, or a bundle may hold its own.
   */
  static isInstance<T extends PerdureError>(this: ErrorClass<T>, value: unknown): value is T {
    if (value instanceof this) return true;
    if (typeof value !== 'object' || value === null || !(MARKER in value)) return false;
    // A subclass without a code of its own inherits that of its parent, and is not the parent.
    if (!Object.hasOwn(this, 'code')) return Object.is(this, PerdureError);
    return 'code' in value && value.code === this.code;
  }
}

/** An argument is invalid. The message names the field, the value, and the fix. Nothing was sent. */
export class InputError extends PerdureError {
  static readonly code = 'input';
  override readonly name = 'InputError';
  override readonly code = InputError.code;
}
