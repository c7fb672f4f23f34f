import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { openAiModel } from '../../src/models/openai/model.js';
import { replyCalls, replyText, type Reply } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { expectPromptsMatch, expectStablePrefix } from '../support/prompts.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Ended, Rig } from '../support/rig.js';

let rig: Rig;
let stub: Stub;
beforeAll(async () => {
  [rig, stub] = [await createMemoryRig(), await startStub()];
  const models = { m: openAiModel({ baseUrl: stub.baseUrl }) };
  const whole = z.object({ name: z.string(), arguments: z.unknown() });
  await rig.worker(
    [
      defineAgent({ ...basics, name: 'tools', tools: [look, today] }),
      defineAgent({ ...basics, name: 'none' }),
      defineAgent({ ...basics, name: 'text-only', tools: [look], toolChoice: 'none' }),
      defineAgent({ ...basics, name: 'schema', tools: [look], decide: 'schema', attempts: 1 }),
      defineAgent({
        ...basics,
        name: 'ada',
        tools: [look],
        output: z.object({ name: z.string(), born: z.number() }),
      }),
      defineAgent({ ...basics, name: 'call-like', tools: [look], output: whole }),
      defineAgent({ ...basics, name: 'catalog', tools: [look], toolExposure: 'catalog' }),
      defineAgent({ ...basics, name: 'capped', tools: [look], limits: { steps: 1 } }),
    ],
    { models },
  );
});
afterAll(async () => {
  await rig.close();
  await stub.close();
});

const basics = { instructions: 'help', model: 'm' };
const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({ at: z.string() }),
  effect: 'read',
  execute: ({ at }) => `saw ${at}`,
});
const today = defineTool({
  name: 'today',
  description: 'tells the day',
  input: z.object({}),
  effect: 'read',
  execute: () => 'Monday',
});
const call = { name: 'look', arguments: { at: 'x' } };
const fenced = (text: string): string => `\`\`\`json\n${text}\n\`\`\``;

/** Runs an agent of the worker with its own script. */
async function run(
  agent: string,
  ...written: readonly (Reply | object | string)[]
): Promise<Ended> {
  const marker = `${agent} ${(serial += 1)}.`;
  const steps = written.map((one) => {
    if (typeof one === 'string') return replyText(one);
    return 'wire' in one ? one : replyText(JSON.stringify(one));
  });
  stub.scriptFor(marker, ...steps);
  return await rig.run({ agent, message: marker });
}
let serial = 0;

const results = ({ projection }: Ended): readonly string[] =>
  projection.messages.flatMap((message) => (message.role === 'tool' ? [message.text] : []));

