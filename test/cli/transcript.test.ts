import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { transcript, type TranscriptOptions } from '../../src/cli/commands/transcript.js';
import type { Message } from '../../src/core/transcript/messages.js';
import type { TranscriptPage } from '../../src/core/state/status.js';
import type { Model } from '../../src/models/model.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { text } from '../../src/graphs/values.js';
import { ToolError } from '../../src/tools/errors.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
let handle: WorkflowHandle;
/** Imitates one of our own lines, and moves the cursor. */
const FORGED = 'first line\n#9 user · turn 9\n\u001b[2Jlast \u202eline';
const LARGE = 'large '.repeat(20_000);

const tell = defineTool({
  name: 'tell',
  description: 'tells',
  input: z.object({ what: z.string() }),
  effect: 'read',
  execute: async ({ what }) => (what === 'large' ? LARGE : `${what} `.repeat(500)),
});
const model: Model = {
  async call({ messages }) {
    if (messages.length > 1) return replyText(FORGED);
    return replyCalls(['small', 'large'].map((what) => ({ name: 'tell', arguments: { what } })));
  },
};

/** A model that always replies with this text. */
function saying(words: string): Model {
  return { call: async () => replyText(words) };
}

beforeAll(async () => {
  rig = await createRig();
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm', tools: [tell] });
  await rig.worker([agent], { models: { m: model } });
  handle = await rig.start({ agent: 'a', message: 'tell me' });
  await rig.end(handle);
});
afterAll(async () => await rig.close());

async function ask(
  options: Omit<TranscriptOptions, 'id'> & { readonly id?: string } = {},
  how: { readonly json?: boolean; readonly home?: string } = {},
): Promise<CommandOutput> {
  return await runInProcess(
    transcript,
    { id: handle.workflowId, ...options },
    { address: inject('temporalAddress'), taskQueue: rig.taskQueue, home: rig.home, ...how },
  );
}

async function pageOf(...args: Parameters<typeof ask>): Promise<TranscriptPage> {
  const [options, how] = args;
  return JSON.parse((await ask(options, { json: true, ...how })).stdout) as TranscriptPage;
}

/** The workflow's clock does not advance within a task, so it may be some milliseconds behind. */
function timeless({ messages, total }: TranscriptPage): unknown {
  return { total, messages: messages.map((message) => ({ ...message, at: 0 })) };
}

describe('the transcript of a run', () => {
  test('equals the answer of the query', async () => {
    const page = await pageOf();
    const queried = await handle.query<TranscriptPage>('transcript');
    expect(page.total).toBe(5);
    expect(timeless(page)).toEqual(timeless(queried));
    for (const [n, { at }] of page.messages.entries()) {
      expect(Math.abs(at - (queried.messages[n]?.at ?? 0))).toBeLessThan(5_000);
    }
  });

  test('can be read in parts', async () => {
    const { messages, total } = await pageOf({ from: 1, until: 3 });
    expect({ ns: messages.map(({ n }) => n), total }).toEqual({ ns: [1, 2], total: 5 });
    expect((await pageOf({ from: 5 })).messages).toEqual([]);
    await expect(ask({ from: -1 })).rejects.toThrow(
      '--from: expected a whole number from 0, got -1',
    );
    await expect(ask({ until: 1.5 })).rejects.toThrow(
      '--until: expected a whole number from 0, got 1.5',
    );
  });

  test('is shown without a worker', async () => {
    const id = `idle-${randomUUID()}`;
    const taskQueue = `${rig.taskQueue}-nobody`;
    const args = [{ agent: 'a', message: 'x' }];
    const idle = await rig.client.workflow.start('agent', { taskQueue, workflowId: id, args });
    const { stdout, stderr, code } = await ask({ id }, { json: true });
    expect({ told: JSON.parse(stdout) as unknown, code }).toEqual({
      told: { messages: [], total: 0 },
      code: 0,
    });
    // The command needs no worker, so it does not mention the missing one.
    expect(stderr).not.toContain('worker is running');
    expect(stderr).toContain('it has not started');
    await idle.terminate();
  });
});

