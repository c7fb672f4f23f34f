import { isObject } from '../core/json.js';
import { reply, type Step } from './steps.js';

/** `reasoning_content`: as DeepSeek with thinking does; `thought_signature`: as Gemini. */
export type Demand = 'reasoning_content' | 'thought_signature';

type Some = Readonly<Record<string, unknown>>;

function listOf(value: unknown): readonly Some[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Calls of one message are signed together, by the first of them. */
function isSigned(message: Some): boolean {
  const extra = listOf(message['tool_calls'])[0]?.['extra_content'];
  const google = isObject(extra) ? extra['google'] : undefined;
  return isObject(google) && typeof google['thought_signature'] === 'string';
}

const WORDS: Readonly<Record<Demand, (index: number) => string>> = {
  reasoning_content: (index) =>
    `Missing \`reasoning_content\` field in the assistant message at message index ${index}.`,
  thought_signature: (index) =>
    `Function call is missing a thought_signature in functionCall parts, position ${index}.`,
};

/** The answer to a request that brings calls back without what was sent with them; for the turn under way. */
export function refusedByServer(body: Some, demand: Demand | undefined): Step | undefined {
  if (demand === undefined) return undefined;
  const messages = listOf(body['messages']);
  const begin = messages.findLastIndex(({ role }) => role === 'user');
  const index = messages.findIndex((message, place) => {
    if (place < begin || listOf(message['tool_calls']).length === 0) return false;
    if (demand === 'thought_signature') return !isSigned(message);
    return typeof message['reasoning_content'] !== 'string';
  });
  if (index < 0) return undefined;
  return reply.error(400, { message: WORDS[demand](index), type: 'invalid_request_error' });
}
