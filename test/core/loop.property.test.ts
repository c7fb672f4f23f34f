import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { errorText } from '../../src/core/transcript/call-result.js';
import type { RunToolResult } from '../../src/core/guards/recorded.js';
import type { LimitSet } from '../../src/core/definition/definition.js';
import { runTurn } from '../support/turn.js';
import type { ModelEnd, World } from '../support/world.js';
import type { Message, ToolCall } from '../../src/core/transcript/messages.js';
import type { RecordedReply } from '../../src/core/transcript/outcome.js';
import type { RunState } from '../../src/core/state/state.js';
import { callReply, begun, config, textReply } from '../support/scripts.js';
import { getOutcome } from '../../src/core/state/turn.js';

const call = fc.tuple(
  fc.constantFrom('look', 'put', 'pay', 'poll', 'nothing'),
  fc.record({ x: fc.integer({ min: 0, max: 2 }) }),
);
const ending = fc.tuple(fc.constantFrom('look', 'done'), fc.record({ x: fc.constant(1) }));
const reply: fc.Arbitrary<ModelEnd> = fc
  .oneof(
    {
      weight: 8,
      arbitrary: fc.array(call, { minLength: 1, maxLength: 7 }).map((c) => callReply(...c)),
    },
    {
      weight: 1,
      arbitrary: fc.array(ending, { minLength: 1, maxLength: 2 }).map((c) => callReply(...c)),
    },
    { weight: 1, arbitrary: fc.constantFrom(textReply('fine'), textReply('cut', 'length')) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(textReply('no', 'refused'), textReply('', 'filtered')),
    },
  )
  .map((recorded: RecordedReply): ModelEnd => ({ type: 'replied', reply: recorded }));
const modelEnd = fc.oneof(
  { weight: 12, arbitrary: reply },
  {
    weight: 1,
    arbitrary: fc.constantFrom<ModelEnd>(
      { type: 'failed', reason: 'error', message: 'broke' },
      { type: 'interrupted', by: 'cancel' },
      { type: 'interrupted', by: 'wallMs' },
    ),
  },
);
/** The result of a call: ok, error, or sometimes an interruption of the whole batch before it. */
const callEnd = fc.constantFrom('ok', 'ok', 'ok', 'same', 'error', 'error', 'cancel', 'wallMs');

