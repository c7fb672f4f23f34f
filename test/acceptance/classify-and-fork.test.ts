import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { type Classification, binaryClassify, classify } from '../../src/output/classes/classes.js';
import { InputError } from '../../src/core/errors.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import { replyCalls, replyRefusal, replyText, type Reply } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { openDesk, sent, spoken, type Desk } from '../support/desk.js';
import { createMemoryRig } from '../support/memory-rig.js';

const lookUp = defineTool({
  name: 'look_up',
  description: 'looks a fact up',
  input: z.object({ what: z.string() }),
  effect: 'read',
  execute: ({ what }) => `${what}: found`,
});

let desk: Desk;
beforeAll(async () => {
  const bot = { instructions: 'Be brief.', model: 'm' };
  desk = await openDesk(
    [
      defineAgent({ ...bot, name: 'mail', output: classify(['spam', 'not spam', 'a bill']) }),
      defineAgent({ ...bot, name: 'yes-or-no', output: binaryClassify() }),
      defineAgent({ ...bot, name: 'vote', output: classify(['spam', 'not spam'], { samples: 3 }) }),
      defineAgent({ ...bot, name: 'talker', tools: [lookUp] }),
    ],
    { m: {} },
    { rig: await createMemoryRig() },
  );
});
afterAll(async () => await desk.close());

/** A reply of one token, with its alternatives. */
function token(text: string, top: Readonly<Record<string, number>>): Reply {
  return replyText(text, { finish: 'length', logprobs: [{ token: text, top }] });
}

const classes = ({ output }: Outcome) => output as unknown as Classification;

describe('T-55 a classifier', () => {
  test('T-55 normalizes over its classes and reports the share outside of them', async () => {
    const { outcome, requests } = await desk.run('mail', [
      token('A', { A: 0.4, ' A': 0.1, b: 0.25, Hello: 0.15, C: 0.05 }),
    ]);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'spam' });
    const { classes: distribution, outside, entropyBits } = classes(outcome);
    expect(distribution.map(({ name }) => name)).toEqual(['spam', 'not spam', 'a bill']);
    expect(
      distribution.map(({ probability }) => probability).reduce((sum, p) => sum + p),
    ).toBeCloseTo(1, 10);
    expect(distribution[0]?.probability).toBeCloseTo(0.5 / 0.8, 10);
    expect(outside).toBeCloseTo(0.2, 10);
    expect(entropyBits).toBeGreaterThan(1);
    expect(requests[0]?.body).toMatchObject({ logprobs: true, temperature: 0 });
    expect(requests[0]?.body).not.toHaveProperty('logit_bias');
  });

  test('T-55 supports labels of several words: the model is asked for their letters', async () => {
    const { outcome, requests } = await desk.run('mail', [token('B', { B: 0.9, A: 0.05 })]);
    expect(outcome.answer).toBe('not spam');
    expect(requests[0]?.messages.at(-1)?.content).toContain('B = not spam');
  });

  test('T-55 reports a missing class instead of failing', async () => {
    const { outcome } = await desk.run('mail', [token('A', { A: 0.7, B: 0.3 })]);
    const distribution = classes(outcome);
    expect(distribution.unseen).toEqual(['a bill']);
    expect(distribution.classes[2]).toEqual({ name: 'a bill', probability: 0 });
  });

  test('T-55 retries an answer that is not a class, and keeps it out of the transcript', async () => {
    const run = await desk.run('mail', [
      token('Well', { Well: 0.99 }),
      token('C', { C: 0.98, A: 0.01 }),
    ]);
    expect(run.outcome).toMatchObject({ answer: 'a bill', usage: { inputTokens: 20 } });
    expect(spoken(run.messages).slice(1)).toEqual([['assistant', 'a bill']]);
    expect(run.requests).toHaveLength(2);
  });

  test('T-55 answers yes or no, with the share of yes in both', async () => {
    const { outcome } = await desk.run('yes-or-no', [token('B', { A: 0.2, B: 0.6 })]);
    expect(outcome.answer).toBe('false');
    const [yes] = classes(outcome).classes;
    expect(yes).toEqual({ name: 'true', probability: expect.closeTo(0.25, 10) as number });
  });

  test('T-55 refuses a server without probabilities, and suggests sampling several times', async () => {
    const refused = await desk.run('mail', [replyText('A')]);
    expect(refused.outcome).toMatchObject({ status: 'failed' });
    expect(refused.outcome.error).toContain('{ samples: 10 }');
    const voted = await desk.run(
      'vote',
      ['A', 'B', 'A'].map((text) => replyText(text)),
    );
    expect(classes(voted.outcome)).toMatchObject({ best: 'spam', samples: 3 });
  });

  test.each([
    ['mail', 1],
    ['vote', 3],
  ])(
    'T-55 asks no model again that refuses, or whose prompt was filtered: %s',
    async (name, times) => {
      const all = (reply: Reply) => Array.from({ length: times }, () => reply);
      const refused = await desk.run(name, all(replyRefusal('I will not.')));
      expect(refused.outcome).toMatchObject({ status: 'failed', reason: 'refused' });
      expect(refused.requests).toHaveLength(times);
      const filtered = await desk.run(name, all(replyText('', { finish: 'content_filter' })));
      expect(filtered.outcome).toMatchObject({ status: 'failed', reason: 'filtered' });
      expect(filtered.requests).toHaveLength(times);
    },
  );

  test('T-55 counts the votes of the samples that were not refused', async () => {
    const { outcome } = await desk.run('vote', [
      replyRefusal('I will not.'),
      replyText('B'),
      replyText('B'),
    ]);
    expect(classes(outcome).best).toBe('not spam');
  });
});

