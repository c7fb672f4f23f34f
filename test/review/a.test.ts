import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { callTool, callTools, say } from '../../src/models/scripted.js';
import type { ModelRequest } from '../../src/models/model.js';
import { ModelError } from '../../src/models/model-error.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
const scripts = new Map<string, (step: number, r: ModelRequest, ctx: any) => any>();
const calls: string[] = [];
const model = {
  async call(request: ModelRequest, ctx: any) {
    const step = request.messages.filter(({ role }) => role === 'assistant').length;
    const key = request.messages[0]?.text ?? '';
    calls.push(key);
    return (await scripts.get(key)?.(step, request, ctx)) ?? say('done');
  },
};
const execs: string[] = [];
const t = (name: string, effect: any, execute: any, rest: any = {}) =>
  defineTool({ name, description: name, input: z.looseObject({}), effect, execute: async (i: any, c: any) => { execs.push(name); return await execute(i, c); }, ...rest });
const brokenBlobs = { put: async () => { throw new Error('blobs cannot be written: disk is full'); }, get: async () => { throw new Error('gone'); } };
const SECRET = 'topsecret-canary-1234';
process.env['BANK_TOKEN'] = SECRET;
const never = () => new Promise(() => undefined);
const tools = [
  t('echo', 'read', (i: any) => `ok ${JSON.stringify(i).length}`),
  t('obj', 'read', () => ({ a: 'x'.repeat(1000) })),
  t('ctrl', 'read', () => '\u0001'.repeat(60_000)),
  t('slow30d', 'once', () => new Promise((r) => setTimeout(() => r('fine'), 300)), { timeout: 30 * 86_400_000 }),
  t('nostream', 'read', () => (async function* () { await never(); yield 1; })(), { timeout: 300 }),
  t('oncebig', 'once', () => 'y'.repeat(100_000)),
  t('readbig', 'read', () => 'y'.repeat(100_000)),
  t('hangpay', 'once', never, { timeout: 300, ends: true }),
  t('payverifysecret', 'once', never, { timeout: 300, verify: () => { throw new Error(`bad token ${SECRET} ` + 'z'.repeat(300_000)); } }),
  t('payverifyhang', 'once', never, { timeout: 300, verify: never }),
  t('payverifytrue', 'once', (() => { let n = 0; return () => (n++ === 0 ? never() : 'again'); })(), { timeout: 300, verify: () => true as any }),
  t('oncebeat', 'once', async (_i: any, c: any) => { c.heartbeat({ n: 1n }); await new Promise((r) => setTimeout(r, 200)); return 'effect done'; }),
  t('partial', 'read', (_i: any, c: any) => new Promise((r) => c.signal.addEventListener('abort', () => r('partial')))),
  t('approve', 'once', () => 'done without asking', { approval: 'always' }),
];
const A = (name: string, rest: any = {}) => defineAgent({ name, instructions: 'hi', model: 'm', tools, ...rest });
beforeAll(async () => {
  rig = await createRig();
  await rig.worker([A('a'), A('huge', { instructions: 'x'.repeat(3_000_000) }), A('big', { instructions: 'x'.repeat(1_000_000) })], { models: { m: model } });
});
afterAll(async () => await rig.close());

async function start(script: any, rest: any = {}) {
  const message = randomUUID();
  scripts.set(message, script);
  const handle = await rig.start({ agent: 'a', message, ...rest });
  return { handle, message };
}
async function within(handle: any, ms: number): Promise<string> {
  return await Promise.race([
    handle.result().then((r: any) => 'RESULT ' + JSON.stringify(r).slice(0, 300), (e: any) => `ERROR ${e.message} | ${e.cause?.message} | ${JSON.stringify(e.cause?.details ?? null)?.slice(0, 300)}`),
    new Promise<string>((r) => setTimeout(() => r('TIMEOUT'), ms)),
  ]);
}
async function wftFailures(handle: any): Promise<string> {
  const h = await handle.fetchHistory();
  const f = (h.events ?? []).filter((e: any) => e.workflowTaskFailedEventAttributes).map((e: any) => e.workflowTaskFailedEventAttributes.failure?.message + ' cause=' + e.workflowTaskFailedEventAttributes.cause);
  const d = await handle.describe();
  return JSON.stringify({ status: d.status.name, events: h.events?.length, wftFailures: f.slice(0, 2), pendingWft: d.raw.pendingWorkflowTask?.attempt, pend: d.raw.pendingActivities?.map((p: any) => [p.activityType?.name, p.attempt, p.lastFailure?.message?.slice(0, 200)]) });
}
const one = (call: any) => (step: number) => (step === 0 ? call : say('done'));
const show = async (name: string, handle: any, ms: number) => {
  const out = await within(handle, ms);
  console.log(`### ${name}: ${out}\n    ${await wftFailures(handle)}`);
  if (out === 'TIMEOUT') await handle.terminate().catch(() => undefined);
  return out;
};

