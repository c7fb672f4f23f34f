import OpenAI from 'openai';
import type { Response, ResponseInputItem } from 'openai/resources/responses/responses';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { replyCalls } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { gate } from '../support/gate.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

const sign = defineTool({
  name: 'sign',
  description: 'Lets the user sign.',
  effect: 'keyed',
  input: z.object({ text: z.string() }),
});
const held = gate();
const slow = defineTool({
  name: 'slow',
  description: 'Takes long.',
  effect: 'read',
  input: z.object({}),
  async execute() {
    await held.wait();
    return 'slow';
  },
});
const signer = (name: string, more: Partial<Parameters<typeof defineAgent>[0]> = {}) =>
  defineAgent({ name, instructions: 'x', model: 'talk', tools: [sign, slow], ...more });

let desk: HttpDesk;
let openai: OpenAI;

beforeAll(async () => {
  const agents = [
    signer('signer'),
    signer('one-by-one', { toolCalls: 'sequential' }),
    signer('asker', { rules: [{ tool: 'sign', then: 'ask' }] }),
  ];
  desk = await openHttpDesk(
    ['ann'],
    { principals: { ann: { rights: { '*': 'all' } } } },
    { agents },
  );
  openai = new OpenAI({ baseURL: `${desk.url}/v1`, apiKey: keyOf('ann'), maxRetries: 0 });
});
afterAll(() => desk.close());

/** Replies to the first message with calls, and to their results with what they say. */
function script(question: string, ...calls: readonly string[]): void {
  desk.talker.on(question, async ({ request, number }) => {
    const results = request.messages.flatMap(({ role, text }) => (role === 'tool' ? [text] : []));
    if (number > 1) return `got ${results.join(', ')}`;
    return replyCalls(
      calls.map((name) => (name === 'slow' ? { name, arguments: {} } : toSign(name))),
    );
  });
}
const toSign = (text: string) => ({ name: 'sign', arguments: { text } });

const callsOf = ({ output }: Pick<Response, 'output'>) =>
  output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
const textsIn = (response: Response) =>
  callsOf(response).map(
    (call) => z.object({ text: z.string() }).parse(JSON.parse(call.arguments)).text,
  );
const answer = (model: string, response: Response) =>
  openai.responses.create({
    model,
    previous_response_id: response.id,
    input: callsOf(response).map(({ call_id, arguments: output }): ResponseInputItem => ({
      type: 'function_call_output',
      call_id,
      output,
    })),
  });

test('a call of the client is handed out while a worker still executes another call', async () => {
  script('sign and wait', 'a', 'slow');
  const first = await openai.responses.create({ model: 'signer', input: 'sign and wait' });
  expect(textsIn(first)).toEqual(['a']);
  const second = answer('signer', first);
  held.release();
  expect((await second).output_text).toBe('got {"text":"a"}, slow');
  expect((await openai.responses.retrieve(first.id)).output).toEqual(first.output);
});

test('calls that are made one by one are parts of their own, each with its own response', async () => {
  script('sign twice', 'a', 'b');
  const first = await openai.responses.create({ model: 'one-by-one', input: 'sign twice' });
  const second = await answer('one-by-one', first);
  expect([textsIn(first), textsIn(second)]).toEqual([['a'], ['b']]);
  const third = await answer('one-by-one', second);
  expect(third.output_text).toBe('got {"text":"a"}, {"text":"b"}');
  const read = await Promise.all(
    [first, second, third].map(({ id }) => openai.responses.retrieve(id)),
  );
  expect(read.map(({ output }) => output)).toEqual([first.output, second.output, third.output]);
});

test('a call that a person must approve first leaves the response in progress until then', async () => {
  script('ask to sign', 'a');
  const created = await openai.responses.create({
    model: 'asker',
    input: 'ask to sign',
    background: true,
  });
  const { id } = created;
  expect(Math.abs(created.created_at - Date.now() / 1_000)).toBeLessThan(600);
  const run = Buffer.from(id.split('_')[2] ?? '', 'base64url').toString();
  const request = await vi.waitFor(
    async () => {
      const [found] = (await desk.client.status(run)).pending;
      if (found === undefined) throw new Error('no request yet');
      return found;
    },
    { timeout: 20_000, interval: 50 },
  );
  expect(request.kind).toBe('approval');
  const open = await openai.responses.retrieve(id);
  expect([open.status, open.output]).toEqual(['in_progress', []]);
  const { id: named, digest } = request;
  await desk.client.resolve(run, { request: named, digest, as: 'approve' });
  await expect.poll(async () => (await openai.responses.retrieve(id)).status).toBe('completed');
  const first = await openai.responses.retrieve(id);
  expect(textsIn(first)).toEqual(['a']);
  expect((await answer('asker', first)).output_text).toBe('got {"text":"a"}');
});

test('a call that is answered elsewhere stays in its response, and is refused as answered', async () => {
  script('sign elsewhere', 'a');
  const first = await openai.responses.create({ model: 'signer', input: 'sign elsewhere' });
  const run = Buffer.from(first.id.split('_')[2] ?? '', 'base64url').toString();
  const [request] = (await desk.client.status(run)).pending;
  if (request === undefined) throw new Error('no request');
  const { id, digest } = request;
  await desk.client.resolve(run, { request: id, digest, as: 'answer', result: 'by hand' });
  await expect
    .poll(async () => (await desk.client.status(run)).outcome?.answer)
    .toBe('got by hand');
  await expect(answer('signer', first)).rejects.toMatchObject({ status: 409 });
  expect((await openai.responses.retrieve(first.id)).output).toEqual(first.output);
});
