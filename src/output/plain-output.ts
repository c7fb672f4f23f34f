import type { Json } from '../core/json.js';
import type { ParsedAnswer } from '../core/reply.js';
import { toPlain } from '../tools/result/plain.js';

const MAX_BYTES = 256 * 1024;

/**
 * Converts the result of a schema or parser to JSON of at most 256 KiB, since it goes into the
 * history.
 */
export function toPlainOutput(value: unknown): ParsedAnswer {
  const output = toPlain(value);
  const bytes = jsonBytes(output);
  if (bytes <= MAX_BYTES) return { ok: true, output };
  const problem = `The answer has ${bytes} bytes as JSON; at most ${MAX_BYTES} are accepted. Send a shorter one.`;
  return { ok: false, problem };
}

function jsonBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Creates the result for a rejected answer, with its value unless that is too large to record. */
export function rejectOutput(problem: string, value: Json): ParsedAnswer {
  return jsonBytes(value) > MAX_BYTES
    ? { ok: false, problem }
    : { ok: false, problem, output: value };
}
