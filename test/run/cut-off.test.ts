import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { createClient, type PerdureClient } from '../../src/index.js';
import { IdTakenError } from '../../src/client.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub } from '../../src/testing/stub-server.js';
import { gate } from '../support/gate.js';
import { startLedger } from '../support/ledger.js';
import { startProxy } from '../support/proxy.js';
import { workerChild } from '../support/worker-child.js';

const WAIT = { timeout: 30_000, interval: 50 };
/** For a trial at full length, such as 60000; otherwise the cut lasts until the server has noticed. */
const CUT_MS = Number(process.env['PERDURE_CUT_MS'] ?? 0);
const address = inject('temporalAddress');

/** The call that the model makes for each message. */
const CALLS = {
  read: { name: 'look', arguments: { step: 1, part: 0 } },
  keyed: { name: 'put', arguments: { step: 1, part: 1 } },
  once: { name: 'pay', arguments: { amount: 1 } },
  fenced: { name: 'transfer', arguments: { amount: 2 } },
  decision: { name: 'look', arguments: { part: 3 } },
} as const;
type Kind = keyof typeof CALLS;
const KINDS = Object.keys(CALLS) as readonly Kind[];

async function createSetting() {
  const [stub, ledger, near, far] = await Promise.all([
    startStub(),
    startLedger(),
    startProxy(address),
    startProxy(address),
  ]);
  const home = await mkdtemp(join(tmpdir(), 'perdure-cut-'));
  const taskQueue = `cut-${randomUUID()}`;
  const env = { PERDURE_HOME: home };
  const [client, watcher] = await Promise.all([
    createClient({ address: near.address, taskQueue, env }),
    createClient({ address, taskQueue, env }),
  ]);
  const connection = await Connection.connect({ address });
  const worker = await workerChild({
    ...env,
    ADDRESS: far.address,
    QUEUE: taskQueue,
    LEDGER: ledger.url,
    OPENAI_BASE_URL: stub.baseUrl,
    OPENAI_API_KEY: 'x',
  });
  onTestFinished(async () => {
    await worker.kill();
    await Promise.all([client.disconnect(), watcher.disconnect(), connection.close()]);
    await Promise.all([stub.close(), ledger.close(), near.close(), far.close()]);
    await rm(home, { recursive: true, force: true });
  });
  return { stub, ledger, client, watcher, raw: new Client({ connection }), links: [near, far] };
}

