import type { DurableEvent } from '../history/durable-events.js';
import { isBefore, isSameAttempt, type LiveAttempt } from './attempt.js';
import { endOf, from, unitsOf, type Frame, type PlacedPiece } from './delta.js';
import { writePosition, type Position } from './position.js';
import type { StreamEvent } from './stream-events.js';

/** What all readers of a run share: made once, however many there are. */
export type RunItem =
  | { readonly type: 'durable'; readonly step: DurableEvent; readonly event: StreamEvent }
  | { readonly type: 'attempt'; readonly attempt: LiveAttempt }
  | {
      readonly type: 'piece';
      readonly attempt: LiveAttempt;
      readonly piece: PlacedPiece;
      readonly event: StreamEvent;
    };

export function durableItem(step: DurableEvent): RunItem {
  return { type: 'durable', step, event: durableEvent(step, null) };
}

/** @returns the beginning of the attempt, which is told for what it makes void, and each piece */
export function frameItems({ attempt, pieces }: Frame, durable: string | null): readonly RunItem[] {
  return [
    ...(pieces.length === 0 || pieces[0]?.offset === 0
      ? [{ type: 'attempt', attempt } as const]
      : []),
    ...pieces.map((piece): RunItem => ({
      type: 'piece',
      attempt,
      piece,
      event: deltaEvent(attempt, piece, durable),
    })),
  ];
}

/** What may be told while a model call goes on; all else shows that it has ended. */
const MEANWHILE: readonly DurableEvent['type'][] = ['message-said', 'run-paused', 'run-resumed'];
/** What a model call came to, in full. */
const REPLIES: readonly DurableEvent['type'][] = [
  'model-replied',
  'answer-refused',
  'transcript-compacted',
];

function endsCall({ type }: DurableEvent): boolean {
  return !MEANWHILE.includes(type);
}

/** Gives one reader what it has not been told yet. */
export interface Teller {
  readonly position: Position;
  tell(item: RunItem): readonly StreamEvent[];
  /** What the reader was being told is gone before it came to take it. */
  overtaken(): readonly StreamEvent[];
}

/** All that is still known of an attempt from an offset on; null where nothing is known of it any more. */
export type KeptPieces = (attempt: LiveAttempt, offset: number) => readonly PlacedPiece[] | null;

export function createTeller(start: Position, kept: KeptPieces): Teller {
  let position = start;

  /** What was told is void; who comes back behind that is `at` this position. */
  const voided = (at: Position): readonly StreamEvent[] => {
    const { live } = position;
    if (live === null || live.offset === 0) return [];
    return [{ type: 'superseded', ...placeOf(live.attempt), position: writePosition(at) }];
  };

  const begin = (attempt: LiveAttempt): readonly StreamEvent[] => {
    const { live } = position;
    if (live !== null && isSameAttempt(live.attempt, attempt)) return [];
    const begun = { ...position, live: { attempt, offset: 0 } };
    const before = voided(begun);
    position = begun;
    return before;
  };

  const durable = (step: DurableEvent, event: StreamEvent): readonly StreamEvent[] => {
    const ends = endsCall(step);
    const before = ends && !REPLIES.includes(step.type) ? voided(position) : [];
    const live = ends ? null : position.live;
    position = { durable: step.offset, live };
    return [...before, live === null ? event : durableEvent(step, live)];
  };

  const gapTo = (attempt: LiveAttempt, until: number | null): StreamEvent => {
    const offset = position.live?.offset ?? 0;
    position = { ...position, live: { attempt, offset: until ?? offset } };
    const event = { type: 'gap', ...placeOf(attempt), offset, until } as const;
    return { ...event, position: writePosition(position) };
  };

  const piece = (item: Extract<RunItem, { type: 'piece' }>): readonly StreamEvent[] => {
    const before = begin(item.attempt);
    const told = position.live?.offset ?? 0;
    const missed = item.piece.offset > told ? (kept(item.attempt, told) ?? []) : [];
    const next = missed.length > 0 ? missed : [item.piece];
    const events = next.flatMap((one): readonly StreamEvent[] => {
      const offset = position.live?.offset ?? 0;
      if (endOf(one) <= offset) return [];
      const gap = one.offset > offset ? [gapTo(item.attempt, one.offset)] : [];
      const fresh = from(one, offset);
      position = { ...position, live: { attempt: item.attempt, offset: endOf(fresh) } };
      const event =
        fresh === item.piece ? item.event : deltaEvent(item.attempt, fresh, position.durable);
      return [...gap, event];
    });
    return [...before, ...events];
  };

  return {
    get position() {
      return position;
    },
    tell(item) {
      const { live } = position;
      // Who comes back behind a durable event meets again what has followed it since.
      if (item.type !== 'durable' && live !== null && isBefore(item.attempt, live.attempt))
        return [];
      switch (item.type) {
        case 'durable':
          return durable(item.step, item.event);
        case 'attempt':
          return begin(item.attempt);
        case 'piece':
          return piece(item);
      }
    },
    overtaken() {
      const { live } = position;
      if (live === null || live.offset === 0) return [];
      return kept(live.attempt, live.offset) === null ? [gapTo(live.attempt, null)] : [];
    },
  };
}

function placeOf({ turn, step, attempt }: LiveAttempt) {
  return { turn, step, attempt };
}

function durableEvent(step: DurableEvent, live: Position['live']): StreamEvent {
  return { ...step, position: writePosition({ durable: step.offset, live }) };
}

function deltaEvent(attempt: LiveAttempt, piece: PlacedPiece, durable: string | null): StreamEvent {
  const live = { attempt, offset: piece.offset + unitsOf(piece) };
  const position = writePosition({ durable, live });
  return { type: 'delta', ...placeOf(attempt), ...piece, position };
}
