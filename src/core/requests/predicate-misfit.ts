import type { Json, JsonObject } from '../json.js';
import { show } from '../text/format-value.js';
import type { Predicate } from './predicate.js';
import { jsonType, jsonTypes, lookUp } from './schema-place.js';

/** A tool whose arguments a predicate tests. */
export interface TestedTool {
  readonly name: string;
  /** JSON schemas of the forms in which the arguments are tested: as written, and as parsed. */
  readonly schemas: readonly JsonObject[];
  /** Returns the path that a wrong one may be a misspelling of. */
  readonly meantBy?: (path: string, known: readonly string[]) => string | undefined;
}

/** Maximum names that an error lists. */
const NAMED = 20;

/**
 * Returns why a condition of a valid predicate can never be true of a tool's arguments, because of
 * its path or its value; null if there is none. `at`: the field that holds the predicate.
 */
export function predicateMisfit(predicate: Predicate, tool: TestedTool, at: string): string | null {
  if ('not' in predicate) return predicateMisfit(predicate.not, tool, `${at}.not`);
  for (const list of ['all', 'any'] as const) {
    const inner: readonly Predicate[] | undefined = Reflect.get(predicate, list);
    if (inner === undefined) continue;
    const problems = inner.map((one, index) =>
      predicateMisfit(one, tool, `${at}.${list}[${index}]`),
    );
    return problems.find((problem) => problem !== null) ?? null;
  }
  return 'op' in predicate ? comparisonMisfit(predicate, tool, at) : null;
}

function comparisonMisfit(
  { op, path, value }: Extract<Predicate, { readonly op: unknown }>,
  { name, schemas: forms, meantBy }: TestedTool,
  at: string,
): string | null {
  const places = forms.map((schema) => lookUp(schema, path));
  if (places.some((place) => place.kind === 'open')) return null;
  const schemas = places.flatMap((place) => (place.kind === 'found' ? place.schemas : []));
  if (schemas.length === 0) {
    const known = places.flatMap((place) => (place.kind === 'missing' ? place.known : []));
    const all = [...new Set(known)];
    const meant = meantBy?.(path, all);
    const hint =
      meant === undefined
        ? `it has ${all.slice(0, NAMED).join(', ') || 'none'}`
        : `did you mean ${show(meant)}`;
    return `${at}.path: expected an argument of tool ${show(name)}, got ${show(path)} (${hint}); correct it`;
  }
  const types = jsonTypes(schemas);
  const where = `${show(path)} of tool ${show(name)}`;
  if (types !== null && (op === 'over' || op === 'under') && !types.has('number')) {
    return `${at}.op: expected "eq", "in", or "matches" for ${where}, which is no number, got "${op}"; correct \`op\` or \`path\``;
  }
  if (types !== null && op === 'matches' && !types.has('string')) {
    return `${at}.op: expected a comparison of a ${[...types].join(' or ')} for ${where}, got "matches", which tests texts; correct \`op\` or \`path\``;
  }
  const wanted = op === 'in' && Array.isArray(value) ? value : [value ?? null];
  if (!['eq', 'ne', 'in'].includes(op) || wanted.length === 0) return null;
  const wrong = wanted.find((one) => !isPossible(one, schemas));
  if (wrong === undefined) return null;
  return `${at}.value: expected a value that ${where} can have (${describe(schemas)}), got ${show(wrong)}; correct \`value\` or \`path\``;
}

function isPossible(value: Json, schemas: readonly JsonObject[]): boolean {
  return schemas.some((schema) => {
    const choices = choicesOf(schema);
    if (choices !== null)
      return choices.some((one) => JSON.stringify(one) === JSON.stringify(value));
    const types = jsonTypes([schema]);
    return types === null || types.has(jsonType(value));
  });
}

function describe(schemas: readonly JsonObject[]): string {
  const texts = schemas.map((schema) => {
    const choices = choicesOf(schema);
    if (choices !== null) return choices.map((one) => JSON.stringify(one)).join(', ');
    return [...(jsonTypes([schema]) ?? ['anything'])].join(' or ');
  });
  return [...new Set(texts)].join(' or ').slice(0, 200);
}

function choicesOf({ enum: list, const: only }: JsonObject): readonly Json[] | null {
  if (Array.isArray(list)) return list;
  return only === undefined ? null : [only];
}
