import net from 'node:net';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { text as template } from '../../src/graphs/values.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import {
  type Reaction,
  after,
  answer,
  approve,
  approveSome,
  decision,
  deny,
  edit,
  noDecision,
  replyCall,
  replyCalls,
  replyText,
  runInMemory,
  send,
} from '../../src/testing.js';
import { askPerson } from '../../src/tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { expectReplays, look, pay, textsOf, useSourceBundle } from '../support/memory.js';

const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools: [look, pay] });

beforeAll(useSourceBundle);

describe('a run in memory', () => {
  test('opens no socket, and its history replays below the real core', async () => {
    const connect = vi.spyOn(net.Socket.prototype, 'connect').mockImplementation(() => {
      throw new Error('a socket was opened');
    });
    const model = [
      replyCalls([
        { name: 'look', arguments: { n: 1 } },
        { name: 'look', arguments: { n: 2 } },
      ]),
      replyText('Both.'),
    ];
    const run = await runInMemory(desk, { message: 'Look twice', model });
    expect(connect).not.toHaveBeenCalled();
    connect.mockRestore();
    expect(run.outcome).toMatchObject({ status: 'completed', answer: 'Both.', toolCalls: 2 });
    expect(run.status).toMatchObject({ status: 'done', agent: 'desk' });
    expect(run.effects).toMatchObject([{ input: { n: 1 } }, { input: { n: 2 } }]);
    expect(textsOf(run)).toEqual([
      'user: Look twice',
      'assistant: ',
      'tool: saw 1',
      'tool: saw 2',
      'assistant: Both.',
    ]);
    expect(run.modelRequests.map(({ messages }) => messages.length)).toEqual([1, 4]);
    await expectReplays(run);
  });

  test('is the same each time', async () => {
    const options = {
      message: 'Look',
      startAt: 1_700_000_000_000,
      model: [replyCall('look', { n: 1 }), replyText('Done.')],
    };
    const [one, other] = [await runInMemory(desk, options), await runInMemory(desk, options)];
    expect(other.history).toEqual(one.history);
  });

  test('types the outcome, and validates it', async () => {
    const typed = defineAgent({
      name: 'typed',
      instructions: 'Count.',
      output: z.object({ count: z.int() }),
    });
    const model = [replyText('{"count":"x"}'), replyText('{"count":3}')];
    const { outcome } = await runInMemory(typed, { message: 'How many?', model });
    expect(outcome.output?.count).toBe(3);
  });

  test('refuses options by name', async () => {
    await expect(runInMemory(desk, { message: 'x', within: '0 seconds' })).rejects.toThrow(
      'within: expected a duration',
    );
    await expect(runInMemory(desk, { message: 'x', startAt: Number.NaN })).rejects.toThrow(
      'startAt: expected a Unix time in ms, such as Date.now(), got NaN',
    );
    await expect(runInMemory(desk, { message: 'x', limits: { steps: 0 } })).rejects.toThrow(
      'limits.steps',
    );
  });

  test('refuses to run an agent without any model, which can only fail', async () => {
    const env = { PERDURE_MODEL: undefined };
    await expect(runInMemory(desk, { message: 'x', env })).rejects.toThrow(
      'model: expected replies or a model, since agent "desk" names none, got none; give for example',
    );
  });
});

describe('a script that would have no effect', () => {
  test.each([
    ['a word', { on: { request: { pay: 'approve' } } }, 'on.request.pay: expected an action such'],
    ['a moment', { on: { requests: { pay: approve() } } }, 'on: expected one of request, call,'],
    ['a time', { at: { soon: send('x') } }, 'at: expected a time after the start'],
    ['a fault', { faults: [{ at: 'middle', call: 1 }] }, 'faults: expected a fault such as'],
    [
      'the name of a fault',
      { faults: [{ at: 'after-efect', call: 1 }] },
      '; did you mean after-effect?',
    ],
    ['a name', { model: 'demo' }, 'model: expected a list of replies or a model, got "demo"'],
    ['a number', { faults: [{ at: 'after-reply', call: 1 }] }, 'faults: expected a fault'],
  ])('is refused: %s', async (_, given, message) => {
    const options = { message: 'Pay', model: [], ...given } as object;
    await expect(runInMemory(desk, options)).rejects.toThrow(message);
  });
});

