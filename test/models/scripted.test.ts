import { expect, test } from 'vitest';
import { ModelError, type Model } from '../../src/models/model.js';
import { openAiModel } from '../../src/models/openai/model.js';
import {
  replyCall,
  replyCalls,
  replyError,
  replyRaw,
  replyReset,
  replyText,
} from '../../src/testing/replies.js';
import { startStub } from '../../src/testing/stub-server.js';
import { scriptedModel } from '../../src/testing/script.js';
import { callOnce, failureOf, request } from './support.js';

const LIMIT = { message: 'slow down', type: 'rate_limit_exceeded', code: 'rate_limit_exceeded' };

test('answers in order, with values, functions, and errors', async () => {
  const broken = new ModelError('down', { kind: 'retry', type: 'http_503' });
  const model = scriptedModel([
    replyCall('read_file', { path: 'a' }),
    broken,
    replyCalls([
      { name: 'f', arguments: {} },
      { name: 'g', arguments: { n: 1 } },
    ]),
    ({ messages }) => replyText(`${messages.length} messages`),
  ]);
  expect(await callOnce(model)).toMatchObject({
    text: '',
    calls: [{ name: 'read_file', arguments: '{"path":"a"}' }],
    finish: 'calls',
  });
  expect(await failureOf(callOnce(model))).toBe(broken);
  expect((await callOnce(model)).calls).toEqual([
    { name: 'f', arguments: '{}' },
    { name: 'g', arguments: '{"n":1}' },
  ]);
  expect(() => model.assertConsumed()).toThrow('called 3 times, but its script has 4 steps');
  expect(await callOnce(model)).toMatchObject({ text: '1 messages', finish: 'stop' });
  model.assertConsumed();
});

test('reports how often it was called if the script is used up', async () => {
  const model = scriptedModel([replyText('hi')]);
  await callOnce(model);
  const { message, details } = await failureOf(callOnce(model));
  expect(message).toContain('was called 2 times, but its script has 1 step. ');
  expect(details).toEqual({ kind: 'request', type: 'script_exhausted' });
});

test('remembers requests as they were', async () => {
  const messages = [{ role: 'user' as const, text: 'first' }];
  const model = scriptedModel([replyText('hi')]);
  await model.call(request({ messages }), { signal: new AbortController().signal });
  messages.push({ role: 'user', text: 'later' });
  expect(model.requests).toEqual([request({ messages: [{ role: 'user', text: 'first' }] })]);
});

test('obeys the signal before and during a step', async () => {
  const controller = new AbortController();
  const model = scriptedModel([
    () => {
      controller.abort('stop');
      return replyText('too late');
    },
  ]);
  await expect(callOnce(model, AbortSignal.abort('before'))).rejects.toBe('before');
  expect(model.requests).toHaveLength(0);
  await expect(callOnce(model, controller.signal)).rejects.toBe('stop');
});

test('the same replies are answers of a scripted model and of a stub', async () => {
  const script = [
    replyCall('look', { at: 'a' }, { text: 'One moment.' }),
    replyText('cut off', { finish: 'length', usage: { prompt_tokens: 3, completion_tokens: 2 } }),
    { ...replyText('changed'), text: 'as changed' },
  ];
  const stub = await startStub();
  const scripted = scriptedModel([...script, replyError(429, LIMIT), replyReset(), replyRaw('x')]);
  const real = openAiModel({ baseUrl: stub.baseUrl, apiKey: 'k' });
  stub.script(...script, replyError(429, LIMIT), replyReset());
  const read = async (model: Model) => {
    const { text, calls, finish, usage } = await callOnce(model);
    return { text, calls, finish, usage };
  };
  for (const _ of script) expect(await read(scripted)).toEqual(await read(real));
  const details = async (model: Model) => {
    const { kind, type, status } = (await failureOf(callOnce(model))).details;
    return { kind, type, status };
  };
  expect(await details(scripted)).toEqual(await details(real));
  expect((await details(scripted)).kind).toBe((await details(real)).kind);
  expect((await failureOf(callOnce(scripted))).message).toContain('use startStub');
  await stub.close();
});
