import { escapeJson } from './hidden.js';

const SHOWN_CHARACTERS = 60;
const PROBLEM_CHARACTERS = 2_000;

/** A value as it may stand in an error message: JSON, cut short. */
export function show(value: unknown): string {
  const json = jsonText(value);
  return cut(json === undefined ? typeof value : escapeJson(json), SHOWN_CHARACTERS);
}

/** Undefined for what is no JSON. */
export function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/**
 * Returns a problem as it may leave the workflow in a failure. Names of fields and values in it come
 * from outside: they can be of any length, and half a character would end the worker's process.
 */
export function problemText(problem: string): string {
  return cut(problem, PROBLEM_CHARACTERS);
}

function cut(text: string, characters: number): string {
  const short = text.length <= characters ? text : `${text.slice(0, characters)}…`;
  return short.replaceAll(/\p{Surrogate}/gu, '\ufffd');
}
