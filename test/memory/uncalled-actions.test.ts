import { beforeAll, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import {
  after,
  answer,
  approve,
  deny,
  edit,
  kill,
  pauseRun,
  replyCall,
  replyText,
  runInMemory,
  send,
} from '../../src/testing.js';
import { look, pay, useSourceBundle } from '../support/memory.js';

const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools: [look, pay] });
const pays = [replyCall('pay', { n: 1 }), replyText('Done.')];

beforeAll(useSourceBundle);

test.each<[object, string]>([
  [
    { request: { pay: approve } },
    'on.request.pay: X the function approve; did you mean approve()?',
  ],
  [{ request: { pay: [deny] } }, 'on.request.pay: X the function deny; did you mean deny()?'],
  [{ request: { '*': edit } }, 'on.request.*: X the function edit; did you mean edit({ … })?'],
  [
    { request: { pay: answer } },
    'on.request.pay: X the function answer; did you mean answer("…")?',
  ],
  [{ request: { pay: send } }, 'on.request.pay: X the function send; did you mean send("…")?'],
  [
    { request: { pay: pauseRun } },
    'on.request.pay: X the function pauseRun; did you mean pauseRun()?',
  ],
  [{ call: { pay: kill } }, 'on.call.pay: X the function kill; did you mean kill()?'],
  [{ call: { pay: () => kill() } }, 'on.call.pay: X function'],
  [{ step: { 1: kill } }, 'on.step.1: X the function kill; did you mean kill()?'],
  [{ waiting: [kill] }, 'on.waiting: X the function kill; did you mean kill()?'],
])('refuses a function that was not called: %o', async (on, problem) => {
  const text = problem.replace(
    'X',
    'expected an action such as approve(), deny(), or send("…"), got',
  );
  await expect(runInMemory(desk, { message: 'Pay', model: pays, on })).rejects.toThrow(text);
  expect(() => after('3 days', kill as never)).toThrow(
    'got the function kill; did you mean kill()?',
  );
});

test('performs an action that does not decide once for each request', async () => {
  const on = { request: { pay: pauseRun() } };
  await expect(runInMemory(desk, { message: 'Pay', model: pays, on })).rejects.toThrow(
    'run memory waits for a decision: request r1',
  );
  const both = { request: { pay: [send('First this.'), approve()] } };
  const run = await runInMemory(desk, {
    message: 'Pay',
    open: true,
    model: [...pays, replyText('Well.')],
    on: both,
  });
  expect(run.effects).toHaveLength(1);
});
