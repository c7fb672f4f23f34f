import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  asksNoMore,
  rulesProblem,
  ruleVerdict,
  strictest,
  type Rule,
  type Verdict,
} from '../../src/core/definition/rules.js';

const call = { tool: 'refund', effect: 'keyed', value: { euros: 60 } } as const;
const STRICTNESS = ['allow', 'ask', 'deny'] as const;

const rule: fc.Arbitrary<Rule> = fc
  .record({
    tool: fc.constantFrom('refund', 're*', '*', 'pay', '??fund'),
    effect: fc.constantFrom(undefined, 'read' as const, 'keyed' as const),
    where: fc.constantFrom(
      undefined,
      { op: 'over', path: 'euros', value: 50 } as const,
      { op: 'under', path: 'euros', value: 50 } as const,
    ),
    then: fc.constantFrom(...STRICTNESS),
    deciders: fc.constantFrom(undefined, 'requester' as const, 'not_requester' as const, ['ada']),
    expires: fc.constantFrom(undefined, 5, 10),
  })
  .map(({ tool, effect, where, then, deciders, expires }) => ({
    tool,
    then,
    ...(effect && { effect }),
    ...(where && { where }),
    ...(then === 'ask' && deciders && { deciders }),
    ...(then === 'ask' && expires !== undefined && { expires }),
  }));

const strictness = (verdict: Verdict | null): number =>
  STRICTNESS.indexOf(verdict?.then ?? 'allow');

/** The parts of a verdict that must not depend on the order of the rules. */
function essence(verdict: Verdict | null): unknown {
  const deciders = (verdict?.deciders ?? []).map((each) => JSON.stringify(each)).toSorted();
  return { then: verdict?.then, expires: verdict?.expires, deciders };
}

describe('rules', () => {
  test('have no problem if they match their type', () => {
    fc.assert(
      fc.property(fc.array(rule), (rules) => {
        expect(rulesProblem(rules)).toBeNull();
      }),
    );
  });

  test('have the same verdict in any order', () => {
    fc.assert(
      fc.property(fc.array(rule), fc.integer(), (rules, seed) => {
        const order = rules.map((each, index) => ({ each, at: (index * 7 + seed) % 11 }));
        const shuffled = order.toSorted((a, b) => a.at - b.at).map(({ each }) => each);
        expect(essence(ruleVerdict(shuffled, call))).toEqual(essence(ruleVerdict(rules, call)));
      }),
    );
  });

  test('are as strict as the strictest that applies', () => {
    fc.assert(
      fc.property(fc.array(rule), (rules) => {
        const each = rules.map((one) => strictness(ruleVerdict([one], call)));
        expect(strictness(ruleVerdict(rules, call))).toBe(Math.max(0, ...each));
      }),
    );
  });

  test('of a lower level only tighten', () => {
    fc.assert(
      fc.property(fc.array(rule), fc.array(rule), (upper, lower) => {
        const above = ruleVerdict(upper, call);
        const both = strictest([above, ruleVerdict(lower, call)]);
        expect(strictness(both)).toBeGreaterThanOrEqual(strictness(above));
        if (both?.then !== 'ask' || above === null) return;
        // Nobody gains the right to decide, and there is no more time.
        expect(both.deciders ?? []).toEqual(expect.arrayContaining([...(above.deciders ?? [])]));
        expect(both.expires ?? Infinity).toBeLessThanOrEqual(above.expires ?? Infinity);
        expect(asksNoMore(above, both.deciders ?? [])).toBe(true);
      }),
    );
  });

  test('in one list have the same verdict as level by level', () => {
    fc.assert(
      fc.property(fc.array(rule), fc.array(rule), (upper, lower) => {
        const both = strictest([ruleVerdict(upper, call), ruleVerdict(lower, call)]);
        expect(essence(ruleVerdict([...upper, ...lower], call))).toEqual(essence(both));
      }),
    );
  });

  test('that deny name no deciders, so that nobody can decide', () => {
    const rules: readonly Rule[] = [
      { tool: '*', then: 'ask', deciders: ['ada'], expires: 1 },
      { tool: 'refund', where: { op: 'over', path: 'euros', value: 50 }, then: 'deny' },
    ];
    expect(ruleVerdict(rules, call)).toEqual({
      then: 'deny',
      why: 'rule: deny refund where euros over 50',
    });
  });

  test.each<[unknown, string]>([
    [{}, 'rules: expected a list of at most 200 rules, got {}'],
    [Array.from({ length: 201 }, () => ({ tool: 'x', then: 'ask' })), 'at most 200 rules'],
    [[7], 'rules[0]: expected a rule, got 7'],
    [[{ then: 'ask' }], "rules[0].tool: expected a tool's name or a glob"],
    [[{ tool: '*'.repeat(201), then: 'ask' }], 'rules[0].tool: expected'],
    [[{ tool: 'x', then: 'maybe' }], 'rules[0].then: expected allow, ask, or deny, got "maybe"'],
    [[{ tool: 'x', than: 'ask' }], 'rules[0].than: expected one of tool, effect, where'],
    [
      [{ tool: 'x', effect: 'write', then: 'ask' }],
      'rules[0].effect: expected read, keyed, or once',
    ],
    [[{ tool: 'x', then: 'deny', deciders: ['ada'] }], 'rules[0]: expected `deciders`'],
    [[{ tool: 'x', then: 'ask', deciders: [] }], 'rules[0].deciders: expected "requester"'],
    [
      [{ tool: 'x', then: 'ask', expires: 1.5 }],
      'rules[0].expires: expected a whole number of ms or words',
    ],
    [[{ tool: 'x', then: 'ask', where: { op: 'eq' } }], 'rules[0].where.path: expected'],
  ])('%j have a problem', (value, message) => {
    expect(rulesProblem(value)).toContain(message);
  });
});
