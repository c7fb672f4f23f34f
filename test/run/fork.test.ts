import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { RunHandle } from '../../src/client/control.js';
import { messageTokens, toPromptMessage } from '../../src/core/transcript/transcript.js';
import type { MessageInput } from '../../src/client/attach.js';
import type { Message } from '../../src/core/transcript/messages.js';
import type { ModelRequest } from '../../src/models/model.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { cases } from '../../src/graphs/cases.js';
import { text as say } from '../../src/graphs/values.js';
import type { ForkOptions } from '../../src/client/fork-run.js';
import { InputError } from '../../src/core/errors.js';
import { clerk, clientOf } from '../support/clerk.js';
import { replyTo, untilStatus } from '../support/conversation.js';
import { gate } from '../support/gate.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Ended, Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

const held = gate();
const holding = defineTool({
  name: 'note',
  description: 'writes a text down when it is let',
  input: z.object({ text: z.string() }),
  effect: 'keyed',
  execute: async () => {
    await held.wait();
    return 'noted';
  },
});
/** The nodes whose functions were executed. */
let did: string[] = [];
/** Writes a draft, lets the model judge it, and writes once more. */
const writer = defineGraph({
  name: 'writer',
  model: 'm',
  instructions: 'Judge.',
  state: z.object({
    topic: z.string(),
    draft: z.string().default(''),
    kind: z.string().default(''),
  }),
  perTurn: ['draft'],
  messageTo: 'topic',
  answerFrom: 'draft',
  nodes: ({ run, choose, decide }) => ({
    write: run({
      run: async (s) => {
        did.push('write');
        return { draft: `${s.draft}+${s.topic}` };
      },
      maxVisits: 3,
    }),
    judge: decide({
      output: z.object({ good: z.boolean() }),
      message: (s) => say`judge ${s.draft}`,
    }),
    enough: choose({ on: (s) => cases({ done: s.kind.is('last') }) }),
    sign: run({
      run: async (s) => {
        did.push('sign');
        return { draft: `${s.draft}!`, kind: 'last' };
      },
      maxVisits: 2,
    }),
  }),
}).wire({
  start: 'write',
  edges: {
    write: { done: 'judge', capped: 'end' },
    judge: 'enough',
    enough: { done: 'write', else: 'sign' },
    sign: { done: 'enough', capped: 'end' },
  },
});
const LONG = 'x'.repeat(900);
const SUMMARY = 'a summary';
let rig: Rig;
let client: PerdureClient;
/** Requests of the models' steps; not those for a summary. */
let requests: ModelRequest[] = [];

