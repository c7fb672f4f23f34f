import { describe, expect, test } from 'vitest';
import type { ExecuteNode } from '../../src/core/definition/node-data.js';
import type { GraphDefinition } from '../../src/core/definition/graph-definition.js';
import type { GraphNode } from '../../src/core/definition/node-kinds.js';
import type { JsonObject } from '../../src/core/text/json.js';
import type { AgentDefinition } from '../../src/core/definition/definition.js';
import { actionOf } from '../../src/core/plan/plan-batch.js';
import {
  needsOf,
  planDigest,
  planIn,
  planValue,
  type PlannedAction,
} from '../../src/core/plan/plan.js';
import { showPlan } from '../../src/core/plan/confirm-plan.js';
import { inputProblem } from '../../src/core/graph/walk.js';
import { reduce } from '../../src/core/run/reduce.js';
import { messageAnswer } from '../../src/core/requests/answer-by-message.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { getOpenBatch, getOutcome } from '../../src/core/state/turn.js';
import { EXECUTE, node } from '../support/graph-agent.js';
import { callReply, config, toolDefinition } from '../support/scripts.js';

const action = (id: string, rest: object = {}): PlannedAction => ({
  id,
  tool: 'put',
  arguments: {},
  ...rest,
});
const planOf = (...actions: PlannedAction[]): JsonObject =>
  planValue({ actions, done: [], asks: actions.some((one) => one.asks !== undefined) });
const ASKS = { then: 'ask', why: 'a rule' } as const;

const execute = (options: Partial<ExecuteNode> = {}): GraphNode =>
  node('do', { ...EXECUTE, ...options }, { done: 'end', some_failed: 'end' });
const confirm = node(
  'ask',
  { kind: 'confirm', show: '', plan: 'plan' },
  { yes: 'do', no: 'do', some: 'do', edit: 'end' },
);

const TOOLS = [
  toolDefinition('put', 'keyed', { value: true }),
  toolDefinition('pay', 'once', { value: true }),
  toolDefinition('look', 'read', { value: true }),
];

/** A run that has entered the first of these nodes, with this plan. */
function at(
  nodes: readonly GraphNode[],
  plan: JsonObject,
  options: Partial<AgentDefinition> = {},
): RunState {
  const graph: GraphDefinition = {
    start: nodes[0]?.name ?? '',
    nodes,
    fields: ['plan', 'results'],
    initial: { plan },
    perTurn: [],
  };
  const begun = initialState(config({ graph, tools: TOOLS, ...options }));
  const message = { id: 'm', text: 'go', turn: 1, by: 'ann' };
  return [
    { type: 'message-received', message } as const,
    { type: 'turn-begun', at: 0 } as const,
    { type: 'node-begun', at: 0 } as const,
  ].reduce(reduce, begun);
}

const callOf = (state: RunState, id: string) =>
  getOpenBatch(state)?.calls.find((call) => actionOf(call) === id);

function finished(state: RunState, id: string, output: JsonObject = {}): RunState {
  const call = callOf(state, id)?.id ?? '';
  const result = { id: call, ok: true, text: '', output, executed: true };
  return reduce(state, { type: 'call-finished', result, at: 1 });
}

function failed(state: RunState, id: string): RunState {
  const call = callOf(state, id)?.id ?? '';
  const result = { id: call, ok: false, text: 'no', executed: true };
  return reduce(state, { type: 'call-finished', result, at: 1 });
}

const answered = (state: RunState, text: string): RunState => {
  const call = getOpenBatch(state)?.calls[0]?.id ?? '';
  const result = { id: call, ok: true, text, executed: true };
  return [
    { type: 'call-finished', result, at: 1 } as const,
    { type: 'node-begun', at: 1 } as const,
  ].reduce(reduce, state);
};

