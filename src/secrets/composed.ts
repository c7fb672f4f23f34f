/** Matches at least two pairs: `host=db port=5432 password=…` or `AccountName=…;AccountKey=…`. */
const PAIRS = /^[a-z]\w*=[^;\s]*[;\s]+[a-z]\w*=/i;
const PAIR = /(?<!\w)([a-z]\w*)=([^;\s]+)/gi;

/**
 * Returns the fields of a composed value (a JSON object or list, or pairs), or null for any other
 * value.
 */
export function fieldsOf(value: string): readonly (readonly [name: string, text: string])[] | null {
  const given = value.trim();
  if (PAIRS.test(given)) {
    return [...given.matchAll(PAIR)].map(([, name = '', text = '']) => [name, text]);
  }
  const json = jsonOf(given);
  return json === undefined ? null : textsIn(json, '');
}

function textsIn(node: unknown, name: string): readonly (readonly [string, string])[] {
  if (typeof node === 'string') return [[name, node]];
  if (typeof node !== 'object' || node === null) return [];
  if (Array.isArray(node)) return node.flatMap((child) => textsIn(child, name));
  return Object.entries(node).flatMap(([key, child]) => textsIn(child, key));
}

function jsonOf(text: string): unknown {
  if (!/^[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
