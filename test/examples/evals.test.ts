import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { desk } from '../../examples/evals/perdure.config.js';
import { gates, scorers } from '../../examples/evals/evals.js';
import { evaluate } from '../../src/recordings/evaluate.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { type Stub, startStub } from '../../src/testing/stub-server.js';
import { useSourceBundle } from '../support/memory.js';

let stub: Stub;
beforeAll(async () => {
  await useSourceBundle();
  stub = await startStub();
  vi.stubEnv('OPENAI_BASE_URL', stub.baseUrl);
  vi.stubEnv('OPENAI_API_KEY', 'sk-test');
  stub.answer(({ messages }) => {
    const [first = '', ...rest] = messages.flatMap(({ role, content }) =>
      role === 'user' || role === 'tool' ? [String(content)] : [],
    );
    const order = first.includes('17') ? 17 : 18;
    if (rest.length === 0) return replyCall('find_order', { order });
    if (order === 18) return replyText('It was delivered.');
    return rest.length === 1 ? replyCall('refund', { order, euros: 40 }) : replyText('Refunded.');
  });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await stub.close();
});

// Its own tests, with vitest-evals.
await import('../../examples/evals/desk.eval.js');

test('the command has the same cases, with scorers and gates', async () => {
  const folder = 'examples/evals/cases';
  const { cases, passed } = await evaluate(folder, {
    agents: [desk],
    model: 'gpt-5-mini',
    scorers,
    gates,
  });
  expect(cases.map(({ name, replayed }) => [name, replayed?.divergence])).toEqual([
    ['delivered-order', null],
    ['lost-order', null],
  ]);
  expect(passed).toBe(true);
});
