import { expect, test } from 'vitest';
import { tellSafely } from '../../src/models/deltas.js';
import { demoModel } from '../../src/models/demo/model.js';
import type { Delta } from '../../src/models/model.js';
import { callTool, say, scriptedModel } from '../../src/models/scripted.js';
import { request } from './support.js';

const { signal } = new AbortController();

test('who is told and throws, at once or later, is told no more', async () => {
  const told: Delta[] = [];
  const tell = tellSafely(async (delta) => {
    told.push(delta);
    await Promise.reject(new Error('later'));
  });
  tell({ type: 'text', text: 'a' });
  await new Promise((resolve) => setImmediate(resolve));
  tell({ type: 'text', text: 'b' });
  expect(told).toEqual([{ type: 'text', text: 'a' }]);
  const throwing = tellSafely((delta) => {
    told.push(delta);
    throw new Error('at once');
  });
  throwing({ type: 'text', text: 'c' });
  throwing({ type: 'text', text: 'd' });
  expect(told).toHaveLength(2);
});

test('models that are code tell their replies in one piece', async () => {
  const deltas: Delta[] = [];
  const onDelta = (delta: Delta): void => void deltas.push(delta);
  const scripted = scriptedModel([callTool('f', { a: 1 }), say('Done.')]);
  await scripted.call(request(), { signal, onDelta });
  await scripted.call(request(), { signal, onDelta });
  const { text } = await demoModel().call(request(), { signal, onDelta });
  expect(deltas).toEqual([
    { type: 'call', index: 0, name: 'f', arguments: '{"a":1}' },
    { type: 'text', text: 'Done.' },
    { type: 'text', text },
  ]);
});