describe('a person in memory', () => {
  const asked = [replyCall('pay', { n: 60 }), replyText('Done.')];

  test('approves, denies with a note, and edits', async () => {
    const [approved, denied, edited] = await Promise.all(
      [approve({ by: 'ann' }), deny({ note: 'too much' }), edit({ n: 20 })].map((pays) =>
        runInMemory(desk, { message: 'Pay', model: asked, on: { request: { pay: pays } } }),
      ),
    );
    expect(approved?.effects).toMatchObject([{ tool: 'pay', input: { n: 60 }, result: 'paid 60' }]);
    expect(denied?.effects).toEqual([]);
    expect(denied && textsOf(denied)[2]).toContain('too much');
    expect(edited?.effects).toMatchObject([{ input: { n: 20 } }]);
    for (const run of [approved, denied, edited]) if (run) await expectReplays(run);
  });

  test('decides again if the run refuses a decision', async () => {
    const run = await runInMemory(desk, {
      message: 'Pay',
      model: asked,
      on: { request: { pay: [decision({ as: 'approve', digest: 'other' }), approve()] } },
    });
    expect(run.requests).toMatchObject([
      { tool: 'pay', decided: [{ refused: expect.stringContaining('digest') }, { as: 'approve' }] },
    ]);
    expect(run.effects).toHaveLength(1);
    await expectReplays(run);
  });

  const invalid = edit({ n: 'many' });
  test.each<[string, Reaction | readonly Reaction[]]>([
    ['a list', [invalid, after('2 days', invalid), approve()]],
    ['a function', ({ refused }) => (refused === undefined ? invalid : approve())],
    ['a list with a function', [invalid, () => approve()]],
  ])('%s decides again if a check has refused a decision', async (_, reaction) => {
    const run = await runInMemory(desk, {
      message: 'Pay',
      model: asked,
      on: { request: { pay: reaction } },
    });
    const decided = run.requests[0]?.decided ?? [];
    const refused = decided.slice(0, -1);
    expect(refused).toHaveLength(Array.isArray(reaction) ? reaction.length - 1 : 1);
    for (const one of refused)
      expect(one).toMatchObject({ as: 'edit', refused: expect.any(String) });
    expect(decided.at(-1)).toEqual({ as: 'approve' });
    expect(run.effects).toHaveLength(1);
  });

  test.each<[string, Reaction]>([
    ['a decision', invalid],
    ['a function that always decides the same', () => invalid],
  ])('%s that is refused ends the test with the refusal', async (_, reaction) => {
    const running = runInMemory(desk, {
      message: 'Pay',
      model: asked,
      on: { request: { pay: reaction } },
    });
    await expect(running).rejects.toThrow(
      /the decision was refused: .*not valid[^]*: correct the entry in `on\.request`, such as /,
    );
  });

  test('chooses by the request', async () => {
    const run = await runInMemory(desk, {
      message: 'Pay',
      model: [replyCall('pay', { n: 1 }), replyCall('pay', { n: 9 }), replyText('Done.')],
      on: {
        request: { pay: ({ arguments: json = '' }) => (json.includes('9') ? deny() : approve()) },
      },
    });
    expect(run.effects).toMatchObject([{ input: { n: 1 } }]);
  });

  test('answers a question', async () => {
    const curious = defineAgent({ name: 'curious', instructions: 'Ask.', tools: [askPerson()] });
    const run = await runInMemory(curious, {
      message: 'Go',
      model: [replyCall('ask_person', { question: 'Which?' }), replyText('Thanks.')],
      on: { request: { question: answer('the red one') } },
    });
    expect(textsOf(run)).toContain('tool: the red one');
    await expectReplays(run);
  });

  test('who decides nothing makes the run fail by the name of the request', async () => {
    await expect(runInMemory(desk, { message: 'Pay', model: asked })).rejects.toThrow(
      /run memory waits for a decision: request r1 \(approval of pay.*such as \{ pay: approve\(\) \}\nThe request says:\npay ·/s,
    );
    const open = { request: { pay: noDecision() } };
    await expect(runInMemory(desk, { message: 'Pay', model: asked, on: open })).rejects.toThrow(
      'the script leaves it open, and it does not expire',
    );
  });
});

describe('graphs, plans, and called agents in memory', () => {
  test('a graph runs functions, an each, a model call, and a confirmation', async () => {
    const mail = defineGraph({
      name: 'mail',
      instructions: 'Write.',
      state: z.object({
        text: z.string(),
        words: z.array(z.string()).default([]),
        sizes: z.array(z.json()).optional(),
        draft: z.object({ body: z.string() }).optional(),
      }),
      messageTo: 'text',
      nodes: ({ run, each, decide, confirm }) => ({
        split: run({ run: async ({ text }) => ({ words: text.split(' ') }) }),
        count: each({
          over: (s) => s.words,
          run: async (_, word: string) => word.length,
          save: 'sizes',
        }),
        write: decide({ output: z.object({ body: z.string() }), save: 'draft' }),
        ask: confirm({ show: (s) => template`Send ${s.draft}?` }),
      }),
    }).wire({
      start: 'split',
      edges: {
        split: 'count',
        count: { done: 'write', failed: 'end' },
        write: { done: 'ask', failed: 'end' },
        ask: { yes: 'end', no: 'write' },
      },
    });
    const run = await runInMemory(mail, {
      message: 'to be or',
      model: [replyText('{"body":"Draft."}'), replyText('{"body":"Better."}')],
      on: { request: { question: [answer('no'), answer('yes')] } },
    });
    expect(run.outcome).toMatchObject({
      status: 'completed',
      output: {
        sizes: [2, 2, 2].map((value) => ({ ok: true, value })),
        draft: { body: 'Better.' },
      },
    });
    await expectReplays(run);
  });

  test('a plan is confirmed in part and executed', async () => {
    const planner = planAndExecute({
      name: 'planner',
      instructions: 'Plan.',
      tools: [look, pay],
      confirm: { when: 'always' },
    });
    const actions = [
      { id: 'a1', tool: 'look', arguments: { n: 1 } },
      { id: 'a2', tool: 'pay', arguments: { n: 2 } },
    ];
    const run = await runInMemory(planner, {
      message: 'Do it',
      model: [replyText(JSON.stringify({ actions })), replyText('Report.')],
      on: { request: { plan: approveSome(['a1']) } },
    });
    expect(run.effects.map(({ tool }) => tool)).toEqual(['look']);
    expect(run.outcome.answer).toBe('Report.');
    await expectReplays(run);
  });

  test('a called agent asks, and its run has its own history', async () => {
    const helper = defineAgent({
      name: 'helper',
      description: 'Pays.',
      instructions: 'Pay.',
      tools: [pay],
    });
    const boss = defineAgent({ name: 'boss', instructions: 'Lead.', agents: [helper] });
    const run = await runInMemory(boss, {
      message: 'Pay 5',
      model: [
        replyCall('helper', { message: 'pay 5' }),
        replyCall('pay', { n: 5 }),
        replyText('It is paid.'),
        replyText('All done.'),
      ],
      on: { request: { pay: approve() } },
    });
    expect(run.outcome.answer).toBe('All done.');
    expect(run.effects).toMatchObject([{ tool: 'pay', input: { n: 5 } }]);
    expect(run.requests[0]?.run).toMatch(/^memory\/call_1_1_0-/);
    expect(run.history.map(({ id }) => id)).toEqual(['memory', run.requests[0]?.run]);
    await expectReplays(run);
  });
});

describe('longer runs in memory', () => {
  test('starts at a time of a server, which has fractions of a millisecond', async () => {
    const run = await runInMemory(desk, {
      message: 'One',
      open: true,
      startAt: 1_700_000_000_000.25,
      model: [replyText('1'), replyText('2')],
      on: { waiting: [send('Two')] },
    });
    expect(run.status).toMatchObject({ status: 'waiting_message', turn: 2 });
  });

  test('an open run gets messages, each in its turn', async () => {
    const run = await runInMemory(desk, {
      message: 'One',
      open: true,
      model: [replyText('1'), replyText('2'), replyText('3')],
      on: { waiting: [send('Two'), send('Three')] },
    });
    expect(run.status).toMatchObject({ status: 'waiting_message', turn: 3 });
    expect(run.outcome.answer).toBe('3');
    await expectReplays(run);
  });

  test('a message joins the turn under way', async () => {
    const run = await runInMemory(desk, {
      message: 'One',
      open: true,
      model: [replyCall('look', { n: 1 }), replyText('Both.')],
      on: { call: { look: send({ message: 'Also this', mode: 'steer' }) } },
    });
    expect(textsOf(run)).toContain('user: Also this');
    expect(run.status.turn).toBe(1);
    await expectReplays(run);
  });

  test('a long run continues in new segments', async () => {
    const steps = Array.from({ length: 11 }, (_, n) => replyCall('look', { n }));
    const run = await runInMemory(desk, {
      message: 'Look often',
      archive: true,
      segment: { steps: 3, bytes: 1024 * 1024 },
      model: [...steps, replyText('Enough.')],
    });
    expect(run.outcome).toMatchObject({ answer: 'Enough.', segments: 4, steps: 12 });
    expect(run.history).toHaveLength(4);
    expect(run.transcript.messages).toHaveLength(24);
    await expectReplays(run);
  });

  test('a limit ends the turn with a closing call', async () => {
    const steps = Array.from({ length: 2 }, (_, n) => replyCall('look', { n }));
    const run = await runInMemory(desk, {
      message: 'Look',
      limits: { steps: 2 },
      model: [...steps, replyText('So far.')],
    });
    expect(run.outcome).toMatchObject({ status: 'stopped', reason: 'steps', answer: 'So far.' });
    expect(run.modelRequests.at(-1)?.toolChoice).toBe('none');
  });

  test('a large result goes to the blob store', async () => {
    const big = defineTool({
      name: 'big',
      description: 'Returns much.',
      effect: 'read',
      input: z.object({}),
      execute: () => 'word '.repeat(40_000),
    });
    const reader = defineAgent({ name: 'reader', instructions: 'Read.', tools: [big] });
    const stored: string[] = [];
    const run = await runInMemory(reader, {
      message: 'Read',
      model: [replyCall('big', {}), replyText('Much.')],
      blobs: {
        async put(text) {
          stored.push(text);
          return { sha256: 'a'.repeat(64), bytes: text.length };
        },
        get: async () => stored[0] ?? '',
      },
    });
    expect(stored.map((text) => text.length)).toEqual([200_000]);
    expect(textsOf(run)[2]?.length).toBeLessThan(20_000);
  });
});
