import type { StreamOptions } from '../live/run-streams.js';
import type { StreamEvent } from '../live/stream-events.js';

/** Options of `text`: the turn, and what to do when text that was shown does not count. */
export interface TextOptions extends StreamOptions {
  /** The turn to read; default: the newest turn of the run. */
  readonly turn?: number;
  /**
   * Called when the reply in progress does not count, because its attempt failed or its answer was
   * refused. `kept` is the text of the turn that still counts; what comes next continues it. Without
   * this function, the text goes on after an empty line with the reply that counts.
   */
  readonly onReset?: (kept: string) => void;
}

const BREAK = '\n\n';

/**
 * Yields the text of one turn of a run as it is written, and ends with the turn. Joined, it is the
 * text of the turn's replies, with an empty line between two replies. A repeated attempt that writes
 * the same text goes on where the first one stopped. What was not streamed comes whole, when it is
 * durable.
 */
export async function* textOfTurn(
  events: AsyncIterable<StreamEvent>,
  { turn, onReset }: Pick<TextOptions, 'onReset'> & { readonly turn: number },
): AsyncGenerator<string, void, undefined> {
  /** The text of the replies that are durable. */
  let kept = '';
  /** What was yielded of the reply in progress, and what its attempt has written so far. */
  let shown = '';
  let written = '';
  let isComplete = true;
  /** Whether void text was yielded, so that the next text begins a line of its own. */
  let isBroken = false;

  function* advance(target: string): Generator<string, void, undefined> {
    if (!target.startsWith(shown)) {
      shown = '';
      isBroken = onReset === undefined;
      onReset?.(kept);
    }
    const rest = target.slice(shown.length);
    if (rest === '') return;
    const begins = shown === '' && (kept !== '' || isBroken);
    shown = target;
    isBroken = false;
    yield begins ? BREAK + rest : rest;
  }
  const close = (text: string): void => {
    if (text !== '') kept = kept === '' ? text : kept + BREAK + text;
    shown = '';
    written = '';
    isComplete = true;
  };

  for await (const event of events) {
    if (event.type === 'run-ended') return;
    if (turnOf(event) !== turn) continue;
    if (event.type === 'delta' && event.kind === 'text') {
      written += event.text;
      // An attempt that has written less than was shown may still catch up.
      if (isComplete && !shown.startsWith(written)) yield* advance(written);
    } else if (event.type === 'superseded') {
      written = '';
      isComplete = true;
    } else if (event.type === 'gap') {
      isComplete = false;
    } else if (event.type === 'model-replied') {
      yield* advance(event.message.text);
      close(event.message.text);
    } else if (event.type === 'answer-refused') {
      yield* advance('');
      close('');
    } else if (event.type === 'turn-ended') {
      const { answer, blob } = event.outcome;
      if (answer !== null && blob === undefined && !kept.endsWith(answer)) yield* advance(answer);
      return;
    }
  }
}

function turnOf(event: StreamEvent): number | null {
  switch (event.type) {
    case 'delta':
    case 'superseded':
    case 'gap':
    case 'turn-ended':
      return event.turn;
    case 'model-replied':
    case 'answer-refused':
      return event.message.turn;
    default:
      return null;
  }
}
