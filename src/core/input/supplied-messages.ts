import { isObject } from '../json.js';
import { show } from '../text/format-value.js';
import { tooLong } from './check-object.js';

/**
 * One of several messages that are sent as one: a person's text, or an assistant's earlier reply.
 */
export interface SuppliedMessage {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

const MAX_MESSAGES = 100;
const EXAMPLE = '[{"role": "user", "text": "Hello"}]';

/** Returns what is wrong with several messages that are sent as one, or null. */
export function checkMessages(value: unknown): string | null {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_MESSAGES) {
    const got = Array.isArray(value) ? `${value.length}` : show(value);
    return `messages: expected a list of 1–${MAX_MESSAGES} messages, got ${got}; give for example ${EXAMPLE}`;
  }
  const found = value.map((one: unknown, index) => messageProblem(one, `messages[${index}]`));
  const problem = found.find((one) => one !== null);
  if (problem !== undefined) return problem;
  const messages = value.filter(isObject);
  const ends = [0, messages.length - 1].find((index) => messages[index]?.['role'] !== 'user');
  if (ends !== undefined) {
    return `messages[${ends}].role: expected "user" for the first and the last message, got "assistant"`;
  }
  const sum = messages.reduce((all, { text }) => all + String(text).length, 0);
  return tooLong('messages', sum);
}

function messageProblem(one: unknown, at: string): string | null {
  if (!isObject(one)) return `${at}: expected an object, got ${show(one)}; give ${EXAMPLE}`;
  const { role, text, ...rest } = one;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined)
    return `${at}.${unknown}: expected one of role, text; remove this field`;
  if (role !== 'user' && role !== 'assistant') {
    return `${at}.role: expected "user" or "assistant", got ${show(role)}; instructions belong to the agent`;
  }
  if (typeof text === 'string' && text.trim() !== '') return null;
  return `${at}.text: expected a text, got ${show(text)}`;
}

/** Returns why `messages` conflicts with other fields that supply a text, or null. */
export function suppliedProblem(value: Record<string, unknown>): string | null {
  const { messages, message, prompt, input } = value;
  if (messages === undefined) return null;
  const others = { message: message === '' ? undefined : message, prompt, input };
  const other = Object.entries(others).find(([, one]) => one !== undefined);
  if (other === undefined) return checkMessages(messages);
  return `${other[0]}: cannot be combined with "messages"; remove one`;
}
