import type { Reaction } from '../../src/testing/actions.js';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import {
  after,
  approve,
  cancelRun,
  cancelTurn,
  closeRun,
  decision,
  edit,
  kill,
  noDecision,
  pauseRun,
  replyCall,
  replyCalls,
  replyError,
  replyText,
  resumeRun,
  runInMemory,
  send,
  setRunLimits,
} from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import {
  expectReplays,
  hang,
  look,
  pay,
  peek,
  textsOf,
  useSourceBundle,
} from '../support/memory.js';

const SECOND = 1_000;
const DAY = 24 * 60 * 60 * SECOND;
const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools: [look, pay, hang] });
const pays = [replyCall('pay', { n: 1 }), replyText('Done.')];

beforeAll(useSourceBundle);

describe('time in memory', () => {
  test('passes until a person decides', async () => {
    const on = { request: { pay: after('3 days', approve()) } };
    const run = await runInMemory(desk, { message: 'Pay', model: pays, on });
    expect(run.clock).toBe(3 * DAY);
    expect(run.effects).toHaveLength(1);
    await expectReplays(run);
  });

  test('passes until a request expires', async () => {
    const brief = defineAgent({
      name: 'brief',
      instructions: 'Pay.',
      tools: [pay],
      rules: [{ tool: 'pay', then: 'ask', expires: '2 days' }],
    });
    const on = { request: { pay: noDecision() } };
    const run = await runInMemory(brief, { message: 'Pay', model: pays, on });
    expect(run.clock).toBe(2 * DAY);
    expect(textsOf(run)[2]).toContain('no decision within 2 days');
    await expectReplays(run);
  });

  test('passes until a message comes', async () => {
    const run = await runInMemory(desk, {
      message: 'One',
      open: true,
      model: [replyText('1'), replyText('2')],
      at: { '3 days': send('Any news?'), '4 days': closeRun() },
    });
    expect(run.clock).toBe(4 * DAY);
    expect(run.outcome).toMatchObject({ status: 'completed', reason: 'closed' });
  });

  test('passes between the attempts of a model call and of a tool', async () => {
    let failures = 0;
    const flaky = defineTool({
      name: 'flaky',
      description: 'Fails twice.',
      effect: 'read',
      input: z.object({}),
      retry: { attempts: 3 },
      execute: () => {
        failures += 1;
        if (failures < 3) throw new Error('not yet');
        return 'now';
      },
    });
    const agent = defineAgent({ name: 'flaky', instructions: 'Try.', tools: [flaky] });
    const run = await runInMemory(agent, {
      message: 'Try',
      model: [replyError(500, { message: 'down' }), replyCall('flaky', {}), replyText('Done.')],
    });
    expect(run.effects.map(({ attempt, error }) => [attempt, error ?? null])).toEqual([
      [1, 'not yet'],
      [2, 'not yet'],
      [3, null],
    ]);
    expect(run.clock).toBeGreaterThan(SECOND);
    expect(run.clock).toBeLessThan(5 * SECOND);
    await expectReplays(run);
  });

  test('really passes while code runs, so a limit of time ends a call that hangs', async () => {
    const run = await runInMemory(desk, {
      message: 'Hang',
      limits: { wallMs: 300 },
      model: [replyCall('hang', {}), replyText('It took too long.')],
    });
    expect(run.outcome).toMatchObject({ status: 'stopped', reason: 'wallMs' });
    expect(run.clock).toBe(300);
  });

  test('does not pass for ever', async () => {
    const late = { request: { pay: after('3 days', approve()) } };
    await expect(
      runInMemory(desk, { message: 'Pay', model: pays, on: late, within: '1 day' }),
    ).rejects.toThrow('the run takes too long: the next event comes 2 days after the end');
    const broken = { call: async () => await Promise.reject(new Error('no such host')) };
    await expect(runInMemory(desk, { message: 'Hi', model: broken })).rejects.toThrow(
      /the run cannot go on.*blocked: provider.*no such host/,
    );
  });
});

test.each<[unknown, unknown, string]>([
  [
    '3 dys',
    approve(),
    'after: expected a delay of at least 0 such as "3 days", in weeks or a shorter unit, or milliseconds, got "3 dys"',
  ],
  [-1, approve(), 'milliseconds, got -1'],
  [Infinity, approve(), 'milliseconds, got Infinity'],
  [
    '3 days',
    'approve',
    'after: expected an action such as approve(), deny(), or send("…"), got "approve"',
  ],
])('after(%o, %o) is refused where it is written', (delay, action, problem) => {
  expect(() => Reflect.apply(after, null, [delay, action])).toThrow(problem);
});

