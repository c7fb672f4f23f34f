import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../src/agents/define-agent.js';
import { classify } from '../src/output/classes/classes.js';
import { planAndExecute } from '../src/graphs/plan-and-execute.js';
import { defineTool } from '../src/tools/define-tool.js';
import { createRig, type Ended, type Rig } from './support/rig.js';

// Tests with a real server that supports OpenAI's API, including small models:
//   llama-server -m model.gguf --jinja --port 8080
//   OPENAI_BASE_URL=http://127.0.0.1:8080/v1 PERDURE_MODEL=any npm run test:live
// Only the form is asserted, since a small model makes little sense.

const baseUrl = process.env['OPENAI_BASE_URL'];
const model = process.env['PERDURE_MODEL'] ?? 'any';
const settings = { temperature: 0, maxOutputTokens: 60 };

const person = z.object({ name: z.string(), age: z.int() });
const lamps = new Map([['kitchen', false]]);
const turnLamp = defineTool({
  name: 'turn_lamp',
  description: 'Turns the lamp of a room on or off.',
  input: z.object({ room: z.enum(['kitchen']), on: z.boolean() }),
  effect: 'keyed',
  ends: true,
  async execute({ room, on }) {
    lamps.set(room, on);
    return `the lamp in the ${room} is ${on ? 'on' : 'off'}`;
  },
});
const switchLamp = defineTool({
  name: 'switch_lamp',
  description: 'Turns the lamp of a room on or off.',
  input: z.object({ room: z.enum(['kitchen']), on: z.boolean() }),
  effect: 'keyed',
  execute: async ({ room, on }) => ({ room, on }),
});
const agents = [
  defineAgent({ name: 'talk', instructions: 'Be brief.', model, settings }),
  defineAgent({
    name: 'extract',
    instructions: 'Extract the person from the text.',
    model,
    output: person,
    attempts: 5,
    settings,
  }),
  defineAgent({
    name: 'home',
    instructions: 'Use the tool turn_lamp to turn the lamp on.',
    model,
    decide: 'schema',
    tools: [turnLamp],
    limits: { steps: 4 },
    settings: { ...settings, maxOutputTokens: 150 },
  }),
  defineAgent({
    name: 'mood',
    instructions: 'You judge the mood of a text.',
    model,
    output: classify(['good', 'bad']),
    settings,
  }),
  planAndExecute({
    name: 'planner',
    instructions: 'You turn lamps on and off. The only room is the kitchen.',
    model,
    tools: [switchLamp],
    limits: { steps: 8 },
    settings: { ...settings, maxOutputTokens: 500 },
  }),
];

let rig: Rig;

beforeAll(async () => {
  if (baseUrl === undefined) {
    throw new Error('OPENAI_BASE_URL: name a server, such as http://127.0.0.1:8080/v1');
  }
  rig = await createRig();
  await rig.worker(agents, {
    env: { PERDURE_HOME: rig.home, OPENAI_BASE_URL: baseUrl, PERDURE_MODEL: model },
  });
});
afterAll(async () => await rig?.close());

async function run(agent: string, message: string): Promise<Ended> {
  const ended = await rig.run({ agent, message });
  const { status, reason, answer, output, steps, usage, error } = ended.outcome;
  console.log(agent, JSON.stringify({ status, reason, answer, output, steps, usage, error }));
  return ended;
}

test('a completion has an answer, and the usage that the server counted', async () => {
  const { outcome } = await run('talk', 'Say hello.');
  expect(outcome.usage.estimated).toBeUndefined();
  expect(outcome.usage.outputTokens).toBeGreaterThan(0);
  // The model may write until it is cut off, which is also a typed end.
  expect(['answer', 'truncated']).toContain(outcome.reason);
});

test('an answer under a schema is valid', async () => {
  const { outcome } = await run('extract', 'Anna Smith is 42 years old and lives in Rome.');
  expect(outcome.status).toBe('completed');
  expect(person.safeParse(outcome.output).success).toBe(true);
});

test('a decision as JSON under a schema calls the tool or answers, and nothing else', async () => {
  const { outcome, projection } = await run('home', 'It is dark in the kitchen.');
  // Or it never reached the end of its JSON, which is also a typed end.
  expect(['answer', 'tool', 'steps', 'truncated']).toContain(outcome.reason);
  const calls = projection.messages.flatMap((one) =>
    one.role === 'assistant' ? (one.calls ?? []) : [],
  );
  for (const { problem } of calls) expect(problem).toBeUndefined();
  if (outcome.reason === 'tool') expect(outcome.answer).toContain('the lamp in the kitchen is');
});

test('classes have probabilities from the model', async () => {
  const { outcome } = await run('mood', 'What a lovely day!');
  expect(outcome).toMatchObject({ status: 'completed', output: { best: expect.any(String) } });
  const shape = z.object({ classes: z.array(z.object({ probability: z.number() })) });
  const { classes } = shape.parse(outcome.output);
  expect(classes.reduce((sum, { probability }) => sum + probability, 0)).toBeCloseTo(1, 9);
});

test('a plan has a valid form, or its faults end in an answer', async () => {
  const { outcome } = await run('planner', 'Turn the lamp in the kitchen on.');
  expect(['answer', 'steps', 'truncated', 'error']).toContain(outcome.reason);
  const shape = z.object({
    plan: z.object({ actions: z.array(z.object({ id: z.string(), tool: z.string() })) }),
    results: z.record(z.string(), z.object({ ok: z.boolean() })),
  });
  if (outcome.reason === 'answer') expect(shape.safeParse(outcome.output).success).toBe(true);
});