beforeAll(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
  const model = (window: number) => ({
    call: async (request: ModelRequest) => {
      const isJudge = request.messages.at(-1)?.text.startsWith('judge') === true;
      const isSummary = request.tools.length === 0 && !isJudge;
      if (!isSummary) requests.push(structuredClone(request));
      const inputTokens = request.messages.reduce((sum, one) => sum + messageTokens(one), 0);
      const reply = isSummary
        ? replyText(SUMMARY)
        : isJudge
          ? replyText('{"good":true}')
          : replyTo(request);
      return { ...reply, usage: { inputTokens, outputTokens: 5, cachedTokens: 0 } };
    },
    window,
  });
  const holder = clerk('holder', { tools: [holding] });
  const clerks = clerk('clerk', { forkFrom: ['holder', 'reader'] });
  const agents = [clerks, holder, clerk('reader', { model: 'small' }), writer];
  const segment = { steps: 2, bytes: 2_000_000 };
  await rig.worker(agents, { models: { m: model(100_000), small: model(3_000) }, segment });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

/** An open run that has answered these messages. */
async function talk(texts: readonly (string | MessageInput)[], agent = 'clerk'): Promise<string> {
  const id = `talk-${randomUUID()}`;
  for (const [index, message] of texts.entries()) {
    await client.send(id, message, { start: { agent } });
    await client.result(id, { turn: index + 1 });
  }
  return id;
}

async function ended({ id }: Pick<RunHandle, 'id'>): Promise<Ended> {
  return await rig.end(rig.client.workflow.getHandle(id));
}

/**
 * Forks a run and waits for the end. `prompt`: the first prompt, before the message that was added.
 */
async function fork(
  run: string,
  options: Omit<Parameters<PerdureClient['fork']>[1], 'message'> = {},
): Promise<Ended & { readonly prompt: readonly object[] }> {
  requests = [];
  const end = await ended(await client.fork(run, { message: 'and now?', ...options }));
  const [first] = requests;
  expect(first?.messages.at(-1)?.text).toBe('and now?');
  return { ...end, prompt: first?.messages.slice(0, -1) ?? [] };
}

const prompts = (messages: readonly Message[]): readonly object[] => messages.map(toPromptMessage);

describe('a forked run', () => {
  test('begins with all messages of the other run, and continues independently', async () => {
    const id = await talk(['one', 'two']);
    const { messages } = await client.transcript(id);
    const { outcome, prompt, handle, projection } = await fork(id);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'done: and now?', steps: 1 });
    expect(prompt).toEqual(prompts(messages));
    expect(prompt).toHaveLength(4);
    expect(projection.messages.map(({ n, turn, text }) => [n, turn, text])).toEqual([
      [4, 1, 'and now?'],
      [5, 1, 'done: and now?'],
    ]);
    const whole = await client.transcript(handle.workflowId);
    expect(whole.messages.map(({ n }) => n)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(whole).toMatchObject({ total: 6, completeFrom: 0, ownFrom: 4 });
    expect(prompts((await client.transcript(id)).messages)).toEqual(prompts(messages));
    await client.close(id);
    await ended({ id });
  });

  test('records which run it comes from, and before which message', async () => {
    const id = await talk(['one', 'two']);
    const { handle } = await fork(id, { at: 3 });
    await client.close(id);
    await ended({ id });
    const [segment] = await segmentsOf(rig.client, id);
    const from = { run: id, runId: segment?.runId, at: 3 };
    expect((await client.status(handle.workflowId)).forkedFrom).toEqual(from);
    expect(await handle.query('status')).toMatchObject({ forkedFrom: from });
    expect((await handle.describe()).memo).toMatchObject({ forkedFrom: from });
    expect(await client.status(id)).not.toHaveProperty('forkedFrom');
  });

  test('copies only the messages before a number', async () => {
    const id = await talk(['one', 'two', 'three']);
    const { messages } = await client.transcript(id);
    const { prompt } = await fork(id, { at: 3 });
    expect(prompt).toEqual(prompts(messages.slice(0, 3)));
  });

  test('does not separate a call from its results', async () => {
    const id = await talk(['steps 2']);
    const { messages } = await client.transcript(id);
    expect(messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'tool',
      'assistant',
    ]);
    const parted = await fork(id, { at: 4 });
    expect(parted.prompt).toEqual(prompts(messages.slice(0, 3)));
    expect((await client.status(parted.handle.workflowId)).forkedFrom?.at).toBe(3);
    const whole = await fork(id, { at: 5 });
    expect(whole.prompt).toEqual(prompts(messages.slice(0, 5)));
  });

  test('does not wait for a call in flight: its step is left out', async () => {
    const { id } = await client.start('holder', { message: 'steps 1' });
    await held.reached;
    const { prompt } = await fork(id, { agent: 'clerk' });
    expect(prompt).toEqual([toPromptMessage({ role: 'user', text: 'steps 1' })]);
    held.release();
    expect((await ended({ id })).outcome).toMatchObject({ answer: 'done: steps 1', toolCalls: 1 });
  });

  test('gives its calls ids that differ from those of all messages before', async () => {
    const id = await talk(['steps 1']);
    requests = [];
    const { outcome } = await ended(await client.fork(id, { message: 'steps 1' }));
    expect(outcome).toMatchObject({ toolCalls: 1, steps: 2 });
    const ids = requests
      .at(-1)
      ?.messages.flatMap((one) => (one.role === 'assistant' ? (one.calls ?? []) : []))
      .map((call) => call.id);
    expect(ids).toEqual(['call_1_1_0', 'call_f4_1_1_0']);
    // The worker that has made a reply knows the prompt together with it.
    expect(requests[1]?.messages.slice(0, 5)).toEqual(requests[0]?.messages);
  });

  test('has the messages of all segments, and can have several segments itself', async () => {
    const id = await talk(['steps 2', 'two', 'three', 'four']);
    const { messages } = await client.transcript(id);
    expect((await client.status(id)).segments).toBeGreaterThan(1);
    requests = [];
    const forked = await client.fork(id, { message: 'steps 3', open: true });
    await client.result(forked.id, { turn: 1 });
    await client.send(forked.id, 'more');
    expect(await client.result(forked.id, { turn: 2 })).toMatchObject({ answer: 'done: more' });
    expect(requests[0]?.messages.slice(0, -1)).toEqual(prompts(messages));
    expect(requests.at(-1)?.messages.slice(0, messages.length)).toEqual(prompts(messages));
    await client.close(forked.id);
    await ended(forked);
    expect((await segmentsOf(rig.client, forked.id)).length).toBeGreaterThan(1);
    const whole = await client.transcript(forked.id);
    expect(whole.messages.map(({ n }) => n)).toEqual(whole.messages.map((_, n) => n));
    expect(whole).toMatchObject({ total: whole.messages.length, completeFrom: 0 });
  });

  test('sees a summary if the other run did, and the full messages if it begins before the summary', async () => {
    const texts = [1, 2, 3, 4, 5, 6, 7, 8].map((turn) => `message ${turn} ${LONG}`);
    const pinned = { message: 'never forget', pin: true };
    const id = await talk([...texts.slice(0, 2), pinned, ...texts.slice(2)], 'reader');
    const { messages } = await client.transcript(id);
    const made = messages.filter((one) => one.role === 'user' && one.compacts !== undefined);
    expect(made.length).toBeGreaterThan(1);
    const seen = [...requests];
    for (const summary of made) {
      // The reply directly after the summary shows what its prompt was.
      const answered = messages.find(({ n, role }) => n > summary.n && role === 'assistant');
      const asked = seen.find(
        (request) =>
          request.messages.some(({ text }) => text === summary.text) &&
          `done: ${request.messages.at(-1)?.text}` === answered?.text,
      );
      const { prompt } = await fork(id, { at: answered?.n ?? 0, agent: 'clerk' });
      expect(prompt).toEqual(asked?.messages);
      expect(prompt.slice(0, 2).map((one) => 'text' in one && one.text)).toEqual([
        'never forget',
        summary.text,
      ]);
    }
    const before = made[0]?.n ?? 0;
    const { prompt } = await fork(id, { at: before, agent: 'clerk' });
    expect(prompt).toEqual(prompts(messages.slice(0, before)));
  });

  test('can be forked itself, even if the first run is closed', async () => {
    const id = await talk(['one']);
    await client.close(id);
    await ended({ id });
    const { handle } = await fork(id);
    const { prompt } = await fork(handle.workflowId);
    expect(prompt.map((message) => 'text' in message && message.text)).toEqual([
      'one',
      'done: one',
      'and now?',
      'done: and now?',
    ]);
  });

  test('can be started without a message, and receive one later', async () => {
    const id = await talk(['one']);
    requests = [];
    const forked = await client.fork(id, { open: true });
    const handle = rig.client.workflow.getHandle(forked.id);
    await untilStatus(handle, 'waiting_message');
    await client.send(forked.id, 'two');
    await client.result(forked.id, { turn: 1 });
    expect(requests[0]?.messages.map(({ text }) => text)).toEqual(['one', 'done: one', 'two']);
    await client.close(forked.id);
    await ended(forked);
  });
});

