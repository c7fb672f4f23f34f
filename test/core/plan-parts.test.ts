import { exampleOf } from '../../src/core/plan/chosen-actions.js';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/core/text/json.js';
import { actionResult, reportText } from '../../src/core/plan/results.js';
import {
  planAnswerFault,
  planWords,
  planAfter,
  readPlanAnswer,
  planEnd,
  planTitle,
  showPlan,
} from '../../src/core/plan/confirm-plan.js';
import {
  EMPTY_PLAN,
  planFaults,
  planProblem,
  planValue,
  type Plan,
  refsIn,
  resolveReferences,
  type Referred,
} from '../../src/core/plan/plan.js';
import { actionOf, planCalls } from '../../src/core/plan/plan-batch.js';
import type { GraphState } from '../../src/core/state/state.js';
import { EXECUTE } from '../support/graph-agent.js';

const action = (id: string, rest: object = {}) => ({ id, tool: 'add', arguments: {}, ...rest });

test.each([
  [[true], 'The plan has 1 action, which needs approval (!)'],
  [[false], 'The plan has 1 action, which needs no approval'],
  [[true, false], 'The plan has 2 actions, and 1 of them needs approval (!)'],
  [[false, false], 'The plan has 2 actions, and none needs approval'],
])('the title of a plan counts in plain English: %j', (asking, title) => {
  const actions = asking.map((asks) =>
    asks ? { asks: { then: 'ask', why: 'rule' } as const } : {},
  );
  expect(planTitle(actions)).toBe(title);
});
const needs = (ref: string) => ({ arguments: { x: { $ref: ref } } });

describe('the fault of a plan', () => {
  const long = 'x'.repeat(100_000);
  test.each<[string, unknown, string]>([
    ['no object', 'plan', 'actions: expected a list'],
    ['no list', { actions: {} }, 'actions: expected a list'],
    ['an unknown tool', { actions: [action('a1', { tool: 'ad' })] }, 'unknown tool "ad"'],
    ['a prototype as a tool', { actions: [action('a1', { tool: '__proto__' })] }, '"__proto__"'],
    ['no tool', { actions: [action('a1', { tool: undefined })] }, 'unknown tool nothing'],
    ['an id that is a word', { actions: [action('wait')] }, '.id: expected "a" and a number'],
    ['a prototype as an id', { actions: [action('__proto__')] }, '.id: expected "a"'],
    ['a duplicate id', { actions: [action('a1'), action('a1')] }, 'actions[1].id: "a1" is the id'],
    ['a reference to itself', { actions: [action('a1', needs('a1'))] }, '"a1" depends on itself'],
    [
      'a later action',
      { actions: [action('a1', needs('a2')), action('a2')] },
      'not an earlier action',
    ],
    ['an unknown action', { actions: [action('a1', { after: ['a9'] })] }, '"a9"'],
    [
      'a cycle',
      { actions: [action('a1', needs('a2')), action('a2', needs('a1'))] },
      'not an earlier action',
    ],
    ['a reference to a secret', { actions: [action('a1', needs('env.KEY'))] }, '"env.KEY"'],
    ['a reference to another run', { actions: [action('a1', needs('run-7/a1'))] }, '"run-7/a1"'],
    ['arguments as a text', { actions: [action('a1', { arguments: '{}' })] }, '.arguments'],
    ['`after` as a text', { actions: [action('a1', { after: 'a0' })] }, '.after'],
    ['2 MB of arguments', { actions: [action('a1', { arguments: { long } })] }, 'at most 98304'],
    [
      'too many actions',
      { actions: [action('a1'), action('a2'), action('a3'), action('a4')] },
      'expected at most 3, got 4',
    ],
  ])('is named: %s', (_, plan, problem) => {
    expect(planProblem(plan, { tools: ['add'], maxActions: 3 })).toContain(problem);
  });

  test('is one of all that the planner gets at once, except what follows from others', () => {
    const actions = [
      action('one', { tool: 'ad', arguments: 'x' }),
      action('a2', { ...needs('a9'), after: ['a8'] }),
      action('a3', needs('a2')),
    ];
    const faults = planFaults({ actions }, { tools: ['add'], maxActions: 9 });
    expect(faults.map(({ index }) => index)).toEqual([0, 0, 0, 1, 1]);
    expect(faults.map(({ problem }) => problem.slice(0, 28))).toEqual([
      'actions[0].id: expected "a" ',
      'actions[0].tool: unknown too',
      'actions[0].arguments: expect',
      'actions[1]: it depends on "a',
      'actions[1]: it depends on "a',
    ]);
  });

  test('is null for references at any depth to earlier actions', () => {
    const deep = { list: [{ inner: { $ref: 'a1', path: 'data.id' } }] };
    const plan = { actions: [action('a1'), action('a2', { arguments: deep, after: ['a1'] })] };
    expect(planProblem(plan, { tools: ['add'], maxActions: 9 })).toBeNull();
  });
});