describe('a script in memory', () => {
  test('is not asked again and again by a function that is always refused', async () => {
    const invalid = edit({ n: 'many' });
    let asks = 0;
    const always = (): ReturnType<typeof edit> => {
      asks += 1;
      return invalid;
    };
    const running = runInMemory(desk, {
      message: 'Pay',
      model: pays,
      on: { request: { pay: always } },
    });
    await expect(running).rejects.toThrow('the decision was refused');
    expect(asks).toBe(3);
    // Without type checks, a function may return anything.
    const nothing = Object.assign(() => undefined);
    await expect(
      runInMemory(desk, { message: 'Pay', model: pays, on: { request: { pay: nothing } } }),
    ).rejects.toThrow(
      'on.request.pay: expected an action such as approve(), deny(), or send("…"), got undefined from its function',
    );
    // Followed, the example works.
    const rules = [{ tool: 'pay', then: 'ask', deciders: ['bob'] }] as const;
    const named = { agent: { ...desk, rules }, by: { by: 'ann' } };
    await expect(
      runInMemory(named.agent, {
        message: 'Pay',
        model: pays,
        on: { request: { pay: approve(named.by) } },
      }),
    ).rejects.toThrow('such as { pay: approve({ by: "bob" }) }');
    const later = Object.assign(async () => await Promise.resolve(approve()));
    await expect(
      runInMemory(desk, { message: 'Pay', model: pays, on: { request: { pay: later } } }),
    ).rejects.toThrow('got a promise from its function; return the action itself');
    const made = Object.assign(() => approve);
    await expect(
      runInMemory(desk, { message: 'Pay', model: pays, on: { request: { pay: made } } }),
    ).rejects.toThrow('got the function approve from its function; did you mean approve()?');
  });

  test('has no command for a request, since no command can reach the run', async () => {
    const fix = 'script it with `on.request: { pay: approve() }`';
    const late = { request: { pay: after('3 days', approve()) } };
    const slow = { message: 'Pay', model: pays, on: late };
    await expect(runInMemory(desk, { ...slow, within: '1 day' })).rejects.toThrow(
      `the end of \`within\`: waiting_decision: approval: the tool requires approval of every call; decide: ${fix}`,
    );
    expect((await runInMemory(desk, slow)).requests).toMatchObject([{ kind: 'approval', fix }]);
  });
});

describe('a delayed action whose time did not come', () => {
  const look2 = [replyCall('look', { n: 1 }), replyText('Seen.')];

  test.each([
    [
      'on.call',
      { on: { call: { look: after('1 hour', cancelRun()) } } },
      /: on\.call\.look: never/,
    ],
    ['on.step', { on: { step: { 1: after('1 hour', cancelRun()) } } }, /: on\.step\[1\]: the run/],
    [
      'at',
      {
        message: 'Pay',
        model: pays,
        on: { request: { pay: after('2 minutes', approve()) } },
        at: { '1 minute': after('1 hour', cancelRun()) },
      },
      /: at\["1 minute"\]: the run/,
    ],
    [
      'a list',
      { on: { call: { look: [after('1 hour', cancelRun())] } } },
      /ended before the time of its after/,
    ],
  ])('of %s is missed', async (_name, script, message) => {
    const options = { message: 'Look', model: look2, ...script };
    await expect(runInMemory(desk, options)).rejects.toThrow(message);
  });

  test('of on.request with a misspelled name is named where its request waits', async () => {
    const on = { request: { pya: approve() } };
    await expect(runInMemory(desk, { message: 'Pay', model: pays, on })).rejects.toThrow(
      'no script decides it, and no request has matched on.request.pya (nearest: pay)',
    );
  });

  test('of on.request is left over, and one that came is not', async () => {
    const run = await runInMemory(desk, {
      message: 'Pay',
      model: pays,
      on: { request: { pay: after('1 hour', approve()) } },
      at: { '1 minute': cancelRun() },
    });
    expect(run.outcome.status).toBe('cancelled');
    expect(run.unused).toContainEqual(expect.stringMatching(/^on\.request\.pay: never used; /));
    const late = await runInMemory(desk, {
      message: 'Pay',
      model: pays,
      on: { request: { pay: after('1 hour', approve()) } },
    });
    expect(late.unused).toEqual([]);
  });
});

describe('an interruption in memory', () => {
  test('cancels the turn, and the run goes on', async () => {
    const run = await runInMemory(desk, {
      message: 'One',
      open: true,
      model: [replyCall('hang', {}), replyText('2')],
      on: { call: { hang: cancelTurn() }, waiting: [send('Two')] },
    });
    expect(textsOf(run).at(-1)).toBe('assistant: 2');
    expect(run.status.turn).toBe(2);
    await expectReplays(run);
  });

  test('cancels the run with the call that is running', async () => {
    const run = await runInMemory(desk, {
      message: 'One',
      model: [replyCall('hang', {}), replyText('2')],
      on: { call: { hang: cancelRun() } },
    });
    expect(run.outcome.status).toBe('cancelled');
    expect(run.modelRequests).toHaveLength(1);
    await expectReplays(run);
  });

  test('pauses for a day, and sets limits', async () => {
    const run = await runInMemory(desk, {
      message: 'One',
      model: [replyCall('look', { n: 1 }), replyCall('look', { n: 2 }), replyText('closing')],
      on: { call: { look: pauseRun() }, step: { 2: setRunLimits({ steps: 2 }) } },
      at: { '1 day': resumeRun() },
    });
    expect(run.clock).toBe(DAY);
    expect(run.outcome).toMatchObject({ status: 'stopped', reason: 'steps' });
    await expectReplays(run);
  });
});

