import { expect, test } from 'vitest';
import { ModelError } from '../../src/models/model-error.js';
import { replyCall, replyCalls, replyText, scriptedModel } from '../../src/models/scripted.js';
import { callOnce, failureOf, request } from './support.js';

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
  expect(message).toContain('was called 2 times, but its script has 1 steps');
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
