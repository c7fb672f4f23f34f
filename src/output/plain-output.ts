import type { Json } from '../core/json.js';
import type { ParsedAnswer } from '../core/reply.js';
import { toPlain } from '../tools/result/plain.js';

const MAX_BYTES = 256 * 1024;

/** What a schema or a parser made of an answer, as JSON data of at most 256 KiB: it goes into the history. */
export function plainOutput(value: unknown): ParsedAnswer {
  const output = toPlain(value);
  const bytes = jsonBytes(output);
  if (bytes <= MAX_BYTES) return { ok: true, output };
  const problem = `The answer has ${bytes} bytes as JSON; at most ${MAX_BYTES} are taken. Send a shorter one.`;
  return { ok: false, problem };
}

/** What could be read of an answer that is not accepted; left out where it is too large to keep. */
export function refusedOutput(problem: string, value: Json): ParsedAnswer {
  return jsonBytes(value) > MAX_BYTES
    ? { ok: false, problem }
    : { ok: false, problem, output: value };
}

function jsonBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value));
}
