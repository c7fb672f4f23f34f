import type { DurableEvent } from '../history/durable-events.js';
import type { Delta } from './delta.js';

/** The attempt at a model call that an event belongs to. */
export interface AttemptPosition {
  readonly turn: number;
  readonly step: number;
  /** The attempt at this model call, counted from 1. */
  readonly attempt: number;
}

/**
 * One part of a reply in progress; it is never in the history. The deltas of an attempt, joined in
 * order, are what the model has written so far. Once the reply is durable, its event holds the
 * whole text, and only that counts.
 */
export type DeltaEvent = AttemptPosition & { readonly type: 'delta' } & Delta;

/** An event about a reply in progress. It is not durable: after a restart of the worker it does not come again. */
export type LiveEvent =
  | DeltaEvent
  /** The deltas of this attempt are void: it failed, or its worker was lost. */
  | (AttemptPosition & { readonly type: 'superseded' })
  /** Deltas are missing from `offset` up to `until`; null: up to the end of the attempt. */
  | (AttemptPosition & {
      readonly type: 'gap';
      readonly offset: number;
      readonly until: number | null;
    })
  /**
   * No worker of the run can be read, so its replies arrive only when they are complete. `message`
   * says why, and what to set. At most once for a reader.
   */
  | { readonly type: 'deltas-unavailable'; readonly message: string };

/** The durable events of a run, with the live events in between, in one order. */
export type StreamEvent = (DurableEvent | LiveEvent) & {
  /** The event's place in the stream, to pass back as `after`. Its format may change. */
  readonly position: string;
};
