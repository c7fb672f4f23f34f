import { isObject, parseJson } from '../core/json.js';
import type { Tell } from './deltas.js';

/** A call as far as its pieces have come. */
export interface AssembledCall {
  readonly index: unknown;
  readonly id: unknown;
  name: string;
  arguments: string;
  /** `extra_content`, which comes whole. */
  extra?: unknown;
}

interface Piece {
  readonly index: unknown;
  readonly id: unknown;
  readonly name: string;
  readonly arguments: string;
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function readPiece(value: Record<string, unknown>): Piece {
  const asked = isObject(value['function']) ? value['function'] : {};
  const { arguments: given } = asked;
  return {
    index: value['index'],
    id: value['id'],
    name: stringOf(asked['name']),
    arguments: isObject(given) ? JSON.stringify(given) : stringOf(given),
  };
}

function isWhole(json: string): boolean {
  return json.trimEnd().endsWith('}') && isObject(parseJson(json));
}

/** The call that a piece with a name goes on with, by its number and id; undefined when it has none. */
function namedCall(calls: readonly AssembledCall[], piece: Piece): AssembledCall | undefined {
  const hasId = stringOf(piece.id) !== '';
  const isNumbered = typeof piece.index === 'number';
  const possible = isNumbered ? calls.filter(({ index }) => index === piece.index) : calls;
  const same = hasId ? possible.findLast(({ id }) => id === piece.id) : undefined;
  const latest = possible.at(-1);
  if (same !== undefined || latest === undefined) return same;
  if (isNumbered) return hasId && stringOf(latest.id) !== '' ? undefined : latest;
  const isUnderWay = latest.arguments !== '' && !isWhole(latest.arguments);
  return !hasId && latest.name === piece.name && isUnderWay ? latest : undefined;
}

/**
 * The call that a piece belongs to; undefined when it begins a new one. OpenAI numbers calls by
 * `index`; other servers leave it out, send 0 for all calls or number the pieces of one call
 * differently. So a name with a new id begins a new call, and so do a name and arguments behind a
 * call whose arguments are whole; a piece without a name goes on with what is there.
 */
function belongsTo(calls: readonly AssembledCall[], piece: Piece): AssembledCall | undefined {
  if (piece.name === '') {
    const byId = calls.filter(({ id }) => stringOf(id) !== '' && id === piece.id);
    const isHere = ({ index }: AssembledCall): boolean => index === piece.index;
    const here = typeof piece.index === 'number' ? calls.filter(isHere) : [];
    return byId.findLast(isHere) ?? here.at(-1) ?? byId.at(-1) ?? calls.at(-1);
  }
  const call = namedCall(calls, piece);
  const beginsAnew = piece.arguments.trimStart().startsWith('{');
  return call !== undefined && beginsAnew && isWhole(call.arguments) ? undefined : call;
}

/** Adds one piece of a streamed call to those that are there, and tells it. */
export function addPiece(calls: AssembledCall[], value: unknown, tell: Tell): void {
  if (!isObject(value)) return;
  const piece = readPiece(value);
  let call = belongsTo(calls, piece);
  if (call === undefined) {
    call = { index: piece.index, id: piece.id, name: '', arguments: '' };
    calls.push(call);
  }
  // Some servers repeat the name in each piece, so it is taken once, not joined.
  const name = call.name === '' ? piece.name : '';
  call.name ||= name;
  call.arguments += piece.arguments;
  if (isObject(value['extra_content'])) call.extra = value['extra_content'];
  if (name === '' && piece.arguments === '') return;
  tell({
    type: 'call',
    index: calls.indexOf(call),
    ...(name !== '' && { name }),
    ...(piece.arguments !== '' && { arguments: piece.arguments }),
  });
}
