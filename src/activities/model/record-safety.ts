import type { SafetyCheck } from '../../core/transcript/messages.js';
import type { ReplyCall } from '../../models/model.js';
import { wellFormed } from '../../tools/utf8.js';

/** Of one call; the provider gets its own words back whole, these are for people. */
const MOST = 10;
const WORD_CHARACTERS = 200;
const MESSAGE_CHARACTERS = 600;

/** A provider's doubts as the history keeps them. They are never dropped: a call with doubts stays one. */
export function keptSafety({ safety = [] }: ReplyCall): { safety?: readonly SafetyCheck[] } {
  if (safety.length === 0) return {};
  const shown = safety.slice(0, MOST).map(({ id, code, message }) => ({
    id: cut(id, WORD_CHARACTERS),
    ...(code !== undefined && { code: cut(code, WORD_CHARACTERS) }),
    ...(message !== undefined && { message: cut(message, MESSAGE_CHARACTERS) }),
  }));
  const left = safety.length - shown.length;
  const more = { id: 'more', message: `and ${left} further checks` };
  return { safety: left > 0 ? [...shown, more] : shown };
}

function cut(text: string, characters: number): string {
  return text.length <= characters ? wellFormed(text) : `${wellFormed(text.slice(0, characters))}…`;
}
