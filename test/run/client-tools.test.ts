import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { addedTools } from '../../src/agents/client-tools.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { agentProblem } from '../../src/client/fork-run.js';
import { clientToolsProblem } from '../../src/core/input/client-tools.js';
import { answer, replyCall, replyCalls, replyText, runInMemory } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { expectReplays, look, textsOf, useSourceBundle } from '../support/memory.js';

const weather = {
  name: 'weather',
  description: 'Tells the weather.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
};
const pick = defineTool({
  name: 'pick',
  description: 'Lets the user pick.',
  effect: 'read',
  input: z.object({ from: z.array(z.string()) }),
});
const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools: [look, pick] });
const bare = defineAgent({ name: 'bare', instructions: 'Help.' });

beforeAll(useSourceBundle);

describe('tools of a caller', () => {
  test('are checked without their patterns, which could delay the checks of other runs', async () => {
    const slow = { type: 'string', pattern: '^(b+)+$' };
    const tool = {
      name: 'weather',
      parameters: {
        type: 'object',
        properties: { city: slow, pattern: { type: 'string' } },
        patternProperties: { '^(c+)+$': slow },
        additionalProperties: false,
        required: ['city'],
      },
    };
    const run = await runInMemory(bare, {
      message: 'How is it?',
      clientTools: [tool],
      model: [
        replyCall('weather', { city: 5 }),
        replyCall('weather', { city: 'b', pattern: 5 }),
        replyCall('weather', { city: `${'b'.repeat(40)}!`, pattern: 'x' }),
        replyText('Sunny.'),
      ],
      on: { request: { client_tool: answer('sun') } },
    });
    expect(run.outcome).toMatchObject({ status: 'completed', answer: 'Sunny.' });
    expect(run.requests).toHaveLength(1);
    expect(textsOf(run).filter((text) => text.includes('invalid_arguments'))).toHaveLength(2);
    expect(run.modelRequests[0]?.tools.at(-1)?.parameters).toMatchObject({
      properties: { city: slow },
    });
  });

  test('are pinned beside those of the agent, through segments and the death of a worker', async () => {
    const run = await runInMemory(desk, {
      message: 'How is it?',
      clientTools: [weather],
      model: [
        replyCall('look', { n: 1 }),
        replyCall('weather', { town: 'Oslo' }),
        replyCalls([
          { name: 'weather', arguments: { city: 'Oslo' } },
          { name: 'weather', arguments: { city: 'Oslo' } },
        ]),
        replyText('Sunny.'),
      ],
      on: { request: { client_tool: [answer('sun'), answer({ sky: 'blue' })] } },
      segment: { steps: 1, bytes: 2 ** 21 },
      faults: [{ at: 'before-reply', step: 3, kill: true }],
    });
    expect(run.outcome).toMatchObject({ status: 'completed', answer: 'Sunny.' });
    expect(run.modelRequests.map(({ tools }) => tools.map(({ name }) => name))).toEqual(
      run.modelRequests.map(() => ['look', 'pick', 'read_result', 'weather']),
    );
    expect(run.status.segments).toBeGreaterThan(1);
    expect(run.requests.map(({ kind, tool }) => [kind, tool])).toEqual([
      ['client_tool', 'weather'],
      ['client_tool', 'weather'],
    ]);
    const texts = textsOf(run);
    expect(texts.find((text) => text.includes('invalid_arguments'))).toContain('city');
    expect(texts).toContain('tool: sun');
    expect(texts).toContain('tool: {"sky":"blue"}');
    await expectReplays(run);
  });

  test('come with the tool that reads large results if the agent has none', async () => {
    const run = await runInMemory(bare, {
      message: 'Go',
      clientTools: [{ name: 'beep' }],
      model: [replyCall('beep', {}), replyText('Done.')],
      on: { request: { client_tool: answer('beeped') } },
    });
    expect(run.modelRequests[0]?.tools.map(({ name }) => name)).toEqual(['beep', 'read_result']);
    expect(run.outcome.answer).toBe('Done.');
  });

  test('never replace a tool of the agent; one without `execute` counts as the agent has it', () => {
    const agents = [desk];
    const start = (name: string) =>
      agentProblem(agents, { agent: 'desk', clientTools: [{ name: 'ok' }, { name }] });
    expect(start('look')).toBe(
      'clientTools.1.name: expected a name that agent "desk" does not use, got "look", a tool of its own; rename the tool',
    );
    expect(start('read_result')).toContain('got "read_result"');
    expect(start('pick')).toBeNull();
    const own = { name: 'desk', tools: desk.tools.tools };
    expect(() => addedTools(own, [{ name: 'look' }])).toThrow('clientTools.0.name');
    expect(addedTools(own, [{ name: 'pick', description: 'other' }])).toEqual([]);
  });

  test.each<[unknown, string]>([
    ['x', 'clientTools: expected a list of tools, got "x"'],
    [[{ name: 'a b' }], 'clientTools.0.name: expected 1 to 64 letters'],
    [[{ name: 'a' }, { name: 'a' }], 'clientTools.1.name: expected a name of its own'],
    [[{ name: 'a', execute: 1 }], 'clientTools.0.execute: expected one of name, description'],
    [[{ name: 'a', description: 7 }], 'clientTools.0.description: expected a text, got 7'],
    [[{ name: 'a', parameters: { type: 'string' } }], 'clientTools.0.parameters: expected a JSON'],
    [[{ name: 'a', description: 'x'.repeat(70_000) }], 'clientTools: expected at most 65536'],
    [Array.from({ length: 129 }, (_, at) => ({ name: `t${at}` })), 'expected at most 128 tools'],
  ])('with a fault are refused by name: %#', (given, problem) => {
    expect(clientToolsProblem(given)).toContain(problem);
  });

  test('whose schema no model can use are refused', () => {
    const parameters = { type: 'object', properties: { a: { $ref: 'https://x.example/y' } } };
    expect(() => addedTools({ name: 'desk', tools: [] }, [{ name: 'a', parameters }])).toThrow(
      'clientTools.0.parameters: its schema refers to',
    );
  });
});
