import { randomUUID } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { approve, deny } from '../../src/cli/commands/approve.js';
import { resolve } from '../../src/cli/commands/limits.js';
import { errorCode } from '../../src/cli/reports/next-command.js';
import type { DecisionKind } from '../../src/core/transcript/request.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';
import { runInProcess } from '../support/in-process.js';

let desk: HttpDesk;
let mcp: Client;
beforeAll(async () => {
  desk = await openHttpDesk(['ann'], { mcp: { decide: true } });
  mcp = new Client({ name: 'test', version: '1' });
  const headers = { authorization: `Bearer ${keyOf('ann')}` };
  const url = new URL('/mcp', desk.url);
  await mcp.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
});
afterAll(async () => {
  await mcp.close();
  await desk.close();
});

interface Given {
  readonly id: string;
  readonly request: string;
  readonly digest: string;
  readonly as: DecisionKind;
}

/** Decides over HTTP, over MCP, and by the command. Returns the codes, and the status of HTTP. */
async function codesOf({ id, ...decision }: Given): Promise<readonly unknown[]> {
  const { status, body } = await desk.send(`/v1/runs/${id}/decisions`, {
    body: { decisions: [decision] },
  });
  const { _meta: meta } = await mcp.callTool({ name: 'decide', arguments: { id, ...decision } });
  const { as, ...named } = { id, ...decision };
  const { client: sdk, home, taskQueue } = desk.rig;
  const place = { address: inject('temporalAddress'), client: sdk, home, taskQueue };
  const command =
    as === 'approve'
      ? runInProcess(approve, named, place)
      : as === 'deny'
        ? runInProcess(deny, named, place)
        : runInProcess(resolve, { ...named, call: named.request, as }, place);
  const code = await command.then(() => 'none', errorCode);
  return [status, body.error.code, meta?.['perdure/code'], code];
}

/** Starts an open run that waits for the approval of a payment. */
async function asking(euros: number): Promise<Omit<Given, 'as'>> {
  const id = `pay-${randomUUID()}`;
  await desk.client.start('desk', { message: `pay ${euros}`, id, open: true, by: 'ann' });
  await expect.poll(async () => (await desk.client.status(id)).pending.length).toBe(1);
  const [found] = (await desk.client.status(id)).pending;
  return { id, request: found?.id ?? '', digest: found?.digest ?? '' };
}

test('a decision is refused with the same code over HTTP, over MCP, and by the command', async () => {
  const asked = await asking(31);
  const same = (status: number, code: string) => [status, code, code, code];
  expect(await codesOf({ ...asked, request: 'r9', as: 'deny' })).toEqual(same(409, 'no_request'));
  const other = { ...asked, digest: '0'.repeat(64) };
  expect(await codesOf({ ...other, as: 'approve' })).toEqual(same(409, 'changed'));
  expect(await codesOf({ ...asked, as: 'retry' })).toEqual(same(409, 'refused'));
  expect(await codesOf({ ...asked, id: 'none', as: 'deny' })).toEqual(same(404, 'no_run'));
  const { id, ...shown } = asked;
  await desk.client.resolve(id, { ...shown, as: 'approve', by: 'ann' });
  expect(await codesOf({ ...asked, as: 'deny' })).toEqual(same(409, 'no_request'));
  await desk.client.close(asked.id, { by: 'ann' });
  await desk.rig.client.workflow.getHandle(asked.id).result();
  for (const request of ['r1', 'r9']) {
    expect(await codesOf({ ...asked, request, as: 'deny' })).toEqual(same(409, 'run_ended'));
  }
});
