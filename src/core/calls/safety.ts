import type { ToolCall } from '../transcript/messages.js';
import { visible } from '../text/summaries.js';

/** Returns the safety checks of a call in the provider's words. */
export function safetyWords(call: Pick<ToolCall, 'safety'>): string {
  const checks = (call.safety ?? []).map(({ code, message, id }) => {
    const words = [code, message].filter((word) => word !== undefined && word !== '');
    return visible(words.length === 0 ? id : words.join(': '));
  });
  return `the provider asks for a person's decision (${checks.join('; ')})`;
}
