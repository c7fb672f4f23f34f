import { expect, test } from 'vitest';
import { oddReplies, stepsOf } from '../support/odd-replies.js';
import { callOnce, failureOf, modelOf, stubWith } from './support.js';

test.each(oddReplies)('is read for what it is: %s, %s', async (_name, how, fixture) => {
  const { calls = [], text, usage, usageWhole = usage, failed } = fixture.expect;
  const model = modelOf(await stubWith(...stepsOf(fixture, how)), { stream: how === 'streamed' });
  if (fixture.failing && how === 'whole') {
    const { details } = await failureOf(callOnce(model));
    expect(details).toMatchObject({
      kind: failed === 'bad_call' ? 'malformed' : 'retry',
      type: failed,
    });
  }
  const reply = await callOnce(model);
  const read = reply.calls.map((call) => ({
    name: call.name,
    arguments: JSON.parse(call.arguments) as unknown,
  }));
  expect(read).toEqual(calls);
  if (text !== undefined) expect(reply.text).toBe(text);
  const { estimated, ...counted } = how === 'whole' ? usageWhole : usage;
  if (estimated) expect(reply.usage).toBeUndefined();
  else expect(reply.usage).toMatchObject({ cachedTokens: 0, ...counted });
});
