import { expect, test } from 'vitest';
import { createNoTimeoutDispatcher } from '../../src/models/wire/fetch.js';
import { replyText } from '../../src/testing/replies.js';
import { callOnce, modelOf, stubWith } from './support.js';

const GLOBAL = Symbol.for('undici.globalDispatcher.1');

test('uses the connections of the process, without the timeouts of fetch', async () => {
  const stub = await stubWith(replyText('ok'));
  expect(createNoTimeoutDispatcher()).toBeDefined();
  const shared = Reflect.get(globalThis, GLOBAL);
  const seen: object[] = [];
  const watched = {
    dispatch(options: object, handler: object) {
      seen.push(options);
      return shared.dispatch(options, handler);
    },
  };
  const model = modelOf(stub);
  Reflect.set(globalThis, GLOBAL, watched);
  try {
    expect(await callOnce(model)).toMatchObject({ text: 'ok' });
  } finally {
    Reflect.set(globalThis, GLOBAL, shared);
  }
  expect(seen).toMatchObject([{ headersTimeout: 0, bodyTimeout: 0, method: 'POST' }]);
});