describe('the death of a worker in memory', () => {
  test('before a call executes costs the time to notice it', async () => {
    const run = await runInMemory(desk, {
      message: 'Look',
      model: [replyCall('look', { n: 1 }), replyCall('look', { n: 2 }), replyText('Both.')],
      on: { call: { look: kill() } },
    });
    expect(run.effects.map(({ input, attempt }) => [input, attempt])).toEqual([
      [{ n: 1 }, 2],
      [{ n: 2 }, 1],
    ]);
    expect(run.clock).toBeGreaterThanOrEqual(10 * SECOND);
    await expectReplays(run);
  });

  test('after the effect of a `once` tool asks whether it happened', async () => {
    const run = await runInMemory(desk, {
      message: 'Pay',
      model: pays,
      faults: [{ at: 'after-effect', call: 1, kill: true }],
      on: {
        request: {
          pay: approve(),
          outcome_unknown: decision({ as: 'happened', result: 'paid 1' }),
        },
      },
    });
    expect(run.effects).toHaveLength(1);
    expect(run.requests.map(({ kind }) => kind)).toEqual(['approval', 'outcome_unknown']);
    expect(textsOf(run)).toContain('tool: paid 1');
    await expectReplays(run);
  });

  test.each<[string, Reaction]>([
    ['a decision', approve()],
    ['a function', () => approve()],
  ])(
    'after the effect, %s by the name of the tool does not say whether it happened',
    async (_, reaction) => {
      const running = runInMemory(desk, {
        message: 'Pay',
        model: pays,
        faults: [{ at: 'after-effect', call: 1, kill: true }],
        on: { request: { pay: reaction } },
      });
      await expect(running).rejects.toThrow(
        /request r2 \(outcome_unknown of pay.*no script decides it; .* such as \{ outcome_unknown: decision\(\{ as: 'happened' \}\) \}/s,
      );
    },
  );

  test('after a reply pays for the reply again, and before it does not', async () => {
    const model = [replyText('one'), replyText('two')];
    const lost = [{ at: 'after-reply', step: 1, kill: true }] as const;
    const late = await runInMemory(desk, { message: 'Hi', model, faults: lost });
    expect(late.outcome.answer).toBe('two');
    expect(late.modelRequests).toHaveLength(2);
    const early = await runInMemory(desk, {
      message: 'Hi',
      model,
      faults: [{ at: 'before-reply', step: 1, kill: true }],
    });
    expect(early.outcome.answer).toBe('one');
  });

  test('during inline reads repeats the workflow task, and pays for nothing twice', async () => {
    const reader = defineAgent({ name: 'reader', instructions: 'Look.', tools: [peek] });
    const reads = replyCalls([1, 2, 3].map((n) => ({ name: 'peek', arguments: { n } })));
    for (const at of ['before-effect', 'after-effect'] as const) {
      const run = await runInMemory(reader, {
        message: 'Look',
        model: [reads, replyText('Done.')],
        faults: [{ at, call: 2, kill: true }],
      });
      expect(textsOf(run).slice(2)).toEqual([
        ...[1, 2, 3].map((n) => `tool: saw ${n}`),
        'assistant: Done.',
      ]);
      expect(run.modelRequests).toHaveLength(2);
      expect(run.effects.map(({ input }) => input)).toEqual(
        [...(at === 'before-effect' ? [] : [1, 2, 3]), 1, 2, 3].map((n) => ({ n })),
      );
      expect(run.clock).toBe(10 * SECOND);
      await expectReplays(run);
    }
  });

  test('in each step replays the run from its history', async () => {
    const steps = Array.from({ length: 6 }, (_, n) => n + 1);
    const run = await runInMemory(desk, {
      message: 'Look often',
      segment: { steps: 4, bytes: 1024 * 1024 },
      model: [
        ...steps.map((n) =>
          replyCalls([
            { name: 'look', arguments: { n } },
            { name: 'look', arguments: { n: n + 10 } },
          ]),
        ),
        replyText('Enough.'),
      ],
      faults: steps.map((n) => ({ at: 'after-effect', call: 2 * n, kill: true })),
    });
    expect(run.outcome).toMatchObject({ answer: 'Enough.', steps: 7, segments: 2 });
    expect(textsOf(run).filter((text) => text.startsWith('tool:'))).toHaveLength(12);
    await expectReplays(run);
  });
});
