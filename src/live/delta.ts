import type { ModelDelta } from '../models/model.js';
import type { LiveAttempt } from './attempt.js';

/**
 * One part of a reply in progress, on its way from the worker to the readers. `offset` is its place
 * in the attempt: the number of UTF-16 units before it, including the names of calls.
 */
export type Delta = ModelDelta & { readonly offset: number };

/** Deltas of one attempt, in order. An empty batch means that the attempt has started. */
export interface DeltaBatch {
  readonly attempt: LiveAttempt;
  readonly deltas: readonly Delta[];
}

/** Returns the UTF-16 units by which a delta lengthens its attempt. */
export function lengthOf({ text, name = '' }: ModelDelta): number {
  return name.length + text.length;
}

/** Returns the offset at which the next delta begins. */
export function endOf(delta: Delta): number {
  return delta.offset + lengthOf(delta);
}

/**
 * Returns the part of a delta from an offset onward; the delta itself if it starts at or after the
 * offset.
 */
export function trimBefore(delta: Delta, offset: number): Delta {
  if (offset <= delta.offset) return delta;
  const cut = offset - delta.offset;
  if (delta.kind !== 'call') return { ...delta, text: delta.text.slice(cut), offset };
  const { name = '', ...rest } = delta;
  const nameRest = name.slice(cut);
  const text = delta.text.slice(Math.max(0, cut - name.length));
  return { ...rest, text, offset, ...(nameRest !== '' && { name: nameRest }) };
}

/**
 * Returns whether `next`, placed at `offset`, directly continues `delta` in the same part of the
 * reply.
 */
export function isContinued(delta: Delta, next: ModelDelta, offset: number): boolean {
  return (
    next.name === undefined &&
    delta.kind === next.kind &&
    delta.index === next.index &&
    endOf(delta) === offset
  );
}
