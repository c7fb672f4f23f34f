export { expect } from 'vitest';

/** A test as a test file defines it. */
export interface FoundTest {
  readonly name: string;
  readonly body: () => unknown;
}

/** The tests of the files that were loaded since this list was last cleared. */
export const found: FoundTest[] = [];

const path: string[] = [];

type Body = (...values: readonly unknown[]) => unknown;

export function describe(name: string, body: () => void): void {
  path.push(name);
  body();
  path.pop();
}

export function test(name: string, body: Body): void {
  found.push({ name: [...path, name].join(' › '), body: () => body() });
}

/** Returns the `each` of `describe` or `test`: one call of it for each row. */
function eachWith(define: (name: string, body: () => void) => void) {
  return (rows: readonly unknown[]) =>
    (name: string, body: Body): void => {
      rows.forEach((row, index) => {
        const values: readonly unknown[] = Array.isArray(row) ? row : [row];
        define(`${name} [${index}]`, () => body(...values));
      });
    };
}

describe.each = eachWith(describe);
test.each = eachWith(test);
