import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { JsonObject } from '../../src/core/json.js';
import type { Message } from '../../src/core/transcript/messages.js';
import type { Usage } from '../../src/core/outcome.js';
import type { StubRequest } from '../../src/testing/requests.js';
import { reply, type Step } from '../../src/testing/steps.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { openDesk, type Desk } from '../support/desk.js';

const FOLDER = 'test/fixtures/servers';

/** A reply as a known server sends it. */
interface Fixture {
  readonly server: string;
  readonly oddity: string;
  /** Where the format is reported or documented. */
  readonly source: string;
  /** A body that is sent first, and is unusable. */
  readonly failing?: JsonObject;
  readonly whole?: JsonObject;
  /** What precedes the body. */
  readonly wholeBefore?: string;
  /** Events in order; a text is `[DONE]`, or a comment if it begins with a colon. */
  readonly stream?: readonly (JsonObject | string)[];
  readonly expect: {
    readonly text?: string;
    readonly calls?: readonly {
      readonly name: string;
      readonly arguments: { readonly city: string };
    }[];
    readonly usage: Partial<Usage>;
    /** For a server whose whole body contains more than its stream. */
    readonly usageWhole?: Partial<Usage>;
    /** Type of the report that the unusable body causes. */
    readonly failed?: string;
  };
}

function eventOf(event: JsonObject | string): string {
  if (typeof event !== 'string') return `data: ${JSON.stringify(event)}\n\n`;
  return event.startsWith(':') ? `${event}\n\n` : `data: ${event}\n\n`;
}

const soon = { 'retry-after-ms': '10' };

function stepsOf({ failing, whole, wholeBefore = '', stream }: Fixture, how: string): Step[] {
  if (how === 'streamed') {
    const headers = { 'content-type': 'text/event-stream' };
    return [reply.raw((stream ?? []).map(eventOf).join(''), { headers })];
  }
  return [
    ...(failing ? [reply.raw(JSON.stringify(failing), { headers: soon })] : []),
    reply.raw(wholeBefore + JSON.stringify(whole)),
  ];
}

const fixtures = readdirSync(FOLDER).map((file): readonly [string, Fixture] => [
  file.replace('.json', ''),
  JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Fixture,
]);
const cases = fixtures.flatMap(([name, fixture]) =>
  (['whole', 'streamed'] as const)
    .filter((how) => fixture[how === 'whole' ? 'whole' : 'stream'] !== undefined)
    .map((how) => [name, how, fixture] as const),
);

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
  desk = await openDesk(agents, { whole: {}, streamed: { stream: true } });
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

describe('a reply in the format of a known server', () => {
  test.each(cases)('is read as intended: %s, %s', async (_name, how, fixture) => {
    const { calls, text = 'done', usage, usageWhole = usage, failed } = fixture.expect;
    const message = desk.conversation(
      ...stepsOf(fixture, how),
      ...(calls ? [reply.text('done')] : []),
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
