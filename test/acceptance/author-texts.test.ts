import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { reply } from '../../src/testing/steps.js';
import { answer } from '../../src/tools/built-in/answer.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { openDesk, type Desk, type Told } from '../support/desk.js';

const texts = {
  repair: 'That was not it ({{attempt}}/{{attempts}}): {{problem}} Once more.',
  closing: 'Time is up, {{reason}}. Sum up.',
  demandCall: 'Use a tool, always.',
};
const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({}),
  effect: 'read',
  execute: () => 'seen',
});

let desk: Desk;
beforeAll(async () => {
  const parts = { instructions: 'Answer.', texts };
  const output = z.object({ city: z.string() });
  const agents = [
    defineAgent({ ...parts, name: 'typed', model: 'm', output, attempts: 3 }),
    defineAgent({
      ...parts,
      name: 'by-schema',
      model: 'm',
      output,
      tools: [look],
      decide: 'schema',
    }),
    defineAgent({
      ...parts,
      name: 'caller',
      model: 'o1-mini',
      tools: [look, answer()],
      toolChoice: 'required',
    }),
  ];
  desk = await openDesk(agents, { m: {}, 'o1-mini': {} });
});
afterAll(async () => {
  await desk.close();
});

const prompt = ({ requests }: Told, index: number): string =>
  JSON.stringify(requests[index]?.body['messages']);

test('LM-038 a repair is asked for in the author’s words, with the problem filled in', async () => {
  const told = await desk.run('typed', [reply.text('{"city": 7}'), reply.text('{"city": "Bern"}')]);
  expect(told.outcome).toMatchObject({ output: { city: 'Bern' } });
  expect(prompt(told, 1)).toMatch(/That was not it \(1\/3\): [^"]*city[^"]* Once more\./);
  expect(prompt(told, 1)).not.toContain('was not accepted');
});

test('LM-038 a reply that is no decision is shown as it was, before the author’s words', async () => {
  const told = await desk.run('by-schema', [
    reply.text('hm, Bern?'),
    reply.text('{"decision": {"action": "answer", "answer": {"city": "Bern"}}}'),
  ]);
  expect(told.outcome).toMatchObject({ output: { city: 'Bern' } });
  const messages = told.requests[1]?.body['messages'];
  expect(messages).toContainEqual({ role: 'assistant', content: 'hm, Bern?' });
});

test('LM-038 the last answer at a limit is asked for in the author’s words', async () => {
  const told = await desk.run(
    'caller',
    [reply.calls([{ name: 'look', arguments: {} }]), reply.text('I saw it.')],
    { limits: { steps: 1 } },
  );
  expect(told.outcome).toMatchObject({ status: 'stopped', answer: 'I saw it.' });
  expect(prompt(told, 1)).toContain('Time is up, the limit \\"steps\\" was reached. Sum up.');
});

test('LB-027 a call is demanded in the author’s words from a model that does not know required', async () => {
  const told = await desk.run('caller', [
    reply.calls([{ name: 'answer', arguments: { answer: 'done' } }]),
  ]);
  expect(told.outcome).toMatchObject({ reason: 'tool' });
  expect(prompt(told, 0)).toContain('Use a tool, always.');
});