describe('T-56 a fork', () => {
  const talk = [
    replyCalls([{ name: 'look_up', arguments: { what: 'iron' } }]),
    replyText('It is found.'),
  ];

  test('T-56 begins with the other run’s messages, under new ids, and records its origin', async () => {
    const { client } = desk;
    const source = await desk.run('talker', talk);
    const from = source.handle.workflowId;
    const marker = source.messages[0]?.text ?? '';
    desk.stub.scriptFor(marker, ...talk);
    const { id } = await client.fork(from, { message: 'And gold?' });
    expect(await client.result(id)).toMatchObject({ status: 'completed', answer: 'It is found.' });
    const fork = await desk.report(id, marker);
    expect(spoken(fork.messages).slice(0, 5)).toEqual([
      ...spoken(source.messages),
      ['user', 'And gold?'],
    ]);
    const ids = fork.messages.flatMap((one) => (one.role === 'tool' ? [one.callId] : []));
    expect(ids).toEqual(['call_1_1_0', 'call_f4_1_1_0']);
    expect(await client.status(id)).toMatchObject({ forkedFrom: { run: from, at: 4 } });
    const [, last, first] = fork.requests;
    expect(sent(first).slice(0, 4)).toEqual(sent(last));
    // The other run is unchanged.
    expect((await client.transcript(from)).messages).toEqual(source.messages);
  });

  test('T-56 at a message copies those before it, and never separates a call from its result', async () => {
    const { client } = desk;
    const source = await desk.run('talker', talk);
    const marker = source.messages[0]?.text ?? '';
    desk.stub.scriptFor(marker, replyText('fresh'));
    const { id } = await client.fork(source.handle.workflowId, { at: 2, message: 'Again?' });
    await client.result(id);
    const fork = await desk.report(id, marker);
    expect(spoken(fork.messages)).toEqual([
      spoken(source.messages)[0],
      ['user', 'Again?'],
      ['assistant', 'fresh'],
    ]);
  });

  test('T-56 after the last message, or of an unknown run, is refused', async () => {
    const source = await desk.run('talker', [replyText('hi')]);
    const beyond = desk.client.fork(source.handle.workflowId, { at: 3, message: 'x' });
    await expect(beyond).rejects.toThrow(InputError);
    await expect(beyond).rejects.toThrow('fork.at: expected at most 2, the messages of run');
    await expect(desk.client.fork('no-such-run', { message: 'x' })).rejects.toThrow('no-such-run');
  });
});
