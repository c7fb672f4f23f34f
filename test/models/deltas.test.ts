import { expect, test } from 'vitest';
import { createEmitter, type ModelDelta } from '../../src/models/model.js';
import { demoModel } from '../../src/models/demo/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { request } from './support.js';

const { signal } = new AbortController();

test('a listener that throws or rejects gets no more deltas', async () => {
  const received: ModelDelta[] = [];
  const emit = createEmitter(async (delta) => {
    received.push(delta);
    await Promise.reject(new Error('later'));
  });
  emit({ kind: 'text', text: 'a' });
  await new Promise((resolve) => setImmediate(resolve));
  emit({ kind: 'text', text: 'b' });
  expect(received).toEqual([{ kind: 'text', text: 'a' }]);
  const throwing = createEmitter((delta) => {
    received.push(delta);
    throw new Error('at once');
  });
  throwing({ kind: 'text', text: 'c' });
  throwing({ kind: 'text', text: 'd' });
  expect(received).toHaveLength(2);
});

test('models that are code emit their replies whole', async () => {
  const deltas: ModelDelta[] = [];
  const onDelta = (delta: ModelDelta): void => void deltas.push(delta);
  const scripted = scriptedModel([replyCall('f', { a: 1 }), replyText('Done.')]);
  await scripted.call(request(), { signal, onDelta });
  await scripted.call(request(), { signal, onDelta });
  const { text } = await demoModel().call(request(), { signal, onDelta });
  expect(deltas).toEqual([
    { kind: 'call', index: 0, name: 'f', text: '{"a":1}' },
    { kind: 'text', text: 'Done.' },
    { kind: 'text', text },
  ]);
});