describe('a reference', () => {
  const results = new Map([['a1', { value: { data: { id: 'e1', list: [1, { x: null }] } } }]]);
  const fill = (given: JsonObject) => resolveReferences({ arguments: given }, results);

  test.each([
    [{ id: { $ref: 'a1', path: 'data.id' } }, { id: 'e1' }],
    [{ all: { $ref: 'a1', path: 'data.list' } }, { all: [1, { x: null }] }],
    [{ deep: [{ in: { $ref: 'a1', path: 'data.list.1.x' } }] }, { deep: [{ in: null }] }],
    [{ id: 'a1' }, { id: 'a1' }],
    [
      { id: { $ref: 'a1', path: 'data.id', more: 1 } },
      { id: { $ref: 'a1', path: 'data.id', more: 1 } },
    ],
    [{ later: { $ref: 'a2' } }, { later: { $ref: 'a2' } }],
  ])('in %j becomes %j', (value, expected) => {
    const resolved = resolveReferences({ arguments: value }, results);
    expect(resolved).toEqual({ ok: true, arguments: expected });
  });

  test('to a place that does not exist is an error that names it and the existing ones', () => {
    const resolved = fill({ id: { $ref: 'a1', path: 'data.ID' } });
    expect(resolved).toEqual({
      ok: false,
      problem: 'the result of a1 has nothing at "data.ID"; it has data',
    });
    expect(fill({ x: { $ref: 'a1', path: 'constructor' } }).ok).toBe(false);
  });

  test('in a result is text, so that no tool can name another result', () => {
    const hostile = new Map<string, Referred>([
      ['a1', { value: { $ref: 'a0', path: 'key' } }],
      ['a0', { value: { key: 'secret' } }],
    ]);
    const given = { arguments: { x: { $ref: 'a1' }, y: { $ref: 'a2' } } };
    const filled = resolveReferences(given, hostile);
    const x = { $ref: 'a0', path: 'key' };
    expect(filled).toEqual({
      ok: true,
      arguments: { x, y: { $ref: 'a2' } },
      refs: [['y']],
    });
    // Not in a later round either, when the planner's other reference is resolved.
    if (!filled.ok) throw new Error(filled.problem);
    const later = resolveReferences(filled, new Map([...hostile, ['a2', { value: 1 }]]));
    expect(later).toEqual({ ok: true, arguments: { x, y: 1 }, refs: [] });
  });

  test('to a part of a failed result is null, like a reference to all of it', () => {
    const none = new Map<string, Referred>([['a1', { failed: true }]]);
    const given = { arguments: { all: { $ref: 'a1' }, id: { $ref: 'a1', path: 'data.id' } } };
    const resolved = resolveReferences(given, none);
    expect(resolved).toEqual({ ok: true, arguments: { all: null, id: null } });
  });

  test('is found with its place', () => {
    expect(refsIn({ a: [0, { $ref: 'a1' }] })).toEqual([{ ref: 'a1', path: '', at: ['a', 1] }]);
  });
});

