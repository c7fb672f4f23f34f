import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { classify } from '../../src/output/classes/classes.js';
import { template } from '../../src/prompts/template.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { closeUpdate } from '../../src/workflows/messages/definitions.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createMemoryRig();
});
afterAll(async () => await rig.close());

const lookUp = defineTool({
  name: 'look_up',
  description: 'looks a fact up',
  input: z.object({ what: z.string() }),
  effect: 'read',
  execute: ({ what }) => `${what}: found`,
});

const planner = defineAgent({
  name: 'planner',
  description: 'plans trips',
  instructions: 'Plan.',
  model: 'm',
  tools: [lookUp],
  texts: { repair: 'That is not the form: {{problem}}' },
  prompts: {
    plan: {
      text: template('Plan a trip to {{city}}.', { args: ['city'] }),
      output: z.object({ steps: z.array(z.string()) }),
      settings: { temperature: 0 },
    },
    report: { text: 'Report in {braces}.', output: z.object({ words: z.int() }), tools: [] },
    mood: { text: 'How is it?', output: classify(['good', 'bad']), tools: [] },
  },
});

test('one conversation requests a plan, a report, and a class, each under its own schema', async () => {
  const model = scriptedModel([
    replyCall('look_up', { what: 'Rome' }),
    replyText('no plan'),
    replyText('{"steps": ["go"]}'),
    replyText('{"words": 7}'),
    {
      ...replyText('A'),
      logprobs: [{ token: 'A', logprob: 0, top: [{ token: 'A', logprob: 0 }] }],
    },
    replyText('any text'),
  ]);
  await rig.stopWorkers();
  await rig.worker([planner], { models: { m: model } });
  const handle = await rig.start({
    agent: 'planner',
    prompt: 'plan',
    promptArgs: { city: 'Rome' },
    open: true,
  });
  expect(await outcomeOf(handle, 1)).toMatchObject({ output: { steps: ['go'] } });
  await expect(ask(handle, { prompt: 'plam' })).rejects.toMatchObject({
    cause: { message: expect.stringContaining('got "plam" (nearest: plan') },
  });
  await expect(ask(handle, { prompt: 'plan' })).rejects.toMatchObject({
    cause: { message: 'args.city: expected a value, got none; give this argument' },
  });
  await ask(handle, { prompt: 'report' });
  expect(await outcomeOf(handle, 2)).toMatchObject({ output: { words: 7 } });
  await ask(handle, { prompt: 'mood' });
  expect(await outcomeOf(handle, 3)).toMatchObject({ output: { best: 'good' } });
  await ask(handle, 'And?');
  expect(await outcomeOf(handle, 4)).toMatchObject({ answer: 'any text', output: null });
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  await rig.end(handle);

  const asked = model.requests.map(({ responseFormat, settings, toolChoice, messages }) => ({
    schema: JSON.stringify(responseFormat?.schema ?? null),
    temperature: settings.temperature,
    toolChoice,
    last: messages.at(-1)?.text,
  }));
  const plan = { schema: expect.stringContaining('steps'), temperature: 0, toolChoice: 'auto' };
  expect(asked).toMatchObject([
    { ...plan, last: 'Plan a trip to Rome.' },
    // The call's result is answered under the same prompt.
    { ...plan, last: 'Rome: found' },
    { ...plan, last: expect.stringContaining('That is not the form: ') },
    {
      schema: expect.stringContaining('words'),
      temperature: undefined,
      toolChoice: 'none',
      last: 'Report in {braces}.',
    },
    { toolChoice: 'none', last: expect.stringContaining('A = good') },
    { schema: 'null', toolChoice: 'auto', last: 'And?' },
  ]);
});

test('an agent and a graph call another agent by one of its prompts', async () => {
  const model = scriptedModel([
    replyCall('planner_plan', { promptArgs: { city: 'Bonn' } }),
    replyText('{"steps": ["go"]}'),
    replyText('It is planned.'),
    replyText('{"steps": ["stay"]}'),
  ]);
  const caller = defineAgent({
    name: 'caller',
    instructions: 'Call.',
    model: 'm',
    agents: [{ agent: planner, prompt: 'plan' }],
  });
  const graph = defineGraph({
    name: 'trips',
    state: z.object({ city: z.string().default(''), trip: z.unknown().optional() }),
    messageTo: 'city',
    answerFrom: 'trip',
    nodes: (n) => ({
      plan: n.agent({
        agent: planner,
        prompt: 'plan',
        args: (state) => ({ city: state.city }),
        save: 'trip',
      }),
    }),
  }).wire({ start: 'plan', edges: { plan: { done: 'end', stopped: 'end', failed: 'end' } } });
  await rig.stopWorkers();
  await rig.worker([caller, graph], { models: { m: model } });
  const called = await rig.run({ agent: 'caller', message: 'Bonn' });
  expect(called.outcome).toMatchObject({ status: 'completed' });
  const walked = await rig.run({ agent: 'trips', message: 'Ulm' });
  expect(walked.outcome).toMatchObject({ status: 'completed' });
  const plans = model.requests.filter(({ instructions }) => instructions === 'Plan.');
  expect(
    plans.map(({ messages, responseFormat }) => [messages[0]?.text, responseFormat?.name]),
  ).toEqual([
    ['Plan a trip to Bonn.', 'answer'],
    ['Plan a trip to Ulm.', 'answer'],
  ]);
});

test('several messages begin a run, and later a turn, as a conversation', async () => {
  const model = scriptedModel([replyText('No.'), replyText('Yes.')]);
  await rig.stopWorkers();
  await rig.worker([planner], { models: { m: model } });
  const user = (text: string) => ({ role: 'user', text }) as const;
  const assistant = (text: string) => ({ role: 'assistant', text }) as const;
  const first = [user('Is 7 prime?'), assistant('Yes.'), user('And 9?')];
  const handle = await rig.start({ agent: 'planner', messages: first, open: true });
  expect(await outcomeOf(handle, 1)).toMatchObject({ answer: 'No.', steps: 1 });
  await ask(handle, { messages: [user('I forgot:'), user('and 11?')] });
  expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'Yes.' });
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  const { projection } = await rig.end(handle);
  expect(model.requests[1]?.messages.map(({ role, text }) => ({ role, text }))).toEqual([
    ...first,
    assistant('No.'),
    user('I forgot:'),
    user('and 11?'),
  ]);
  // Only what a model has written in this run has a usage.
  expect([...projection.usageByMessage.keys()]).toEqual([3, 6]);
});
