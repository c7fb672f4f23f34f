import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import type { Duration } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { createStepEmitter } from '../../src/history/emit-steps.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import type { History } from '../../src/history/history-event.js';
import { currentActivity, pendingWork } from '../../src/history/pending-work.js';
import { project } from '../../src/history/projection.js';
import { payloadValue } from '../../src/temporal/server-answers.js';
import { openAiModel } from '../../src/models/openai/model.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { statusQuery } from '../../src/workflows/messages/definitions.js';
import { clientOf } from '../support/clerk.js';
import { gate, type Gate } from '../support/gate.js';
import { startLedger, type Ledger } from '../support/ledger.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';
import { workerChild, workerHere } from '../support/worker-child.js';

let rig: Rig;
let stub: Stub;
let ledger: Ledger;
/** The executions of each run's calls, by the text that names the run. */
const executed = new Map<string, string[]>();
const gates = new Map<string, Gate>();
const input = z.object({ run: z.string(), n: z.int().optional() });

function note(run: string, what: string): void {
  executed.set(run, [...(executed.get(run) ?? []), what]);
}

const look = defineTool({
  name: 'look',
  description: 'looks',
  effect: 'read',
  inline: true,
  input,
  async execute({ run, n = 0 }) {
    note(run, `look ${n}`);
    await gates.get(run)?.wait();
    return `saw ${n}`;
  },
});
const slow = defineTool({
  name: 'slow',
  description: 'takes longer than a workflow task may',
  effect: 'read',
  inline: true,
  input,
  async execute({ run }) {
    note(run, 'slow');
    await pause(400);
    return 'slowly';
  },
});
const fails = defineTool({
  name: 'fails',
  description: 'throws',
  effect: 'read',
  inline: true,
  input,
  retry: { attempts: 2 },
  execute({ run }, { call }) {
    note(run, `attempt ${call.attempt}`);
    throw new Error('broken');
  },
});
const put = defineTool({
  name: 'put',
  description: 'puts',
  effect: 'keyed',
  input,
  execute({ run }) {
    note(run, 'put');
    return 'put';
  },
});
const large = defineTool({
  name: 'large',
  description: 'returns much',
  effect: 'read',
  inline: true,
  input,
  execute({ run, n }) {
    note(run, `large ${n}`);
    return `${n} ${'x'.repeat(60_000)}`;
  },
});
const tools = [look, slow, fails, put, large];
const models = (): { m: ReturnType<typeof openAiModel> } => ({
  m: openAiModel({ baseUrl: stub.baseUrl }),
});

beforeAll(async () => {
  [rig, stub, ledger] = [await createRig(), await startStub(), await startLedger()];
  const agent = defineAgent({ name: 'a', instructions: 'hi', model: 'm', tools });
  await rig.worker([agent], { models: models() });
});
afterAll(async () => {
  await rig.close();
  await Promise.all([stub.close(), ledger.close()]);
});