describe('the answer to a plan', () => {
  const three = [action('a1'), action('a2'), action('a3')];

  test.each(['yes', 'y', 'confirm', 'ok', 'proceed', 'approve', ' YES ', 'Ok.', 'yes!'])(
    '"%s" is a yes',
    (text) => expect(readPlanAnswer(text, three)).toEqual({ as: 'yes' }),
  );
  test.each(['no', 'n', 'cancel', 'abort', 'deny', ' No. ', 'nothing', 'None', 'stop'])(
    '"%s" is a no',
    (text) => expect(readPlanAnswer(text, three)).toEqual({ as: 'no' }),
  );
  test.each([
    ['some a1 a3', ['a1', 'a3']],
    ['only a3, a1', ['a1', 'a3']],
    ['a2', ['a2']],
    ['yes, only a1 and a2', ['a1', 'a2']],
    ['all but a2', ['a1', 'a3']],
    ['without a1, a3.', ['a2']],
  ])('"%s" names actions', (text, chosen) =>
    expect(readPlanAnswer(text, three)).toEqual({ as: 'some', ids: chosen }),
  );
  test.each([
    ['edit: on Tuesday', 'on Tuesday'],
    ['Edit make it two\nrooms', 'make it two\nrooms'],
    ['change the title', 'the title'],
  ])('"%s" is a change', (text, change) =>
    expect(readPlanAnswer(text, three)).toEqual({ as: 'edit', change }),
  );
  test.each(['', ' ', 'perhaps', 'yes please do a9', 'some', 'edit', 'a1 or not', 'yesterday'])(
    '"%s" is unclear',
    (text) => expect(readPlanAnswer(text, three)).toBeNull(),
  );

  test.each([
    ['some a9', 'the plan has no action "a9"'],
    ['a1 a8 a9', 'the plan has no action "a8"'],
    ['someone should ask Ben first', null],
    ['no because a1 and a9 are wrong', null],
    ['all but a7', 'the plan has no action "a7"'],
    ['edit', '"edit" needs the change after it'],
    ['yes please do a9', 'the plan has no action "a9"'],
    ['perhaps', null],
    ['some a1', null],
  ])('what is wrong with "%s" is said, if it is known', (text, fault) => {
    expect(planAnswerFault(text, three)).toBe(fault);
  });

  test('includes all that an action depends on, or is unclear', () => {
    const chain = [action('a1'), action('a2', needs('a1'))];
    expect(readPlanAnswer('some a2', chain)).toBeNull();
    expect(planAnswerFault('some a2', chain)).toBe('a2 needs a1: name both, or neither');
    expect(readPlanAnswer('a1 a2', chain)).toEqual({ as: 'some', ids: ['a1', 'a2'] });
  });

  test.each([
    [[action('a1'), action('a2')], ['a1']],
    [
      [action('a1'), action('a2'), action('a3')],
      ['a1', 'a3'],
    ],
    [
      [action('a1'), action('a2'), action('a3', needs('a2'))],
      ['a1', 'a2'],
    ],
    [
      [action('a1'), action('a2', needs('a1')), action('a3', { after: ['a1', 'a2'] })],
      ['a1', 'a2'],
    ],
    [
      [action('a1', needs('a9')), action('a2'), action('a3', needs('a2')), action('a4')],
      ['a1', 'a4'],
    ],
  ])('has an example that is accepted: %#', (actions, ids) => {
    expect(exampleOf(actions)).toEqual(ids);
    expect(readPlanAnswer(`some ${ids.join(' ')}`, actions)).toEqual({ as: 'some', ids });
    const words = planWords(actions);
    expect(words).toContain(`"some ${ids.join(' ')}" with all dependencies`);
  });

  const mixed = [
    action('a1'),
    { ...action('a2'), asks: { then: 'ask', why: 'a rule' } as const },
    action('a3', { after: ['a2'] }),
    action('a4', needs('a3')),
  ];

  test('"no" refuses all of a plan, whatever needs approval', () => {
    for (const actions of [three, mixed]) {
      const plan: Plan = { ...EMPTY_PLAN, actions };
      expect(planAfter(plan, { as: 'no' })).toMatchObject({
        actions: [],
        dropped: actions.map(({ id }) => id),
      });
      expect(showPlan(plan)).toContain('no       executes nothing');
    }
  });

  test('"some" alone keeps what needs no approval, and is unclear if that is all or nothing', () => {
    for (const text of ['some', ' Some.', 'without the destructive ones']) {
      expect(readPlanAnswer(text, mixed)).toEqual({ as: 'some', ids: ['a1'] });
      expect(readPlanAnswer(text, three)).toBeNull();
      expect(readPlanAnswer(text, mixed.slice(1))).toBeNull();
    }
    const plan: Plan = { ...EMPTY_PLAN, asks: true, actions: mixed };
    expect(planAfter(plan, { as: 'some', ids: ['a1'] })).toMatchObject({
      actions: [{ id: 'a1' }],
      dropped: ['a2', 'a3', 'a4'],
      asks: false,
    });
    const shown = showPlan(plan);
    expect(shown).toContain('some     omits a2, a3, a4 and executes the other actions');
    expect(shown).toContain('! a2  add');
    expect(showPlan({ ...plan, actions: three })).not.toContain('omits');
    expect(planWords(three)).toContain('"some a1 a3"');
    expect(planWords(mixed)).toContain('"some" for all that needs no approval, "some a1 a2"');
    for (const actions of [three, mixed.slice(1)]) {
      expect(planWords(actions)).not.toContain('for all that needs no approval');
    }
    expect(planWords(three.slice(0, 1))).not.toContain('some');
  });
});

