import { describe, expect, test } from 'vitest';
import { openCalls, safetyWords } from '../../src/core/calls/batch.js';
import type { ModelSettings } from '../../src/core/definition/definition.js';
import { nextAction } from '../../src/core/run/next-action.js';
import type { RunConfig, RunState } from '../../src/core/state/state.js';
import type { RequestedCall } from '../../src/core/transcript/messages.js';
import { after, completed, replied, results, scheduled, toolTask } from '../support/facts.js';
import { callReply, begun, config, textReply, toolDefinition, TOOLS } from '../support/scripts.js';
import type { ToolCall } from '../../src/core/transcript/messages.js';
import { getOpenBatch, type Batch } from '../../src/core/state/turn.js';

const calls = { agent: 'expert', parentClose: 'request_cancel' } as const;
const tools = [
  ...TOOLS,
  toolDefinition('expert', 'keyed', { kind: 'agent', calls, repeat: 'allow' }),
  toolDefinition('screen', 'keyed', { repeat: 'allow' }),
  toolDefinition('list_artifacts', 'read', { kind: 'artifacts' }),
];
const configOf = (rest: Parameters<typeof config>[0] = {}): RunConfig => config({ tools, ...rest });

type Call = readonly [name: string, value?: unknown];

function asked(names: readonly Call[], from = begun(configOf())): RunState {
  return replied(from, callReply(...names));
}
const open = (state: RunState): readonly string[] =>
  openCallsIn(state, getOpenBatch(state)).map(({ name }) => name);
const openCallsIn = (state: RunState, batch: Batch | null): readonly ToolCall[] =>
  batch === null ? [] : openCalls(state, batch);
const refused = (state: RunState): readonly string[] =>
  (getOpenBatch(state)?.results ?? []).flatMap((result) => result?.text ?? []);

describe('a call of an agent', () => {
  const at = (depth: number, limits = {}): RunState =>
    asked([['expert']], begun({ ...configOf({ limits }), depth }));
  const NO = /the maximum agent depth has been reached/;

  test('is refused at the maximum depth, and the turn closes', () => {
    expect(open(at(1, { depth: 2 }))).toEqual(['expert']);
    const deep = at(2, { depth: 2 });
    expect(results(deep)[0]).toMatch(NO);
    expect(deep.turn.limit).toBe('depth');
    expect(nextAction(deep)).toEqual({ type: 'begin-closing', reason: 'depth' });
    expect(results(at(1, { run: { depth: 1 } }))[0]).toMatch(NO);
    expect(results(at(1, { depth: 5, run: { depth: 1 } }))[0]).toMatch(NO);
  });

  test('is refused 16 agents below the first, whatever the limits', () => {
    expect(open(at(15, { depth: 99 }))).toEqual(['expert']);
    expect(results(at(16, { depth: 99 }))[0]).toMatch(NO);
    expect(results(at(16))[0]).toMatch(NO);
  });

  test('of a run that no agent has called is at depth 0', () => {
    expect(results(asked([['expert']], begun(configOf({ limits: { depth: 0 } }))))[0]).toMatch(NO);
    expect(open(asked([['expert']], begun(configOf({ limits: { depth: 1 } }))))).toEqual([
      'expert',
    ]);
    expect(open(asked([['look']], begun({ ...configOf(), depth: 16 })))).toEqual(['look']);
  });

  test('that is refused does not replace the first reason', () => {
    const limits = { depth: 1, toolCalls: 1 };
    const state = asked([['look'], ['expert']], begun({ ...configOf({ limits }), depth: 1 }));
    expect(state.turn.limit).toBe('toolCalls');
    const both = asked(
      [['expert'], ['look'], ['look', 2]],
      begun({ ...configOf({ limits }), depth: 1 }),
    );
    expect([both.turn.limit, refused(both)]).toMatchObject(['toolCalls', { length: 2 }]);
  });
});

describe('an action on a screen', () => {
  const nativeTools = [{ type: 'computer', handler: 'screen' }];
  const screens = (settings: ModelSettings): RunState =>
    asked([['look'], ['screen', 1], ['screen', 2]], begun(configOf({ settings })));

  test('is executed once per message, because the screen changes', () => {
    const state = screens({ nativeTools });
    expect(open(state)).toEqual(['look', 'screen']);
    expect(getOpenBatch(state)?.results.map((result) => result !== null)).toEqual([
      false,
      false,
      true,
    ]);
    expect(refused(state)).toEqual([
      expect.stringContaining('only one action on the screen per message'),
    ]);
    expect(open(screens({}))).toEqual(['look', 'screen', 'screen']);
  });
});

