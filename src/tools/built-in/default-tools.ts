import { answer } from './answer.js';
import { listArtifacts } from './list-artifacts.js';
import { returnArtifact } from './return-artifact.js';
import { today } from './today.js';
import type { Tool } from '../tool.js';

/**
 * Returns the standard tools of an agent that works with artifacts (`answer`, `list_artifacts`,
 * `return_artifact`, and `today`), then the given tools. A given tool replaces the standard tool of
 * the same name, so calling the function twice adds nothing.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { defaultTools, fileTools } from 'perdure/tools';
 *
 * export const analyst = defineAgent({
 *   name: 'analyst',
 *   instructions: 'Answer from the files.',
 *   tools: defaultTools(fileTools({ root: 'data' })),
 * });
 * ```
 */
export function defaultTools(tools: readonly Tool[] = []): readonly Tool[] {
  const given = new Set(tools.map(({ name }) => name));
  const standard = [answer(), listArtifacts(), returnArtifact(), today()];
  return [...standard.filter(({ name }) => !given.has(name)), ...tools];
}