describe('a fork is refused', () => {
  test.each([
    [{ run: '' }, 'fork.run: expected the id of the run to fork, got ""'],
    [
      { run: 'x', at: 0 },
      'fork.at: expected the number of the first message not to copy, from 1, got 0',
    ],
    [{ run: 'x', of: 1 }, 'fork.of: expected one of run, at, runId'],
    ['x', 'fork: expected an object, got "x"'],
    [{ run: 'never-was' }, 'fork.run: there is no run "never-was"'],
  ])('with %j', async (given, problem) => {
    const { outcome } = await rig.run({ agent: 'clerk', message: 'x', fork: given });
    expect(outcome).toMatchObject({ status: 'failed', reason: 'input' });
    expect(outcome.error).toContain(problem);
  });

  test('if forkFrom does not name the run’s agent, regardless of the caller', async () => {
    const id = await talk(['the secret is 4711']);
    requests = [];
    const problem = `fork.run: run "${id}" belongs to agent "clerk", whose messages agent "reader" may not read`;
    const { outcome } = await rig.run({ agent: 'reader', message: 'x', fork: { run: id } });
    expect(outcome).toMatchObject({ status: 'failed', reason: 'input' });
    expect(outcome.error).toContain(problem);
    const forked = await client.fork(id, { message: 'x', agent: 'reader' });
    expect((await client.result(forked)).error).toContain(problem);
    expect(requests).toEqual([]);
  });

  test('if the run has fewer messages, by client and workflow', async () => {
    const id = await talk(['one']);
    const problem = `fork.at: expected at most 2, the messages of run "${id}", got 9`;
    await expect(client.fork(id, { message: 'x', at: 9 })).rejects.toThrow(problem);
    const { outcome } = await rig.run({ agent: 'clerk', message: 'x', fork: { run: id, at: 9 } });
    expect(outcome.error).toContain(problem);
  });
});