describe('repeats of a call', () => {
  test('in one message are executed once, unless the tool allows repeats or only reads', () => {
    expect(
      open(
        asked([
          ['put', 1],
          ['put', 1],
          ['put', 2],
        ]),
      ),
    ).toEqual(['put', 'put']);
    expect(
      open(
        asked([
          ['screen', 1],
          ['screen', 1],
        ]),
      ),
    ).toEqual(['screen', 'screen']);
    expect(
      open(
        asked([
          ['look', 1],
          ['look', 1],
        ]),
      ),
    ).toEqual(['look', 'look']);
  });

  test('do not use up the limit of tool calls', () => {
    const state = asked(
      [
        ['put', 1],
        ['put', 1],
        ['put', 2],
      ],
      begun(configOf({ limits: { toolCalls: 2 } })),
    );
    expect([open(state), state.turn.limit]).toEqual([['put', 'put'], null]);
  });

  test('count against the limit of tool calls if they are executed', () => {
    const one = (names: readonly Call[]): readonly string[] =>
      open(asked(names, begun(configOf({ limits: { toolCalls: 1 } }))));
    expect(
      one([
        ['look', 1],
        ['look', 1],
      ]),
    ).toEqual(['look']);
    expect(
      one([
        ['put', 1],
        ['put', 2],
      ]),
    ).toEqual(['put']);
  });

  test('that get the recorded result are not failed steps', () => {
    const first = asked([
      ['put', 1],
      ['put', 2],
    ]);
    const done = [0, 1].reduce((state, n) => {
      const task = toolTask(first, n);
      return after(state, scheduled(task), completed(task, { ok: true, text: `stored ${n}` }));
    }, first);
    const again = asked([['put', 2]], done);
    expect(results(again).at(-1)).toMatch(/identical to call_1_1_1 in this turn.*\nstored 1$/s);
    expect(again.turn).toMatchObject({ failedSteps: 0, spent: { toolCalls: 2 } });
    expect(results(asked([['nothing']]))[0]).toContain('unknown tool \\"nothing\\"');
  });

  test('of a call that has a problem are not guarded', () => {
    const [call] = callReply(['put', 1]).calls ?? [];
    const problem = { type: 'invalid_arguments', message: 'x' } as const;
    const two: readonly RequestedCall[] = call ? [{ ...call, problem }, call] : [];
    const state = replied(begun(configOf()), { ...callReply(), calls: two });
    expect(open(state)).toEqual(['put']);
    expect(refused(state)).toEqual(['{"error":{"type":"invalid_arguments","message":"x"}}']);
  });

  test('get the recorded result, with the blob of the first', () => {
    const blob = { sha256: 'a'.repeat(64), bytes: 9 };
    const first = asked([['put', 1]]);
    const task = toolTask(first, 0);
    const done = after(first, scheduled(task), completed(task, { ok: true, text: 'stored', blob }));
    const again = asked([['put', 1]], done);
    expect(again.transcript.messages.at(-1)).toMatchObject({
      text: '[identical to call_1_1_0 in this turn; not executed again. Its result:]\nstored',
      blob,
    });
    const { transcript } = done;
    const gone = {
      ...done,
      transcript: { ...transcript, messages: transcript.messages.slice(0, 1) },
    };
    expect(results(asked([['put', 1]], gone)).at(-1)).toContain('[see above, or the summary]');
  });
});

test.each<[string, NonNullable<ToolCall['safety']>]>([
  ['harmful: it may break', [{ id: 's1', code: 'harmful', message: 'it may break' }]],
  ['harmful', [{ id: 's1', code: 'harmful', message: '' }]],
  ['it may break', [{ id: 's1', message: 'it may break' }]],
  ['s1; s2', [{ id: 's1', code: '' }, { id: 's2' }]],
])('a request about safety checks states %s', (words, safety) => {
  expect(safetyWords({ safety })).toBe(`the provider asks for a person's decision (${words})`);
});

test('a failed step counts only until a call succeeds', () => {
  let state = begun(configOf({ limits: { steps: 99 } }));
  const fail = (): void => {
    state = asked([['nothing', state.turn.spent.steps]], state);
  };
  for (let n = 0; n < 9; n += 1) fail();
  expect(state.turn.failedSteps).toBe(9);
  state = asked([['look'], ['nothing']], state);
  state = after(
    state,
    scheduled(toolTask(state, 0)),
    completed(toolTask(state, 0), { ok: true, text: 'x' }),
  );
  expect(state.turn.failedSteps).toBe(0);
  for (let n = 0; n < 9; n += 1) fail();
  expect(nextAction(state).type).toBe('call-model');
  fail();
  expect(nextAction(state)).toEqual({ type: 'begin-closing', reason: 'no_progress' });
  expect(replied(state, textReply('x')).turn.failedSteps).toBe(10);
});

test('lists have up to 64 KiB in one message, and are not executed calls', () => {
  const artifact = {
    name: 'a',
    blob: { sha256: 'a'.repeat(64), bytes: 1 },
    kind: 'array',
    summary: 's'.repeat(300),
    tool: 'look',
    call: 'c',
  };
  const artifacts = Array.from({ length: 100 }, (_, n) => ({ ...artifact, name: `a${n}` }));
  const state = asked(
    Array.from({ length: 4 }, () => ['list_artifacts'] as const),
    { ...begun(configOf()), artifacts },
  );
  const lengths = results(state).map((text) => text.length > 1_000);
  expect(lengths).toEqual([true, true, false, false]);
  expect(results(state)[2]).toContain(
    'not executed: the answers are too long for one message; ask again in the next',
  );
  expect(state.turn).toMatchObject({ failedSteps: 0, spent: { toolCalls: 0 } });
  const message = 'x'.repeat(70_000);
  const [wrong] = callReply(['look']).calls ?? [];
  const problem = { type: 'invalid_arguments', message } as const;
  const mixed = [
    ...(wrong ? [{ ...wrong, problem }] : []),
    ...(callReply(['list_artifacts']).calls ?? []),
  ];
  const listed = replied({ ...begun(configOf()), artifacts }, { ...callReply(), calls: mixed });
  expect(results(listed).at(-1)).toContain('100 artifacts');
});
