import { endOf, from, isContinued, unitsOf, type Piece, type PlacedPiece } from './delta.js';

/** UTF-16 units that are kept of an attempt; of a longer one the newest. */
const KEPT_UNITS = 1024 * 1024;
/** Pieces grow up to this size, so that taking the newest out of a long text does not copy all of it. */
const PIECE_UNITS = 4_096;

/** What was told of an attempt, for whoever comes late or falls behind. */
export interface AttemptLog {
  /** UTF-16 units told so far. */
  readonly end: number;
  /** Adds what comes next. */
  push(piece: Piece): void;
  /** Adds what is not known yet. @returns that */
  receive(pieces: readonly PlacedPiece[]): readonly PlacedPiece[];
  /** All that is kept from an offset on, in as few pieces as there can be. */
  since(offset: number): readonly PlacedPiece[];
}

export function createAttemptLog(keptUnits = KEPT_UNITS): AttemptLog {
  /** Its own, so that a token costs no new one. */
  let kept: { -readonly [Key in keyof PlacedPiece]: PlacedPiece[Key] }[] = [];
  let end = 0;

  const add = (piece: Piece, offset: number): void => {
    const last = kept.at(-1);
    if (last !== undefined && unitsOf(last) < PIECE_UNITS && isContinued(last, piece, offset)) {
      last.text += piece.text;
    } else {
      kept.push({ ...piece, offset });
    }
    end = offset + unitsOf(piece);
    // Seldom, and then half of it: each time costs as much as there are pieces.
    if (end - (kept[0]?.offset ?? end) > 2 * keptUnits) {
      kept = kept.filter((one) => endOf(one) > end - keptUnits);
    }
  };

  return {
    get end() {
      return end;
    },
    push(piece) {
      if (unitsOf(piece) > 0) add(piece, end);
    },
    receive(pieces) {
      const fresh = pieces.filter((piece) => endOf(piece) > end).map((piece) => from(piece, end));
      for (const piece of fresh) add(piece, piece.offset);
      return fresh;
    },
    since(offset) {
      if (offset >= end) return [];
      const first = kept.findLastIndex((piece) => piece.offset <= offset);
      const found: PlacedPiece[] = [];
      for (const piece of kept.slice(Math.max(first, 0))) {
        if (endOf(piece) <= offset) continue;
        const wanted = from(piece, offset);
        const last = found.at(-1);
        if (last !== undefined && isContinued(last, wanted, wanted.offset)) {
          found[found.length - 1] = { ...last, text: last.text + wanted.text };
        } else {
          found.push({ ...wanted });
        }
      }
      return found;
    },
  };
}
