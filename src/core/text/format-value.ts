import { headOf, wellFormed } from './whole-text.js';
import { escapeJson } from './hidden.js';

const SHOWN_CHARACTERS = 60;
const PROBLEM_CHARACTERS = 2_000;

/** Returns a value for an error message: JSON, cut to 60 characters. */
export function show(value: unknown): string {
  const json = jsonText(value);
  return cut(json === undefined ? typeof value : escapeJson(json), SHOWN_CHARACTERS);
}

/** Returns the JSON of a value; undefined if it has none. Never throws. */
export function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/**
 * Returns a problem for a failure of the workflow, cut to 2,000 characters. It may quote input of
 * any length, and a lone surrogate in a failure would end the worker's process.
 */
export function problemText(problem: string): string {
  return cut(problem, PROBLEM_CHARACTERS);
}

function cut(text: string, characters: number): string {
  return wellFormed(text.length <= characters ? text : `${headOf(text, characters)}…`);
}
