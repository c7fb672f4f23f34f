import type { LimitOptions } from '../core/definition/definition.js';
import type { EffectiveLimits } from '../core/state.js';
import type { DecisionOptions } from '../updates/control.js';
import type { RunLike } from './run-handle.js';

/** Options of `cancel` for a turn: which one, who decides, and how long to try. */
export interface CancelOptions extends DecisionOptions {
  /** The number of the turn; `true` is the current one. */
  readonly turn: number | true;
}

/** The part of a client that controls runs. */
export interface ControlMethods {
  /**
   * Pauses a run: work in flight finishes, and nothing more is started.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.pause('desk-1', { by: 'ops: ann' });
   * ```
   */
  pause(run: RunLike<unknown>, options?: DecisionOptions): Promise<void>;
  /**
   * Lets a blocked or paused run continue at once.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.resume('desk-1', { by: 'ops: ann' });
   * ```
   */
  resume(run: RunLike<unknown>, options?: DecisionOptions): Promise<void>;
  /**
   * Requests that Temporal cancel the run. Has no effect on a run that has ended.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.cancel('desk-1');
   * console.log((await client.result('desk-1')).status);
   * ```
   */
  cancel(run: RunLike<unknown>): Promise<void>;
  /**
   * Cancels a turn of an open run, which then waits for its next message. `turn: true` is the
   * current turn; with a number, only that turn, so a late request does not cancel the next one.
   * Returns the number of the turn.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const turn = await client.cancel('desk-1', { turn: true });
   * console.log(`turn ${turn} was canceled`);
   * ```
   */
  cancel(run: RunLike<unknown>, options: CancelOptions): Promise<number>;
  /**
   * Closes an open run: it accepts no more messages and ends after those that it already has.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * await client.close('desk-1');
   * ```
   */
  close(run: RunLike<unknown>, options?: DecisionOptions): Promise<void>;
  /**
   * Replaces the given limits and returns all limits after the change.
   *
   * @example
   * ```ts
   * import { createClient } from 'perdure';
   *
   * await using client = await createClient();
   * const { run } = await client.setLimits('desk-1', { run: { costUsd: 5 } });
   * console.log(run.costUsd);
   * ```
   */
  setLimits(
    run: RunLike<unknown>,
    limits: LimitOptions,
    options?: DecisionOptions,
  ): Promise<EffectiveLimits>;
}
