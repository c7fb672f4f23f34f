import { listInLine } from '../core/state/summaries.js';
import { toolText } from '../core/state/turn-definition.js';
import { type Json, type JsonObject, isObject, parseJson } from '../core/text/json.js';
import { headOf, show, tailOf, visibleJson } from '../core/text/text.js';
import { failureOf } from '../core/transcript/call-result.js';
import type { ToolCall } from '../core/transcript/messages.js';

/** A call by its tool and its arguments. */
export interface ComparedCall {
  readonly tool: string;
  readonly arguments: Json;
}

/** Returns a value that is compared, in a few words. */
export function valueText(value: Json): string {
  if (value === null) return 'nothing';
  return isComparedCall(value) ? callText(value) : show(value);
}

export function isComparedCall(value: Json): value is Json & ComparedCall {
  return typeof value === 'object' && value !== null && 'tool' in value && 'arguments' in value;
}

/** The function of a node has no arguments that are compared. */
export function callText({ tool, arguments: args }: ComparedCall): string {
  const name = toolText({ name: tool });
  return args === null ? name : `${name} ${show(args)}`;
}

/** Returns a call of a message as it is compared. */
export function comparedCall({
  name,
  arguments: text,
}: Pick<ToolCall, 'name' | 'arguments'>): JsonObject & ComparedCall {
  return { tool: name, arguments: argumentsOf(text) };
}

function argumentsOf(text: string): Json {
  const value = parseJson(text);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  return value === undefined ? text : (value as Json);
}

/** The words of a message as a difference shows them: who said them, and the failure of a call in plain form. */
function wordsOf(message: Json): { readonly by: string; readonly words: string } | null {
  if (!isObject(message)) return null;
  const { role, text } = message;
  if (typeof text !== 'string') return null;
  const failure = role === 'tool' ? failureOf({ text }) : null;
  if (failure !== null)
    return { by: 'the result ', words: `${failure.type}: ${listInLine(failure.message)}` };
  return {
    by: role === 'tool' ? 'the result ' : role === 'user' ? 'the message ' : '',
    words: text,
  };
}

/** The characters that are shown of a long message, and of what is equal before the first difference. */
const SHOWN = 120;
const EQUAL = 20;

/** Returns what a message says, and what the recorded one does, from about the first difference on. */
export function saidText(actual: Json, recorded: Json): string {
  const [said, before] = [wordsOf(actual), wordsOf(recorded)];
  if (said === null && before === null)
    return `said ${valueText(actual)}; recorded ${valueText(recorded)}`;
  const [one, other] = [said?.words ?? '', before?.words ?? ''];
  let same = 0;
  while (same < one.length && one[same] === other[same]) same += 1;
  const from = Math.max(one.length, other.length) > SHOWN ? Math.max(0, same - EQUAL) : 0;
  const shown = (of: { readonly by: string; readonly words: string } | null): string => {
    if (of === null) return 'nothing';
    const cut = headOf(tailOf(of.words, of.words.length - from), SHOWN);
    const rest = from + cut.length < of.words.length ? '…' : '';
    return `${of.by}${visibleJson(`${from > 0 ? '…' : ''}${cut}${rest}`)}`;
  };
  const verb = said === null || said.by === '' ? 'said' : 'has';
  return `${verb} ${shown(said)}; recorded ${shown(before)}`;
}
