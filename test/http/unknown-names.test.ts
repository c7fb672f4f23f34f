import { afterAll, beforeAll, expect, test } from 'vitest';
import { type HttpDesk, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;

beforeAll(async () => {
  desk = await openHttpDesk(['ann'], { principals: { ann: { rights: { '*': 'all' } } } });
});
afterAll(async () => await desk.close());

/** Starts a run wrongly, and returns what is said. */
async function told(body: object): Promise<string> {
  const { error } = (await desk.send('/v1/runs', { body })).body;
  return error.fix ? `${error.message}; ${error.fix}` : error.message;
}

/** Sends a JSON body, and returns the status and the error. */
async function raw(path: string, { body }: { readonly body: string }) {
  const answer = await desk.send(path, { body: JSON.parse(body) as object });
  return { status: answer.status, error: answer.body.error };
}

test('a field that a start does not have is refused with those that it has, in their order', async () => {
  expect(await told({ agent: 'desk', msg: 'x' })).toMatch(
    /"msg": expected a field of this request; did you mean "message"\?/,
  );
  const [one, other] = [
    await told({ agent: 'desk', message: 'x', zzzz: 1 }),
    await told({ agent: 'desk', message: 'x', qqqqqqqq: 1 }),
  ].map((text) => text.replace(/^"\w+"/, ''));
  expect(one).toMatch(/^: expected one of agent, message, .*; correct or remove it$/);
  expect(other).toBe(one);
});

test.each(['ag-ui', 'ui'])(
  'an unknown agent of /v1/%s is named before any other fault',
  async (door) => {
    const unknown = { status: 404, error: { message: 'agent: there is no agent "dsk"' } };
    expect(await raw(`/v1/${door}/dsk`, { body: '{}' })).toMatchObject(unknown);
    const empty = JSON.stringify({ id: 'c1', threadId: 't1', runId: 'r1', messages: [] });
    expect(await raw(`/v1/${door}/dsk`, { body: empty })).toMatchObject(unknown);
  },
);

test('a thread without a message of the user is refused with what to send', async () => {
  const body = JSON.stringify({ threadId: 't1', runId: 'r1', messages: [] });
  const { status, error } = await raw('/v1/ag-ui/desk', { body });
  expect(status).toBe(400);
  expect(error).toMatchObject({
    message: 'messages: expected a message of the user, got none',
    fix: expect.stringMatching(/^send \{ "threadId"/),
  });
});

test('the list of the requests of a run leads to where they are', async () => {
  const { status, body } = await desk.send('/v1/runs/h17/requests');
  expect([status, body.error.fix]).toEqual([
    404,
    'the open requests of the run are in `pending` of GET /v1/runs/h17',
  ]);
});
