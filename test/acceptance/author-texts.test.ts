import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { StartOptions } from '../../src/client/client-types.js';
import { template } from '../../src/prompts/template.js';
import { replyCalls, replyText, type Reply } from '../../src/testing/replies.js';
import { answer } from '../../src/tools/built-in/default-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { openDesk, type Desk, type RunReport } from '../support/desk.js';
import { createMemoryRig } from '../support/memory-rig.js';

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
  const about = template('It is about {{what}}.', { args: ['what'] });
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
    defineAgent({
      ...parts,
      name: 'prompted',
      model: 'm',
      tools: [look],
      attempts: 2,
      prompts: {
        plan: { text: about, output: z.object({ steps: z.array(z.string()) }) },
      },
      output,
    }),
    defineAgent({
      ...parts,
      name: 'prompted-caller',
      model: 'o1-mini',
      tools: [look, answer()],
      toolChoice: 'required',
      prompts: { act: { text: about, tools: ['answer'] }, say: { text: about, tools: [] } },
    }),
  ];
  desk = await openDesk(
    agents,
    { m: {}, 'o1-mini': {} },
    { rig: await createMemoryRig(), enforces: false },
  );
});
afterAll(async () => {
  await desk.close();
});

const prompt = ({ requests }: RunReport, index: number): string =>
  JSON.stringify(requests[index]?.body['messages']);

test('LM-038 a repair prompt uses the author’s text, with the problem filled in', async () => {
  const runReport = await desk.run('typed', [
    replyText('{"city": 7}'),
    replyText('{"city": "Bern"}'),
  ]);
  expect(runReport.outcome).toMatchObject({ output: { city: 'Bern' } });
  expect(prompt(runReport, 1)).toMatch(/That was not it \(1\/3\): [^"]*city[^"]* Once more\./);
  expect(prompt(runReport, 1)).not.toContain('was not accepted');
});

test('LM-038 an invalid reply is shown unchanged, before the author’s text', async () => {
  const runReport = await desk.run('by-schema', [
    replyText('hm, Bern?'),
    replyText('{"decision": {"action": "answer", "answer": {"city": "Bern"}}}'),
  ]);
  expect(runReport.outcome).toMatchObject({ output: { city: 'Bern' } });
  const messages = runReport.requests[1]?.body['messages'];
  expect(messages).toContainEqual({ role: 'assistant', content: 'hm, Bern?' });
});

test('LM-038 the last answer at a limit is requested with the author’s text', async () => {
  const runReport = await desk.run(
    'caller',
    [replyCalls([{ name: 'look', arguments: {} }]), replyText('I saw it.')],
    { limits: { steps: 1 } },
  );
  expect(runReport.outcome).toMatchObject({ status: 'stopped', answer: 'I saw it.' });
  expect(prompt(runReport, 1)).toContain('Time is up, the limit \\"steps\\" was reached. Sum up.');
});

test('LB-027 a model without required is asked for a call with the author’s text', async () => {
  const runReport = await desk.run('caller', [
    replyCalls([{ name: 'answer', arguments: { answer: 'done' } }]),
  ]);
  expect(runReport.outcome).toMatchObject({ reason: 'tool' });
  expect(prompt(runReport, 0)).toContain('Use a tool, always.');
});

/** Runs a prompt whose argument names the conversation. */
async function runPrompt(
  agent: string,
  name: string,
  steps: readonly Reply[],
  start: Pick<StartOptions, 'limits'> = {},
): Promise<RunReport> {
  const what = desk.conversation(...steps);
  const { id } = await desk.client.start(agent, { prompt: name, promptArgs: { what }, ...start });
  await desk.client.result(id);
  desk.stub.assertConsumed();
  return await desk.report(id, what);
}

test('LM-038 closing and repair of a named prompt’s turn use the author’s text, under its schema', async () => {
  const plan = replyText('{"steps": ["go"]}');
  const closed = await runPrompt(
    'prompted',
    'plan',
    [replyCalls([{ name: 'look', arguments: {} }]), plan],
    { limits: { steps: 1 } },
  );
  expect(closed.outcome).toMatchObject({ status: 'stopped', output: { steps: ['go'] } });
  expect(prompt(closed, 1)).toContain('Time is up, the limit \\"steps\\" was reached. Sum up.');
  expect(JSON.stringify(closed.requests[1]?.body['response_format'])).toContain('steps');
  const repaired = await runPrompt('prompted', 'plan', [replyText('{"city": "Bern"}'), plan]);
  expect(repaired.outcome).toMatchObject({ status: 'completed', output: { steps: ['go'] } });
  expect(prompt(repaired, 1)).toMatch(/That was not it \(1\/2\): [^"]*steps[^"]* Once more\./);
});

test('LB-027 the author’s text asks for a call in a named prompt with tools, but not in one without', async () => {
  const call = replyCalls([{ name: 'answer', arguments: { answer: 'done' } }]);
  const acted = await runPrompt('prompted-caller', 'act', [call]);
  expect(acted.outcome).toMatchObject({ reason: 'tool', answer: 'done' });
  expect(prompt(acted, 0)).toContain('Use a tool, always.');
  const expected = await runPrompt('prompted-caller', 'say', [replyText('Well.')]);
  expect(expected.outcome).toMatchObject({ reason: 'answer', answer: 'Well.' });
  expect(prompt(expected, 0)).not.toContain('Use a tool, always.');
});
