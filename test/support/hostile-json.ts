import fc from 'fast-check';
import { anyString } from './any-string.js';

const ODD_NAMES = [
  '__proto__',
  'constructor',
  'toString',
  'valueOf',
  'length',
  'then',
  '',
  '\ud800',
];
const ODD_TEXTS = [...ODD_NAMES, '\udc00x', `${'a'.repeat(59)}😀`, 'x'.repeat(3_000), '\0', 'NaN'];
const ODD_NUMBERS = [-0, -1, 0.5, 1e308, -1e308, 2 ** 53, 5e-324];

function deep(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = level % 2 ? [value] : { a: value };
  return value;
}

const leaf = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, ...ODD_NUMBERS, ...ODD_TEXTS, deep(300)),
  anyString(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

/** JSON of every kind, with values that break code that trusts names, numbers, and texts. */
export function rubbish(names: readonly string[] = []): fc.Arbitrary<unknown> {
  const key = fc.oneof(fc.constantFrom(...names, ...ODD_NAMES), anyString({ maxLength: 5 }));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaf,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map(jsonOf),
    ),
  }));
  return value;
}

/** As `JSON.parse` creates it: `__proto__` is a field like any other. */
function jsonOf(entries: readonly (readonly [string, unknown])[]): unknown {
  const object = {};
  for (const [name, value] of entries) {
    Object.defineProperty(object, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return object;
}

/** Returns every place in a JSON value, as a path of keys. */
export function pathsOf(value: unknown, path: readonly string[] = []): readonly string[][] {
  if (typeof value !== 'object' || value === null) return [[...path]];
  const below = Object.entries(value).flatMap(([key, each]) => pathsOf(each, [...path, key]));
  return path.length === 0 ? below : [[...path], ...below];
}

/** Returns a copy with another value at one place. */
export function replaced(value: unknown, path: readonly string[], by: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return by;
  const copy = Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) };
  const inner: unknown = Reflect.get(copy, key);
  Reflect.set(copy, key, replaced(inner, rest, by));
  return copy;
}