/** How many activities of each type, and local ones, a history has. */
function countsOf({ events }: History): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const event of events ?? []) {
    const local = event.markerRecordedEventAttributes?.markerName === 'core_local_activity';
    const scheduled = event.activityTaskScheduledEventAttributes?.activityType?.name;
    const name = local ? 'local' : scheduled;
    if (name) counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** The results of the calls, in the order of the transcript. */
function resultsOf({ projection }: Ended): readonly string[] {
  return projection.messages.flatMap(({ role, text }) => (role === 'tool' ? [text] : []));
}

const calls = (name: string, run: string, count = 1) =>
  replyCalls(Array.from({ length: count }, (_, n) => ({ name, arguments: { run, n } })));

/** Starts a run whose only read waits, and resolves while it does. */
async function startHeld(run: string): Promise<{ handle: WorkflowHandle; held: Gate }> {
  const held = gate();
  gates.set(run, held);
  stub.scriptFor(run, calls('look', run), replyText('done', { holdBeforeHeaders: `${run} held` }));
  const handle = await rig.start({ agent: 'a', message: run });
  await held.reached;
  return { handle, held };
}

describe('the inline reads of a reply', () => {
  test('are executed within the workflow task, and leave one marker together', async () => {
    stub.scriptFor('together', calls('look', 'together', 7), replyText('done'));
    const ended = await rig.run({ agent: 'a', message: 'together' });
    expect(ended.outcome).toMatchObject({ status: 'completed', answer: 'done', toolCalls: 7 });
    // One marker is of the loading of the agent.
    expect(countsOf(ended.history)).toEqual({ local: 2, callModel: 2 });
    expect(resultsOf(ended)).toEqual([0, 1, 2, 3, 4, 5, 6].map((n) => `saw ${n}`));
    const emit = createStepEmitter('r');
    const steps = (ended.history.events ?? []).map(decodeEvent).flatMap(emit);
    const ofCalls = steps.filter(({ type }) => type === 'call-begun' || type === 'call-finished');
    expect(ofCalls.map(({ type }) => type)).toEqual(
      Array.from({ length: 7 }, () => ['call-begun', 'call-finished']).flat(),
    );
  });

  test('show what they do while they run, and in the marker what they did', async () => {
    stub.scriptFor('shown', calls('look', 'shown', 2), replyText('done'));
    const { history } = await rig.run({ agent: 'a', message: 'shown' });
    const events = (history.events ?? []).map(decodeEvent);
    const marker = events.find((event) => event.type === 'local' && event.activity === 'runReads');
    const before = events.filter(({ id }) => id < (marker?.id ?? 0) - 1);
    const view = project(before);
    const doing = currentActivity({ view, work: pendingWork(null) }, Date.now());
    expect(doing).toBe('look 0 shown (inline), look 1 shown (inline)');
    const raw = history.events?.find(({ eventId }) => Number(eventId) === marker?.id);
    expect(payloadValue(raw?.userMetadata?.summary)).toBe('look 0 shown, look 1 shown');
    expect(marker).toMatchObject({
      result: {
        reads: [
          { call: 'call_1_1_0', shown: 'look 0 shown', result: { text: 'saw 0' } },
          { call: 'call_1_1_1', shown: 'look 1 shown', result: { text: 'saw 1' } },
        ],
      },
    });
  });

  test('are activities together with a call that is none', async () => {
    const mixed = replyCalls([
      { name: 'look', arguments: { run: 'mixed' } },
      { name: 'put', arguments: { run: 'mixed' } },
    ]);
    stub.scriptFor('mixed', mixed, replyText('done'));
    const ended = await rig.run({ agent: 'a', message: 'mixed' });
    expect(countsOf(ended.history)).toEqual({ local: 1, callModel: 2, runTool: 2 });
    expect(resultsOf(ended)).toEqual(['saw 0', 'put']);
  });

  test('become activities when they are slow, and stay so for the rest of the segment', async () => {
    const both = replyCalls([
      { name: 'look', arguments: { run: 'slowly' } },
      { name: 'slow', arguments: { run: 'slowly' } },
    ]);
    stub.scriptFor('slowly', both, both, calls('look', 'slowly'), replyText('done'));
    const ended = await rig.run({ agent: 'a', message: 'slowly' });
    expect(resultsOf(ended)).toEqual(['saw 0', 'slowly', 'saw 0', 'slowly', 'saw 0']);
    // Only the first slow read is executed twice; the other tool stays inline.
    expect(executed.get('slowly')?.filter((what) => what === 'slow')).toHaveLength(3);
    expect(countsOf(ended.history)).toEqual({ local: 3, callModel: 4, runTool: 3 });
  });

  test('are executed as often as activities when they throw', async () => {
    stub.scriptFor('throwing', calls('fails', 'throwing'), replyText('done'));
    const ended = await rig.run({ agent: 'a', message: 'throwing' });
    expect(executed.get('throwing')).toEqual(['attempt 1', 'attempt 2']);
    expect(resultsOf(ended)).toEqual([expect.stringContaining('broken')]);
    expect(countsOf(ended.history)).toMatchObject({ local: 2, runTool: 1 });
  });

  test('leave the results that do not fit into one task to activities', async () => {
    stub.scriptFor('large', calls('large', 'large', 20), replyText('done'));
    const ended = await rig.run({ agent: 'a', message: 'large' });
    expect(ended.outcome).toMatchObject({ status: 'completed', toolCalls: 20 });
    expect(resultsOf(ended).map((text) => text.split(' ')[0])).toEqual(
      Array.from({ length: 20 }, (_, n) => String(n)),
    );
    const { runTool = 0 } = countsOf(ended.history);
    expect(runTool).toBeGreaterThan(1);
    // On a busy machine, the time of the batch may end first.
    expect(runTool).toBeLessThan(20);
  });

  test('let queries, messages, and pauses wait, and lose none', async () => {
    const { handle, held } = await startHeld('asked');
    const answers = Promise.all([handle.query(statusQuery), handle.signal('pause')]);
    held.release();
    const [status] = await answers;
    expect(status).toMatchObject({ turn: 1 });
    stub.barrier('asked held').release();
    await handle.signal('resume');
    expect((await rig.end(handle)).outcome).toMatchObject({ status: 'completed', answer: 'done' });
  });

  test('end before the run is canceled', async () => {
    const { handle, held } = await startHeld('cancelled');
    await handle.cancel();
    held.release();
    const ended = await rig.end(handle);
    expect(ended.outcome).toMatchObject({ status: 'cancelled' });
    expect(resultsOf(ended)).toHaveLength(1);
    expect(stub.requests.filter(({ text }) => text.includes('cancelled')).length).toBeLessThan(3);
  });
});

describe('a worker that cannot execute reads inline', () => {
  test('without the tool leaves them to one that has it', async () => {
    const own = await createRig();
    try {
      const agent = (name: string, mine: typeof tools) =>
        defineAgent({ name, instructions: 'hi', model: 'm', tools: mine });
      await own.worker([agent('b', tools)], { models: models() });
      stub.scriptFor('moved', replyText('first'), calls('look', 'moved'), replyText('done'));
      const client = await clientOf(own);
      const { id } = await client.start('b', { message: 'moved', open: true });
      await client.result(id, { turn: 1 });
      await own.stopWorkers();
      await own.worker([agent('b', [put])], { models: models() });
      await client.send(id, 'again');
      const handle = own.client.workflow.getHandle(id);
      await expect
        .poll(async () => (await handle.query(statusQuery)).reason, { timeout: 20_000 })
        .toBe('tool_missing');
      expect(executed.has('moved')).toBe(false);
      await own.worker([agent('b', tools)], { models: models() });
      await client.result(id, { turn: 2 });
      await client.close(id);
      const ended = await own.end(handle);
      await client.disconnect();
      expect(executed.get('moved')).toEqual(['look 0']);
      expect(resultsOf(ended)).toEqual(['saw 0']);
    } finally {
      await own.close();
    }
  });

  test('without any activities leaves them to another worker, and the run replays', async () => {
    const id = `apart-${randomUUID()}`;
    const env = envOf(id);
    const workers = [
      await workerHere({ ...env, ROLE: 'workflows' }),
      await workerHere({ ...env, ROLE: 'activities' }),
    ];
    try {
      const twice = replyCalls([{ name: 'peek', arguments: {} }]);
      stub.scriptFor(id, twice, twice, replyText('done'));
      const handle = await start(id);
      const ended = await rig.end(handle);
      expect(ended.outcome).toMatchObject({ status: 'completed', toolCalls: 2 });
      expect(countsOf(ended.history)).toMatchObject({ runTool: 2 });
      expect(ledger.attemptsOf(id)).toHaveLength(2);
    } finally {
      await Promise.all(workers.map((worker) => worker.stop()));
    }
  });
});

test('workers that a read kills pay for nothing twice, and then activities execute it', async () => {
  const id = `fatal-${randomUUID()}`;
  const deaths = await mkdtemp(join(tmpdir(), 'perdure-fatal-'));
  const env = envOf(id);
  const reads = replyCalls([
    { name: 'peek', arguments: {} },
    { name: 'fatal', arguments: {} },
  ]);
  stub.scriptFor(id, reads, reads, replyText('done'));
  const first = await workerChild({ ...env, FATAL: join(deaths, '1') });
  const handle = await start(id);
  await first.gone;
  const second = await workerChild({ ...env, FATAL: join(deaths, '2') });
  await second.gone;
  const third = await workerHere(env);
  try {
    const ended = await rig.end(handle);
    expect(ended.outcome).toMatchObject({ status: 'completed', toolCalls: 4 });
    expect(stub.requests.filter(({ text }) => text.includes(id))).toHaveLength(3);
    // A server repeats a workflow task without limit, so the reads of the first reply left it.
    expect(countsOf(ended.history)).toMatchObject({ callModel: 3 });
    expect(countsOf(ended.history)['runTool']).toBeGreaterThan(1);
  } finally {
    await third.stop();
    await rm(deaths, { recursive: true, force: true });
  }
});

test('a read can be seen in the status while it runs, and its result afterwards', async () => {
  const id = `frozen-${randomUUID()}`;
  const folder = await mkdtemp(join(tmpdir(), 'perdure-freeze-'));
  const reads = replyCalls([1, 2].map((n) => ({ name: 'freeze', arguments: { n } })));
  stub.scriptFor(id, reads, replyText('done'));
  const child = await workerChild({ ...envOf(id), FREEZE: join(folder, 'frozen') });
  const client = await clientOf(rig);
  try {
    const handle = await start(id, 'freezing', '1 minute');
    // The process of the only worker is frozen within the read, so this holds until it thaws.
    await expect
      .poll(async () => (await client.status(id)).doing)
      .toBe('freeze 1 (inline), freeze 2 (inline)');
    expect(await client.status(id)).toMatchObject({ status: 'working', step: 1 });
    const { messages } = await client.transcript(id);
    expect(messages.at(-1)).toMatchObject({ role: 'assistant', calls: [{ name: 'freeze' }, {}] });
    process.kill(child.pid, 'SIGCONT');
    const ended = await rig.end(handle);
    expect(resultsOf(ended)).toEqual(['thawed 1', 'thawed 2']);
    expect(await client.status(id)).toMatchObject({
      status: 'done',
      doing: null,
      outcome: { toolCalls: 2 },
    });
    expect((await client.transcript(id)).messages.slice(2, 4)).toMatchObject([
      { role: 'tool', text: 'thawed 1' },
      { role: 'tool', text: 'thawed 2' },
    ]);
  } finally {
    await client.disconnect();
    await child.kill();
    await rm(folder, { recursive: true, force: true });
  }
});

function envOf(id: string): Record<string, string> {
  return {
    ADDRESS: inject('temporalAddress'),
    QUEUE: id,
    LEDGER: ledger.url,
    OPENAI_BASE_URL: stub.baseUrl,
    PERDURE_HOME: rig.home,
  };
}

async function start(
  id: string,
  agent = 'fatal',
  workflowTaskTimeout: Duration = '2 seconds',
): Promise<WorkflowHandle> {
  // The server notices the death of a worker in a workflow task by this timeout.
  const options = { taskQueue: id, workflowId: id, workflowTaskTimeout } as const;
  return await rig.client.workflow.start('agent', {
    ...options,
    args: [{ agent, message: id }],
  });
}