const limits: fc.Arbitrary<LimitSet> = fc.record(
  {
    steps: fc.integer({ min: 1, max: 6 }),
    toolCalls: fc.integer({ min: 1, max: 8 }),
    tokens: fc.integer({ min: 50, max: 1_500 }),
    costUsd: fc.double({ min: 0.0001, max: 0.01, noNaN: true }),
  },
  { requiredKeys: [] },
);
const scenario = fc.record({
  replies: fc.array(modelEnd, { maxLength: 80 }),
  callEnds: fc.array(callEnd, { maxLength: 200 }),
  limits,
  runLimits: limits,
  toolCalls: fc.constantFrom('parallel' as const, 'sequential' as const, 'first' as const),
  onLimit: fc.constantFrom('answer' as const, 'compose' as const, 'fail' as const),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer S> ? S : never;

const FAILED = { ok: false, text: errorText({ type: 'tool_error', message: 'x' }) } as const;

interface Trace {
  readonly state: RunState;
  readonly executed: readonly ToolCall[];
  readonly deciding: number;
  readonly closing: number;
}

/** Plays a scenario. After the end of its script, the model keeps calling tools, as a runaway model does. */
async function play(given: Scenario): Promise<Trace> {
  const executed: ToolCall[] = [];
  const replies = [...given.replies];
  const callEnds = [...given.callEnds];
  const counts = { deciding: 0, closing: 0 };
  let serial = 0;
  const world: World = {
    callModel: async (_state, { closing }) => {
      counts[closing ? 'closing' : 'deciding'] += 1;
      const next = replies.shift() ?? {
        type: 'replied',
        reply: callReply(['look', { n: (serial += 1) }]),
      };
      return next;
    },
    runCalls: async (_state, calls, finished) => {
      const results: (readonly [string, RunToolResult])[] = [];
      const finish = (): void => results.splice(0).forEach(([id, result]) => finished(id, result));
      for (const each of calls) {
        const how = callEnds.shift() ?? 'ok';
        if (how === 'cancel' || how === 'wallMs') {
          finish();
          return how;
        }
        executed.push(each);
        const text = how === 'same' ? 'same' : `result ${(serial += 1)}`;
        results.push([each.id, how === 'error' ? FAILED : { ok: true, text }]);
      }
      // In any order, because parallel calls end in any order.
      results.reverse();
      finish();
      return null;
    },
  };
  const runConfig = config({
    limits: { ...given.limits, run: given.runLimits },
    toolCalls: given.toolCalls,
    onLimit: given.onLimit,
    price: { input: 1, cachedInput: 0.1, output: 4 },
  });
  const state = await runTurn(begun(runConfig), world);
  return { state, executed, ...counts };
}

/** Checks that each assistant message with calls is followed by exactly their results, in call order. */
function expectValid(messages: readonly Message[]): void {
  const rest = [...messages];
  for (let message = rest.shift(); message !== undefined; message = rest.shift()) {
    expect(message.role).not.toBe('tool');
    if (message.role !== 'assistant') continue;
    for (const each of message.calls ?? []) {
      expect(rest.shift()).toMatchObject({ role: 'tool', callId: each.id });
    }
  }
  expect(messages.map(({ n }) => n)).toEqual(messages.map((_, index) => index));
}

/** What holds of each trace, by name. */
const RULES: Readonly<Record<string, (trace: Trace, given: Scenario) => void>> = {
  'it ends with one outcome': ({ state }) => expect(getOutcome(state)).not.toBeNull(),

  'every call has exactly one result, in order': ({ state }) =>
    expectValid(state.transcript.messages),

  'there are never more deciding calls or executed tools than the limits allow': (
    { executed, deciding, closing },
    given,
  ) => {
    const least = (name: 'steps' | 'toolCalls', by: number): number =>
      Math.min(given.limits[name] ?? by, given.runLimits[name] ?? by);
    expect(deciding).toBeLessThanOrEqual(least('steps', 50));
    expect(executed.length).toBeLessThanOrEqual(least('toolCalls', 200));
    expect(closing).toBeLessThanOrEqual(given.onLimit === 'answer' ? 1 : 0);
  },

  'exactly what was done is counted': ({ state, executed, deciding }) => {
    const decided = state.transcript.messages.filter(
      ({ role, step }, n, all) => role === 'assistant' && all[n - 1]?.step !== step,
    );
    expect(decided.length).toBeLessThanOrEqual(deciding);
    expect(getOutcome(state)).toMatchObject({ steps: state.turn.spent.steps });
    expect(state.turn.spent.toolCalls).toBe(executed.length);
  },

  'a succeeded keyed or once call is never executed again': ({ state }) => {
    const results = new Map(
      state.transcript.messages.flatMap((m) => (m.role === 'tool' ? [[m.callId, m.text]] : [])),
    );
    const succeeded = state.transcript.messages
      .flatMap((m) => (m.role === 'assistant' ? (m.calls ?? []) : []))
      .filter(
        ({ name, id }) =>
          ['put', 'pay'].includes(name) && /^(result|same)/.test(results.get(id) ?? ''),
      )
      .map(({ name, digest }) => `${name} ${digest}`);
    expect(new Set(succeeded).size).toBe(succeeded.length);
  },

  'the state survives JSON': ({ state }) =>
    expect(JSON.parse(JSON.stringify(state))).toEqual(state),
};

describe('the loop, with random scripts of replies, results, and errors', () => {
  // Playing is what takes time: each rule is checked of every play.
  test(`keeps its rules: ${Object.keys(RULES).join('; ')}`, async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        const trace = await play(given);
        for (const rule of Object.values(RULES)) rule(trace, given);
      }),
      { numRuns: 1_000 },
    );
  });

  test('is pure: it gives the same result when it runs again', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        expect((await play(given)).state).toEqual((await play(given)).state);
      }),
      { numRuns: 100 },
    );
  });
});
