import type { Message, ToolCall } from './messages.js';
import { isObject, parseJson } from './json.js';
import type { RunState } from './state.js';

const ARGUMENT_CHARACTERS = 60;
const SUMMARY_CHARACTERS = 160;

/** One line for people: `read_file src/a.ts`. Made from the real arguments, never from model prose. */
export function callSummary(call: ToolCall): string {
  return visible(call.summary ?? `${call.name} ${shortArguments(call.arguments)}`.trim());
}

/** `step 4 · after read_file src/a.ts · 3.1 kB`: where the run stands and what the model now reads. */
export function stepSummary(state: RunState, closing: boolean): string {
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

/** Control characters and direction marks are shown, not obeyed: a summary is read in terminals and pages. */
export function visible(text: string): string {
  const shown = text.replace(
    // oxlint-disable-next-line no-control-regex -- control characters are the point
    /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (character) => (character === '\n' ? ' ' : '�'),
  );
  return cut(shown, SUMMARY_CHARACTERS);
}

function cut(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters - 1)}…`;
}
