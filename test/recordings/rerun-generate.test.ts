import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { type Model, ModelError } from '../../src/models/model.js';
import { evaluate } from '../../src/recordings/evaluate.js';
import { writeRecording } from '../../src/recordings/recording-files.js';
import { rerun } from '../../src/recordings/rerun.js';
import { cancelRun, replyText, scriptedModel } from '../../src/testing.js';
import { playAndRecord, useSourceBundle } from '../support/memory.js';
import type { NodeContext } from '../../src/tools/tool.js';

beforeAll(useSourceBundle);
afterEach(() => vi.unstubAllEnvs());

const long = 'long '.repeat(1_000);

/** Returns a graph whose only node writes the answer with this function. */
function writing(
  name: string,
  draft: (text: string, generate: NodeContext['generate']) => Promise<string>,
) {
  return defineGraph({
    name,
    model: 'm',
    state: z.object({ text: z.string(), draft: z.string().optional() }),
    messageTo: 'text',
    answerFrom: 'draft',
    nodes: ({ run }) => ({
      write: run({
        run: async ({ text }, { generate }) => ({ draft: await draft(text, generate) }),
      }),
    }),
  }).wire({ start: 'write', edges: { write: { done: 'end', failed: 'end' } } });
}

/** Asks two models at once, one of them for a value, and then once more. */
const writer = (message = 'Sum up.') =>
  writing('writer', async (text, generate) => {
    const output = z.object({ kind: z.enum(['bill', 'spam']) });
    const [first, second] = await Promise.all([
      generate({ model: 'other', message: 'Sort.', output }),
      generate({ message: text }),
    ]);
    const sum = await generate({ message, instructions: second });
    return `${first.kind} ${second.length} ${sum}`;
  });

const model = {
  price: { input: 1, cachedInput: 1, output: 1 },
  call: async ({ messages }: { readonly messages: readonly { readonly text: string }[] }) => {
    const last = messages.at(-1)?.text ?? '';
    const replies: Readonly<Record<string, string>> = { Go: long, 'Sum up.': 'Sum.' };
    const text = last === 'Sort.' ? '{"kind":"letter"}' : (replies[last] ?? '{"kind":"bill"}');
    return await Promise.resolve({ text, calls: [], finish: 'stop' as const });
  },
};

const record = async () =>
  await playAndRecord(writer(), { message: 'Go', model, models: { other: model } });

test('the function of a node gets the recorded replies to its requests', async () => {
  const recording = await record();
  expect(recording.runs[0]?.outcome).toMatchObject({ answer: `bill ${long.length} Sum.` });
  const again = await rerun(recording, { agent: writer() });
  expect(again.divergence).toBeNull();
  expect(again.outcome).toMatchObject({ answer: `bill ${long.length} Sum.` });
});

test('another request of it is a difference', async () => {
  const { divergence } = await rerun(await record(), { agent: writer('Sum up shortly.') });
  expect(divergence).toMatchObject({
    agent: 'writer',
    kind: 'model',
    text: 'writer, turn 1: called the model with "Sum up shortly."; recorded no reply to this call',
  });
});

test('a candidate gets the requests of the function, under each name of a model', async () => {
  const candidate = scriptedModel([
    ({ messages }) => replyText(messages.at(-1)?.text === 'Go' ? 'short' : '{"kind":"spam"}'),
    ({ messages }) => replyText(messages.at(-1)?.text === 'Go' ? 'short' : '{"kind":"spam"}'),
    replyText('New.'),
  ]);
  const again = await rerun(await record(), { agent: writer(), model: candidate });
  expect(candidate.requests).toHaveLength(3);
  expect(again.outcome).toMatchObject({ answer: 'spam 5 New.' });
});

const caught = (what: 'throws' | 'catches') =>
  writing('careful', async (_, generate) => {
    return await generate({ message: 'Write.' }).catch((error: unknown) => {
      if (what === 'throws') throw error;
      return 'nothing';
    });
  });

test('a reply that was cut off, and a failure of the model, are as recorded', async () => {
  const cut = {
    call: async () => await Promise.resolve({ text: 'Dear', calls: [], finish: 'length' as const }),
  };
  const refusing = {
    call: async () =>
      await Promise.reject(new ModelError('no such model', { kind: 'request', type: 'not_found' })),
  };
  for (const [what, failing] of [
    ['throws', cut],
    ['catches', cut],
    ['throws', refusing],
  ] as const) {
    const agent = caught(what);
    const recording = await playAndRecord(agent, { message: 'Go', model: failing });
    const { divergence, outcome } = await rerun(recording, { agent });
    expect(divergence?.text).toBeUndefined();
    expect(outcome).toMatchObject({ status: recording.runs[0]?.outcome?.status });
  }
});

test('a function that was canceled while it asked is canceled again', async () => {
  const agent = caught('throws');
  const hanging = {
    call: async (_: unknown, { signal }: { readonly signal: AbortSignal }) =>
      await new Promise<never>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      }),
  };
  const recording = await playAndRecord(agent, {
    message: 'Go',
    model: hanging,
    on: { call: { write: cancelRun() } },
  });
  expect(recording.runs[0]?.outcome).toMatchObject({ status: 'cancelled' });
  const { divergence, outcome } = await rerun(recording, { agent });
  expect(divergence?.text).toBeUndefined();
  expect(outcome).toMatchObject({ status: 'cancelled' });
});

describe('a candidate that fails in the function of a node', () => {
  const kinds = ['credentials', 'model', 'quota', 'bad_request', 'retry', 'request'] as const;
  test.for(kinds)('ends the rerun soon with its error, of the kind %s', async (kind) => {
    let calls = 0;
    const failing: Model = {
      async call() {
        calls += 1;
        const details = { kind, type: 'refused' };
        return await Promise.reject(new ModelError('no such model', details));
      },
    };
    const failed = rerun(await record(), { agent: writer(), model: failing });
    await expect(failed).rejects.toThrow('no such model');
    expect(calls).toBeLessThanOrEqual(100);
  });
});

test('a model without a key is rejected before anything is started', async () => {
  const recording = await record();
  const keys = ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL'];
  for (const key of keys) vi.stubEnv(key, '');
  let hasRun = false;
  const agent = writing('writer', async () => {
    hasRun = true;
    return await Promise.resolve('');
  });
  await expect(rerun(recording, { agent, model: 'nope' })).rejects.toThrow('No model provider');
  const claude = rerun(recording, { agent, model: 'claude-nope' });
  await expect(claude).rejects.toThrow('No key for the model "claude-nope": set ANTHROPIC_API_KEY');
  expect(hasRun).toBe(false);
  const folder = await mkdtemp(join(tmpdir(), 'evaluate-'));
  await writeRecording(join(folder, 'one.json'), recording);
  const evaluated = evaluate(folder, { agents: [agent], model: 'nope' });
  await expect(evaluated).rejects.toThrow('No model provider');
  expect(hasRun).toBe(false);
  await rm(folder, { recursive: true });
});