describe('a fork at a node', () => {
  test('begins there with the state and the messages of that visit, and repeats no earlier node', async () => {
    const { id } = await client.start('writer', { message: 'tea', limits: { steps: 4 } });
    await client.result(id);
    expect(did.slice(0, 3)).toEqual(['write', 'sign', 'write']);

    did = [];
    requests = [];
    const signed = await ended(await client.fork(id, { at: { node: 'sign', visit: 1 } }));
    expect(did.slice(0, 2)).toEqual(['sign', 'write']);
    expect(String(signed.outcome.answer)).toMatch(/^\+tea!\+tea/);
    const [second] = requests;
    expect(second?.messages.map(({ role, text: said }) => [role, said]).slice(0, 4)).toEqual([
      ['user', 'tea'],
      ['user', 'judge +tea'],
      ['assistant', '{"good":true}'],
      ['user', 'judge +tea!+tea'],
    ]);
    expect((await client.status(signed.handle.workflowId)).forkedFrom).toMatchObject({
      run: id,
      node: 'sign',
      visit: 1,
      at: 3,
    });

    did = [];
    requests = [];
    const judged = await client.fork(id, {
      at: { node: 'judge', visit: 1 },
      input: { topic: 'milk', kind: '' },
    });
    const { outcome } = await ended(judged);
    expect(requests[0]?.messages.map(({ text: said }) => said)).toEqual(['tea', 'judge +tea']);
    expect(did.slice(0, 2)).toEqual(['sign', 'write']);
    expect(String(outcome.answer)).toMatch(/^\+tea!\+milk/);
  });

  test('names the nodes and the visits that there are', async () => {
    const { id } = await client.start('writer', { message: 'tea' });
    await client.result(id);
    const refused = async (at: ForkOptions<unknown>['at']): Promise<string> =>
      await client.fork(id, { at: at ?? 0 }).then(
        () => 'accepted',
        (error: unknown) =>
          InputError.isInstance(error) ? error.message : `other: ${String(error)}`,
      );
    expect(await refused({ node: 'sgin' })).toContain(
      'fork.at: expected a node of the run\'s graph (write, judge, enough, sign), got "sgin" (nearest: sign)',
    );
    expect(await refused({ node: 'sign', visit: 99 })).toMatch(
      /^fork\.at\.visit: expected at most \d, the visits of node "sign", got 99$/,
    );
    expect(await refused({ node: '' })).toContain('fork.at: expected the name of a node');
    const talked = await talk(['one']);
    await expect(client.fork(talked, { at: { node: 'sign' } })).rejects.toThrow('has no graph');
    await client.close(talked);
    await ended({ id: talked });
  });
});
