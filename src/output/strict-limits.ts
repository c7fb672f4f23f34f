import type { Json, JsonObject } from '../core/json.js';
import { isNode, namedNodes, nodesOf } from './schema-node.js';

/** What OpenAI takes of a strict schema as a whole, definitions included. */
const MAX_KEYS = 5_000;
const MAX_LEVELS = 10;
const MAX_ENUM_VALUES = 1_000;
const MAX_TEXT = 120_000;

interface Size {
  readonly keys: number;
  readonly levels: number;
  readonly enumValues: number;
  /** Characters of names and of enum and constant values. */
  readonly text: number;
}

/** In what a strict schema is too large; empty where it is not. */
export function strictLimits(schema: JsonObject): string[] {
  const size = sizeOf(schema);
  return [
    ...over('keys', size.keys, MAX_KEYS),
    ...over('levels of objects', size.levels, MAX_LEVELS),
    ...over('enum values', size.enumValues, MAX_ENUM_VALUES),
    ...over('characters in names and values', size.text, MAX_TEXT),
  ];
}

function over(what: string, count: number, most: number): string[] {
  return count > most ? [`the whole answer: ${count} ${what}; at most ${most} are taken`] : [];
}

function sizeOf(node: JsonObject): Size {
  const named = [...namedNodes(node['properties']), ...namedNodes(node['$defs'])];
  const items = isNode(node['items']) ? [node['items']] : [];
  const inner = [...named.map(([, each]) => each), ...items, ...nodesOf(node['anyOf'])];
  const sizes = inner.map((each) => sizeOf(each));
  const values = Array.isArray(node['enum']) ? node['enum'] : [];
  const constant = node['const'] === undefined ? [] : [node['const']];
  const sum = (of: (size: Size) => number): number =>
    sizes.reduce((total, size) => total + of(size), 0);
  return {
    keys: namedNodes(node['properties']).length + sum((size) => size.keys),
    levels: Math.max(0, ...sizes.map((size) => size.levels)) + (node['type'] === 'object' ? 1 : 0),
    enumValues: values.length + sum((size) => size.enumValues),
    text:
      named.reduce((total, [name]) => total + name.length, 0) +
      [...values, ...constant].reduce<number>((total, each) => total + length(each), 0) +
      sum((size) => size.text),
  };
}

function length(value: Json): number {
  return typeof value === 'string' ? value.length : 0;
}