test.each(['cut', 'hold'] as const)(
  'a server that is unreachable loses no run, doubles no effect, and leaves no caller without an answer: %s',
  async (how) => {
    const { stub, ledger, client, watcher, raw, links } = await createSetting();
    const isKind = (text: string): text is Kind => text in CALLS;
    stub.answer(({ messages, assistantMessages }) => {
      const said = String(messages.find(({ role }) => role === 'user')?.content);
      if (said === 'model') return replyText('thought', { holdBeforeHeaders: 'model' });
      if (assistantMessages > 0 || !isKind(said)) return replyText(`done ${said}`);
      return replyCalls([CALLS[said]]);
    });
    const thinking = stub.barrier('model');
    const doors = gate();
    const held = new Set<string>();
    ledger.onAttempt = async (_, when, { tool }) => {
      if (when !== 'before' || held.has(tool) || tool === 'quote') return;
      held.add(tool);
      await doors.wait();
    };
    const runs = Object.fromEntries(
      await Promise.all(
        KINDS.map(async (kind) => {
          const agent = kind === 'decision' ? 'asking' : 'crash';
          return [kind, (await client.start(agent, { message: kind })).id] as const;
        }),
      ),
    );
    const model = await client.start('crash', { message: 'model' });
    await thinking.reached;
    await vi.waitFor(() => expect(held).toEqual(new Set(['look', 'put', 'pay', 'transfer'])), WAIT);
    const ask = runs['decision'] ?? '';
    await vi.waitFor(async () => expect((await client.status(ask)).pending).toHaveLength(1), WAIT);
    const [request] = (await client.status(ask)).pending;
    if (request === undefined) throw new Error('the call did not ask');

    for (const link of links) link[how]();
    const late = `late-${randomUUID()}`;
    const started = settled(client.start('crash', { id: late, message: 'late' }));
    const { id, digest } = request;
    const decided = settled(client.resolve(ask, { request: id, digest, as: 'approve' }));
    const read = settled(client.status(ask));
    doors.release();
    thinking.release();
    await vi.waitFor(() => expect(ledger.effects.size).toBeGreaterThanOrEqual(5), WAIT);
    // The server has given up the attempts of the worker that it does not hear.
    for (const run of [
      model.id,
      ...KINDS.flatMap((kind) => (kind === 'decision' ? [] : (runs[kind] ?? []))),
    ]) {
      await vi.waitFor(async () => expect(await isGivenUp(raw, run)).toBe(true), WAIT);
    }
    await pause(CUT_MS);
    for (const link of links) link.restore();

    // Each caller has its answer, or an error that says what may have happened.
    for (const call of [started, decided]) expect(await call).toMatch(ANSWER);
    await read;
    if (!(await started).startsWith('answer')) await startAgain(watcher, late);
    const isOpen = (await watcher.status(ask)).pending.length > 0;
    if (isOpen) await client.resolve(ask, { request: id, digest, as: 'approve' });
    // The server has lost the outcomes of `once`; a person has seen that they happened.
    const once = runs['once'] ?? '';
    await vi.waitFor(
      async () => expect((await watcher.status(once)).pending).toHaveLength(1),
      WAIT,
    );
    const [unknown] = (await client.status(once)).pending;
    expect(unknown).toMatchObject({ kind: 'outcome_unknown' });
    const { id: lost = '', digest: whole = '' } = unknown ?? {};
    await client.resolve(once, { request: lost, digest: whole, as: 'happened', result: 'paid' });

    for (const run of [...Object.values(runs), model.id, late]) {
      expect(await client.result(run)).toMatchObject({ status: 'completed' });
      expect(await watcher.status(run)).toMatchObject({ status: 'done', pending: [] });
    }
    const times = (tool: string): number =>
      ledger.attempts.filter((entry) => entry.tool === tool && !ledger.refused.includes(entry))
        .length;
    expect([times('pay'), times('transfer')]).toEqual([1, 1]);
    const keys = ledger.attempts.filter(({ tool }) => tool === 'put').map(({ key }) => key);
    expect(new Set(keys).size).toBe(1);
    const paid = stub.requests.filter(({ text }) => text.includes('"content":"model"')).length;
    expect(paid).toBeLessThanOrEqual(2);
  },
  300_000,
);

const ANSWER = /^(?:answer|NotDeliveredError: )/;

/** Resolves with how a call ends. */
async function settled(call: Promise<unknown>): Promise<string> {
  const from = performance.now();
  const ended = await call.then(
    () => 'answer',
    (error: unknown) => String(error),
  );
  if (CUT_MS > 0) console.log(`${ended}, after ${Math.round(performance.now() - from)} ms`);
  return ended;
}

/** Starts a run of which it is unknown whether it was started. */
async function startAgain(client: PerdureClient, id: string): Promise<void> {
  await client.start('crash', { id, message: 'late' }).catch((error: unknown) => {
    if (!IdTakenError.isInstance(error)) throw error;
  });
}

/** Whether the server has ended the attempt of the run's activity, or begun another one. */
async function isGivenUp(client: Client, id: string): Promise<boolean> {
  const handle = client.workflow.getHandle(id);
  const { raw } = await handle.describe();
  const { events } = await handle.fetchHistory();
  return (
    (events ?? []).some((event) => event.activityTaskTimedOutEventAttributes) ||
    (raw.pendingActivities ?? []).some(({ attempt }) => (attempt ?? 1) > 1)
  );
}
