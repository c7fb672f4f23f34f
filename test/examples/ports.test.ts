import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
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

/** The code of a page: the other library's block, which is `typescript`, and perdure's, which are `ts`. */
async function blocksOf(page: string): Promise<readonly [theirs: string, ours: string]> {
  const text = await readFile(`docs/coming-from-${page}.md`, 'utf8');
  const [, theirs = ''] = /^```typescript\n([\s\S]*?)^```$/m.exec(text) ?? [];
  const ours = [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code);
  return [theirs, ours.join('')];
}

test.each(['langgraph', 'ai-sdk'])(
  'the port from %s has at most 1.3 times the lines',
  async (page) => {
    const [theirs = 0, ours] = (await blocksOf(page)).map(
      (block) => block.split('\n').filter((line) => line.trim() !== '').length,
    );
    expect(theirs).toBeGreaterThan(10);
    expect(ours).toBeLessThanOrEqual(1.3 * theirs);
  },
);

test('the loop of the AI SDK on its page calls its tool and answers', async () => {
  const { stub } = example;
  stub.script(replyCall('weather', { place: 'Rome' }), replyText('It is 21 °C in Rome.'));
  const [theirs] = await blocksOf('ai-sdk');
  // Inside the repository, so that the block finds the library.
  const file = resolve('node_modules', '.cache', `ai-sdk-page-${process.pid}.mjs`);
  onTestFinished(async () => await rm(file, { force: true }));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, (await transform(theirs, { loader: 'ts' })).code);
  // In a process of its own, because the library reads the address when it is loaded first.
  const env = { ...process.env, OPENAI_BASE_URL: stub.baseUrl, OPENAI_API_KEY: 'none' };
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
  expect(stdout).toContain('It is 21 °C in Rome.');
  stub.assertConsumed();
});
