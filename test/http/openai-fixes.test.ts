import { afterAll, beforeAll, expect, test } from 'vitest';
import { type HttpDesk, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;

beforeAll(async () => {
  desk = await openHttpDesk(['ann']);
});
afterAll(async () => await desk.close());

const output = (call_id: string) => ({ type: 'function_call_output', call_id, output: 'x' });

test.each([
  ['responses', { model: 'desk', input: 7 }, '; send { "model": "AGENT", "input": "TEXT" }'],
  ['responses', { input: 'x' }, '; send { "model": "AGENT", "input": "TEXT" }'],
  ['responses', { model: 'desk', input: ' ' }, '; send what the user says as `input`'],
  ['responses', { model: 'desk', input: [] }, '; send what the user says as `input`'],
  [
    'responses',
    { model: 'desk', input: [{ role: 'user', content: '' }] },
    '; send what the user says as `input`',
  ],
  [
    'responses',
    { model: 'desk', input: [output('call_1_1_0_eA')] },
    '; give the `call_id` of a function_call of the last response',
  ],
  ['responses', { model: 'none', input: 'x' }, '; GET /v1/models lists the agents'],
  ['chat/completions', { model: 'desk' }, '; send { "model": "AGENT", "messages": [{'],
  [
    'chat/completions',
    { model: 'desk', messages: [{ role: 'user', content: '' }] },
    '; end `messages` with what the user says',
  ],
])('an error of /v1/%s about %j says what to send', async (path, body, fix) => {
  const { status, body: answer } = await desk.send(`/v1/${path}`, { body });
  expect([400, 404]).toContain(status);
  expect(answer.error.message).toContain(fix);
});

test('an error of GET of a response says what to give', async () => {
  for (const [path, fix] of [
    ['resp_x', '; give the `id` of a response that this server has returned to you'],
    ['resp_1_eA?stream=yes', '; '],
  ] as const) {
    const { body } = await desk.send(`/v1/responses/${path}`, {});
    expect(body.error.message).toContain(fix);
  }
});
