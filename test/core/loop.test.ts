import { describe, expect, test } from 'vitest';
import { runTurn } from '../support/turn.js';
import type { ModelEnd, World } from '../support/world.js';
import type { RecordedReply } from '../../src/core/transcript/outcome.js';
import type { RunConfig, RunState } from '../../src/core/state/state.js';
import { callReply, begun, config, textReply } from '../support/scripts.js';
import { getOutcome } from '../../src/core/state/turn.js';

/** Runs a turn with a script. Tools answer with their name and a number. */
async function run(
  runConfig: RunConfig,
  script: readonly (RecordedReply | ModelEnd)[],
  answer: (name: string, nth: number) => string = (name, nth) => `${name} ${nth}`,
): Promise<{ state: RunState; executed: readonly string[]; closings: number }> {
  const rest = [...script];
  const executed: string[] = [];
  let closings = 0;
  const world: World = {
    callModel: async (_state, { closing }) => {
      if (closing) closings += 1;
      const next = rest.shift();
      if (next === undefined) throw new Error('the script is used up');
      return 'type' in next ? next : { type: 'replied', reply: next };
    },
    runCalls: async (_state, calls, finished) => {
      for (const { id, name } of calls) {
        executed.push(name);
        const text = answer(name, executed.length);
        finished(id, { ok: !text.startsWith('{"error"'), text });
      }
      return null;
    },
  };
  return { state: await runTurn(begun(runConfig), world), executed, closings };
}

const texts = (state: RunState): readonly string[] =>
  state.transcript.messages.map(({ role, text }) => `${role}: ${text}`);

describe('a turn', () => {
  test('ends with the answer', async () => {
    const { state } = await run(config(), [callReply(['look']), textReply('42')]);
    expect(getOutcome(state)).toMatchObject({
      status: 'completed',
      reason: 'answer',
      answer: '42',
      steps: 2,
      toolCalls: 1,
      usage: { inputTokens: 20, outputTokens: 10 },
    });
  });

  test('ends with the result of a tool that ends it', async () => {
    const { state, executed } = await run(config(), [callReply(['look'], ['done'])]);
    expect(executed).toEqual(['done']);
    expect(getOutcome(state)).toMatchObject({
      status: 'completed',
      reason: 'tool',
      answer: 'done 1',
    });
  });

  test('drops the calls after an ending one if they run in sequence', async () => {
    const { state, executed } = await run(config({ toolCalls: 'sequential' }), [
      callReply(['look'], ['done'], ['pay']),
    ]);
    expect(executed).toEqual(['look', 'done']);
    expect(texts(state).at(-1)).toContain('not executed');
  });

  test('executes only the first call under that policy, and informs the model', async () => {
    const { state, executed } = await run(config({ toolCalls: 'first' }), [
      callReply(['look'], ['put']),
      textReply('ok'),
    ]);
    expect(executed).toEqual(['look']);
    expect(texts(state)[3]).toContain('only the first call');
  });
});

describe('a step cap', () => {
  const script = [callReply(['look', 1]), callReply(['look', 2]), textReply('so far: 2')];

  test('allows that many deciding calls and then one closing call', async () => {
    const { state, closings } = await run(config({ limits: { steps: 2 } }), script);
    expect(closings).toBe(1);
    expect(getOutcome(state)).toMatchObject({
      status: 'stopped',
      reason: 'steps',
      answer: 'so far: 2',
      steps: 2,
      usage: { inputTokens: 30 },
    });
    expect(state.transcript.messages.at(-2)).toMatchObject({ role: 'user', origin: 'perdure' });
  });

  test('composes an answer if the closing call fails', async () => {
    const { state } = await run(config({ limits: { steps: 2 } }), [
      ...script.slice(0, 2),
      { type: 'failed', reason: 'error', message: 'down' },
    ]);
    expect(getOutcome(state)).toMatchObject({ status: 'stopped', reason: 'steps' });
    expect(getOutcome(state)?.answer).toContain('look 2');
  });

  test('composes an answer if the closing call only asks for more tools', async () => {
    const { state, executed } = await run(config({ limits: { steps: 1 } }), [
      callReply(['look']),
      callReply(['pay']),
    ]);
    expect(executed).toEqual(['look']);
    expect(getOutcome(state)?.answer).toContain('look 1');
  });

  test('composes an answer without a call if the agent is configured for that', async () => {
    const { state, closings } = await run(
      config({ limits: { steps: 2 }, onLimit: 'compose' }),
      script.slice(0, 2),
    );
    expect(closings).toBe(0);
    expect(getOutcome(state)).toMatchObject({ status: 'stopped', reason: 'steps' });
  });

  test('fails without an answer if the agent is configured for that', async () => {
    const { state } = await run(
      config({ limits: { steps: 2 }, onLimit: 'fail' }),
      script.slice(0, 2),
    );
    expect(getOutcome(state)).toMatchObject({
      status: 'failed',
      reason: 'limit',
      limit: 'steps',
      answer: null,
    });
  });

  test('does not stop a run that answers within it', async () => {
    const { state } = await run(config({ limits: { steps: 2 } }), [
      callReply(['look']),
      textReply('42'),
    ]);
    expect(getOutcome(state)).toMatchObject({ status: 'completed', steps: 2 });
  });
});