describe('a confirmed plan', () => {
  test('covers a call that anybody may approve, and none with deciders named by the rules', () => {
    const plan = planOf(
      action('a1', { asks: ASKS }),
      action('a2', { asks: { ...ASKS, deciders: [['boss']] } }),
    );
    const state = answered(at([confirm, execute()], plan), 'yes');
    expect(callOf(state, 'a1')).toMatchObject({ confirmed: true });
    expect(callOf(state, 'a2')).not.toHaveProperty('confirmed');
    expect(callOf(state, 'a2')).toMatchObject({ verdict: { deciders: [['boss']] } });
    const waiting = at([confirm, execute()], plan);
    const shown = JSON.parse(getOpenBatch(waiting)?.calls[0]?.arguments ?? '{}') as {
      question: string;
    };
    expect(shown.question).toContain('needs separate approval by the deciders that the rules name');
  });

  test('loses its approval with any change of its actions', () => {
    const state = answered(at([confirm, execute()], planOf(action('a1', { asks: ASKS }))), 'yes');
    const { graph } = state;
    const forged = planOf(action('a1', { asks: ASKS, arguments: { all: true } }));
    const changed = graph && {
      ...state,
      graph: { ...graph, values: { ...graph.values, plan: forged } },
      turn: { ...state.turn, phase: { type: 'deciding' } as const },
    };
    expect(changed).toBeDefined();
    const begun = reduce(changed ?? state, { type: 'node-begun', at: 2 });
    expect(callOf(begun, 'a1')).not.toHaveProperty('confirmed');
  });

  test('covers what the tools get, and shows it', () => {
    const parsed = { arguments: '{"euros":77777}', digest: 'p' };
    const plan = planOf(action('a1', { asks: ASKS, parsed }));
    const asking = at([confirm, execute()], plan);
    expect(getOpenBatch(asking)?.calls[0]?.arguments).toContain('the tool gets');
    const state = answered(asking, 'yes');
    expect(callOf(state, 'a1')).toMatchObject({ confirmed: true, parsed });
    const other = { ...parsed, digest: 'q' };
    const digests = [plan, planOf(action('a1', { asks: ASKS, parsed: other }))].map((one) =>
      planDigest(planIn({ plan: one }, 'plan')),
    );
    expect(digests[0]).not.toBe(digests[1]);
  });

  test('can only be answered by a message to its own question', () => {
    const state = at([execute()], planOf(action('a1', { asks: ASKS })));
    const arrival = { update: 'm', now: 1 };
    expect(messageAnswer(state, { message: 'yes' }, arrival)).toEqual({ type: 'message' });
  });
});

test('a no to a plan in which nothing needs approval executes nothing', () => {
  const plan = planOf(action('a1'), action('a2'));
  const denied = at([confirm, execute()], plan);
  const call = getOpenBatch(denied)?.calls[0]?.id ?? '';
  const result = { id: call, ok: false, text: 'denied', denied: true, executed: false } as const;
  const state = reduce(denied, { type: 'call-finished', result, at: 1 });
  expect(planIn(state.graph?.values ?? {}, 'plan')).toMatchObject({
    actions: [],
    dropped: ['a1', 'a2'],
  });
});

test('everything that needs approval is shown, however long the plan is', () => {
  const many = Array.from({ length: 60 }, (_, index) =>
    action(`a${index}`, { arguments: { text: 'x'.repeat(700) } }),
  );
  const last = action('a99', { shown: 'delete all mails', asks: ASKS });
  const shown = showPlan({ actions: [...many, last], done: [], asks: true });
  expect(shown).toContain('! a99  delete all mails');
  expect(shown).toMatch(/and \d+ more that need no approval/);
});

