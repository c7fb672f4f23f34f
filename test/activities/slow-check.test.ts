import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  beginCheck,
  isSlowTool,
  type AttemptMemory,
} from '../../src/activities/model/attempt-memory.js';
import type { CallModelInput } from '../../src/core/run/contract.js';
import type { ModelReply } from '../../src/models/model.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { toToolDefinition, type Tool } from '../../src/tools/tool.js';
import { activityContext, memoryBlobs, pinnedAgent } from '../support/activity.js';

const pay = (rest: object = {}): Tool =>
  defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ euros: z.number() }),
    effect: 'keyed',
    execute: () => 'paid',
    ...rest,
  });
const reply: ModelReply = {
  text: '',
  calls: [{ name: 'pay', arguments: '{"euros": 1}' }],
  finish: 'calls',
};

/** Returns whether the reply was recorded before the author's code saw it. */
async function isKept(tool: Tool, checked: ModelReply = reply): Promise<boolean> {
  const memory: AttemptMemory = { reports: [], paid: null, turn: null, decideReplies: [] };
  const on = {
    pinned: pinnedAgent([tool]),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the part that the check reads
    input: {} as CallModelInput,
    context: activityContext(),
    blobs: memoryBlobs(),
  };
  expect(await beginCheck(checked, memory, on)).toBe(true);
  return memory.paid !== null;
}

test('a reply is recorded before an approval check can block the process', async () => {
  expect(await isKept(pay())).toBe(false);
  expect(await isKept(pay({ approval: 'always' }))).toBe(false);
  expect(await isKept(pay({ approval: () => false }))).toBe(true);
});

test.each([
  '<tool_call>{"name": "pay", "arguments": {"euros": 1}}</tool_call>',
  'I pay now.\n<function=pay><parameter=euros>1</parameter></function>',
  '<|python_tag|>{"name": "pay", "parameters": {"euros": 1}}',
  '{"name": "pay", "arguments": {"euros": 1}}',
])('a reply with calls in its text is recorded, too: %s', async (text) => {
  const written: ModelReply = { text, calls: [], finish: 'stop' };
  expect(await isKept(pay({ approval: () => false }), written)).toBe(true);
  expect(await isKept(pay(), written)).toBe(false);
  const plain = { ...written, text: 'It is <b>paid</b>.' };
  expect(await isKept(pay({ approval: () => false }), plain)).toBe(false);
});

test('the schema of a tool without `execute` may be slow, too', () => {
  const tool = defineTool({
    name: 'pick',
    description: 'Picks.',
    input: z.object({ word: z.string().refine(() => true) }),
    effect: 'read',
  });
  expect(isSlowTool(toToolDefinition(tool), pinnedAgent([tool]))).toBe(true);
});