describe('the cap of tool calls', () => {
  test('executes what it allows, refuses the rest by name, and closes', async () => {
    const { state, executed } = await run(config({ limits: { toolCalls: 2 } }), [
      callReply(['look', 1], ['look', 2], ['look', 3]),
      textReply('two of three'),
    ]);
    expect(executed).toHaveLength(2);
    expect(texts(state)[4]).toContain('tool-call limit');
    expect(getOutcome(state)).toMatchObject({
      status: 'stopped',
      reason: 'toolCalls',
      toolCalls: 2,
    });
  });

  test('does not stop a run that needs no more calls', async () => {
    const { state } = await run(config({ limits: { toolCalls: 1 } }), [
      callReply(['look']),
      textReply('42'),
    ]);
    expect(getOutcome(state)?.status).toBe('completed');
  });
});

describe('token and cost budgets', () => {
  const price = { input: 1_000, cachedInput: 100, output: 1_000 };

  test('on tokens are reserved before a call and cap its output', async () => {
    const caps: (number | null)[] = [];
    const world: World = {
      observe: (_state, action) => {
        if (action.type === 'call-model') caps.push(action.maxOutputTokens);
      },
      callModel: async () => ({ type: 'replied', reply: textReply('hi') }),
    };
    await runTurn(begun(config({ limits: { tokens: 1_000 }, tools: [] })), world);
    expect(caps).toHaveLength(1);
    expect(caps[0]).toBeGreaterThan(900);
    expect(caps[0]).toBeLessThan(1_000);
  });

  test('that allow no further call end with a composed answer', async () => {
    const { state, closings } = await run(
      config({ limits: { tokens: 430 } }),
      [callReply(['look'])],
      () => 'long '.repeat(200),
    );
    expect(closings).toBe(0);
    expect(getOutcome(state)).toMatchObject({ status: 'stopped', reason: 'tokens' });
  });

  test('cap the closing call too, or omit it', async () => {
    for (let tokens = 60; tokens < 500; tokens += 5) {
      const caps: (number | null)[] = [];
      await runTurn(begun(config({ limits: { tokens, steps: 1 }, tools: [] })), {
        observe: (_state, action) => {
          if (action.type === 'call-model' && action.closing) caps.push(action.maxOutputTokens);
        },
        callModel: async () => ({ type: 'replied', reply: callReply(['nothing']) }),
      });
      expect(caps).not.toContain(null);
    }
  });

  test('on cost need a price', async () => {
    const { state } = await run(config({ limits: { costUsd: 5 } }), []);
    expect(getOutcome(state)).toMatchObject({ status: 'stopped', reason: 'costUsd', steps: 0 });
  });

  test('on cost count what was spent', async () => {
    const { state } = await run(config({ price, limits: { costUsd: 5 } }), [textReply('hi')]);
    expect(getOutcome(state)?.usage.costUsd).toBeCloseTo(0.015, 6);
  });
});

