import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { historyText } from '../support/history-text.js';
import { createRig, type Rig } from '../support/rig.js';

const exec = promisify(execFile);
let rig: Rig;

const note = defineTool({
  name: 'note',
  description: 'notes a word',
  input: z.object({ word: z.string() }),
  effect: 'keyed',
  execute: async ({ word }) => `noted-${word}-noted`,
});

/** Twelve steps, each with a word that occurs nowhere else. */
const words = Array.from({ length: 12 }, (_, n) => `word${n}x${randomUUID().slice(0, 8)}`);
const twelve = defineAgent({
  name: 'twelve',
  instructions: 'note every word',
  model: 'twelve',
  tools: [note],
  limits: { steps: 40 },
});
const models = {
  twelve: scriptedModel([
    ...words
      .slice(0, 11)
      .map((word) => ({ ...replyCall('note', { word }), text: `text-${word}-text` })),
    replyText(`answer-${words[11]}`),
  ]),
  brief: { call: async () => replyText('hello from outside') },
};
const brief = defineAgent({ name: 'brief', instructions: 'hi', model: 'brief' });

beforeAll(async () => {
  rig = await createRig();
  await rig.worker([twelve, brief], { models });
});
afterAll(async () => await rig.close());

describe('a run of twelve steps', () => {
  test('has every message once in its history', async () => {
    const { outcome, history } = await rig.run({ agent: 'twelve', message: 'the-question' });
    expect(outcome).toMatchObject({ status: 'completed', steps: 12, toolCalls: 11 });
    const allText = historyText(history);
    const times = (text: string): number => allText.split(text).length - 1;
    expect(times('the-question')).toBe(1);
    for (const word of words.slice(0, 11)) {
      expect(times(`text-${word}-text`)).toBe(1);
      expect(times(`noted-${word}-noted`)).toBe(1);
    }
    // The answer is a message, and also the result that the workflow returns to its caller.
    expect(times(`answer-${words[11]}`)).toBe(2);
  });
});

describe('the Temporal CLI alone', () => {
  const temporal = async (...args: string[]): Promise<string> => {
    const { stdout } = await exec(inject('temporalCli'), [
      ...args,
      '--address',
      inject('temporalAddress'),
    ]);
    return stdout;
  };

  test('starts a run and reads its result', async () => {
    const id = `cli-${randomUUID()}`;
    const input = JSON.stringify({ agent: 'brief', message: 'hi' });
    const start = ['workflow', 'start', '--type', 'agent', '--task-queue', rig.taskQueue];
    await temporal(...start, '--workflow-id', id, '--input', input);
    const result = await temporal('workflow', 'result', '--workflow-id', id, '--output', 'json');
    expect(JSON.parse(result)).toMatchObject({
      status: 'COMPLETED',
      result: { status: 'completed', answer: 'hello from outside' },
    });
  });

  test.each([
    ['no input', [], 'input: expected an object, got undefined'],
    ['a text', ['--input', '"hi"'], 'input: expected an object, got "hi"'],
    [
      'bytes',
      ['--input-meta', 'encoding=binary/plain', '--input-base64', '--input', 'AAEC'],
      'input: expected JSON, got bytes',
    ],
    [
      'a payload of an unknown encoding',
      ['--input-meta', 'encoding=odd/one', '--input', '{}'],
      'input: it cannot be read (Unknown encoding: odd/one)',
    ],
  ])('gets an error for %s', async (_what, args, message) => {
    const id = `cli-${randomUUID()}`;
    const start = ['workflow', 'start', '--type', 'agent', '--task-queue', rig.taskQueue];
    // For a reader, its input is encoded by a codec that the reader lacks.
    if (message.includes('encoding')) rig.exempt('its input cannot be decoded', id);
    await temporal(...start, '--workflow-id', id, ...args);
    expect(await failureOf(rig.client.workflow.getHandle(id).result())).toContain(message);
  });

  test('gets an error for a payload that claims to be JSON and is not', async () => {
    const id = `raw-${randomUUID()}`;
    const { connection } = rig.client;
    await connection.workflowService.startWorkflowExecution({
      namespace: 'default',
      workflowId: id,
      requestId: randomUUID(),
      workflowType: { name: 'agent' },
      taskQueue: { name: rig.taskQueue },
      input: {
        payloads: [
          { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from('{"agent": bad') },
        ],
      },
    });
    expect(await failureOf(rig.client.workflow.getHandle(id).result())).toContain('cannot be read');
  });
});

describe('an invalid input fails at once and names the field, value, and fix', () => {
  test.each([
    [{ agent: 'brief' }, 'message: expected a string, got none'],
    [{ agent: 'brief', message: 7 }, 'message: expected a string, got 7'],
    [{ agent: 'brief', message: '  ' }, 'message: expected text'],
    [{ agent: 7, message: 'x' }, 'agent: expected the name of a registered agent, got 7'],
    [
      { agent: 'brief', message: 'x', limits: { steps: -1 } },
      'limits.steps: expected a positive whole number, or null for none, got -1',
    ],
    [
      { agent: 'brief', message: 'x', limits: { steps: 0 } },
      'limits.steps: expected a positive whole number, or null for none, got 0',
    ],
    [
      { agent: 'brief', message: 'x', limits: { run: { tokens: 'many' } } },
      'limits.run.tokens: expected a positive whole number, or null for none, got "many"',
    ],
    [
      { agent: 'brief', message: 'x', limits: { step: 1 } },
      'limits.step: expected one of steps, toolCalls',
    ],
    [{ agent: 'brief', message: 'x', limits: [] }, 'limits: expected an object, got []'],
    [
      { agent: 'twelve', message: 'x', limits: { steps: 41 } },
      "limits.steps: expected at most the agent's 40, got 41",
    ],
    [
      { agent: 'brief', message: 'x', limits: { costUsd: 1 } },
      'limits.costUsd: the price of model',
    ],
    [
      { agent: 'brief', message: 'x', massage: 'y' },
      'input.massage: expected one of agent, message',
    ],
    [
      { agent: 'brief', message: 'x', tags: 'a' },
      'tags: expected a list of strings of 1–200 characters, got "a"',
    ],
    [
      { agent: 'brief', message: 'x'.repeat(1_500_000) },
      'message: expected at most 262144 characters, got 1500000',
    ],
    [
      { agent: 'brief', message: 'x', context: 'y'.repeat(300_000) },
      'context: expected at most 262144 characters, got 300002',
    ],
  ])('%#: %s', async (input, message) => {
    const handle = await rig.start(input);
    expect(await failureOf(handle.result())).toContain(message);
  });
});

/** The message of a run that failed as expected: its type, and an outcome in the details. */
async function failureOf(result: Promise<unknown>): Promise<string> {
  const error: unknown = await result.then(() => null).catch((thrown: unknown) => thrown);
  if (!(error instanceof WorkflowFailedError)) throw new Error('the run did not fail');
  const { cause } = error;
  if (!(cause instanceof ApplicationFailure)) throw new Error('the failure is none of ours');
  expect(cause.type).toBe('AgentFailed');
  expect(cause.details?.[0]).toMatchObject({ status: 'failed', reason: 'input', steps: 0 });
  return cause.message;
}