describe('an interruption in the middle of a plan', () => {
  const plan = planOf(action('a1', { tool: 'pay' }), action('a2', { after: ['a1'] }));

  test('preserves what has happened, so that nothing happens twice', () => {
    const begun = finished(at([execute()], plan, { onLimit: 'ask' }), 'a1', { paid: 1 });
    const stopped = reduce(begun, { type: 'turn-interrupted', by: 'wallMs', at: 2 });
    expect(stopped.graph?.values['results']).toEqual({ a1: { ok: true, value: { paid: 1 } } });
    const again = [
      { type: 'limit-raised' } as const,
      { type: 'node-begun', at: 3 } as const,
    ].reduce(reduce, stopped);
    expect(getOpenBatch(again)?.calls.map(actionOf)).toEqual(['a2']);
    expect(callOf(again, 'a2')).not.toHaveProperty('after');
  });

  test('is reported to the next turn, with what was done', () => {
    const begun = finished(at([execute()], plan), 'a1', { paid: 1 });
    const stopped = reduce(begun, { type: 'turn-interrupted', by: 'cancelTurn', at: 2 });
    expect(getOutcome(stopped)).toMatchObject({ status: 'cancelled' });
    const texts = stopped.transcript.messages.map(({ text }) => text);
    expect(texts.at(-1)).toContain('a1 pay done: {"paid":1}');
    expect(texts.at(-1)).toContain('Not done: a2 put.');
  });

  test('preserves the results of a list, too', () => {
    const each = node(
      'each',
      {
        kind: 'each',
        over: [1, 2],
        atOnce: 2,
        body: { kind: 'tool', tool: 'pay', arguments: { $item: '' } },
        save: 'results',
      },
      { done: 'end' },
    );
    const begun = at([each], planOf());
    const first = getOpenBatch(begun)?.calls[0]?.id ?? '';
    const result = { id: first, ok: true, text: '', output: 'paid', executed: true };
    const one = reduce(begun, { type: 'call-finished', result, at: 1 });
    const stopped = reduce(one, { type: 'turn-interrupted', by: 'wallMs', at: 2 });
    const again = [
      { type: 'limit-raised' } as const,
      { type: 'node-begun', at: 3 } as const,
    ].reduce(reduce, stopped);
    expect(getOpenBatch(again)?.results).toEqual([{ ...result, at: 1 }, null]);
  });
});

test('results that are too large for the state are truncated, and none is lost', () => {
  const actions = Array.from({ length: 20 }, (_, index) => action(`a${index}`));
  let state = at([execute()], planOf(...actions));
  for (const { id } of actions) state = finished(state, id, { text: 'x'.repeat(60_000) });
  expect(getOutcome(state)).toMatchObject({ status: 'completed' });
  const results = Object.values(state.graph?.values['results'] ?? {});
  expect(results).toHaveLength(20);
  expect(JSON.stringify(results[0])).toContain('[cut: 60011 characters]');
});

describe('after a failure', () => {
  test('with "fail", an action that still waits for approval does not begin', () => {
    const plan = planOf(action('a1'), action('a2', { asks: ASKS }));
    const begun = at([execute({ onFailedDependency: 'fail' })], plan);
    const call = callOf(begun, 'a2')?.id ?? '';
    const request = { kind: 'approval', why: 'a rule', raisedAt: 0 } as const;
    const asking = reduce(begun, { type: 'request-raised', work: call, request });
    const state = failed(asking, 'a1');
    expect(getOutcome(state)).toMatchObject({ status: 'completed' });
    expect(state.work).toEqual([]);
    expect(state.graph?.values['results']).toMatchObject({ a2: { ok: false } });
  });

  test('with "null", an action that needs approval is not executed, even if its arguments arrived late', () => {
    const plan = planOf(
      action('a1'),
      action('a2'),
      action('a3', { asks: ASKS, arguments: { id: { $ref: 'a2' } }, after: ['a1'] }),
      action('a4', { after: ['a1'] }),
    );
    const begun = at([execute({ onFailedDependency: 'null' })], plan);
    const state = finished(failed(begun, 'a1'), 'a2', { id: 1 });
    expect(getOpenBatch(state)?.results[2]).toMatchObject({ ok: false, executed: false });
    expect(getOpenBatch(state)?.results[3]).toBeNull();
  });
});

