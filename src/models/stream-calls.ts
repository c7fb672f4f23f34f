import { isObject, parseJson } from '../core/json.js';
import type { Tell } from './deltas.js';
import { createReplyMeter, type ReplyMeter } from './reply-limits.js';

/** A call as far as its pieces have come. */
export interface AssembledCall {
  readonly name: string;
  readonly arguments: string;
  /** `extra_content`, which comes whole. */
  readonly extra?: unknown;
}

interface Growing {
  readonly place: number;
  readonly index: unknown;
  readonly id: unknown;
  name: string;
  arguments: string;
  extra?: unknown;
  readonly whole: Wholeness;
  /** Whether what is balanced is also JSON; undefined until somebody asks. */
  isJson?: boolean;
}

interface Piece {
  readonly index: unknown;
  readonly id: unknown;
  readonly name: string;
  readonly arguments: string;
}

/** The calls of a streamed reply while they come. */
export interface CallAssembly {
  readonly calls: readonly AssembledCall[];
  /** Adds one piece of a call, and tells it. Throws a `ReplyTooLargeError`. */
  add(value: unknown): void;
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

/** Parses once: behind balanced brackets nothing but white space can follow, or they count no more. */
function isWhole(call: Growing): boolean {
  if (!call.whole.isBalanced()) return false;
  call.isJson ??= isObject(parseJson(call.arguments));
  return call.isJson;
}

/** The newest call of each number, each id, and each pair of both. */
function createNewest() {
  const byIndex = new Map<unknown, Growing>();
  const byId = new Map<unknown, Growing>();
  const byBoth = new Map<unknown, Map<unknown, Growing>>();
  let newest: Growing | undefined;
  return {
    note(call: Growing): void {
      newest = call;
      byIndex.set(call.index, call);
      byId.set(call.id, call);
      const ids = byBoth.get(call.index) ?? new Map<unknown, Growing>();
      byBoth.set(call.index, ids.set(call.id, call));
    },
    numbered: (index: unknown) => byIndex.get(index),
    named: (id: unknown) => (stringOf(id) === '' ? undefined : byId.get(id)),
    both: (index: unknown, id: unknown) =>
      stringOf(id) === '' ? undefined : byBoth.get(index)?.get(id),
    any: () => newest,
  };
}

type Newest = ReturnType<typeof createNewest>;

/** The call that a piece with a name goes on with, by its number and id; undefined when it has none. */
function namedCall(newest: Newest, piece: Piece): Growing | undefined {
  const hasId = stringOf(piece.id) !== '';
  const isNumbered = typeof piece.index === 'number';
  const same = isNumbered ? newest.both(piece.index, piece.id) : newest.named(piece.id);
  const latest = isNumbered ? newest.numbered(piece.index) : newest.any();
  if (same !== undefined || latest === undefined) return same;
  if (isNumbered) return hasId && stringOf(latest.id) !== '' ? undefined : latest;
  const isOpen = latest.arguments !== '' && !isWhole(latest);
  return !hasId && latest.name === piece.name && isOpen ? latest : undefined;
}

/**
 * The call that a piece belongs to; undefined when it begins a new one. OpenAI numbers calls by
 * `index`; other servers leave it out, send 0 for all calls or number the pieces of one call
 * differently. So a name with a new id begins a new call, and so do a name and arguments behind a
 * call whose arguments are whole; a piece without a name goes on with what is there.
 */
function belongsTo(newest: Newest, piece: Piece): Growing | undefined {
  if (piece.name === '') {
    const here = typeof piece.index === 'number' ? newest.numbered(piece.index) : undefined;
    return newest.both(piece.index, piece.id) ?? here ?? newest.named(piece.id) ?? newest.any();
  }
  const call = namedCall(newest, piece);
  const beginsAnew = piece.arguments.trimStart().startsWith('{');
  return call !== undefined && beginsAnew && isWhole(call) ? undefined : call;
}

/** Gathers the pieces of streamed calls. Takes time in proportion to what comes. */
export function assembleCalls(tell: Tell, meter: ReplyMeter = createReplyMeter()): CallAssembly {
  const calls: Growing[] = [];
  const newest = createNewest();

  const begin = ({ index, id }: Piece): Growing => {
    meter.call();
    const whole = wholeness();
    const call = { place: calls.length, index, id, name: '', arguments: '', whole };
    calls.push(call);
    newest.note(call);
    return call;
  };

  return {
    calls,
    add(value) {
      if (!isObject(value)) return;
      const piece = readPiece(value);
      const call = belongsTo(newest, piece) ?? begin(piece);
      // Some servers repeat the name in each piece, so it is taken once, not joined.
      const name = call.name === '' ? piece.name : '';
      meter.text(name, piece.arguments);
      call.name ||= name;
      call.arguments += piece.arguments;
      call.whole.add(piece.arguments);
      if (isObject(value['extra_content'])) call.extra = value['extra_content'];
      if (name === '' && piece.arguments === '') return;
      tell({
        type: 'call',
        index: call.place,
        ...(name !== '' && { name }),
        ...(piece.arguments !== '' && { arguments: piece.arguments }),
      });
    },
  };
}

/** Whether a text that comes in pieces is a JSON object from end to end. */
interface Wholeness {
  /** Takes the next piece; it is read only when somebody asks. */
  add(piece: string): void;
  /**
   * Whether the brackets of an object that begins the text are closed again, and nothing but white space
   * follows. White space leaves it so, and anything else ends it for good: the text has to be parsed once.
   */
  isBalanced(): boolean;
}

const SPACE = new Set([' ', '\t', '\n', '\r']);

/** Reads every character once, however often it is asked. */
export function wholeness(): Wholeness {
  let unread: string[] = [];
  let depth = 0;
  let state: 'before' | 'inside' | 'text' | 'escape' | 'behind' | 'broken' = 'before';

  const read = (character: string): void => {
    switch (state) {
      case 'escape':
        state = 'text';
        return;
      case 'text':
        if (character === '\\') state = 'escape';
        else if (character === '"') state = 'inside';
        return;
      case 'inside':
        if (character === '"') state = 'text';
        else if (character === '{' || character === '[') depth += 1;
        else if (character === '}' || character === ']') depth -= 1;
        if (depth === 0) state = 'behind';
        return;
      case 'before':
        depth = character === '{' ? 1 : 0;
        if (!SPACE.has(character)) state = depth === 1 ? 'inside' : 'broken';
        return;
      case 'behind':
        if (!SPACE.has(character)) state = 'broken';
        return;
      case 'broken':
    }
  };

  return {
    add(piece) {
      if (piece !== '' && state !== 'broken') unread.push(piece);
    },
    isBalanced() {
      for (const piece of unread) {
        for (let at = 0; at < piece.length; at += 1) read(piece.charAt(at));
      }
      unread = [];
      return state === 'behind';
    },
  };
}