describe('repeated calls', () => {
  test('get the recorded result for an identical once call, with a note', async () => {
    const { state, executed } = await run(config(), [
      callReply(['pay', 7]),
      callReply(['pay', 7]),
      textReply('paid'),
    ]);
    expect(executed).toEqual(['pay']);
    expect(texts(state)[4]).toMatch(/identical to call_1_1_0.*pay 1/s);
  });

  test('execute a failed once call again', async () => {
    const { executed } = await run(
      config(),
      [callReply(['pay', 7]), callReply(['pay', 7]), textReply('paid')],
      (_, nth) => (nth === 1 ? '{"error":{}}' : 'ok'),
    );
    expect(executed).toEqual(['pay', 'pay']);
  });

  test('execute two identical once calls of one message once', async () => {
    const { state, executed } = await run(config(), [
      callReply(['pay', 7], ['pay', 7]),
      textReply('paid'),
    ]);
    expect(executed).toEqual(['pay']);
    expect(texts(state)[3]).toContain('identical to call_1_1_0');
  });

  test('end a turn after three identical reads with identical results', async () => {
    const read = callReply(['look', 1]);
    const { state, executed } = await run(
      config(),
      [read, read, read, textReply('stuck')],
      () => 'same',
    );
    expect(executed).toHaveLength(3);
    expect(getOutcome(state)).toMatchObject({
      status: 'stopped',
      reason: 'no_progress',
      answer: 'stuck',
    });
  });

  test('count an identical read once in a message', async () => {
    const read = callReply(['look', 1], ['look', 1], ['look', 1], ['look', 1]);
    const { state } = await run(config(), [read, textReply('fine')], () => 'same');
    expect(getOutcome(state)).toMatchObject({ status: 'completed' });
  });

  test('allow a read to poll while its result changes', async () => {
    const read = callReply(['look', 1]);
    const { state } = await run(config(), [read, read, read, read, textReply('ready')]);
    expect(getOutcome(state)).toMatchObject({ status: 'completed', steps: 5 });
  });

  test('execute a repeated call of a tool that allows it', async () => {
    const read = callReply(['poll', 1]);
    const { state } = await run(
      config(),
      [read, read, read, read, textReply('ready')],
      () => 'same',
    );
    expect(getOutcome(state)?.status).toBe('completed');
  });
});

describe('an error of the model', () => {
  test('is reported to it: an unknown tool', async () => {
    const { state, executed } = await run(config(), [callReply(['nothing']), textReply('sorry')]);
    expect(executed).toEqual([]);
    expect(texts(state)[2]).toContain('unknown_tool');
    expect(getOutcome(state)?.status).toBe('completed');
  });

  test('ends in no_progress if every step fails', async () => {
    const replies = Array.from({ length: 10 }, (_, n) => callReply(['nothing', n]));
    const { state } = await run(config(), [...replies, textReply('I give up')]);
    expect(getOutcome(state)).toMatchObject({
      status: 'stopped',
      reason: 'no_progress',
      steps: 10,
    });
  });

  test('is not executed if the reply was cut off', async () => {
    const { state, executed } = await run(config(), [
      { ...callReply(['pay']), finish: 'length' },
      textReply('shorter'),
    ]);
    expect(executed).toEqual([]);
    expect(texts(state)[2]).toContain('truncated');
  });
});

describe('ends other than an answer', () => {
  test.each([
    ['length', 'truncated', 'half'],
    ['refused', 'refused', 'half'],
    ['filtered', 'filtered', 'half'],
  ] as const)(
    'a reply that ends by %s fails as %s with the partial text',
    async (finish, reason, answer) => {
      const { state } = await run(config(), [textReply('half', finish)]);
      expect(getOutcome(state)).toMatchObject({ status: 'failed', reason, answer });
    },
  );

  test('a canceled turn keeps its messages and answers every open call', async () => {
    const { state } = await run(config(), [
      { ...callReply(['look']), text: 'looking' },
      { type: 'interrupted', by: 'cancel' },
    ]);
    expect(getOutcome(state)).toMatchObject({ status: 'cancelled', answer: 'looking' });
  });

  test('a deadline leads to the closing call', async () => {
    const { state } = await run(config(), [
      { type: 'interrupted', by: 'wallMs' },
      textReply('in short'),
    ]);
    expect(getOutcome(state)).toMatchObject({
      status: 'stopped',
      reason: 'wallMs',
      answer: 'in short',
    });
  });
});