describe('calls that a model writes as its answer', () => {
  // The forms of a call are tables in test/models/calls-in-content.test.ts.
  test.each<[string, unknown, readonly string[]]>([
    ['a list', [call, { name: 'look', arguments: { at: 'y' } }], ['saw x', 'saw y']],
    ['a fence', fenced(JSON.stringify(call)), ['saw x']],
    ['a tool that takes nothing', { name: 'today' }, ['Monday']],
  ])('are executed: %s', async (_name, written, expected) => {
    const ended = await run('tools', written as object, 'done');
    expect(ended.outcome).toMatchObject({ status: 'completed', answer: 'done', steps: 2 });
    expect(results(ended)).toEqual(expected);
  });

  test.each<[string, unknown]>([
    ['a tool that there is not', { name: 'rm', arguments: {} }],
    ['arguments that do not fit', { name: 'look', arguments: { at: 7 } }],
    ['arguments that are too many', { name: 'look', arguments: { at: 'x', deep: true } }],
    ['two of which one does not fit', [call, { name: 'look', arguments: {} }]],
  ])('are not seen in %s', async (_name, said) => {
    const ended = await run('tools', said as object);
    const answer = JSON.stringify(said);
    expect(ended.outcome).toMatchObject({ status: 'completed', reason: 'answer', answer });
    expect(results(ended)).toEqual([]);
  });

  test.each(['none', 'text-only'])(
    'are an answer if they cannot be executed: %s',
    async (agent) => {
      const { outcome } = await run(agent, call);
      expect(outcome).toMatchObject({
        status: 'completed',
        answer: JSON.stringify(call),
        toolCalls: 0,
      });
    },
  );

  test('are ignored if decisions are JSON anyway', async () => {
    const { outcome } = await run('schema', call);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'invalid_output', toolCalls: 0 });
    const answer = JSON.stringify(call);
    const answered = await run('schema', { decision: { action: 'answer', answer } });
    expect(answered.outcome).toMatchObject({ status: 'completed', answer, toolCalls: 0 });
  });

  test('appear once in later prompts: as calls, not as text', async () => {
    const before = stub.requests.length;
    const ended = await run('tools', fenced(JSON.stringify(call)), call, 'done');
    const requests = stub.requests.slice(before);
    expect(requests).toHaveLength(3);
    expect(requests[2]?.messages[2]).toMatchObject({
      role: 'assistant',
      content: null,
      tool_calls: [{ function: { name: 'look', arguments: '{"at":"x"}' } }],
    });
    expect(requests[2]?.text).not.toContain('```');
    expectPromptsMatch(requests, ended.projection.state?.transcript.messages ?? []);
    expectStablePrefix(requests);
  });

  test('are ignored next to native ones', async () => {
    const native = replyCalls([{ name: 'today', arguments: {} }], { text: JSON.stringify(call) });
    const ended = await run('tools', native, 'done');
    expect(results(ended)).toEqual(['Monday']);
    expect(ended.projection.messages[1]).toMatchObject({ text: JSON.stringify(call) });
  });

  test('are ignored in the closing call', async () => {
    const { outcome } = await run('capped', call, call);
    expect(outcome).toMatchObject({
      status: 'stopped',
      reason: 'steps',
      answer: JSON.stringify(call),
    });
    expect(outcome.toolCalls).toBe(1);
  });

  test('through a catalog are those of the real tool', async () => {
    const invoked = { name: 'invoke_tool', arguments: { tool: 'look', arguments: { at: 'y' } } };
    const wrong = { name: 'invoke_tool', arguments: { tool: 'look', arguments: {} } };
    const ended = await run('catalog', { name: 'discover_tools' }, call, invoked, wrong);
    expect(results(ended).slice(1)).toEqual(['saw x', 'saw y']);
    expect(ended.outcome).toMatchObject({ status: 'completed', answer: JSON.stringify(wrong) });
  });
});

describe('calls between tags', () => {
  const tagged = (value: object): string => `<tool_call>${JSON.stringify(value)}</tool_call>`;

  test('are executed, also after a text, and only whole ones', async () => {
    const half = '<tool_call>{"name": "look", "argu';
    const wrong = tagged({ name: 'look', arguments: { at: 7 } });
    const ended = await run(
      'tools',
      `I look. ${tagged(call)}`,
      half,
      wrong,
      tagged({ name: 'rm' }),
      'done',
    );
    expect(ended.outcome).toMatchObject({ status: 'completed', answer: 'done', toolCalls: 1 });
    expect(ended.projection.messages[1]).toMatchObject({ text: 'I look.' });
    const [first, ...problems] = results(ended);
    expect(first).toBe('saw x');
    expect(
      problems.map((text) => (JSON.parse(text) as { error: { type: string } }).error.type),
    ).toEqual(['invalid_json', 'invalid_arguments', 'unknown_tool']);
  });

  test('are no answer where no call can be made', async () => {
    const { outcome } = await run('none', tagged(call), 'A real answer.');
    expect(outcome).toMatchObject({ status: 'completed', answer: 'A real answer.', toolCalls: 0 });
    const closing = await run('capped', call, tagged(call), tagged(call), tagged(call));
    expect(closing.outcome).toMatchObject({ status: 'stopped', reason: 'steps', toolCalls: 1 });
    expect(closing.outcome.answer).not.toContain('<tool_call>');
  });
});

describe('an answer under contract', () => {
  test('that is valid is not a call, even if it looks like one', async () => {
    const { outcome } = await run('call-like', call);
    expect(outcome).toMatchObject({ status: 'completed', output: call, toolCalls: 0 });
  });

  test('that is an invalid answer but a call is executed; what is neither goes back to the model', async () => {
    const ada = { name: 'Ada', born: 1815 };
    const ended = await run('ada', call, { name: 'look' }, ada);
    expect(ended.outcome).toMatchObject({
      status: 'completed',
      output: ada,
      toolCalls: 1,
      steps: 2,
    });
    expect(results(ended)).toEqual(['saw x']);
    expect(ended.projection.messages.filter((one) => one.role !== 'tool' && one.side)).toHaveLength(
      2,
    );
  });
});
