import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { isObject, parseJson } from '../../src/core/text/json.js';
import { replyCalls, replyText, type Reply } from '../../src/testing/replies.js';
import { startStub } from '../../src/testing/stub-server.js';
import type { StubRequest } from '../../src/testing/wire-input.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { closeUpdate } from '../../src/workflows/messages/definitions.js';
import { ask, obedientModel } from '../support/conversation.js';
import { gate } from '../support/gate.js';
import { startLedger } from '../support/ledger.js';
import { createRig, type Rig } from '../support/rig.js';
import { messagesIn, segmentsOf, turnsIn } from '../support/segments.js';
import { workerChild, workerHere, type WorkerChild } from '../support/worker-child.js';

const SEED = Number(process.env['PERDURE_SEED'] ?? 20261121);
const MAX_BYTES = 4 * 1024 * 1024;

let rig: Rig;
let home: string;
beforeAll(async () => {
  rig = await createRig();
  home = await mkdtemp(join(tmpdir(), 'perdure-long-'));
});
afterAll(async () => {
  await rig.close();
  await rm(home, { recursive: true, force: true });
});

const note = defineTool({
  name: 'note',
  description: 'writes a text down',
  input: z.object({ text: z.string() }),
  effect: 'keyed',
  execute: async ({ text }) => text,
});
const clerk = defineAgent({ name: 'clerk', instructions: 'do as told', model: 'm', tools: [note] });

describe('a message sent while the run continues in a new segment', () => {
  const jitters = fc.sample(fc.array(fc.nat(40), { minLength: 10, maxLength: 10 }), {
    numRuns: 2,
    seed: SEED,
  });

  test.concurrent.each(jitters.map((jitter, index) => ({ index, jitter })))(
    `is neither lost nor repeated, whenever it arrives (seed ${SEED}, run $index)`,
    async ({ index, jitter }) => {
      const local = await createRig();
      const segment = { steps: 1, bytes: MAX_BYTES };
      await local.worker([clerk], { models: { m: obedientModel() }, segment });
      const handle = await local.start({ agent: 'clerk', open: true, message: 'm0' });
      for (const [n, pauses] of jitter.entries()) {
        // Sometime within the second or so that a segment takes to begin, which depends on workflow
        // tasks.
        for (let tick = 0; tick < pauses; tick += 1)
          await local.client.workflowService.getSystemInfo({});
        const message = { message: `m${n + 1}`, id: `${index}-${n}` };
        const [one, two] = await Promise.all([ask(handle, message), ask(handle, message)]);
        expect(one.turn).toBe(two.turn);
      }
      await handle.executeUpdate(closeUpdate, { args: [{}] });
      await handle.result();
      const segments = await segmentsOf(local.client, handle.workflowId);
      expect(segments.length).toBeGreaterThan(6);
      const users = messagesIn(segments).filter(({ role }) => role === 'user');
      expect(users.map(({ text }) => text)).toEqual(
        Array.from({ length: jitter.length + 1 }, (_, n) => `m${n}`),
      );
      expect(turnsIn(segments).map(({ turn }) => turn)).toEqual(users.map((_, n) => n + 1));
      await local.close();
    },
    120_000,
  );
});

/** PERDURE_LONG_TURNS=500 takes half a minute more on two cores. */
const TURNS = Number(process.env['PERDURE_LONG_TURNS'] ?? 30);
const SEGMENT_STEPS = TURNS / 10;

test(`${TURNS} turns in one open run: every message once, in order, in segments of bounded size`, async () => {
  await rig.worker([clerk], {
    models: { m: obedientModel() },
    segment: { steps: SEGMENT_STEPS, bytes: 1e6 },
  });
  const handle = await rig.start({ agent: 'clerk', open: true, message: 'turn 1' });
  for (let turn = 2; turn <= TURNS; turn += 1) {
    expect(await ask(handle, { message: `turn ${turn}`, id: `t${turn}` })).toMatchObject({ turn });
  }
  expect(await ask(handle, { message: 'again', id: 't2' })).toMatchObject({ turn: 2 });
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  expect(await handle.result()).toMatchObject({ reason: 'closed', steps: TURNS });
  const segments = await segmentsOf(rig.client, handle.workflowId);
  expect(segments.length).toBeGreaterThan(7);
  for (const { bytes } of segments) expect(bytes).toBeLessThan(MAX_BYTES);
  const transcript = messagesIn(segments);
  expect(transcript).toHaveLength(2 * TURNS);
  expect(transcript.every(({ n }, index) => n === index)).toBe(true);
  expect(turnsIn(segments).map(({ turn, outcome }) => [turn, outcome.answer])).toEqual(
    Array.from({ length: TURNS }, (_, index) => [index + 1, `done: turn ${index + 1}`]),
  );
}, 240_000);