test('a plan is shown with hidden characters as escapes, and truncation is stated', () => {
  const shown = showPlan({
    ...EMPTY_PLAN,
    actions: [
      { ...action('a1'), shown: 'safe\u202eevil', arguments: { x: 'a\u200bb' } },
      action('a2', { arguments: { long: 'y'.repeat(2_000) } }),
    ],
  });
  expect(shown).not.toMatch(/[\u202e\u200b]/u);
  expect(shown).toContain('[cut: ');
});

describe('the report to the model', () => {
  const plan = { ...EMPTY_PLAN, actions: [action('a1'), action('a2')], dropped: ['a3'] };

  test('is missing if nothing was planned or done', () => {
    expect(reportText({ values: {}, plan: 'plan', results: 'results' })).toBeNull();
  });

  test('names what was not answered in time', () => {
    const actions = [action('a1'), action('a2')];
    const values = { plan: planValue({ ...EMPTY_PLAN, actions }) };
    const { exit, patch } = planEnd(values, 'plan', { text: 'yes', expired: true });
    expect(exit).toBe('expired');
    expect(reportText({ values: { ...values, ...patch }, plan: 'plan', results: 'r' })).toContain(
      'Not done, because the question expired: a1, a2.',
    );
  });

  test('names results, failures, what was excluded, and what was not done', () => {
    const text = reportText({
      values: {
        plan: planValue(plan),
        results: { a1: { ok: true, value: 'z'.repeat(9_000) } },
        error: { message: 'no plan fits' },
      },
      plan: 'plan',
      results: 'results',
      error: 'error',
    });
    expect(text).toContain('Planning failed: no plan fits');
    expect(text).toContain('Not done, because a person left them out: a3.');
    expect(text).toMatch(/- a1 add done: z+… \[cut: 9\d{3} characters\]/);
    expect(text).toContain('Not done: a2 add.');
    expect(text?.length).toBeLessThan(5_000);
    const alone = reportText({ values: { plan: planValue(plan) }, plan: 'plan', unattended: true });
    expect(alone).toContain(
      'Not done, because they need a decision, and this run is unattended: a3.',
    );
  });
});

describe('the result of an action', () => {
  const call = { id: 'c1', executed: true, ok: true, text: 'a list', artifactName: 'rows' };
  test('represents the artifact that the tool has made', () => {
    expect(actionResult(call)).toEqual({ ok: true, value: 'a list', artifact: 'rows' });
  });
  test('is the value itself if the tool could end a turn with it, even if it is also an artifact', () => {
    expect(actionResult({ ...call, output: { total: 3 } })).toEqual({
      ok: true,
      value: { total: 3 },
    });
  });
});

test('a confirmed plan marks the calls without approval that were shown whole', () => {
  const asks = { then: 'ask', why: 'a rule' } as const;
  const plan = {
    ...EMPTY_PLAN,
    actions: [
      action('a1', { asks }),
      action('a2'),
      action('a3', { after: ['a1'] }),
      action('a4', needs('a1')),
      // Completed from a read: its form for the tool was not shown.
      action('a5', { late: true }),
    ],
  };
  const values = { plan: planValue(plan) };
  const { confirmed, patch } = planEnd(values, 'plan', { text: 'yes', expired: false });
  const before = { values: { ...values, ...patch }, at: null, visited: [] };
  const marked = (graph: GraphState) =>
    planCalls({ name: 'do', ...EXECUTE }, graph).flatMap((call) =>
      call.asShown ? [actionOf(call)] : [],
    );
  expect(marked({ ...before, ...(confirmed && { confirmed }) })).toEqual(['a2', 'a3']);
  expect(marked(before)).toEqual([]);
});
