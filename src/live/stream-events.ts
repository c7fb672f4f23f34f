import type { DurableEvent } from '../history/durable-events.js';

interface OfAttempt {
  readonly turn: number;
  readonly step: number;
  /** Of this model call, from 1. */
  readonly attempt: number;
}

/**
 * A piece of a reply while it comes; never in the history. The pieces of an attempt, joined in order,
 * are what the model has said so far. When the reply is durable, its event has the whole of it, in the
 * form that counts.
 */
export type DeltaEvent = OfAttempt & {
  readonly type: 'delta';
  /** UTF-16 units, names of calls included, that were told of this attempt before this piece. */
  readonly offset: number;
  /** `call`: a piece of the arguments of a call, JSON text in the making. */
  readonly kind: 'text' | 'reasoning' | 'call';
  readonly text: string;
  /** Of a call: its place in the reply, from 0. */
  readonly index?: number;
  /** Of a call, with its first piece. */
  readonly name?: string;
};

export type LiveEvent =
  | DeltaEvent
  /** What was told of this attempt is void: it failed, or its worker was lost. */
  | (OfAttempt & { readonly type: 'superseded' })
  /** Pieces are missing from `offset` on, up to `until`; null: up to the attempt's end. */
  | (OfAttempt & { readonly type: 'gap'; readonly offset: number; readonly until: number | null });

/** What is durable, and in between what is being said at the moment, in one order. */
export type StreamEvent = (DurableEvent | LiveEvent) & {
  /** Where this stands in the stream: a text to hand back as `after`, not to be read. */
  readonly position: string;
};
