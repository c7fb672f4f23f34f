import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { EndedTurn, RememberContext } from '../../src/agents/agent-parts.js';
import { closeUpdate, statusQuery } from '../../src/workflows/messages/definitions.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { gate } from '../support/gate.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { graphAgent, node, RUN } from '../support/graph-agent.js';
import { z } from 'zod';

type Save = (ended: EndedTurn, context: RememberContext) => unknown;

let desk: Desk;
/** The `remember` functions of the agents in this file; each test sets one. */
let save: Save = () => undefined;
let saved: { readonly ended: EndedTurn; readonly key: string }[] = [];
const held = gate();

const remember: Save = (ended, context) => {
  saved.push({ ended, key: context.idempotencyKey });
  return save(ended, context);
};

const look = defineTool({
  name: 'look',
  description: 'looks',
  effect: 'read',
  input: z.object({ size: z.int() }),
  execute: ({ size }) => 'x'.repeat(size),
});
const graph = graphAgent(
  { start: 'only', nodes: [node('only', RUN, { done: 'end' })] },
  { only: async () => ({ patch: {} }) },
  { name: 'data', model: 'script' },
);
const remembering = { ...graph, remember: { save: remember, timeoutMs: 30_000 } };

beforeAll(async () => {
  desk = await createDesk(await createMemoryRig());
  const agent = { instructions: 'x', model: 'script' };
  await desk.work(
    [
      defineAgent({ ...agent, name: 'keeper', remember }),
      defineAgent({ ...agent, name: 'hasty', remember: { save: remember, timeout: 50 } }),
      defineAgent({ ...agent, name: 'plain' }),
      defineAgent({ ...agent, name: 'looker', remember, tools: [look] }),
      remembering,
    ],
    { segment: { steps: 2, bytes: 2_000_000 } },
  );
});
beforeEach(() => {
  saved = [];
  save = () => undefined;
});
afterAll(async () => await desk.close());

describe('a turn that has ended is remembered', () => {
  test('once, with its own messages and its outcome, by one activity', async () => {
    desk.script(['hello', 'bye']);
    const [kept, plain] = [
      await desk.run({ agent: 'keeper', message: 'hi', context: { of: 'ann' } }),
      await desk.run({ agent: 'plain', message: 'hi' }),
    ];
    expect(saved).toMatchObject([
      {
        ended: {
          turn: 1,
          messages: [
            { role: 'user', text: 'hi' },
            { role: 'assistant', text: 'hello' },
          ],
          outcome: { status: 'completed', reason: 'answer', answer: 'hello', steps: 1 },
        },
        key: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
    expect(kept.outcome).toMatchObject({ answer: 'hello' });
    // The activity has three events, and its end another workflow task with three.
    const cost = (kept.history.events?.length ?? 0) - (plain.history.events?.length ?? 0);
    expect(cost).toBeLessThanOrEqual(6);
  });

  test('each time in a conversation over several segments, with a new key', async () => {
    desk.script(['one', 'two', 'three', 'four']);
    const handle = await desk.rig.start({ agent: 'keeper', open: true, message: 'm1' });
    for (const turn of [2, 3, 4]) await ask(handle, `m${turn}`);
    await outcomeOf(handle, 4);
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await desk.end(handle);
    const texts = saved.map(({ ended: { messages } }) => messages.map(({ text }) => text));
    expect(texts).toEqual([
      ['m1', 'one'],
      ['m2', 'two'],
      ['m3', 'three'],
      ['m4', 'four'],
    ]);
    expect(new Set(saved.map(({ key }) => key)).size).toBe(4);
  });

  test('before the next turn begins, though its outcome is available at once', async () => {
    desk.script(['one', 'two']);
    save = async () => await held.wait();
    const handle = await desk.rig.start({ agent: 'keeper', open: true, message: 'm1' });
    expect(await outcomeOf(handle, 1)).toMatchObject({ answer: 'one' });
    await held.reached;
    await ask(handle, 'm2');
    expect(await handle.query(statusQuery)).toMatchObject({ turn: 1, queued: 1 });
    save = () => undefined;
    held.release();
    expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'two' });
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await desk.end(handle);
  });

  test('from its beginning, even if the older part of the turn is no longer in memory', async () => {
    const long = { look: { size: 20_000 } };
    desk.script(['before', long, { look: { size: 20_001 } }, { look: { size: 20_002 } }, 'after']);
    const handle = await desk.rig.start({ agent: 'looker', open: true, message: 'm1' });
    await outcomeOf(handle, 1);
    await ask(handle, 'THE QUESTION');
    expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'after', steps: 4 });
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await desk.end(handle);
    const [, second] = saved.map(({ ended: { messages } }) =>
      messages.map(({ role, text }) => (role === 'tool' ? text.length : text)),
    );
    expect(second).toEqual(['THE QUESTION', '', 20_000, '', 20_001, '', 20_002, 'after']);
  });

  test('without the messages that perdure adds, and not at all if it has none', async () => {
    desk.script([]);
    await desk.run({ agent: 'data', input: { n: 1 } });
    expect(saved).toMatchObject([{ ended: { turn: 1, messages: [] } }]);
  });

  test('even if it was stopped at a limit', async () => {
    desk.script([]);
    await desk.run({ agent: 'keeper', message: 'hi', limits: { tokens: 1 } });
    expect(saved).toMatchObject([{ ended: { outcome: { status: 'stopped', reason: 'tokens' } } }]);
  });
});

describe('a memory that fails', () => {
  test('is retried with the same key', async () => {
    desk.script(['hello']);
    save = () => {
      if (saved.length === 1) throw new Error('the disk is full');
    };
    const { outcome } = await desk.run({ agent: 'keeper', message: 'hi' });
    expect(outcome).toMatchObject({ status: 'completed', answer: 'hello' });
    expect(saved).toHaveLength(2);
    expect(new Set(saved.map(({ key }) => key)).size).toBe(1);
  });

  test.each([
    ['throws', 'keeper', () => Promise.reject(new Error('no such table')), 'no such table'],
    ['hangs', 'hasty', () => new Promise(() => undefined), 'timed out after 50 ms'],
  ])('and %s three times is reported, and the run continues', async (_, agent, fails, why) => {
    desk.script(['one', 'two']);
    save = fails;
    const handle = await desk.rig.start({ agent, open: true, message: 'm1' });
    const status = await desk.statusWhere(handle, ({ reports }) => (reports ?? []).length > 0);
    expect(status.reports).toMatchObject([
      { type: 'remember_failed', attempt: 3, message: expect.stringContaining(why) },
    ]);
    expect(saved).toHaveLength(3);
    save = () => undefined;
    await ask(handle, 'm2');
    expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'two' });
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await desk.end(handle);
  });
});

test('a canceled run does not wait for its memory', async () => {
  desk.script(['one']);
  const entered = gate();
  save = async (_, { signal }) => {
    void entered.wait();
    await new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')));
    });
  };
  const handle = await desk.rig.start({ agent: 'keeper', open: true, message: 'm1' });
  await entered.reached;
  await handle.cancel();
  await desk.end(handle);
  await vi.waitFor(
    async () => expect(await handle.describe()).toMatchObject({ status: { name: 'CANCELLED' } }),
    { timeout: 40_000, interval: 50 },
  );
});