test.concurrent('cjk summary', async () => {
  const { handle } = await start(one(callTool('echo', { a: '漢'.repeat(60), b: '字'.repeat(60), c: '語'.repeat(60) })));
  await show('cjk', handle, 8000);
});
test.concurrent('wallMs max', async () => {
  const { handle } = await start(one(say('x')), { limits: { wallMs: Number.MAX_SAFE_INTEGER } });
  await show('wallMs max', handle, 8000);
});
test.concurrent('wallMs 1e20', async () => {
  const { handle } = await start(one(say('x')), { limits: { wallMs: 1e20 } });
  await show('wallMs 1e20', handle, 8000);
});
test.concurrent('slow30d', async () => {
  const { handle } = await start(one(callTool('slow30d', {})));
  await show('slow30d', handle, 8000);
});
test.concurrent('nostream', async () => {
  const { handle } = await start(one(callTool('nostream', {})));
  await show('nostream', handle, 15000);
});
test.concurrent('huge agent', async () => {
  const handle = await rig.start({ agent: 'huge', message: 'x' });
  await show('huge', handle, 8000);
});
test.concurrent('big agent', async () => {
  const handle = await rig.start({ agent: 'big', message: 'x' });
  await show('big', handle, 8000);
});
test.concurrent('open no message', async () => {
  let seen: any;
  scripts.set('', (_s: number, r: any) => { seen = r.messages; return say('paid for nothing'); });
  const handle = await rig.start({ agent: 'a', open: true });
  await show('open', handle, 8000);
  console.log('seen', JSON.stringify(seen));
});
test.concurrent('approval', async () => {
  const { handle } = await start((s: number, r: any) => (s === 0 ? callTool('approve', {}) : say(r.messages.at(-1).text)));
  await show('approval', handle, 8000);
});
test.concurrent('resolve huge', async () => {
  const { handle } = await start(one(callTool('hangpay', {})));
  await new Promise((r) => setTimeout(r, 4000));
  const r = await handle.executeUpdate('resolve', { args: [{ call: 'call_1_1_0', as: 'happened', result: { a: '"'.repeat(500_000) } }] }).catch((e: any) => e.message + e.cause?.message);
  console.log('resolve', JSON.stringify(r));
  await show('resolve huge', handle, 8000);
});
test.concurrent('verify secret', async () => {
  const { handle } = await start(one(callTool('payverifysecret', {})));
  await new Promise((r) => setTimeout(r, 14000));
  const h = await handle.fetchHistory();
  const text = JSON.stringify(h);
  console.log('### verify secret: in history', text.includes(SECRET), 'bytes', text.length);
  await show('verify secret', handle, 100);
});
test.concurrent('verify hang cancel', async () => {
  const { handle } = await start(one(callTool('payverifyhang', {})));
  await new Promise((r) => setTimeout(r, 4000));
  const at = Date.now();
  await handle.cancel();
  await show('verify hang cancel', handle, 20000);
  console.log('verify hang cancel took', Date.now() - at);
});
test.concurrent('verify true', async () => {
  const { handle } = await start(one(callTool('payverifytrue', {})));
  await show('verify true', handle, 8000);
  console.log('### payverifytrue executions', execs.filter((e) => e === 'payverifytrue').length);
});
test.concurrent('once beat', async () => {
  const { handle } = await start((s: number, r: any) => (s === 0 ? callTool('oncebeat', {}) : say(r.messages.at(-1).text)));
  await show('once beat', handle, 15000);
});
test.concurrent('model deaf to cancel', async () => {
  const { handle } = await start(() => never());
  await new Promise((r) => setTimeout(r, 1500));
  await handle.cancel();
  await show('deaf model cancel', handle, 10000);
});
test.concurrent('ctrl', async () => {
  const { handle } = await start(one(callTool('ctrl', {})));
  await show('ctrl', handle, 8000);
  const h = await handle.fetchHistory();
  const sizes = (h.events ?? []).map((e: any) => e.activityTaskCompletedEventAttributes?.result?.payloads?.[0]?.data?.length ?? 0);
  console.log('### ctrl largest payload', Math.max(...sizes));
});
test.concurrent('obj twice', async () => {
  const { handle } = await start(one(callTool('obj', {})));
  await within(handle, 8000);
  const h = await handle.fetchHistory();
  const n = JSON.stringify((h.events ?? []).map((e: any) => Buffer.from(e.activityTaskCompletedEventAttributes?.result?.payloads?.[0]?.data ?? '').toString())).split('x'.repeat(1000)).length - 1;
  console.log('### object result recorded times:', n);
});
test.concurrent('partial projection', async () => {
  const { handle } = await start((s: number, r: any) => (s === 0 ? callTool('partial', {}) : say('closing ' + r.toolChoice)), { limits: { wallMs: 1000 } });
  const e = await rig.end(handle);
  const q = await handle.query<any>('transcript');
  console.log('### partial: query', q.messages.map((m: any) => m.role + ':' + m.text.slice(0, 30)), 'projection', e.projection.state?.transcript.messages.map((m) => m.role + ':' + m.text.slice(0, 30)), e.outcome.reason);
});
test.concurrent('blocked wall projection', async () => {
  const { handle } = await start((s: number, r: any) => { if (r.toolChoice !== 'none') throw new ModelError('bad key', { kind: 'credentials', type: 'x' }); return say('closed'); }, { limits: { wallMs: 1500 } });
  const e = await rig.end(handle);
  const q = await handle.query<any>('transcript');
  const s = await handle.query<any>('status');
  console.log('### blockedwall: query', q.messages.map((m: any) => m.role + ':' + m.text.slice(0, 30)), 'projection', e.projection.state?.transcript.messages.map((m) => m.role + ':' + m.text.slice(0, 30)), e.outcome.reason, 'status', s.status, s.reason, s.message);
});
