import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
beforeAll(async () => {
  example = await startExample('ports');
});
afterAll(async () => await example.close());

test('the evaluator loop writes again with the feedback until the judge agrees', async () => {
  const { stub, rig } = example;
  const bad = { funny: false, feedback: 'add a twist' };
  stub.script(
    replyText('A cat.'),
    replyText(JSON.stringify(bad)),
    replyText('A cat in a hat.'),
    replyText(JSON.stringify({ funny: true, feedback: '' })),
  );
  const { outcome } = await rig.run({ agent: 'jokes', message: 'cats' });
  expect(outcome).toMatchObject({ status: 'completed', answer: 'A cat in a hat.' });
  expect(stub.requests[2]?.text).toContain('add a twist');
  stub.assertConsumed();
});

test('the tool loop calls its tool and answers', async () => {
  const { stub, rig } = example;
  stub.script(replyCall('weather', { place: 'Rome' }), replyText('It is 21 °C in Rome.'));
  const { outcome } = await rig.run({ agent: 'forecaster', message: 'The weather in Rome?' });
  expect(outcome).toMatchObject({ status: 'completed', answer: 'It is 21 °C in Rome.' });
});

// The same loops take about 46 and 19 lines with the other libraries.
test.each([
  ['evaluator-loop', 46],
  ['tool-loop', 19],
])('%s has at most 1.3 times %d lines of code', async (name, lines) => {
  const text = await readFile(`examples/ports/${name}.ts`, 'utf8');
  const own = text.split('\n').filter((line) => line.trim() !== '' && !/^\s*\/[/*]/.test(line));
  expect(own.length / lines).toBeLessThanOrEqual(1.3);
});
