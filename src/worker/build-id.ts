import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { WorkflowBundleOption } from '@temporalio/worker';

/** Enough to tell builds apart, short enough to be read aloud. */
const DIGITS = 12;

/**
 * Names workflow code by its content: the same code gets the same name in every folder and on every
 * machine. The source map is left out, as it names the folder in which the code was bundled.
 */
export async function buildIdOf(bundle: WorkflowBundleOption): Promise<string> {
  const code = 'code' in bundle ? bundle.code : await readFile(bundle.codePath, 'utf8');
  const plain = code.replaceAll(/^\/\/# sourceMappingURL=.*$/gm, '');
  return createHash('sha256').update(plain).digest('hex').slice(0, DIGITS);
}
