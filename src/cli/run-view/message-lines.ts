import type { Message, UserMessage } from '../../core/transcript/messages.js';
import { formatBytes, visible } from '../../core/text/summaries.js';
import type { Palette } from '../format/output.js';

/**
 * What people and the engine have said to the model, in a line; null where there is nothing to tell.
 * `before`: the message before it, where that is known.
 */
export function saidLine(
  message: UserMessage,
  before: Message | undefined,
  paint: Palette,
): string | null {
  const { compacts, document, origin, side, turn, text } = message;
  if (compacts !== undefined) {
    const { from, to } = compacts;
    return paint.dim(`from here on a summary stands for messages ${from} to ${to}`);
  }
  if (side) return paint.yellow(refusedLine(text));
  if (origin === 'perdure') {
    return paint.yellow('a limit is reached: one last call, for an answer from what is there');
  }
  if (origin === 'retrieved') {
    const name = document?.source ?? document?.id ?? 'a document';
    return paint.dim(
      visible(`retrieved ${name} · ${formatBytes(message.blob?.bytes ?? text.length)}`),
    );
  }
  if (before !== undefined && before.turn === turn) {
    return `joins turn ${turn} · ${visible(text)}`;
  }
  // Whoever starts a run knows what they have said.
  return turn === 1 ? null : `${paint.bold(`turn ${turn}`)} · ${visible(text)}`;
}

/** What the model is told of an answer that was refused: the attempt and what is wrong, in a line. */
function refusedLine(text: string): string {
  const [, attempt = '', rest = text] =
    /^Your answer was not accepted \(attempt (\d+ of \d+)\)\.\n\n(.*)$/s.exec(text) ?? [];
  const [problem = ''] = rest.split('\n\n');
  return visible(`answer refused${attempt === '' ? '' : `, attempt ${attempt}`}: ${problem}`);
}
