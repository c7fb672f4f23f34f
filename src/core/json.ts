/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
/** A JSON object. A field that is undefined is absent. */
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** Whether a value is an object other than an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value is an object that holds only JSON, at any depth. */
export function isJsonObject(value: unknown): value is JsonObject {
  if (!isObject(value)) return false;
  // Not by recursion: a value from outside may be nested deeper than the stack.
  const open: unknown[] = [value];
  while (open.length > 0) {
    const part = open.pop();
    if (typeof part === 'object' && part !== null) {
      for (const inner of Object.values(part)) open.push(inner);
    } else if (!SCALARS.includes(typeof part) && part !== null) {
      return false;
    }
  }
  return true;
}

/** A field that is undefined is absent. */
const SCALARS = ['string', 'number', 'boolean', 'undefined'];

/** Returns JSON with sorted keys (in the order of RFC 8785), so that equal values give equal text. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map((item: Json) => canonicalJson(item)).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const entries = Object.entries(value)
    .filter((entry): entry is [string, Json] => entry[1] !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`);
  return `{${entries.join(',')}}`;
}

/** Returns the value of a JSON text; undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns a field of a recorded value if it is a string, else an empty string. */
export function textField(value: Record<string, unknown>, key: string): string {
  const text = value[key];
  return typeof text === 'string' ? text : '';
}
