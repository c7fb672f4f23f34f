import type { Json } from '../../core/json.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { UsageError } from '../exit-codes.js';
import { submitDecision } from '../requests/decide.js';

export interface AnswerCommandOptions {
  readonly id: string;
  readonly request: string;
  /** The words of the answer. */
  readonly text: readonly string[];
  readonly digest?: string;
  /** Parsed JSON. */
  readonly result?: Json;
  readonly by?: string;
}

/** `answer ID REQUEST`: answers a question, or provides the result of a call. */
export const answer: Command<AnswerCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('<id>', 'the run')
        .argument('<request>', 'the request, as inbox shows it')
        .argument('[text...]', 'the answer as text'),
      'digest',
      'result',
      'by',
    ),
  async run(context, { text, result, ...given }) {
    const what = { as: 'answer', command: 'answer', result: resultOf(text, result) } as const;
    return await submitDecision(context, { ...given, ...what });
  },
};

/** Returns the answer, as text or JSON. Throws a `UsageError` unless exactly one is given. */
export function resultOf(text: readonly string[], result: Json | undefined): Json {
  const words = text.join(' ');
  if (result !== undefined && text.length > 0) {
    throw new UsageError('--result: expected either TEXT or --result JSON, got both; omit one');
  }
  if (result !== undefined) return result;
  if (words.trim() !== '') return words;
  throw new UsageError('text: expected an answer, got none; give TEXT or --result JSON');
}
