import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { JsonObject } from '../../src/core/text/json.js';
import type { Message } from '../../src/core/transcript/messages.js';
import { openAiModel } from '../../src/models/openai/model.js';
import { replyCalls, replyText, type Reply } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { wait } from '../../src/tools/built-in/workflow-tools.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Ended, Rig } from '../support/rig.js';

let rig: Rig;
let stub: Stub;
beforeAll(async () => {
  [rig, stub] = [await createMemoryRig(), await startStub()];
});
afterEach(async () => await rig.stopWorkers());
afterAll(async () => {
  await rig.close();
  await stub.close();
});

const size = defineTool({
  name: 'size',
  description: 'tells how long a text is',
  input: z.object({ text: z.string() }),
  effect: 'keyed',
  execute: ({ text }) => `${text.length} characters`,
});
const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({}),
  effect: 'once',
  verify: (key) => ({ happened: true, result: `found under ${key.length} digits` }),
  timeout: 200,
  execute: () => new Promise(() => undefined),
});
const expert = defineAgent({
  name: 'expert',
  description: 'knows facts',
  instructions: 'you know it all',
  model: 'm',
});
const agent = defineAgent({
  name: 'a',
  instructions: 'help',
  model: 'm',
  tools: [size, pay, wait()],
  agents: [expert],
  toolExposure: 'catalog',
});

const invoke = (tool: string, given: JsonObject, prompt = 10): Reply =>
  replyCalls([{ name: 'invoke_tool', arguments: { tool, arguments: given } }], {
    usage: { prompt_tokens: prompt, completion_tokens: 5, total_tokens: prompt + 5 },
  });
const results = ({ projection }: Ended): readonly string[] =>
  projection.messages.flatMap((message) => (message.role === 'tool' ? [message.text] : []));

async function run(steps: readonly Reply[], window?: number): Promise<Ended> {
  stub.script(...steps);
  const model = openAiModel({ baseUrl: stub.baseUrl });
  const m = window === undefined ? model : { ...model, window };
  await rig.worker([agent], { models: { m } });
  const ended = await rig.run({ agent: 'a', message: 'go' });
  stub.assertConsumed();
  return ended;
}

describe('a call through a catalog', () => {
  test('is executed like any other: a timer, a called agent, a lookup of its outcome', async () => {
    const ended = await run([
      invoke('wait', { seconds: 1 }),
      invoke('expert', { message: 'what is it?' }),
      replyText('it is 42'),
      invoke('pay', {}),
      replyText('done'),
    ]);
    expect(ended.outcome).toMatchObject({ status: 'completed', answer: 'done', toolCalls: 3 });
    const types = (ended.history.events ?? []).flatMap((event) => {
      if (event.timerStartedEventAttributes) return ['timer'];
      if (event.startChildWorkflowExecutionInitiatedEventAttributes) return ['child'];
      const name = event.activityTaskScheduledEventAttributes?.activityType?.name ?? 'callModel';
      return name === 'callModel' || name === 'loadAgent' ? [] : [name];
    });
    expect(types).toEqual(['timer', 'child', 'runTool', 'runFunction']);
    expect(results(ended).slice(1)).toEqual(['it is 42', 'found under 64 digits']);
  });

  test('accepts arguments of any size; the model sees a stand-in for them', async () => {
    const ended = await run([invoke('size', { text: 'x'.repeat(90_000) }), replyText('done')]);
    expect(results(ended)).toEqual(['90000 characters']);
    const last = JSON.stringify(stub.requests.at(-1)?.messages);
    expect(last.length).toBeLessThan(2_000);
    expect(last).toContain('\\"omitted\\"');
    expect(last).toContain('\\"tool\\":\\"size\\"');
  });

  test('is summarized as the real call, and continues after the summary', async () => {
    const text = 'y'.repeat(900);
    const ended = await run(
      [
        invoke('size', { text }),
        invoke('size', { text: `${text}!` }),
        invoke('size', { text: `${text}!!` }, 2_900),
        replyText('three texts were measured'),
        invoke('size', { text: 'z' }),
        replyText('done'),
      ],
      3_000,
    );
    expect(ended.outcome).toMatchObject({ status: 'completed', answer: 'done', toolCalls: 4 });
    const [summary, after] = stub.requests.slice(-3);
    expect(JSON.stringify(summary?.messages)).toMatch(/call call_1_1_0 of size:/);
    expect(summary?.body['tools']).toBeUndefined();
    expect(JSON.stringify(after?.messages)).toContain('three texts were measured');
    expect(after?.messages.filter(({ role }) => role === 'assistant')).toHaveLength(2);
    expect(JSON.stringify(after?.messages)).toContain('"name":"invoke_tool"');
    const texts = ended.projection.messages.flatMap((message: Message) =>
      message.role === 'assistant' ? (message.calls ?? []) : [],
    );
    expect(texts.map(({ name }) => name)).toEqual(['size', 'size', 'size', 'size']);
  });
});
