import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { AgentOptions } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { InputError } from '../../src/core/errors.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { template } from '../../src/prompts/template.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { openDesk, sent, type Desk } from '../support/desk.js';
import { createMemoryRig } from '../support/memory-rig.js';

const echo = defineTool({
  name: 'echo',
  description: 'says it again',
  input: z.object({ text: z.string() }),
  effect: 'read',
  execute: ({ text }) => text,
});

function bot(name: string, rest: Partial<AgentOptions> = {}) {
  return defineAgent({ name, instructions: 'Be brief.', model: 'm', ...rest });
}

let desk: Desk;
beforeAll(async () => {
  const agents = [
    bot('bot'),
    bot('streamed', { model: 'streamed' }),
    bot('o1', {
      model: 'o1-mini',
      settings: { temperature: 0.5, top_p: 0.9, maxOutputTokens: 64 },
    }),
    bot('tuned', { settings: { temperature: 0.2, maxOutputTokens: 64, top_k: 5 } }),
    bot('local', { model: 'llama3.2:3b', settings: { maxOutputTokens: 64 } }),
    bot('with-tools', { tools: [echo] }),
    bot('without-network', { model: 'scripted' }),
    bot('of-a-template', { instructions: template('You know {{city}}.', { args: ['city'] }) }),
  ];
  desk = await openDesk(
    agents,
    {
      m: {},
      streamed: { stream: true },
      'o1-mini': {},
      'llama3.2:3b': {},
      scripted: scriptedModel([replyText('made up')]),
    },
    { rig: await createMemoryRig() },
  );
});
afterAll(async () => await desk.close());

describe('a completion', () => {
  test('T-18 with o1-mini sends the instructions in the user’s message, and no temperature', async () => {
    const { requests, outcome } = await desk.run('o1', [replyText('ok')]);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(requests[0]?.messages).toHaveLength(1);
    expect(sent(requests[0])[0]).toEqual([
      'user',
      expect.stringMatching(/^Be brief\.\n\nquestion/),
    ]);
    expect(requests[0]?.body).not.toHaveProperty('temperature');
    expect(requests[0]?.body).not.toHaveProperty('top_p');
    expect(requests[0]?.body).toMatchObject({ max_completion_tokens: 64 });
  });

  test('T-19 sends settings as written, and none in place of those that perdure sends itself', async () => {
    const { requests } = await desk.run('tuned', [replyText('ok')]);
    expect(requests[0]?.body).toMatchObject({
      model: 'm',
      temperature: 0.2,
      top_k: 5,
      max_completion_tokens: 64,
    });
    expect(requests[0]?.messages).toHaveLength(2);
    for (const name of ['model', 'messages', 'stream']) {
      expect(() => bot('own', { settings: { [name]: 'mine' } })).toThrow(`settings.${name}: `);
    }
    const local = await desk.run('local', [replyText('ok')]);
    expect(local.requests[0]?.body).toMatchObject({ max_tokens: 64 });
  });

  test('T-20 sends only role and content of a message, except for what belongs to calls', async () => {
    const { requests } = await desk.run('bot', [replyText('ok')]);
    const keys = requests[0]?.messages.map((message) => Object.keys(message));
    expect(keys).toEqual([
      ['role', 'content'],
      ['role', 'content'],
    ]);
    const asked = replyCalls([{ name: 'echo', arguments: { text: 'x' } }]);
    const withTools = await desk.run('with-tools', [asked, replyText('ok')]);
    expect(withTools.requests[1]?.messages.slice(2)).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'call_1_1_0',
            type: 'function',
            function: { name: 'echo', arguments: '{"text":"x"}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1_1_0', content: 'x' },
    ]);
  });

  test('T-22 remembers each question and answer once', async () => {
    const run = await desk.open('bot', [replyText('Hello Ann!'), replyText('You are Ann.')]);
    expect(await run.ask('Who am I?')).toMatchObject({ answer: 'You are Ann.' });
    const { requests } = await run.close();
    expect(sent(requests[1])).toEqual([
      ...sent(requests[0]),
      ['assistant', 'Hello Ann!'],
      ['user', 'Who am I?'],
    ]);
  });

  test.each([
    ['T-22 nothing', ''],
    ['T-22 white space', ' \n'],
    ['T-26 what is no text', 5],
    ['T-26 a function', () => 'hi'],
  ])('%s is refused as a message before anything starts', async (_name, message) => {
    const start = desk.client.start('bot', { message: message as string });
    await expect(start).rejects.toThrow(InputError);
    await expect(start).rejects.toThrow(/^message: /);
  });

  test('T-23 a stream without a message is retried, and finally fails', async () => {
    const nothing = replyText('', { headers: { 'retry-after-ms': '10' } });
    const { outcome, requests } = await desk.run('streamed', [nothing, nothing, nothing]);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
    expect(outcome.error).toContain('neither text nor calls');
    expect(requests.map(({ body }) => body['stream'])).toEqual([true, true, true]);
  });

  test('T-24 is recorded in full when its caller disconnects in the middle of the stream', async () => {
    const { client, stub } = desk;
    const message = desk.conversation(
      replyText('all of it', { holdAfterHeaders: 'T-24', sse: { charactersPerEvent: 2 } }),
    );
    const { id } = await client.start('streamed', { message });
    const leaving = new AbortController();
    const waiting = client.result(id, { signal: leaving.signal });
    const held = stub.barrier('T-24');
    await held.reached;
    leaving.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    held.release();
    expect(await client.result(id)).toMatchObject({ status: 'completed', answer: 'all of it' });
    expect((await desk.report(id, message)).requests).toHaveLength(1);
  });

  test('T-28 can be scripted instead of served, through the same run', async () => {
    const { outcome, requests, messages } = await desk.run('without-network', []);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'made up' });
    expect(messages.at(-1)).toMatchObject({ role: 'assistant', text: 'made up' });
    expect(requests).toEqual([]);
  });
});

describe('instructions from a template', () => {
  test('are filled in with exactly the arguments that the client passes', async () => {
    const { requests, outcome } = await desk.run('of-a-template', [replyText('ok')], {
      args: { city: 'Rome' },
    });
    expect(sent(requests[0])[0]).toEqual(['system', 'You know Rome.']);
    expect(outcome.template).toMatch(/^[0-9a-f]{64}$/);
    const refused = await desk.run('of-a-template', [], { args: { town: 'Rome' } });
    expect(refused.outcome).toMatchObject({ status: 'failed', reason: 'input' });
    expect(refused.outcome.error).toContain('town');
  });
});
