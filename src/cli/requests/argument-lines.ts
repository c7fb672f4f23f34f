import { headOf, tailOf } from '../../core/text/whole-text.js';
import { isObject, parseJson } from '../../core/json.js';
import { escapeArguments, printable } from '../../core/text/hidden.js';
import { formatBytes } from '../../core/text/summaries.js';
import { formatCount } from '../format/format.js';
import { wrapped } from './wrap.js';

/** How much of the arguments is shown. */
export interface ArgumentOptions {
  /** Truncate nothing. */
  readonly full: boolean;
  /** The width of a line in columns. */
  readonly width: number;
}

/** The arguments of a call, formatted for people. */
export interface ShownArguments {
  readonly lines: readonly string[];
  /** Whether something was truncated; the lines state what. */
  readonly cut: boolean;
}

/** The number of UTF-16 units that are shown from the start and the end of one argument. */
const HEAD = 300;
const TAIL = 100;
const MAX_ARGUMENTS = 40;
/** Other names are shown as JSON. */
const PLAIN_NAME = /^[A-Za-z_][\w-]*$/;

/**
 * Returns the arguments of a call, each as JSON in a line of its own, exactly as they will be
 * executed. Hidden characters are JSON escapes. Truncated parts are stated with their size.
 */
export function argumentLines(json: string, { full, width }: ArgumentOptions): ShownArguments {
  const value = parseJson(json);
  if (!isObject(value)) {
    const { text, cut } = shorten(
      value === undefined ? printable(json) : escapeArguments(json),
      full,
    );
    return { lines: wrapped(`  ${text.replaceAll('\n', '\\n')}`, width), cut };
  }
  const all = Object.entries(value);
  if (all.length === 0) return { lines: ['  none'], cut: false };
  const shown = full ? all : all.slice(0, MAX_ARGUMENTS);
  const each = shown.map(([name, argument]) => oneArgument(name, argument, full));
  const left = all.length - shown.length;
  const rest = left > 0 ? [`… ${formatCount(left, 'more argument')}`] : [];
  return {
    lines: [...each.map(({ text }) => text), ...rest].flatMap((line) =>
      wrapped(`  ${line}`, width),
    ),
    cut: left > 0 || each.some(({ cut }) => cut),
  };
}

interface Shortened {
  readonly text: string;
  readonly cut: boolean;
}

function oneArgument(name: string, value: unknown, full: boolean): Shortened {
  const { text, cut } = shorten(JSON.stringify(value), full);
  const label = shorten(PLAIN_NAME.test(name) ? name : JSON.stringify(name), full);
  return { text: `${label.text}: ${text}`, cut: cut || label.cut };
}

/** Keeps the head and the tail, and states the size of the omitted part. */
function shorten(json: string, full: boolean): Shortened {
  if (full || json.length <= HEAD + TAIL) return { text: escapeArguments(json), cut: false };
  const head = headOf(json, HEAD);
  const tail = tailOf(json, TAIL);
  const left = json.length - head.length - tail.length;
  const size = `${formatBytes(Buffer.byteLength(json))} in all`;
  const note = `[… ${formatCount(left, 'character')} not shown, ${size} …]`;
  return { text: `${escapeArguments(head)} ${note} ${escapeArguments(tail)}`, cut: true };
}
