import { expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { modelFindings } from '../../src/cli/doctor/agents.js';

test('the demo model is explained once', async () => {
  const demo = (name: string) => defineAgent({ name, instructions: 'x', model: 'demo' });
  const found = await modelFindings({ agents: [demo('a'), demo('b')] }, {});
  expect(found.map(({ text }) => text).filter((text) => text.includes('demo model'))).toEqual([
    expect.stringMatching(/^the demo model: a fixed script/),
    'the demo model, as agent a',
  ]);
  expect(found.filter(({ fix = '' }) => fix.startsWith('to use an LLM'))).toHaveLength(1);
});
