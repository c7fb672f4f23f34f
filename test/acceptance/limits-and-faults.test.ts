import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { AgentOptions } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { InputError } from '../../src/core/errors.js';
import { CLOSING_INSTRUCTION } from '../../src/core/rules/documents.js';
import type { LimitSet } from '../../src/core/definition/definition.js';
import { replyCalls, replyError, replyText, type Reply } from '../../src/testing/replies.js';
import type { StubRequest } from '../../src/testing/wire-input.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { untilStatus } from '../support/conversation.js';
import { openDesk, sent, type Desk, type RunReport } from '../support/desk.js';
import { createMemoryRig } from '../support/memory-rig.js';

const PRICE = { input: 10, cachedInput: 1, output: 100 };

/** The arguments of each execution of `put`, and the number of executions of `flaky`. */
const put: unknown[] = [];
let flaky = 0;

const putTool = defineTool({
  name: 'put',
  description: 'puts a value',
  input: z.object({ a: z.unknown(), b: z.number().optional() }),
  effect: 'keyed',
  execute: (input) => {
    put.push(input);
    return `put ${put.length}`;
  },
});
const flakyTool = defineTool({
  name: 'flaky',
  description: 'works the second time',
  input: z.object({}),
  effect: 'keyed',
  retry: { attempts: 1 },
  execute: () => {
    flaky += 1;
    if (flaky % 2 === 1) throw new Error('not yet');
    return 'works';
  },
});
const count = defineTool({
  name: 'count',
  description: 'says a number',
  input: z.object({ n: z.number() }),
  effect: 'read',
  execute: ({ n }) => n,
});

function agent(name: string, rest: Partial<AgentOptions<unknown>> = {}) {
  const tools = [putTool, flakyTool, count];
  return defineAgent<unknown>({ name, instructions: 'Go on.', model: 'm', tools, ...rest });
}

let desk: Desk;
beforeAll(async () => {
  const agents = [
    agent('plain'),
    agent('priced', { model: 'priced', output: z.object({ n: z.number() }) }),
    agent('frugal', { model: 'priced' }),
  ];
  const segment = { steps: 30, bytes: 2_000_000 };
  desk = await openDesk(
    agents,
    { m: {}, priced: { price: PRICE } },
    { rig: await createMemoryRig(), segment, enforces: false },
  );
});
afterAll(async () => await desk.close());

const calls = (...all: Parameters<typeof replyCalls>[0]): Reply => replyCalls(all);
const counting = (n: number): Reply => calls({ name: 'count', arguments: { n } });
const results = ({ messages }: RunReport): readonly string[] =>
  messages.flatMap(({ role, text }) => (role === 'tool' ? [text] : []));

describe('a repeated call', () => {
  test('T-47 with its keys in another order, nested ones too, gets the recorded result', async () => {
    put.length = 0;
    const report = await desk.run('plain', [
      calls({ name: 'put', arguments: { a: { x: 1, y: [1, { p: 2, q: 3 }] }, b: 2 } }),
      calls({ name: 'put', arguments: '{"b":2,"a":{"y":[1,{"q":3,"p":2}],"x":1}}' }),
      calls({ name: 'put', arguments: { a: { x: 1, y: [{ p: 2, q: 3 }, 1] }, b: 2 } }),
      replyText('ok'),
    ]);
    expect(report.outcome).toMatchObject({ status: 'completed', toolCalls: 2 });
    expect(put).toHaveLength(2);
    const [first, repeated, other] = results(report);
    expect([first, other]).toEqual(['put 1', 'put 2']);
    expect(repeated).toContain('put 1');
    expect(repeated).not.toBe('put 1');
  });

  test('T-47 that appears twice in one message is executed once, for both', async () => {
    put.length = 0;
    const same = { name: 'put', arguments: { a: 1 } };
    const report = await desk.run('plain', [calls(same, same), replyText('ok')]);
    expect(put).toHaveLength(1);
    expect(results(report)[0]).toBe('put 1');
    expect(results(report)[1]).toContain('put 1');
  });

  test('T-48 that failed before is executed again', async () => {
    flaky = 0;
    const call = calls({ name: 'flaky', arguments: {} });
    const report = await desk.run('plain', [call, call, replyText('ok')]);
    expect(results(report)).toEqual([expect.stringMatching(/tool_error.*not yet/), 'works']);
    expect(flaky).toBe(2);
  });
});