describe('the text output of a transcript', () => {
  test('is a dialogue with truncated results and the omitted sizes', async () => {
    const lines = (await ask()).stdout.split('\n');
    const heads = lines.filter((line) => line.startsWith('#'));
    expect(heads.map((line) => line.replace(/ · \d\d:\d\d:\d\d$/, ''))).toEqual([
      '#0 user · turn 1',
      '#1 model · turn 1 · step 1',
      '#2 tell (call_1_1_0) · turn 1 · step 1',
      '#3 tell (call_1_1_1) · turn 1 · step 1',
      '#4 model · turn 1 · step 2',
    ]);
    expect(lines).toContain('  → tell {"what":"small"} call_1_1_0');
    expect(lines).toContain('  … 1.5 kB omitted; show all with --full');
    expect(lines).toContain('  … 118.5 kB omitted; show all with --full');
  });

  test('cannot be forged by a model, and does not move the cursor', async () => {
    const { stdout } = await ask({ from: 4 });
    expect(stdout).toContain('\n  first line\n  #9 user · turn 9\n  \\u001b[2Jlast \\u202eline\n');
  });

  test('is complete with --full, read from the blob store', async () => {
    const { stdout, stderr } = await ask({ full: true });
    expect(stdout).not.toContain('omitted');
    expect(stdout).toContain(`  ${LARGE.trimEnd()}`);
    expect(stderr).toBe('');
    const whole = await pageOf({ full: true });
    expect(whole.messages[3]?.text).toBe(LARGE);
  });

  test('is what the model saw if the blob store is unavailable, with a note', async () => {
    const { stdout, stderr } = await ask(
      { full: true },
      { json: true, home: join(rig.home, 'elsewhere') },
    );
    const { messages } = JSON.parse(stdout) as { messages: readonly Message[] };
    expect(messages[3]?.text.length).toBeLessThan(LARGE.length);
    expect(messages[3]?.text.startsWith('large large')).toBe(true);
    expect(stderr).toMatch(
      /shown in part: blob [\da-f]{64} cannot be read in .*elsewhere.*PERDURE_HOME/,
    );
    await rm(join(rig.home, 'elsewhere'), { recursive: true, force: true });
  });
});

let tries = 0;
/** A graph whose first node is retried and calls a model, and whose second works on three items. */
const sorter = defineGraph({
  name: 'sorter',
  state: z.object({
    text: z.string(),
    answer: z.string().optional(),
    list: z.array(z.number()).default([1, 2, 3]),
    results: z.array(z.json()).optional(),
    verdict: z.object({ ok: z.boolean() }).optional(),
  }),
  messageTo: 'text',
  answerFrom: 'answer',
  model: 'm',
  instructions: 'Check mails.',
  nodes: ({ run, each, decide }) => ({
    sort: run({
      attempts: 2,
      run: async (s, { generate }) => {
        tries += 1;
        if (tries === 1) throw new Error('busy');
        return { answer: await generate({ model: 'small', message: s.text }) };
      },
    }),
    all: each({
      over: (s) => s.list,
      atOnce: 1,
      run: async (_, item: number) => {
        if (item === 2) throw new ToolError('two is even');
        return item;
      },
      save: 'results',
    }),
    check: decide({
      output: z.object({ ok: z.boolean() }),
      save: 'verdict',
      message: (s) => text`Is it right: ${s.answer}`,
    }),
  }),
}).wire({ start: 'sort', edges: { sort: 'all', all: { done: 'check' }, check: { done: 'end' } } });

describe('the transcript of a graph', () => {
  test('shows its nodes with their items, model calls, attempts, and exits', async () => {
    const own = await createRig();
    await own.worker([sorter], {
      models: { small: saying('A\nnode x'), m: saying('{"ok":true}') },
    });
    const graph = await own.start({ agent: 'sorter', message: 'go' });
    await own.end(graph);
    const { stdout } = await ask({ id: graph.workflowId });
    const json = await ask({ id: graph.workflowId }, { json: true });
    await own.close();
    const lines = stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.replace(/( · [\d.]+ (?:s|ms))?( · \d\d:\d\d:\d\d)$/, ''));
    expect(lines).toEqual([
      '#0 user · turn 1',
      '  go',
      'node sort · begins',
      'node sort · reply of model small',
      '  A',
      '  node x',
      'node sort · done · 1 model call · 2 attempts in all',
      'node all · begins',
      'node all · 1 of 3 items',
      'node all · 2 of 3 items, 1 failed',
      'node all · done · 3 of 3 items, 1 failed · item 2: two is even',
      'node check · begins',
      '#1 node check · message to the model · turn 1',
      '  Is it right: A',
      '  node x',
      '#2 model · turn 1 · step 1',
      '  {"ok":true}',
      'node check · done · 1 model call',
      '#3 graph · turn 1 · step 1',
      '  A',
      '  node x',
    ]);
    const { nodes } = JSON.parse(json.stdout) as { nodes: readonly object[] };
    expect(nodes.at(-1)).toMatchObject({ type: 'node-ended', node: 'check', before: 3 });
  });

  test('says that there are no calls', async () => {
    const { stdout, stderr } = await ask({ id: handle.workflowId, calls: true, from: 4 });
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: 'No tool calls in these messages.' });
  });
});
