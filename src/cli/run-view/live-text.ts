import { visible } from '../../core/state/summaries.js';
import { printable } from '../../core/text/text.js';
import type { StreamEvent } from '../../live/stream.js';
import type { ModelDelta } from '../../models/model.js';
import type { CliContext } from '../context.js';
import { type Palette, escapeHidden, pieces } from '../format/format.js';

/** The last lines of the reply in progress, for the live part of the screen. */
export interface LiveText {
  /** Adds an event of the live stream. Returns whether the lines have changed. */
  add(event: StreamEvent): boolean;
  /** Returns the lines, at most `columns` wide. */
  lines(columns: number): readonly string[];
}

const TEXT_LINES = 6;
const THOUGHT_LINES = 2;
/** The number of UTF-16 units to keep; more do not fit into the lines. */
const KEPT_UNITS = 4_000;
/** Marks the model's text, so that it cannot be mistaken for our own lines. */
const MARK = '│ ';
/** The events that do not end the replies in progress. */
const DURING_REPLY: readonly StreamEvent['type'][] = [
  'delta',
  'node-delta',
  'node-superseded',
  'message-added',
  'run-paused',
  'run-resumed',
];
/** The events that end only the replies to their own node. */
const OF_NODE: readonly StreamEvent['type'][] = ['node-replied', 'items-ended'];

interface Reply {
  readonly text: string;
  readonly thought: string;
  /** The call in progress. */
  readonly call: { readonly index: number; readonly name: string; readonly text: string } | null;
}

const EMPTY: Reply = { text: '', thought: '', call: null };

/** A reply in progress to the function of a node. */
interface NodeReply extends Reply {
  readonly node: string;
  readonly item?: number;
}

/** Creates an empty live text. */
export function createLiveText(paint: Palette): LiveText {
  let reply = EMPTY;
  const nodes = createNodeReplies();
  return {
    add(event) {
      if (nodes.add(event)) return true;
      const before = reply;
      if (event.type === 'delta') reply = addDelta(reply, event);
      // The text after a gap is from a later position.
      else if (event.type === 'gap') reply = { ...reply, text: `${reply.text} … ` };
      else if (!DURING_REPLY.includes(event.type)) reply = EMPTY;
      return reply !== before;
    },
    lines(columns) {
      const width = Math.max(columns - MARK.length - 1, 10);
      const shown = nodes.newest();
      const [only] = shown;
      const lines =
        only === undefined || shown.length > 1
          ? [...replyLines(reply, width, paint), ...shown.map((one) => itemLine(one, width, paint))]
          : [paint.dim(nodeName(only)), ...replyLines(only, width, paint)];
      return lines.map((line) => `${paint.dim(MARK)}${line}`);
    },
  };
}

/** Keeps the replies in progress to the functions of nodes. */
function createNodeReplies(): {
  /** Returns whether the replies have changed. */
  add(event: StreamEvent): boolean;
  /** Returns the newest reply of each of the items that began last. */
  newest(): readonly NodeReply[];
} {
  /** By node and item: a function that asks again shows its newest reply. */
  const replies = new Map<string, NodeReply & { readonly number: number }>();
  return {
    add(event) {
      if (event.type === 'node-delta') {
        const { node, item, reply: number, offset } = event;
        const key = keyOf(event);
        const known = replies.get(key);
        if (known !== undefined && number < known.number) return false;
        const isSame = known?.number === number && offset > 0;
        const place = { node, number, ...(item !== undefined && { item }) };
        replies.set(key, { ...place, ...addDelta(isSame ? known : EMPTY, event) });
        return true;
      }
      if (event.type === 'node-superseded') {
        const key = keyOf(event);
        return replies.get(key)?.number === event.reply && replies.delete(key);
      }
      if (event.type === 'node-replied') return replies.delete(keyOf(event));
      const hadReplies = replies.size > 0;
      if (!DURING_REPLY.includes(event.type) && !OF_NODE.includes(event.type)) replies.clear();
      return hadReplies && replies.size === 0;
    },
    newest: () => [...replies.values()].slice(-TEXT_LINES),
  };
}

function keyOf({ node, item }: { readonly node: string; readonly item?: number }): string {
  return `${node}/${item ?? ''}`;
}

function nodeName({ node, item }: NodeReply): string {
  return visible(item === undefined ? `node ${node}` : `node ${node}, item ${item}`);
}

/** Returns the end of one of several replies in one line. */
function itemLine(reply: NodeReply, width: number, paint: Palette): string {
  const name = visible(`${reply.item === undefined ? reply.node : `item ${reply.item}`}: `);
  const [last = ''] = lastLines(reply.text || reply.thought, Math.max(width - name.length, 10), 1);
  return `${paint.dim(name)}${last}`;
}

function replyLines({ text, thought, call }: Reply, width: number, paint: Palette) {
  const textLines =
    text === ''
      ? lastLines(thought, width, THOUGHT_LINES).map((line) => paint.dim(line))
      : lastLines(text, width, TEXT_LINES);
  return [...textLines, ...(call === null ? [] : [paint.cyan(callLine(call, width))])];
}

function addDelta(reply: Reply, { kind, text, index = 0, name = '' }: ModelDelta): Reply {
  switch (kind) {
    case 'text':
      return { ...reply, text: lastUnits(reply.text + text) };
    case 'reasoning':
      return { ...reply, thought: lastUnits(reply.thought + text) };
    case 'call': {
      const same = reply.call?.index === index ? reply.call : { index, name: '', text: '' };
      const call = { index, name: lastUnits(same.name + name), text: lastUnits(same.text + text) };
      return { ...reply, call };
    }
  }
}

function lastUnits(text: string): string {
  return text.length > 2 * KEPT_UNITS ? text.slice(-KEPT_UNITS) : text;
}

function callLine({ name, text }: { name: string; text: string }, width: number): string {
  const whole = `${name} ${text}`;
  // The end of long arguments is the part in progress.
  return visible(whole.length <= width ? whole : `${name} … ${text.slice(-Math.floor(width / 2))}`);
}

/** Escapes control characters before cutting lines, so that no escape is cut in half. */
function lastLines(text: string, width: number, count: number): readonly string[] {
  if (text === '') return [];
  return printable(text)
    .replaceAll('\t', '  ')
    .trimEnd()
    .split('\n')
    .slice(-count)
    .flatMap((line) => pieces(line, width))
    .map((line) => line.trimEnd())
    .slice(-count);
}

/** Shows progress: lines that stay and, on a terminal, live lines that are overwritten. */
export interface Screen {
  line(text: string): void;
  /** Replaces the live lines; does nothing without a terminal. */
  live(text: string): void;
  /** Removes the live lines. */
  close(): void;
}

/** Opens the screen of a command on stderr. */
export async function openScreen({
  isTty,
  note,
  color,
}: Pick<CliContext, 'isTty' | 'note' | 'color'>): Promise<Screen> {
  if (!isTty) return { line: note, live: () => undefined, close: () => undefined };
  const { createLogUpdate } = await import('log-update');
  const region = createLogUpdate(process.stderr);
  let shown = '';
  return {
    line(text) {
      region.clear();
      note(text);
      if (shown !== '') region(shown);
    },
    live(text) {
      shown = escapeHidden(text, color);
      region(shown);
    },
    close() {
      shown = '';
      region.clear();
      region.done();
    },
  };
}
