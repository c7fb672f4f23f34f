import { headOf } from './whole-text.js';
import type { AgentDefinition } from '../definition/definition.js';
import { byteLength } from '../inbox.js';
import { beginOf, fillText } from './author-texts.js';

const PROBLEM_BYTES = 4 * 1024;

const REPAIR =
  'Your answer was not accepted (attempt {{attempt}} of {{attempts}}).\n\n{{problem}}\n\n' +
  '{{last}}Send the whole answer again, corrected, and nothing else.';

/** The number of an answer among the allowed answers of a turn. */
interface Attempt {
  /** The number of the failed answer, from 1. */
  readonly attempt: number;
  readonly attempts: number;
  /** The author's text; default: perdure's. */
  readonly text?: string | undefined;
}

/** Returns the request to repair an answer. */
export function repairText(problem: string, { attempt, attempts, text = REPAIR }: Attempt): string {
  const bytes = byteLength(problem);
  const shown =
    bytes <= PROBLEM_BYTES ? problem : `${head(problem)}\n[… cut, ${bytes} bytes in all]`;
  const last = attempts - attempt === 1 ? 'This is the last attempt. ' : '';
  return fillText(text, { attempt, attempts, problem: shown.trim(), last });
}

/** Returns the beginning of an agent's repair requests, by which they are found in a prompt. */
export function repairBegin({ texts }: Pick<AgentDefinition, 'texts'>): string {
  return beginOf(texts?.repair ?? REPAIR);
}

/** Returns the beginning of a text in whole characters, with room for the note after it. */
function head(text: string): string {
  let shown = headOf(text, PROBLEM_BYTES - 64);
  while (byteLength(shown) > PROBLEM_BYTES - 64) {
    shown = headOf(shown, Math.floor(shown.length * 0.9));
  }
  return shown;
}