/** PERDURE_LONG_STEPS=1000 takes two minutes more on two cores. */
const STEPS = Number(process.env['PERDURE_LONG_STEPS'] ?? 60);
const KILLED_AT = [0.25, 0.75].map((share) => Math.round(share * STEPS));

/** Continues from the step that the newest call names, so summaries do not matter. */
function nextStep(request: StubRequest): Reply {
  if (!JSON.stringify(request.body).includes('"put"'))
    return replyText('the steps so far are done');
  const last = request.messages.at(-1)?.content;
  const parsed = typeof last === 'string' ? parseJson(last) : undefined;
  const input = isObject(parsed) && isObject(parsed['input']) ? parsed['input'] : {};
  const step = typeof input['step'] === 'number' ? input['step'] + 1 : 0;
  if (step >= STEPS) return replyText(`done after ${step} steps`);
  // The run knows from the usage how long its prompt is, and when to summarize it.
  const tokens = Math.ceil(request.text.length / 4);
  const usage = { prompt_tokens: tokens, completion_tokens: 5, total_tokens: tokens + 5 };
  return replyCalls([{ name: 'put', arguments: { step, part: 0 } }], { usage });
}

test(`${STEPS} steps in one turn, through segments, summaries, and kills: each step once`, async () => {
  const [stub, ledger] = [await startStub(), await startLedger()];
  const queue = `long-${randomUUID()}`;
  const env = {
    ADDRESS: inject('temporalAddress'),
    QUEUE: queue,
    LEDGER: ledger.url,
    OPENAI_BASE_URL: stub.baseUrl,
    PERDURE_HOME: home,
    STEPS: String(STEPS + 10),
    // Small enough for summaries, and for several segments.
    WINDOW: String(STEPS * 20),
    SEGMENT_STEPS: String(Math.ceil(STEPS / 5)),
  };
  stub.answer(nextStep);
  let worker: WorkerChild = await workerChild(env);
  const doors = new Map(KILLED_AT.map((number) => [number, gate()]));
  ledger.onAttempt = (number, when) => {
    if (when === 'after') void doors.get(number)?.wait();
  };
  const handle = await rig.client.workflow.start('agent', {
    taskQueue: queue,
    workflowId: queue,
    args: [{ agent: 'crash', message: 'go', limits: { toolCalls: null } }],
  });
  for (const [index, door] of [...doors.values()].entries()) {
    await door.reached;
    await worker.kill();
    // The last one is not killed.
    if (index < doors.size - 1) worker = await workerChild(env);
  }
  const last = await workerHere(env);
  const outcome = await handle.result();
  await last.stop();
  expect(outcome).toMatchObject({ status: 'completed', answer: `done after ${STEPS} steps` });
  const segments = await segmentsOf(rig.client, queue);
  expect(segments.length).toBeGreaterThan(3);
  for (const { bytes } of segments) expect(bytes).toBeLessThan(MAX_BYTES);
  const transcript = messagesIn(segments);
  expect(transcript.every(({ n }, index) => n === index)).toBe(true);
  expect(ledger.effects.size).toBe(STEPS);
  const calls = transcript.flatMap((message) =>
    message.role === 'assistant' ? (message.calls ?? []).map(({ id }) => id) : [],
  );
  expect(new Set(calls).size).toBe(STEPS);
  const summaries = transcript.filter((message) => message.role === 'user' && message.compacts);
  expect(summaries.length).toBeGreaterThan(0);
  // A call that was answered and not recorded when its worker died is made again, and no other.
  expect(stub.requestCount).toBeLessThanOrEqual(STEPS + 1 + summaries.length + KILLED_AT.length);
  await Promise.all([stub.close(), ledger.close()]);
}, 400_000);
