import { stepsOf } from './graph/node-tool.js';
import { isCatalogCall } from './catalog/catalog.js';
import { STOP_REASONS, type StopReason } from './outcome.js';
import type { RunState } from './state.js';
import { fillText } from './text/author-texts.js';

const TEXT_CHARACTERS = 4_000;
const RESULT_CHARACTERS = 500;
const RESULTS = 5;

/**
 * The message before a closing call. It is fixed, so that it does not change the prompt's prefix.
 */
export const CLOSING_INSTRUCTION =
  'This run has reached a limit, so you cannot call more tools. Answer now from the conversation ' +
  'above. State what is known and what you could not finish.';

/**
 * Returns the message before the closing call of a turn, in the author's words if they have any.
 */
export function closingText({ config }: RunState, reason: StopReason): string {
  const { closing } = config.definition.texts ?? {};
  return closing === undefined
    ? CLOSING_INSTRUCTION
    : fillText(closing, { reason: describeStop(reason) });
}

/** Returns whether a message to the model asks for the last answer of a turn at a limit. */
export function isClosingText(state: RunState, text: string): boolean {
  return STOP_REASONS.some((reason) => closingText(state, reason) === text);
}

/** Returns the answer of a turn without a closing call, composed from its last text and results. */
export function composeAnswer(state: RunState, reason: StopReason): string {
  const own = state.transcript.messages.filter((message) => message.turn === state.turn.number);
  const { definition } = state.config;
  // A list of tools is not part of an answer.
  const lists = new Set(
    own
      .flatMap((message) => (message.role === 'assistant' ? (message.calls ?? []) : []))
      .flatMap((call) => (isCatalogCall(definition, call) ? [call.id] : [])),
  );
  const lastText = own.findLast(
    (message) => message.role === 'assistant' && message.supplied !== true && message.text !== '',
  );
  const results = own
    .filter((message) => message.role === 'tool' && !lists.has(message.callId))
    .slice(-RESULTS);
  const parts = [`Stopped: ${describeStop(reason)} after ${stepsOf(state)} step(s).`];
  if (lastText !== undefined) parts.push(`Last text: ${cut(lastText.text, TEXT_CHARACTERS)}`);
  for (const result of results) parts.push(`Result: ${cut(result.text, RESULT_CHARACTERS)}`);
  return parts.join('\n\n');
}

/** Returns the reason of a stop in words. */
export function describeStop(reason: StopReason): string {
  switch (reason) {
    case 'no_progress':
      return 'no progress was made';
    case 'denied':
      return 'people denied its calls';
    default:
      return `the limit "${reason}" was reached`;
  }
}

function cut(text: string, characters: number): string {
  if (text.length <= characters) return text;
  return `${text.slice(0, characters)}… (${text.length - characters} more characters)`;
}
