import type { Replayed } from '../../worker/replay.js';
import { printable } from '../../core/text/hidden.js';
import type { Palette } from '../format/output.js';
import { formatCount } from '../format/format.js';

/** One line about one history; `good` says that it is the same. */
export function replayLine(
  what: string,
  replayed: Replayed,
  { good, paint }: { readonly good: string; readonly paint: Palette },
): string {
  const named = (color: (text: string) => string, word: string): string =>
    `${color(word)}${' '.repeat(Math.max(1, 11 - word.length))}${oneLine(what)}`;
  switch (replayed.type) {
    case 'same':
      return `${named(paint.green, good)} · ${formatCount(replayed.events, 'event')}`;
    case 'different':
      return `${named(paint.red, 'different')} · ${oneLine(replayed.reason)}`;
    case 'broken':
      return `${named(paint.red, 'broken')} · ${oneLine(replayed.reason)}`;
    case 'no_history':
      return `${named(paint.yellow, 'refused')} · no history: ${oneLine(replayed.reason)}`;
  }
}

function oneLine(text: string): string {
  return printable(text).replaceAll('\n', ' ');
}
