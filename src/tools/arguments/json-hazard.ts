import { isObject } from '../../core/json.js';

const MAX_DEPTH = 64;

/**
 * Describes why parsed JSON is unsafe to use: keys that could reach a prototype, more than 64
 * levels, or a number beyond the range of a double. Returns undefined if it is safe.
 *
 * Walks without recursion, because the model chooses the depth and the stack is limited.
 */
export function findHazard(root: unknown): string | undefined {
  const waiting: { readonly value: unknown; readonly depth: number }[] = [
    { value: root, depth: 0 },
  ];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value } = next;
    if (typeof value === 'number' && !Number.isFinite(value)) {
      return 'a number is too large; send it as text';
    }
    if (typeof value !== 'object' || value === null) continue;
    const depth = next.depth + 1;
    if (depth > MAX_DEPTH) return `a value is nested deeper than ${MAX_DEPTH} levels`;
    const key = hazardousKey(value);
    if (key !== undefined) return `the key "${key}" is refused`;
    for (const item of Object.values(value)) waiting.push({ value: item, depth });
  }
  return undefined;
}

function hazardousKey(value: object): string | undefined {
  if (Object.hasOwn(value, '__proto__')) return '__proto__';
  if (!Object.hasOwn(value, 'constructor')) return undefined;
  const { constructor } = value as { constructor?: unknown };
  const reaches = isObject(constructor) && Object.hasOwn(constructor, 'prototype');
  return reaches ? 'constructor.prototype' : undefined;
}
