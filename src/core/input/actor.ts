import { isObject } from '../text/json.js';
import { show } from '../text/text.js';

const MAX_BY_CHARACTERS = 200;

/** Returns the problem with a claimed decider's name, or null. */
export function checkBy(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && value !== '' && value.length <= MAX_BY_CHARACTERS) return null;
  return `by: expected a string of 1–${MAX_BY_CHARACTERS} characters, got ${show(value)}`;
}

/** Who acts: a claim, or a name that a door has verified. */
export interface Actor {
  readonly by?: string | undefined;
  readonly door?: string | undefined;
}

/** Returns the problem with the name of a door, or null. */
export function checkDoor(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && /^[a-z][a-z-]{0,31}$/.test(value)) return null;
  return `door: expected the name of a door, such as "http", got ${show(value)}; omit it`;
}

/** Returns what is wrong with who acts, or null. */
export function actorProblem(given: unknown): string | null {
  if (!isObject(given)) return null;
  return checkBy(given['by']) ?? checkDoor(given['door']);
}

/** Returns who acts, with the fields that are there. A door verifies nothing without a name. */
export function actorOf({ by, door }: Actor): { readonly by?: string; readonly door?: string } {
  if (by === undefined) return {};
  return { by, ...(door !== undefined && { door }) };
}

/** Only a server knows who has proven a name, so what a program says of that does not count. */
export function withoutDoor<Fields extends object>(fields: Fields): Fields {
  const copy: Fields & { door?: unknown; groups?: unknown } = { ...fields };
  delete copy.door;
  delete copy.groups;
  return copy;
}
