import { isObject, parseJson } from '../../../core/json.js';
import type { EmitDelta } from '../../deltas.js';
import { toText } from '../../wire/content.js';
import { createReplyMeter, type ReplyMeter } from '../../wire/reply-limits.js';

/** The calls of a streamed reply so far. */
export interface CallAssembly {
  readonly calls: readonly AssembledCall[];
  /** Adds one part of a call and emits it. Throws a `ReplyTooLargeError` beyond a limit. */
  add(value: unknown): void;
}

export interface AssembledCall {
  readonly name: string;
  readonly arguments: string;
  /** The call's `extra_content`, which is not streamed in parts. */
  readonly extra?: unknown;
}

interface OpenCall {
  readonly place: number;
  readonly index: unknown;
  readonly id: unknown;
  name: string;
  arguments: string;
  extra?: unknown;
  readonly scanner: ObjectScanner;
  /** Whether balanced arguments are also JSON; undefined until it is needed. */
  isJson?: boolean;
}

interface Part {
  readonly index: unknown;
  readonly id: unknown;
  readonly name: string;
  readonly arguments: string;
}

/** Assembles the parts of streamed calls, in time proportional to their length. */
export function assembleCalls(
  emit: EmitDelta,
  meter: ReplyMeter = createReplyMeter(),
): CallAssembly {
  const calls: OpenCall[] = [];
  const latest = createLatest();

  const begin = ({ index, id }: Part): OpenCall => {
    meter.call();
    const scanner = createObjectScanner();
    const call = { place: calls.length, index, id, name: '', arguments: '', scanner };
    calls.push(call);
    latest.set(call);
    return call;
  };

  return {
    calls,
    add(value) {
      if (!isObject(value)) return;
      const part = readPart(value);
      const call = findCall(latest, part) ?? begin(part);
      // Some servers repeat the name in each part, so it is set once and not joined.
      const name = call.name === '' ? part.name : '';
      meter.text(name, part.arguments);
      call.name ||= name;
      call.arguments += part.arguments;
      call.scanner.add(part.arguments);
      if (isObject(value['extra_content'])) call.extra = value['extra_content'];
      if (name === '' && part.arguments === '') return;
      emit({
        kind: 'call',
        index: call.place,
        text: part.arguments,
        ...(name !== '' && { name }),
      });
    },
  };
}

function readPart(value: Record<string, unknown>): Part {
  const requested = isObject(value['function']) ? value['function'] : {};
  const { arguments: given } = requested;
  return {
    index: value['index'],
    id: value['id'],
    name: toText(requested['name']),
    arguments: isObject(given) ? JSON.stringify(given) : toText(given),
  };
}

/**
 * Returns the call to which a part belongs; undefined if it begins a new one. OpenAI numbers calls
 * by `index`; other servers omit it, send 0 for all calls, or number the parts of one call. A name
 * with a new id therefore begins a new call, as does a name with arguments after a call with
 * complete arguments. A part without a name continues an existing call.
 */
function findCall(latest: LatestCalls, part: Part): OpenCall | undefined {
  if (part.name === '') {
    const numbered = typeof part.index === 'number' ? latest.byIndex(part.index) : undefined;
    return latest.byBoth(part.index, part.id) ?? numbered ?? latest.byId(part.id) ?? latest.any();
  }
  const call = findNamedCall(latest, part);
  const beginsObject = part.arguments.trimStart().startsWith('{');
  return call !== undefined && beginsObject && isComplete(call) ? undefined : call;
}

function findNamedCall(latest: LatestCalls, part: Part): OpenCall | undefined {
  const hasId = toText(part.id) !== '';
  const hasIndex = typeof part.index === 'number';
  const same = hasIndex ? latest.byBoth(part.index, part.id) : latest.byId(part.id);
  const previous = hasIndex ? latest.byIndex(part.index) : latest.any();
  if (same !== undefined || previous === undefined) return same;
  if (hasIndex) return hasId && toText(previous.id) !== '' ? undefined : previous;
  const isOpen = previous.arguments !== '' && !isComplete(previous);
  return !hasId && previous.name === part.name && isOpen ? previous : undefined;
}

/**
 * Whether the arguments are complete. It parses at most once: only whitespace after balanced
 * brackets keeps them complete.
 */
function isComplete(call: OpenCall): boolean {
  if (!call.scanner.isBalanced()) return false;
  call.isJson ??= isObject(parseJson(call.arguments));
  return call.isJson;
}

/** The latest call of each index, each id, and each pair of both. */
function createLatest() {
  const indexes = new Map<unknown, OpenCall>();
  const ids = new Map<unknown, OpenCall>();
  const pairs = new Map<unknown, Map<unknown, OpenCall>>();
  let latest: OpenCall | undefined;
  return {
    set(call: OpenCall): void {
      latest = call;
      indexes.set(call.index, call);
      ids.set(call.id, call);
      const idsOfIndex = pairs.get(call.index) ?? new Map<unknown, OpenCall>();
      pairs.set(call.index, idsOfIndex.set(call.id, call));
    },
    byIndex: (index: unknown) => indexes.get(index),
    byId: (id: unknown) => (toText(id) === '' ? undefined : ids.get(id)),
    byBoth: (index: unknown, id: unknown) =>
      toText(id) === '' ? undefined : pairs.get(index)?.get(id),
    any: () => latest,
  };
}

type LatestCalls = ReturnType<typeof createLatest>;

/** Checks whether a text that arrives in parts is a single object, without parsing it. */
interface ObjectScanner {
  /** Adds the next part, which is scanned only when the result is needed. */
  add(part: string): void;
  /**
   * Returns true if the text begins with `{`, its brackets are balanced, and only whitespace
   * follows. It may not be JSON.
   */
  isBalanced(): boolean;
}

const WHITE_SPACE = new Set([' ', '\t', '\n', '\r']);

/** Creates a scanner that scans each character once, regardless of the number of parts. */
export function createObjectScanner(): ObjectScanner {
  let unread: string[] = [];
  let depth = 0;
  let state: 'before' | 'inside' | 'text' | 'escape' | 'after' | 'broken' = 'before';

  const scan = (character: string): void => {
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
        if (depth === 0) state = 'after';
        return;
      case 'before':
        depth = character === '{' ? 1 : 0;
        if (!WHITE_SPACE.has(character)) state = depth === 1 ? 'inside' : 'broken';
        return;
      case 'after':
        if (!WHITE_SPACE.has(character)) state = 'broken';
        return;
      case 'broken':
    }
  };

  return {
    add(part) {
      if (part !== '' && state !== 'broken') unread.push(part);
    },
    isBalanced() {
      for (const part of unread) {
        for (let at = 0; at < part.length; at += 1) scan(part.charAt(at));
      }
      unread = [];
      return state === 'after';
    },
  };
}
