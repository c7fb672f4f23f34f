import { headOf } from './whole-text.js';
import type { Message, ToolCall } from '../transcript/messages.js';
import { isObject, parseJson } from '../json.js';
import type { AgentDefinition } from '../definition/definition.js';
import type { Spent } from '../turn.js';
import { printable } from './hidden.js';

const ARGUMENT_CHARACTERS = 60;
const SUMMARY_CHARACTERS = 160;

/**
 * Returns one line for people, such as `read_file src/a.ts`. It is built from the arguments, not
 * from model text.
 */
export function callSummary(call: ToolCall): string {
  return visible(call.summary ?? `${call.name} ${shortArguments(call.arguments)}`.trim());
}

/** The part of a run's state that a step's summary needs. */
interface StepState {
  readonly config: { readonly definition: Pick<AgentDefinition, 'model'> };
  readonly transcript: { readonly messages: readonly Message[] };
  readonly turn: { readonly spent: Pick<Spent, 'steps'> };
}

/**
 * Returns the step and the model's new input in it: `step 4 · after read_file src/a.ts · 3.1 kB`.
 */
export function stepSummary(state: StepState, closing: boolean): string {
  const name = closing ? 'closing call' : `step ${state.turn.spent.steps + 1}`;
  const { messages } = state.transcript;
  const tools = messages.slice(
    messages.findLastIndex((message) => message.role === 'assistant') + 1,
  );
  const results = tools.filter((message) => message.role === 'tool');
  if (results.length === 0) return `${name} · ${state.config.definition.model}`;
  const size = formatBytes(results.reduce((sum, result) => sum + result.text.length, 0));
  return visible(`${name} · after ${afterWhat(messages, results)} · ${size}`);
}

function afterWhat(messages: readonly Message[], results: readonly Message[]): string {
  if (results.length > 1) return `${results.length} calls`;
  const last = messages.findLast((message) => message.role === 'assistant');
  const call = last?.role === 'assistant' ? last.calls?.[0] : undefined;
  return call === undefined ? 'a call' : callSummary(call);
}

/** Returns a size with its unit: B, kB, or MB. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function shortArguments(json: string): string {
  if (json.length > 4_000) return formatBytes(json.length);
  const value = parseJson(json);
  if (!isObject(value)) return '';
  const words = Object.values(value)
    .filter((item) => ['string', 'number', 'boolean'].includes(typeof item))
    .map((item) => cut(String(item), ARGUMENT_CHARACTERS));
  return words.join(' ');
}

/**
 * Returns a text as one short line for terminals and pages: hidden characters become escapes, line
 * breaks and tabs become spaces.
 */
export function visible(text: string): string {
  // An escape is never shorter than the character.
  const shown = printable(text.slice(0, 2 * SUMMARY_CHARACTERS)).replaceAll(/[\n\t]/g, ' ');
  return cut(shown, SUMMARY_CHARACTERS);
}

/** Cuts a text, never inside a surrogate pair. */
function cut(text: string, characters: number): string {
  if (text.length <= characters) return text;
  return `${headOf(text, characters - 1)}…`;
}