describe('planning by catalog', () => {
  const planner = node(
    'plan',
    { kind: 'plan', planning: 'catalog', save: 'plan', maxActions: 9, attempts: 5 },
    { planned: 'end', answered: 'end' },
  );
  const planning = (options: Partial<AgentDefinition> = {}): RunState =>
    at([planner], planOf(), { toolExposure: 'catalog', ...options });

  const reply = (state: RunState, ...calls: [string, object][]): RunState =>
    reduce(state, { type: 'model-replied', reply: callReply(...calls), at: 1 });

  test('does not count noted calls against the limit of calls', () => {
    const state = reply(
      planning({ limits: { toolCalls: 1 } }),
      ['put', { n: 1 }],
      ['put', { n: 2 }],
      ['put', { n: 3 }],
    );
    expect(planIn(state.graph?.values ?? {}, 'plan').actions).toHaveLength(3);
    expect(state.turn).toMatchObject({ limit: null, spent: { toolCalls: 0 } });
  });

  test('notes all calls of a message, even next to one of a tool that ends the turns of agents', () => {
    const tools = [...TOOLS, toolDefinition('send', 'once', { value: true, ends: true })];
    const state = reply(planning({ tools }), ['put', { n: 1 }], ['send', {}], ['put', { n: 2 }]);
    expect(planIn(state.graph?.values ?? {}, 'plan').actions.map(({ tool }) => tool)).toEqual([
      'put',
      'send',
      'put',
    ]);
  });

  test('fills in what was read before the plan is shown', () => {
    const read = reply(planning(), ['look', {}]);
    const id = getOpenBatch(read)?.calls[0]?.id ?? '';
    const result = { id, ok: true, text: '', output: { v: 'e1' }, executed: true };
    const known = reduce(read, { type: 'call-finished', result, at: 2 });
    const state = reply(known, ['put', { id: { $ref: 'r1', path: 'v' } }]);
    expect(planIn(state.graph?.values ?? {}, 'plan').actions).toMatchObject([
      { id: 'a1', arguments: { id: 'e1' } },
    ]);
  });

  test('takes what a read has returned as data, even if it looks like a reference', () => {
    const read = reply(planning(), ['look', {}]);
    const id = getOpenBatch(read)?.calls[0]?.id ?? '';
    const hostile = { mail: { $ref: 'a1', path: 'token' } };
    const result = { id, ok: true, text: '', output: hostile, executed: true };
    const known = reduce(read, { type: 'call-finished', result, at: 2 });
    const state = reply(
      known,
      ['put', { key: 1 }],
      ['put', { text: { $ref: 'r1', path: 'mail' }, after: { $ref: 'a1', path: 'n' } }],
      ['put', { text: { $ref: 'r1', path: 'mail' } }],
    );
    const plan = planIn(state.graph?.values ?? {}, 'plan');
    expect(plan.actions.map((one) => needsOf(one))).toEqual([[], ['a1'], []]);
    const begun = at([execute()], planValue(plan));
    expect(callOf(begun, 'a3')).not.toHaveProperty('after');
    const ended = finished(begun, 'a1', { token: 'sk-secret', n: 5 });
    const text = { $ref: 'a1', path: 'token' };
    expect(JSON.parse(callOf(ended, 'a2')?.arguments ?? '')).toEqual({ text, after: 5 });
    expect(JSON.parse(callOf(ended, 'a3')?.arguments ?? '')).toEqual({ text });
    expect(JSON.stringify(getOpenBatch(ended)?.calls)).not.toContain('sk-secret');
  });

  test('does not note a wait, which would delay the whole plan', () => {
    const tools = [...TOOLS, toolDefinition('wait', 'read', { kind: 'wait' })];
    const state = reply(planning({ tools }), ['wait', { seconds: 9 }], ['put', {}]);
    expect(planIn(state.graph?.values ?? {}, 'plan').actions.map(({ tool }) => tool)).toEqual([
      'put',
    ]);
    const toolTexts = state.transcript.messages.flatMap((one) =>
      one.role === 'tool' ? one.text : [],
    );
    expect(toolTexts[0]).toContain('a plan cannot wait');
  });

  test('keeps at most 50 reads, each truncated, and fills in names of artifacts', () => {
    const looked = (state: RunState, n: number): RunState => {
      const read = reply(state, ['look', { n }]);
      const id = getOpenBatch(read)?.calls[0]?.id ?? '';
      const artifact = { name: 'rows', kind: 'array', blob: { sha256: 'ab', bytes: 9_000_000 } };
      const made = n === 0 ? { artifact } : { output: 'z'.repeat(10_000) };
      const result = { id, ok: true, text: 'head', executed: true, ...made };
      return reduce(read, { type: 'call-finished', result, at: 2 });
    };
    const read = Array.from({ length: 52 }, (_, n) => n).reduce(looked, planning());
    const state = reply(read, ['put', { from: { $ref: 'r1' } }], ['put', { from: { $ref: 'r2' } }]);
    const plan = planIn(state.graph?.values ?? {}, 'plan');
    expect(plan.done).toHaveLength(50);
    expect(JSON.stringify(plan.done[1]?.result).length).toBeLessThan(9_000);
    expect(JSON.stringify(plan.done[1]?.result)).toContain('[cut: 10000 characters]');
    // A tool must not get the rest of a value as if it were the value.
    expect(plan.actions.map((one) => one.arguments)).toEqual([{ from: 'rows' }]);
    expect(state.transcript.messages.at(-1)?.text).toContain('r2 is too long to be passed on');
  });
});

