import { InputError } from '../core/errors.js';
import { show } from '../core/text/format-value.js';
import { readOffset } from '../history/offset.js';
import type { LiveAttempt } from './attempt.js';

/** How far a reader of a stream has read. */
export interface Position {
  /** Offset of the last durable event; null before the first one. */
  readonly durable: string | null;
  /** The attempt in progress, and how many UTF-16 units of it the reader has received. */
  readonly live: { readonly attempt: LiveAttempt; readonly offset: number } | null;
}

export const BEGINNING: Position = { durable: null, live: null };

export function writePosition({ durable, live }: Position): string {
  if (live === null) return durable ?? '';
  const { segment, activity, attempt, turn, step } = live.attempt;
  return [durable ?? '', segment, activity, attempt, turn, step, live.offset].join('~');
}

/** Parses what `writePosition` wrote. Throws an `InputError` for any other text. */
export function readPosition(text: string): Position {
  const [durable = '', ...live] = text.split('~');
  if (durable !== '') readOffset(durable);
  const place = { durable: durable === '' ? null : durable, live: null };
  if (live.length === 0) return place;
  const [, segment, activity, ...numbers] =
    /^([\w-]{1,64})~([\w-]{1,64})~(\d{1,15})~(\d{1,15})~(\d{1,15})~(\d{1,15})$/.exec(
      live.join('~'),
    ) ?? [];
  if (segment === undefined || activity === undefined) {
    throw new InputError(
      `after: expected the position of an event, got ${show(text)}; omit it for all events`,
    );
  }
  const [attempt = 0, turn = 0, step = 0, offset = 0] = numbers.map(Number);
  return { ...place, live: { attempt: { segment, activity, attempt, turn, step }, offset } };
}
