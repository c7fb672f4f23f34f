import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Worker, bundleWorkflowCode } from '@temporalio/worker';
import { transform } from 'esbuild';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { startStub } from '../../src/testing/stub-server.js';
import { startExample, type Example } from '../support/example.js';
import { type TheirSide, compareSides, program, readPorted } from '../support/ported-page.js';

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

test.each(['langgraph', 'ai-sdk'])(
  'the port from %s has at most 1.3 times the lines',
  async (page) => {
    const linesOf = (code: string): number =>
      code.split('\n').filter((line) => line.trim() !== '').length;
    const { theirs, ours } = await readPorted(page);
    expect(linesOf(theirs)).toBeGreaterThan(10);
    expect(linesOf(ours.join(''))).toBeLessThanOrEqual(1.3 * linesOf(theirs));
  },
);

// `npm run ports` does the same with libraries that are no dependencies of perdure.
test('the loops of the AI SDK and of perdure call the tool and answer', async () => {
  const steps = [replyCall('weather', { place: 'Rome' }), replyText('It is 21 °C in Rome.')];
  const aiSdk = program({ command: process.execPath, folder: resolve('.') });
  const { theirs, ours } = await compareSides('ai-sdk', steps, aiSdk);
  expect(theirs.answer).toBe('It is 21 °C in Rome.');
  expect(ours).toEqual(theirs);
});

test('generateText and streamText print the answers that perdure gives, too', async () => {
  const page = await readPorted('ai-sdk', 2);
  const answers = ['It is 21 °C in Rome.', 'It is 21 °C in Bari.'];
  const stub = await startStub();
  try {
    const steps = ['Rome', 'Bari'].flatMap((place, index) => [
      replyCall('weather', { place }),
      replyText(answers[index] ?? ''),
    ]);
    stub.script(...steps);
    const aiSdk = program({ command: process.execPath, folder: resolve('.') });
    expect(await aiSdk(page, stub)).toBe(answers.join('\n'));
    stub.assertConsumed();
  } finally {
    await stub.close();
  }
  // The test of the pages executes this side.
  expect(page.ours.join('')).toMatch(/client\.run\('forecaster'[^]*client\.text\(run\)/);
});

test('the loop by hand and perdure call the tool and answer', async () => {
  const steps = [replyCall('order', { number: 17 }), replyText('It is a lamp.')];
  const { theirs, ours } = await compareSides('temporal', steps, loopByHand);
  expect(theirs.answer).toBe('It is a lamp.');
  expect(ours).toEqual(theirs);
});

/** A message of the loop by hand, with its calls as Chat Completions has them. */
interface Message {
  readonly role: string;
  readonly content: string;
  readonly calls?: readonly { readonly id: string }[];
  readonly tool_call_id?: string;
}

/** Runs the page's workflow on a worker of Temporal's SDK, with activities as a team would write them. */
const loopByHand: TheirSide = async ({ theirs, message }, stub) => {
  const activities = {
    async callModel(messages: readonly Message[]): Promise<Message> {
      const sent = messages.map(({ calls = [], ...rest }) =>
        calls.length > 0 ? { ...rest, tool_calls: calls } : rest,
      );
      const response = await fetch(`${stub.baseUrl}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'gpt-4.1-mini', messages: sent }),
      });
      const { choices } = (await response.json()) as {
        readonly choices: readonly [{ readonly message: Record<string, never> }];
      };
      const { content, tool_calls: calls } = choices[0].message;
      return { role: 'assistant', content: content ?? '', calls: calls ?? [] };
    },
    callTool: ({ id }: { readonly id: string }): Message => ({
      role: 'tool',
      tool_call_id: id,
      content: JSON.stringify({ number: 17, item: 'lamp' }),
    }),
  };
  const folder = resolve('node_modules', '.cache', `loop-${randomUUID()}`);
  const address = inject('temporalAddress');
  const taskQueue = `loop-${randomUUID()}`;
  const connection = await NativeConnection.connect({ address });
  const client = new Client({ connection: await Connection.connect({ address }) });
  try {
    await mkdir(folder, { recursive: true });
    const workflowsPath = join(folder, 'workflows.mjs');
    // The SDK compiles no TypeScript below `node_modules`.
    await writeFile(workflowsPath, (await transform(theirs, { loader: 'ts' })).code);
    const logger = new DefaultLogger('ERROR');
    const workflowBundle = await bundleWorkflowCode({ workflowsPath, logger });
    const worker = await Worker.create({ connection, taskQueue, workflowBundle, activities });
    const workflowId = taskQueue;
    return await worker.runUntil(
      client.workflow.execute<(question: string) => Promise<string>>('agent', {
        taskQueue,
        workflowId,
        args: [message],
      }),
    );
  } finally {
    await client.connection.close();
    await connection.close();
    await rm(folder, { recursive: true, force: true });
  }
};
