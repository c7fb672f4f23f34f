import { answer } from './answer.js';
import { listArtifacts } from './list-artifacts.js';
import { returnArtifact } from './return-artifact.js';
import { today } from './today.js';
import type { Tool } from '../tool.js';

/**
 * The tools that an agent working with artifacts wants: `answer`, `list_artifacts`, `return_artifact`
 * and `today`, then those given. A name that is given already is not added, so your own tool of that
 * name, or `today({ timeZone })`, takes its place, and doing it twice adds nothing.
 */
export function defaultTools(tools: readonly Tool[] = []): readonly Tool[] {
  const given = new Set(tools.map(({ name }) => name));
  const standard = [answer(), listArtifacts(), returnArtifact(), today()];
  return [...standard.filter(({ name }) => !given.has(name)), ...tools];
}