describe('the last step', () => {
  const limits = { limits: { steps: 2 } };

  test('T-49 is followed by the closing instruction, at the very end, with calls forbidden', async () => {
    const steps = [counting(1), counting(2), replyText('one and two')];
    const { outcome, requests } = await desk.run('plain', steps, limits);
    expect(outcome).toMatchObject({ status: 'stopped', answer: 'one and two', steps: 2 });
    const isForbidden = requests.map((request) =>
      sent(request).some(([, text]) => text === CLOSING_INSTRUCTION),
    );
    expect(isForbidden).toEqual([false, false, true]);
    expect(sent(requests[2]).at(-1)).toEqual(['user', CLOSING_INSTRUCTION]);
    expect(requests.map(({ body }) => body['tool_choice'])).toEqual(['auto', 'auto', 'none']);
  });

  test('T-49 omits the tools for a server that cannot forbid calls', async () => {
    const refusal = replyError(400, { message: 'tool_choice "none" is not supported' });
    const steps = [counting(1), counting(2), refusal, replyText('one and two')];
    const { outcome, requests } = await desk.run('plain', steps, limits);
    expect(outcome).toMatchObject({ status: 'stopped', answer: 'one and two' });
    expect(requests.at(-1)?.body).not.toHaveProperty('tools');
  });

  test('T-49 executes nothing more, whatever the model replies: the answer is composed from the results so far', async () => {
    const { outcome } = await desk.run('plain', [counting(1), counting(2), counting(3)], limits);
    expect(outcome).toMatchObject({ status: 'stopped', reason: 'steps', toolCalls: 2 });
    expect(outcome.answer).toMatch(/Result: 1.*Result: 2/s);
    expect(outcome.answer).not.toContain('Result: 3');
  });

  test('T-49 has alternating roles on a server that insists on it, learned from its refusal', async () => {
    const message = 'Conversation roles must alternate user/assistant/user/assistant/...';
    const refusal = replyError(400, { message });
    const steps = [counting(1), counting(2), refusal, replyText('one and two')];
    const { outcome, requests } = await desk.run('plain', steps, limits);
    expect(outcome).toMatchObject({ status: 'stopped', answer: 'one and two' });
    const roles = requests.at(-1)?.messages.map(({ role }) => role);
    expect(roles?.slice(-3)).toEqual(['tool', 'assistant', 'user']);
  });

  test.each([0, -1, 1.5])('T-50 a limit of %d is refused', async (steps) => {
    const start = desk.client.start('plain', { message: 'go', limits: { steps } });
    await expect(start).rejects.toThrow(InputError);
    await expect(start).rejects.toThrow(/limits\.steps.*null for none/);
  });

  test('T-50 null is no limit: the run continues beyond the default of 50 steps, in a new segment', async () => {
    const steps = Array.from({ length: 51 }, (_, n) => counting(n));
    const unlimited: LimitSet = { steps: null, toolCalls: null };
    const told = await desk.run('plain', [...steps, replyText('counted')], { limits: unlimited });
    expect(told.outcome).toMatchObject({ status: 'completed', steps: 52, segments: 2 });
    expect(results(told)).toEqual(steps.map((_, n) => `${n}`));
    const prefixes = told.requests.map(({ messages }) => JSON.stringify(messages).slice(0, -1));
    expect(prefixes.every((text, n) => n === 0 || text.startsWith(prefixes[n - 1] ?? '?'))).toBe(
      true,
    );
  });
});

describe('a provider', () => {
  test('T-51 that limits the rate is called again after the delay that it names', async () => {
    const { outcome, projection, requests } = await desk.run('plain', [
      replyError(429, { message: 'slow down' }, { headers: { 'retry-after-ms': '600' } }),
      replyText('ok'),
    ]);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'ok', steps: 1 });
    // Longer than the first retry delay would be by itself.
    expect(projection.state?.turn.reports).toMatchObject([
      { type: 'rate_limit', status: 429, waitMs: 600 },
    ]);
    expect(requests).toHaveLength(2);
  });

  test.each([
    ['names a time beyond the cap', 429, { message: 'later' }, 'provider'],
    ['does not take the key', 401, { message: 'bad key' }, 'credentials'],
    ['wants money', 429, { code: 'insufficient_quota', message: 'no money' }, 'quota'],
  ])(
    'T-51 that %s blocks the run after one request, until it is resumed',
    async (_n, status, error, reason) => {
      const { client } = desk;
      const headers = reason === 'provider' ? { 'retry-after': '3600' } : {};
      const message = desk.conversation(
        replyError(status, error, { headers }),
        replyText('mended'),
      );
      const { id } = await client.start('plain', { message });
      const blocked = await untilStatus(desk.rig.client.workflow.getHandle(id), 'blocked');
      expect(blocked).toMatchObject({ reason, reports: [{ attempt: 1, status }] });
      expect(desk.requestsOf(message)).toHaveLength(1);
      await client.resume(id);
      expect(await client.result(id)).toMatchObject({ status: 'completed', answer: 'mended' });
    },
  );
});

describe('cost', () => {
  const usage = (input: number, cached: number, output: number) => ({
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
  });

  test('T-57 includes refused answers, and counts cached tokens at their own price', async () => {
    const { outcome } = await desk.run('priced', [
      replyText('{"n": "one"}', { usage: usage(1_000, 0, 10) }),
      replyText('{"n": 1}', { usage: usage(1_100, 1_000, 10) }),
    ]);
    expect(outcome).toMatchObject({
      output: { n: 1 },
      usage: { inputTokens: 2_100, cachedTokens: 1_000, outputTokens: 20 },
    });
    const wanted = (1_100 * PRICE.input + 1_000 * PRICE.cachedInput + 20 * PRICE.output) / 1e6;
    expect(outcome.usage.costUsd).toBeCloseTo(wanted, 10);
  });

  test('T-57 is unknown, not zero, for a model without a price', async () => {
    const { outcome } = await desk.run('plain', [replyText('ok')]);
    expect(outcome.usage.costUsd).toBeNull();
  });

  test('T-57 ends the turn before a call that exceeds the budget, which also caps the call before', async () => {
    const costly = replyCalls([{ name: 'count', arguments: { n: 1 } }], {
      usage: usage(4_000, 0, 95),
    });
    const { outcome, requests } = await desk.run('frugal', [costly], { limits: { costUsd: 0.05 } });
    expect(outcome).toMatchObject({ status: 'stopped', reason: 'costUsd', steps: 1, toolCalls: 1 });
    expect(outcome.usage.costUsd).toBeCloseTo(0.0495, 10);
    expect(outcome.answer).toContain('Result: 1');
    const [first]: readonly (StubRequest | undefined)[] = requests;
    const most = Number(first?.body['max_completion_tokens']);
    expect(most).toBeGreaterThan(400);
    expect(most).toBeLessThanOrEqual(500);
  });
});
