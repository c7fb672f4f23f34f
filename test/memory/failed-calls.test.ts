import { stripVTControlCharacters } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { replyCall, replyText, runInMemory } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
// oxlint-disable-next-line import/no-unassigned-import -- it adds the matchers to vitest
import '../../src/vitest.js';
import { useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

test('a matcher shows the calls that failed or were not executed', async () => {
  const refund = defineTool({
    name: 'refund',
    description: 'Pays back',
    input: z.object({ euros: z.number() }),
    effect: 'keyed',
    execute: () => Promise.reject(new Error('the bank is closed')),
  });
  const desk = defineAgent({ name: 'desk', instructions: 'x', tools: [refund] });
  const run = await runInMemory(desk, {
    message: 'Pay',
    model: [
      replyCall('refnd', { euros: 1 }),
      replyCall('refund', { euros: 'two' }),
      replyCall('refund', { euros: 3 }),
      replyText('No.'),
    ],
  });
  let message = '';
  try {
    expect(run).toHaveCalled('refund', { euros: 1 });
  } catch (error) {
    message = stripVTControlCharacters(String(error));
  }
  const lines = message.split('\n');
  expect(lines.slice(lines.indexOf('failed or not executed:') + 1)).toEqual([
    expect.stringMatching(/^ {2}refnd \{"euros":1\}: unknown_tool: /),
    expect.stringMatching(
      /^ {2}refund \{"euros":"two"\}: invalid_arguments: .* not valid: euros: expected number, got "two"$/,
    ),
    expect.stringMatching(/^ {2}refund \{"euros":3\}: tool_error: the bank is closed/),
  ]);
});
