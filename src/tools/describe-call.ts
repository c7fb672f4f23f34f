import { guarded } from './guard.js';
import { redactMessage } from '../secrets/redact.js';
import type { Tool } from './tool.js';
import { headBytes } from './utf8.js';

const MAX_BYTES = 200;

/**
 * Describes a call to people in one line of at most 200 bytes. Returns undefined if the tool has no
 * `describe` or if it fails, because a faulty description must not prevent a call.
 */
export async function describeCall(
  tool: Pick<Tool, 'name' | 'describe'>,
  input: unknown,
): Promise<string | undefined> {
  if (!tool.describe) return undefined;
  const result = await guarded(`describe of tool "${tool.name}"`, () => tool.describe?.(input));
  if (!result.ok || typeof result.value !== 'string') return undefined;
  const line = redactMessage(result.value)
    .replace(/[\p{Control}\p{Bidi_Control}]+/gu, ' ')
    .trim();
  if (line === '') return undefined;
  return Buffer.byteLength(line) > MAX_BYTES ? `${headBytes(line, MAX_BYTES - 3)}…` : line;
}