describe('a verdict of the rules on incomplete arguments', () => {
  test('is made again, whatever a person has answered to the plan', () => {
    const plan = planOf(
      action('a1', { asks: ASKS, late: true, arguments: { euros: 5_000 } }),
      action('a2', { asks: ASKS }),
    );
    const state = answered(at([confirm, execute()], plan), 'yes');
    expect(callOf(state, 'a1')).toMatchObject({ asks: true, confirmed: true });
    expect(callOf(state, 'a1')).not.toHaveProperty('verdict');
    expect(callOf(state, 'a2')).toMatchObject({ confirmed: true });
  });
});

test('an input can fill neither a plan nor its results', () => {
  const planner = node(
    'make',
    { kind: 'plan', planning: 'schema', save: 'plan', maxActions: 9, attempts: 5 },
    { planned: 'do', answered: 'end' },
  );
  const nodes = [planner, execute()];
  const graph = { start: 'make', nodes, fields: ['plan', 'results'], initial: {}, perTurn: [] };
  const definition = { name: 'g', graph };
  expect(inputProblem(definition, { plan: {} })).toContain('only the node "make"');
  expect(inputProblem(definition, { results: {} })).toContain('only the node "do"');
  expect(inputProblem(definition, {})).toBeNull();
});

test('nothing of an interrupted visit remains after its turn', () => {
  const body = { kind: 'tool', tool: 'pay', arguments: { $item: '' } } as const;
  const pays = { kind: 'each', over: [1, 2], atOnce: 2, body, save: 'results' } as const;
  const each = node('each', pays, { done: 'end' });
  const begun = at([each], planOf());
  const first = getOpenBatch(begun)?.calls[0]?.id ?? '';
  const result = { id: first, ok: true, text: '', output: 'paid', executed: true };
  const over = [
    { type: 'call-finished', result, at: 1 } as const,
    { type: 'turn-interrupted', by: 'cancelTurn', at: 2 } as const,
    { type: 'turn-recorded', at: 3 } as const,
  ].reduce(reduce, begun);
  expect(over.graph).not.toHaveProperty('interrupted');
});
