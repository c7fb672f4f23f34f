import { afterAll, beforeAll, expect, test } from 'vitest';
import { replyCalls } from '../../src/testing/replies.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
beforeAll(async () => {
  example = await startExample('report-desk');
});
afterAll(async () => await example.close());

const call = (name: string, args: Record<string, string>) =>
  replyCalls([{ name, arguments: args }]);

test('the report desk passes a table between tools by name, and returns the result', async () => {
  const { rig, stub } = example;
  stub.script(
    call('load_sales', { month: '2026-11' }),
    call('sum_up', { table: 'sales_2026-11' }),
    call('sum_up', { table: 'sales-2026-11' }),
    call('return_artifact', { name: 'sum_up_result' }),
  );
  const { outcome } = await rig.run({ agent: 'report', message: 'Sales by region' });
  expect(outcome).toMatchObject({
    status: 'completed',
    reason: 'tool',
    output: { north: 12_999, south: 12_998, west: 12_997 },
    toolCalls: 4,
  });
  const results = stub.requests.map(({ messages }) => String(messages.at(-1)?.content));
  expect(results[1]).toContain('[artifact "sales-2026-11": array of 3000 objects');
  expect(results[1]?.length).toBeLessThan(1_000);
  expect(results[2]).toContain('unknown artifact \\"sales_2026-11\\"; available: sales-2026-11');
  expect(results[3]).toContain('[artifact "sum_up_result": object with keys north, south, west');
  expect(stub.requests[0]?.body['tool_choice']).toBe('required');
  stub.assertConsumed();
});
