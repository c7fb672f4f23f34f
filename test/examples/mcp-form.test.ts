import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { asking, decide } from '../support/conversation.js';
import { startExample, type Example } from '../support/example.js';

let example: Example;
beforeAll(async () => {
  example = await startExample('mcp-form');
});
afterAll(async () => await example.close());

test.each([
  [{ as: 'answer', result: { seats: 2, confirm: true } }, 'booked 2 to Oslo'],
  [{ as: 'answer', result: { confirm: true } }, 'booked 1 to Oslo'],
  [{ as: 'deny' }, 'not booked'],
] as const)('the MCP server asks for its form, and acts on %j', async (decision, result) => {
  const { rig } = example;
  // The demo model calls the tool that a message names.
  const message = 'travel__book {"city":"Oslo"}';
  const handle = await rig.start({ agent: 'traveler', message });
  const [request] = (await asking(handle)).pending;
  expect(request).toMatchObject({
    kind: 'question',
    question: 'Book a train to Oslo?',
    form: { required: ['seats', 'confirm'] },
  });
  await decide(handle, decision);
  const { projection } = await rig.end(handle);
  const texts = projection.state?.transcript.messages.map(({ text }) => text) ?? [];
  expect(texts[2]).toContain(result);
});

test('the page about MCP shows the server as it is', async () => {
  const read = async (path: string) =>
    await readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
  const [, code = ''] = /^```js\n([\s\S]*?)^```$/m.exec(await read('docs/mcp.md')) ?? [];
  expect(code).toBe(await read('examples/mcp-form/server.js'));
});
