import { asksCatalog } from './catalog/catalog.js';
import type { StopReason } from './outcome.js';
import type { RunState } from './state.js';

const TEXT_CHARACTERS = 4_000;
const RESULT_CHARACTERS = 500;
const RESULTS = 5;

/** What the closing call is told; fixed, so that it never breaks the prompt prefix. */
export const CLOSING_INSTRUCTION =
  'A limit of this run is reached: no further tool can be called. Answer now, from what is above. ' +
  'Say plainly what is known, and what could not be finished.';

/** The answer of the last rung: composed by code from the turn's last text and results. */
export function composeAnswer(state: RunState, reason: StopReason): string {
  const mine = state.transcript.messages.filter((message) => message.turn === state.turn.number);
  const { definition } = state.config;
  // What tools there are is no answer to anybody.
  const lists = new Set(
    mine
      .flatMap((message) => (message.role === 'assistant' ? (message.calls ?? []) : []))
      .flatMap((call) => (asksCatalog(definition, call) ? [call.id] : [])),
  );
  const lastText = mine.findLast((message) => message.role === 'assistant' && message.text !== '');
  const results = mine
    .filter((message) => message.role === 'tool' && !lists.has(message.callId))
    .slice(-RESULTS);
  const parts = [`Stopped: ${describeStop(reason)} after ${state.turn.spent.steps} step(s).`];
  if (lastText !== undefined) parts.push(`Last text: ${cut(lastText.text, TEXT_CHARACTERS)}`);
  for (const result of results) parts.push(`Result: ${cut(result.text, RESULT_CHARACTERS)}`);
  return parts.join('\n\n');
}

export function describeStop(reason: StopReason): string {
  return reason === 'no_progress' ? 'no progress was made' : `the limit "${reason}" was reached`;
}

function cut(text: string, characters: number): string {
  if (text.length <= characters) return text;
  return `${text.slice(0, characters)}… (${text.length - characters} more characters)`;
}
