import { answer } from './answer.js';
import { listArtefacts } from './list-artifacts.js';
import { returnArtefact } from './return-artifact.js';
import { today } from './today.js';
import type { Tool } from '../tool.js';

/**
 * The tools that an agent working with artefacts wants: `answer`, `list_artefacts`, `return_artefact`
 * and `today`, then those given. A name that is given already is not added, so your own tool of that
 * name, or `today({ timeZone })`, takes its place, and doing it twice adds nothing.
 */
export function defaultTools(tools: readonly Tool[] = []): readonly Tool[] {
  const given = new Set(tools.map(({ name }) => name));
  const standard = [answer(), listArtefacts(), returnArtefact(), today()];
  return [...standard.filter(({ name }) => !given.has(name)), ...tools];
}
