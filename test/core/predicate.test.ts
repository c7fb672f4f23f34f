import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/core/text/json.js';
import {
  holds,
  matchesGlob,
  predicateProblem,
  predicateText,
  type Predicate,
} from '../../src/core/definition/predicate.js';

const order = { euros: 51, account: 'EU-7', items: [{ price: 3 }], note: null };
const over = { op: 'over', path: 'euros', value: 50 } as const;

describe('holds', () => {
  test.each<[Predicate, boolean]>([
    [over, true],
    [{ op: 'over', path: 'euros', value: 51 }, false],
    [{ op: 'under', path: 'items.0.price', value: 4 }, true],
    [{ op: 'eq', path: 'items', value: [{ price: 3 }] }, true],
    [{ op: 'eq', path: 'items.0', value: { price: 3, tax: 1 } }, false],
    [{ op: 'ne', path: 'euros', value: 51 }, false],
    [{ op: 'ne', path: 'missing', value: 51 }, true],
    [{ op: 'in', path: 'account', value: ['US-1', 'EU-7'] }, true],
    [{ op: 'in', path: 'missing', value: [null] }, false],
    [{ op: 'exists', path: 'note' }, true],
    [{ op: 'exists', path: 'items.1' }, false],
    [{ op: 'matches', path: 'account', value: 'EU-?' }, true],
    [{ op: 'matches', path: 'euros', value: '*' }, false],
    [{ op: 'exists', path: '' }, true],
    [{ all: [] }, true],
    [{ any: [] }, false],
    [{ not: { any: [over, { op: 'exists', path: 'x' }] } }, false],
  ])('%j is %s', (predicate, expected) => {
    expect(holds(predicate, order)).toBe(expected);
  });

  test.each([
    '__proto__',
    'constructor',
    'constructor.name',
    'toString',
    'items.length',
    'items.map',
  ])('finds nothing at %s, which no JSON has', (path) => {
    expect(holds({ op: 'exists', path }, order)).toBe(false);
  });

  test('finds own fields with the names of prototype fields', () => {
    const value: unknown = JSON.parse('{"__proto__": {"constructor": 1}}');
    expect(holds({ op: 'eq', path: '__proto__.constructor', value: 1 }, value)).toBe(true);
  });

  test('compares texts with numbers as different', () => {
    expect(holds(over, { euros: '9999' })).toBe(false);
    expect(holds({ op: 'eq', path: 'euros', value: '51' }, order)).toBe(false);
  });

  test('never throws for a predicate without a problem', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), fc.string(), (value, wanted, path) => {
        for (const op of ['eq', 'ne', 'over', 'under', 'in', 'exists', 'matches'] as const) {
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON by construction
          const one = { op, path, ...(op !== 'exists' && { value: wanted as Json }) };
          if (predicateProblem(one, 'p') !== null) continue;
          expect(typeof holds(one, value)).toBe('boolean');
          expect(holds({ not: one }, value)).toBe(!holds(one, value));
        }
      }),
    );
  });
});

describe('matchesGlob', () => {
  test.each([
    ['delete_all', 'delete_*', true],
    ['delete', 'delete_*', false],
    ['undelete_x', 'delete_*', false],
    ['', '', true],
    ['', '*', true],
    ['', '?', false],
    ['abc', 'a*c*', true],
    ['a.c', 'a.c', true],
    ['abc', 'a.c', false],
    ['a*c', 'a*c', true],
    ['line\nbreak', 'line*', true],
  ])('%j fits %j: %s', (text, glob, fits) => {
    expect(matchesGlob(text, glob)).toBe(fits);
  });

  test('agrees with a regular expression', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '.', '\n'), maxLength: 12 });
    const glob = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*', '?'), maxLength: 8 });
    fc.assert(
      fc.property(text, glob, (subject, pattern) => {
        const source = pattern.replaceAll('.', '\\.').replaceAll('*', '.*').replaceAll('?', '.');
        expect(matchesGlob(subject, pattern)).toBe(new RegExp(`^${source}$`, 's').test(subject));
      }),
      { numRuns: 1_000 },
    );
  });

  test('takes time proportional to the length of a hostile text', () => {
    const begin = performance.now();
    expect(matchesGlob('a'.repeat(50_000), `${'*a'.repeat(99)}*b`)).toBe(false);
    expect(performance.now() - begin).toBeLessThan(5_000);
  });
});

describe('predicateProblem', () => {
  test.each<[unknown, string]>([
    [7, 'p: expected a predicate, got 7; give for example'],
    [{}, 'p.op: expected one of eq, ne, over, under, in, exists, matches, got undefined'],
    [{ op: 'regex', path: 'a', value: '.*' }, 'p.op: expected one of'],
    [{ op: 'toString', path: 'a', value: 1 }, 'p.op: expected one of'],
    [{ op: 'eq', path: 7, value: 1 }, 'p.path: expected a place such as "items.0.price", got 7'],
    [{ op: 'eq', path: 'a' }, 'p.value: expected a value for "eq", got none'],
    [{ op: 'over', path: 'a', value: '1' }, 'p.value: expected a number for "over", got "1"'],
    [{ op: 'in', path: 'a', value: 'ab' }, 'p.value: expected a list for "in", got "ab"'],
    [{ op: 'exists', path: 'a', value: 1 }, 'p.value: expected none for "exists"; remove it'],
    [
      { op: 'matches', path: 'a', value: '*'.repeat(201) },
      'p.value: expected a glob of at most 200',
    ],
    [{ op: 'eq', path: 'a', value: 1, then: 'x' }, 'p.then: expected op, path, and value'],
    [{ all: [over], any: [] }, 'p: expected only a list `all`'],
    [{ all: over }, 'p: expected only a list `all`'],
    [{ any: [over, { all: [{}] }] }, 'p.any[1].all[0].op: expected one of'],
    [{ not: over, op: 'eq' }, 'p: expected only `not`'],
    [{ all: Array.from({ length: 101 }, () => over) }, 'p: expected at most 100 conditions'],
  ])('of %j', (value, message) => {
    expect(predicateProblem(value, 'p')).toContain(message);
  });

  test('refuses any depth of nesting without a stack overflow', () => {
    let nested: unknown = over;
    for (let depth = 0; depth < 50_000; depth += 1) nested = { not: nested };
    expect(predicateProblem(nested, 'p')).toBe('p: expected conditions at most 20 levels deep');
  });

  test('is null for a valid predicate, and the text reads well', () => {
    const fine: Predicate = {
      any: [over, { not: { op: 'matches', path: 'account', value: 'EU-*' } }],
    };
    expect(predicateProblem(fine, 'p')).toBeNull();
    expect(predicateText(fine)).toBe('(euros over 50) or (not (account matches "EU-*"))');
  });

  test('is null or a text for any value', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        expect(['string', 'object']).toContain(typeof predicateProblem(value, 'p'));
      }),
    );
  });
});
