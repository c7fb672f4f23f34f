import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { type AskedCall, callsIn } from '../support/asking-server.js';
import { childScript } from '../support/child-script.js';
import { asking, decide } from '../support/conversation.js';
import { createRig, type Rig } from '../support/rig.js';
import { statusWhere } from '../support/status-where.js';

const SCRIPT = new URL('../fixtures/mcp/asking-server.ts', import.meta.url);
const folder = await mkdtemp(join(tmpdir(), 'perdure-asks-'));
const ledger = join(folder, 'ledger.jsonl');
let child: ChildProcess;
let port = 0;

/** Starts the server's process, on its earlier port if it had one. */
async function startServer(): Promise<void> {
  const args = [...childScript(SCRIPT), ledger, `${port}`];
  child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line]: unknown[] = child.stdout === null ? [] : await once(child.stdout, 'data');
  port = Number(String(line));
}

async function ended(signal?: 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  if (signal !== undefined) child.kill(signal);
  await exit;
}

const model = {
  async call({ messages }: { readonly messages: readonly { role: string; text: string }[] }) {
    const result = messages.find(({ role }) => role === 'tool');
    const [tool = '', env = ''] = messages[0]?.text.split(' ') ?? [];
    return result === undefined ? replyCall(`shop__${tool}`, { env }) : replyText(result.text);
  },
};

let rig: Rig;
async function startWorker(): Promise<void> {
  const server = mcpServer({
    name: 'shop',
    transport: 'http',
    url: `http://127.0.0.1:${port}/mcp`,
  });
  const agent = defineAgent({ name: 'clerk', instructions: 'x', model: 'm', mcp: [server] });
  await rig.worker([agent], { models: { m: model } });
}

beforeAll(async () => {
  rig = await createRig();
  await startServer();
  await startWorker();
});
afterAll(async () => {
  await rig.close();
  await ended('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

const start = async (tool: string) => {
  const id = randomUUID();
  return await rig.start({ agent: 'clerk', message: `${tool} ${id}` }, id);
};
const callsOf = (id: string): readonly AskedCall[] =>
  callsIn(ledger).filter(({ env }) => env === id);

test('a question of an MCP server survives the end of its process and of the worker, and is answered then', async () => {
  const handle = await start('deploy');
  const [before] = (await asking(handle)).pending;
  await ended('SIGKILL');
  await rig.stopWorkers();
  await startServer();
  await startWorker();
  const [after] = (await asking(handle)).pending;
  expect(after).toEqual(before);
  await decide(handle, { as: 'answer', result: { confirm: true, region: 'south' } });
  const { outcome } = await rig.end(handle);
  const sure = { action: 'accept', content: { confirm: true, region: 'south' } };
  expect(outcome.answer).toBe(`deployed with ${JSON.stringify([sure, { step: 1 }])}`);
  const calls = callsOf(handle.workflowId);
  expect(calls.map(({ answers, acted }) => [answers, acted])).toEqual([
    [{}, false],
    [{ sure }, true],
  ]);
  expect(new Set(calls.map(({ key }) => key)).size).toBe(1);
});

test('a server that is killed after the answer leaves the outcome unknown, and a retry sends the answer again', async () => {
  const handle = await start('crash');
  await asking(handle);
  await decide(handle, { as: 'answer', result: { name: 'Ada' } });
  const { pending } = await statusWhere(handle, (one) => one.pending[0]?.id === 'r2');
  expect(pending[0]).toMatchObject({ kind: 'outcome_unknown', tool: 'shop__crash' });
  await ended();
  expect(child.signalCode).toBe('SIGKILL');
  await startServer();
  await decide(handle, { as: 'retry' });
  expect((await rig.end(handle)).outcome.answer).toBe('survived as Ada');
  const name = { action: 'accept', content: { name: 'Ada' } };
  expect(callsOf(handle.workflowId).map(({ answers }) => answers)).toEqual([
    {},
    { name },
    { name },
  ]);
});
