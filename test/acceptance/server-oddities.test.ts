import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Message } from '../../src/core/transcript/messages.js';
import type { Usage } from '../../src/core/transcript/outcome.js';
import type { StubRequest } from '../../src/testing/wire-input.js';
import { replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { openDesk, type Desk } from '../support/desk.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { oddReplies, stepsOf, type Fixture } from '../support/odd-replies.js';

/** In which ways odd replies meet a run: each kind of ids, of usage, and of failure once. */
const IN_RUNS = [
  'deepseek-reasoning, streamed',
  'gemini-id-of-the-name, whole',
  'lm-studio-call-without-function, whole',
  'lmdeploy-empty-id-after-first, streamed',
  'ollama-no-index, streamed',
  'tgi-calls-as-an-object, whole',
];
const cases = oddReplies.filter(([name, how]) => IN_RUNS.includes(`${name}, ${how}`));

let desk: Desk;
beforeAll(async () => {
  const weather = defineTool({
    name: 'weather',
    description: 'tells the weather of a city',
    input: z.object({ city: z.string() }),
    effect: 'read',
    execute: ({ city }) => `sunny in ${city}`,
  });
  const agents = ['whole', 'streamed'].map((name) =>
    defineAgent({ name, instructions: 'Be brief.', model: name, tools: [weather] }),
  );
  desk = await openDesk(
    agents,
    { whole: {}, streamed: { stream: true } },
    { rig: await createMemoryRig() },
  );
});
afterAll(async () => await desk.close());

/** The calls are those that the server meant, with our own ids, each with its own result. */
function expectCalls(
  messages: readonly Message[],
  calls: NonNullable<Fixture['expect']['calls']>,
  again: StubRequest | undefined,
): void {
  const asked = messages.flatMap((one) => (one.role === 'assistant' ? (one.calls ?? []) : []));
  expect(asked.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) }))).toEqual(
    calls,
  );
  const ids = asked.map(({ id }) => id);
  expect(new Set(ids).size).toBe(calls.length);
  const results = messages.flatMap((one) => (one.role === 'tool' ? [one] : []));
  expect(results.map(({ callId, text }) => [callId, text])).toEqual(
    calls.map((call, index) => [ids[index], `sunny in ${call.arguments.city}`]),
  );
  const returned = again?.messages.filter(({ role }) => role === 'tool') ?? [];
  expect(returned.map((message) => message.tool_call_id)).toEqual(ids);
}

/** The calls that the second reply adds. */
function expectUsage(usage: Usage, wanted: Partial<Usage>, more: Partial<Usage>): void {
  const { inputTokens = 1, outputTokens = 1, cachedTokens = 0, estimated } = wanted;
  expect(usage.estimated).toBe(estimated);
  const tokens = estimated ? expect.toSatisfy((count: number) => count > 0) : undefined;
  expect(usage).toMatchObject({
    inputTokens: tokens ?? inputTokens + (more.inputTokens ?? 0),
    outputTokens: tokens ?? outputTokens + (more.outputTokens ?? 0),
    cachedTokens,
  });
}

describe('what servers are known to send', () => {
  test('is here in each way in which it meets a run', () => {
    expect(cases).toHaveLength(IN_RUNS.length);
  });

  test.each(cases)('is read by a run for what it is: %s, %s', async (_name, how, fixture) => {
    const { calls, text = 'done', usage, usageWhole = usage, failed } = fixture.expect;
    const message = desk.conversation(
      ...stepsOf(fixture, how),
      ...(calls ? [replyText('done')] : []),
    );
    const { id } = await desk.client.start(how, { message });
    const outcome = await desk.client.result(id);
    expect(outcome).toMatchObject({
      status: 'completed',
      answer: text,
      toolCalls: calls?.length ?? 0,
    });
    const { messages } = await desk.client.transcript(id);
    expectCalls(messages, calls ?? [], desk.requestsOf(message).at(-1));
    const more = calls ? { inputTokens: 10, outputTokens: 5 } : {};
    expectUsage(outcome.usage, how === 'whole' ? usageWhole : usage, more);
    const { reports } = await desk.client.status(id);
    expect(reports?.map(({ type }) => type) ?? []).toEqual(failed ? [failed] : []);
    desk.stub.assertConsumed();
  });
});
