import { byteLength } from '../inbox.js';

const PROBLEM_BYTES = 4 * 1024;

/** The beginning of a repair request, by which a prompt is searched for repairs. */
export const REPAIR_BEGINS = 'Your answer was not accepted (attempt ';

/** Returns the request to repair an answer. `attempt` is the number of the failed answer, from 1. */
export function repairText(
  problem: string,
  { attempt, attempts }: { readonly attempt: number; readonly attempts: number },
): string {
  const bytes = byteLength(problem);
  const shown =
    bytes <= PROBLEM_BYTES ? problem : `${head(problem)}\n[… cut, ${bytes} bytes in all]`;
  const last = attempts - attempt === 1 ? 'This is the last attempt. ' : '';
  return (
    `${REPAIR_BEGINS}${attempt} of ${attempts}).\n\n${shown.trim()}\n\n` +
    `${last}Send the whole answer again, corrected, and nothing else.`
  );
}

/** The beginning of a text in whole characters, with room for the note after it. */
function head(text: string): string {
  let shown = text.slice(0, PROBLEM_BYTES - 64);
  while (byteLength(shown) > PROBLEM_BYTES - 64) {
    shown = shown.slice(0, Math.floor(shown.length * 0.9));
  }
  const end = shown.charCodeAt(shown.length - 1);
  return end >= 0xd8_00 && end <= 0xdb_ff ? shown.slice(0, -1) : shown;
}
