import type { ReplayResult } from '../../worker/replay.js';
import { printable } from '../../core/text/hidden.js';
import type { Palette } from '../format/output.js';
import { formatCount } from '../format/format.js';

/** Returns the line about one history. `good` is the word for a history that replays. */
export function replayLine(
  name: string,
  replayed: ReplayResult,
  { good, paint }: { readonly good: string; readonly paint: Palette },
): string {
  const labeled = (color: (text: string) => string, word: string): string =>
    `${color(word)}${' '.repeat(Math.max(1, 11 - word.length))}${oneLine(name)}`;
  switch (replayed.type) {
    case 'same':
      return `${labeled(paint.green, good)} · ${formatCount(replayed.events, 'event')}`;
    case 'different':
      return `${labeled(paint.red, 'different')} · ${oneLine(replayed.reason)}`;
    case 'broken':
      return `${labeled(paint.red, 'broken')} · ${oneLine(replayed.reason)}`;
    case 'no_history':
      return `${labeled(paint.yellow, 'refused')} · not a history: ${oneLine(replayed.reason)}`;
  }
}

function oneLine(text: string): string {
  return printable(text).replaceAll('\n', ' ');
}
