import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { template } from '../../src/prompts/template.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createMemoryRig();
});
afterAll(async () => await rig.close());

const translator = defineAgent({
  name: 'translator',
  description: 'translates texts',
  instructions: template('Translate into {{language}}, in at most {{words}} words.', {
    args: z.object({ language: z.enum(['German', 'French']), words: z.int().max(100) }),
  }),
  model: 'translator',
  prompts: {
    gloss: {
      text: template('Explain the word {{word}}.', { args: ['word'] }),
      output: z.object({ meaning: z.string() }),
    },
  },
});
const chief = defineAgent({
  name: 'chief',
  instructions: 'delegate',
  model: 'chief',
  agents: [translator],
});

test("a called agent with a template takes its arguments as its tool's schema", async () => {
  const args = { language: 'German', words: 10 };
  const models = {
    chief: scriptedModel([replyCall('translator', { message: 'hi', args }), replyText('done')]),
    translator: scriptedModel([replyText('hallo')]),
  };
  await rig.worker([chief], { models });
  const { outcome, projection } = await rig.run({ agent: 'chief', message: 'say hi in German' });
  expect(outcome.answer).toBe('done');
  expect(projection.messages.find(({ role }) => role === 'tool')?.text).toContain('hallo');
  expect(models.translator.requests[0]?.instructions).toBe(
    'Translate into German, in at most 10 words.',
  );
  expect(
    models.chief.requests[0]?.tools.find(({ name }) => name === 'translator')?.parameters,
  ).toMatchObject({
    properties: {
      message: { type: 'string' },
      args: {
        properties: {
          language: { enum: ['German', 'French'] },
          words: { type: 'integer', maximum: 100 },
        },
      },
    },
    required: ['message', 'args'],
  });
  await rig.stopWorkers();
});

test('a called agent with a template and a prompt takes the arguments of both', async () => {
  const glossary = defineAgent({
    name: 'glossary',
    instructions: 'delegate',
    model: 'chief',
    agents: [{ agent: translator, prompt: 'gloss' }],
  });
  const args = { language: 'French', words: 5 };
  const models = {
    chief: scriptedModel([
      replyCall('translator_gloss', { args, promptArgs: { word: 'pain' } }),
      replyText('done'),
    ]),
    translator: scriptedModel([replyText('{"meaning": "bread"}')]),
  };
  await rig.worker([glossary], { models });
  const { outcome, projection } = await rig.run({ agent: 'glossary', message: 'what is pain?' });
  expect(outcome.answer).toBe('done');
  expect(projection.messages.find(({ role }) => role === 'tool')?.text).toContain('bread');
  expect(models.translator.requests[0]).toMatchObject({
    instructions: 'Translate into French, in at most 5 words.',
    messages: [{ text: 'Explain the word pain.' }],
    responseFormat: { schema: { required: ['meaning'] } },
  });
  expect(
    models.chief.requests[0]?.tools.find(({ name }) => name === 'translator_gloss')?.parameters,
  ).toMatchObject({
    properties: {
      promptArgs: { properties: { word: { type: ['string', 'number', 'boolean'] } } },
      args: { properties: { language: { enum: ['German', 'French'] } } },
    },
    required: ['promptArgs', 'args'],
  });
  await rig.stopWorkers();
});

test('arguments that do not fit the template are an error that names them', async () => {
  const models = {
    chief: scriptedModel([
      replyCall('translator', { message: 'hi', args: { language: 'Latin', words: 10 } }),
      replyText('gave up'),
    ]),
    translator: scriptedModel([]),
  };
  await rig.worker([chief], { models });
  const { outcome, projection } = await rig.run({ agent: 'chief', message: 'say hi in Latin' });
  expect(outcome.answer).toBe('gave up');
  const result = projection.messages.find(({ role }) => role === 'tool')?.text;
  expect(result).toContain('language');
  expect(result).toContain('German');
  expect(models.translator.requests).toEqual([]);
  await rig.stopWorkers();
});
