import { randomUUID } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { template } from '../../src/prompts/template.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;
beforeAll(async () => {
  const guide = defineAgent({
    name: 'guide',
    instructions: template('Show {{city}}.', { args: ['city'] }),
    model: 'm',
  });
  desk = await openHttpDesk(['ann'], {}, { agents: [guide] });
});
afterAll(async () => await desk.close());

const MISSING = 'args.city: missing; the template of agent "guide" takes city';

/** What a request is refused with. */
async function refused(path: string, body: object): Promise<string> {
  const { status, body: answer } = await desk.send(path, { body });
  expect(status).toBe(400);
  const { message, fix } = answer.error;
  return fix ? `${message}; ${fix}` : message;
}

test('a start without an argument of the template is refused, and starts nothing', async () => {
  const id = `guide-${randomUUID()}`;
  const start = { agent: 'guide', id, message: 'x' };
  expect(await refused('/v1/runs', start)).toContain(MISSING);
  const { error } = (await desk.send('/v1/runs', { body: { ...start, args: { ctiy: 'Rome' } } }))
    .body;
  expect(error.message).toContain('got "ctiy" (nearest: city)');
  expect(error.fix).toBe('correct the name');
  expect((await desk.send(`/v1/runs/${id}`)).status).toBe(404);
  const { status } = await desk.send('/v1/runs', { body: { ...start, args: { city: 'Rome' } } });
  expect(status).toBe(201);
});

test('so is a fork with another agent', async () => {
  const { id } = (await desk.send('/v1/runs', { body: { agent: 'desk', message: 'hi' } })).body;
  await desk.send(`/v1/runs/${id}/result?wait=30`);
  const given = { agent: 'guide', message: 'x' };
  expect(await refused(`/v1/runs/${id}/forks`, given)).toContain(MISSING);
});

test('a start over MCP needs the same argument, and passes it', async () => {
  const client = new Client({ name: 'test', version: '1' });
  const headers = { authorization: `Bearer ${keyOf('ann')}` };
  const place = new URL('/mcp', desk.url);
  await client.connect(new StreamableHTTPClientTransport(place, { requestInit: { headers } }));
  const given = { agent: 'guide', message: 'x', operation_id: 'o1' };
  const result = await client.callTool({ name: 'agent_start', arguments: given });
  expect(result).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining(MISSING) }, { text: 'code: input' }],
  });
  const { structuredContent } = await client.callTool({
    name: 'agent_start',
    arguments: { ...given, args: { city: 'Rome' } },
  });
  expect(structuredContent).toMatchObject({ repeated: false });
  await client.close();
});
