import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { runReads } from '../../src/activities/tool/run-reads.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { Tool } from '../../src/tools/tool.js';
import { inActivity, pinnedAgent, toolCall, workerDeps } from '../support/activity.js';

// No test waits: the time of reads and of their budget is virtual.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

interface Read {
  readonly tool?: 'look' | 'peek';
  readonly ms: number;
}

/** Executes reads that take some time each, and returns how each ended, and which began. */
async function read(
  reads: readonly Read[],
): Promise<{ ends: readonly string[]; begun: readonly number[] }> {
  const begun: number[] = [];
  const toolOf = (name: string): Tool =>
    defineTool({
      name,
      description: 'Reads.',
      input: z.object({ n: z.number(), ms: z.number() }),
      effect: 'read',
      inline: true,
      async execute({ n, ms }) {
        begun.push(n);
        await new Promise((resolve) => setTimeout(resolve, ms));
        return `saw ${n}`;
      },
    });
  const calls = reads.map(({ tool = 'look', ms }, n) => ({
    definition: 'h',
    turn: 1,
    step: 1,
    call: toolCall(tool, { n, ms }, { id: `call_1_1_${n}` }),
    key: `key ${n}`,
    effect: 'read' as const,
  }));
  const deps = workerDeps(pinnedAgent([toolOf('look'), toolOf('peek')]));
  const reading = inActivity(() => runReads(deps, { calls, atOnce: 5 }));
  await vi.advanceTimersByTimeAsync(200);
  const result = await reading;
  expect(result.reads.map(({ call }) => call)).toEqual(calls.map(({ call }) => call.id));
  const ends = result.reads.map(
    (one) => one.why ?? (one.result?.ok === true ? one.result.text : ''),
  );
  return { ends, begun: begun.toSorted((a, b) => a - b) };
}

const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);

test('reads that fit into the budget one by one, but not together, are not executed twice', async () => {
  const { ends, begun } = await read(numbers(20).map(() => ({ ms: 60 })));
  // Five at a time: the last five would begin after 180 of 200 ms, and be cut off.
  expect(ends).toEqual([
    ...numbers(15).map((n) => `saw ${n}`),
    ...numbers(5).map(() => 'elsewhere'),
  ]);
  expect(begun).toEqual(numbers(15));
});

test('reads under way are cut off at the end of the budget, and no other one begins', async () => {
  const { ends, begun } = await read(numbers(7).map(() => ({ ms: 250 })));
  expect(ends).toEqual([...numbers(5).map(() => 'slow'), 'elsewhere', 'elsewhere']);
  expect(begun).toEqual(numbers(5));
});

test('a read does not wait for one of another tool that no longer fits', async () => {
  const slow = numbers(6).map(() => ({ ms: 150 }));
  const { ends } = await read([...slow, { tool: 'peek', ms: 10 }]);
  expect(ends).toEqual([...numbers(5).map((n) => `saw ${n}`), 'elsewhere', 'saw 6']);
});

test('a read that began late is slow if it does not end within the budget', async () => {
  const quick = numbers(5).map(() => ({ ms: 90 }));
  const { ends } = await read([...quick, { ms: 120 }, { ms: 20 }]);
  expect(ends).toEqual([...numbers(5).map((n) => `saw ${n}`), 'slow', 'saw 6']);
});
