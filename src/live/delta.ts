import type { Delta } from '../models/model.js';
import type { LiveAttempt } from './attempt.js';

/** What was told of an attempt in one go. `call`: the arguments of a call, as JSON text in the making. */
export interface Piece {
  readonly kind: 'text' | 'reasoning' | 'call';
  readonly text: string;
  /** Of a call: its place in the reply, from 0. */
  readonly index?: number;
  /** Of a call, with its first piece. */
  readonly name?: string;
}

/** A piece in its place: UTF-16 units, names included, that were told of the attempt before it. */
export type PlacedPiece = Piece & { readonly offset: number };

/** Pieces of an attempt on their way; none of them: it has only begun. */
export interface Frame {
  readonly attempt: LiveAttempt;
  readonly pieces: readonly PlacedPiece[];
}

export function pieceOf(delta: Delta): Piece {
  if (delta.type !== 'call') return { kind: delta.type, text: delta.text };
  const { index, name, arguments: text = '' } = delta;
  return { kind: 'call', text, index, ...(name !== undefined && { name }) };
}

/** UTF-16 units by which it takes the attempt on. */
export function unitsOf({ text, name = '' }: Piece): number {
  return name.length + text.length;
}

export function endOf(piece: PlacedPiece): number {
  return piece.offset + unitsOf(piece);
}

/** What of a piece is not before this offset; the piece itself where all of it is. */
export function from(piece: PlacedPiece, offset: number): PlacedPiece {
  if (offset <= piece.offset) return piece;
  const { name = '', ...rest } = piece;
  const cut = offset - piece.offset;
  const left = name.slice(cut);
  const text = piece.text.slice(Math.max(0, cut - name.length));
  return { ...rest, text, offset, ...(left !== '' && { name: left }) };
}

/** Whether the second, at this offset, goes on exactly where the first one ends, in the same part of the reply. */
export function isContinued(one: PlacedPiece, other: Piece, offset: number): boolean {
  return (
    other.name === undefined &&
    one.kind === other.kind &&
    one.index === other.index &&
    endOf(one) === offset
  );
}
