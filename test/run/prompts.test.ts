import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { TranscriptPage } from '../../src/core/state/status.js';
import { openAiModel } from '../../src/models/openai/model.js';
import { replyCalls, replyError, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { expectPromptsMatch, expectStablePrefix } from '../support/prompts.js';
import { startLedger } from '../support/ledger.js';
import { createRig, type Rig } from '../support/rig.js';
import { workerChild } from '../support/worker-child.js';

let rig: Rig;
let stub: Stub;
beforeAll(async () => {
  rig = await createRig();
  stub = await startStub();
});
afterAll(async () => {
  await rig.close();
  await stub.close();
});

/** Fails, answers late, or answers at once, depending on its arguments. */
const fickle = defineTool({
  name: 'fickle',
  description: 'does as it is told',
  input: z.object({ fails: z.number(), size: z.number(), serial: z.number() }),
  effect: 'read',
  async execute({ fails, size, serial }, { call }) {
    if (call.attempt <= fails) throw new Error(`failed on purpose ${call.attempt}`);
    return `${serial} ${'ü'.repeat(size)}`;
  },
});

const step = fc.array(
  fc.record({
    fails: fc.constantFrom(0, 0, 0, 1, 3),
    size: fc.constantFrom(10, 300, 40_000),
    serial: fc.nat(999),
  }),
  { minLength: 1, maxLength: 4 },
);
const SEED = Number(process.env['PERDURE_SEED'] ?? 7);
const scripts = fc.sample(fc.array(step, { minLength: 2, maxLength: 6 }), {
  numRuns: 4,
  seed: SEED,
});

describe('every request that a model receives', () => {
  test('is the transcript: two workers, a cold cache, failing tools, failing calls', async () => {
    const agent = defineAgent({ name: 'p', instructions: 'hi', model: 'm', tools: [fickle] });
    const models = { m: openAiModel({ baseUrl: stub.baseUrl }) };
    // One worker caches nothing, the other everything; tasks go to either.
    await rig.worker([agent], { models, transcriptCacheBytes: 1 });
    await rig.worker([agent], { models });
    const failedOnce = new Set<string>();
    stub.answer((request) => {
      const marker = /script (\d+)/.exec(request.text)?.[1] ?? '0';
      const nth = `${marker} ${request.assistantMessages}`;
      if (request.assistantMessages === 1 && !failedOnce.has(nth)) {
        failedOnce.add(nth);
        return replyError(500, { message: 'once' }, { headers: { 'retry-after-ms': '20' } });
      }
      const calls = scripts[Number(marker)]?.[request.assistantMessages];
      if (calls === undefined) return replyText('done');
      return replyCalls(calls.map((each) => ({ name: 'fickle', arguments: each })));
    });
    const runs = await Promise.all(
      scripts.map(async (_, index) => await rig.run({ agent: 'p', message: `script ${index}` })),
    );
    for (const [index, { handle, projection, outcome }] of runs.entries()) {
      expect(outcome.status).toBe('completed');
      const page = await handle.query<TranscriptPage>('transcript');
      const messages = projection.state?.transcript.messages ?? [];
      // The history, read without a worker, agrees with the workflow except for the clock.
      expect(messages.map(({ at: _at, ...rest }) => rest).slice(0, page.messages.length)).toEqual(
        page.messages.map(({ at: _at, ...rest }) => rest),
      );
      const own = stub.requests.filter(({ text }) => text.includes(`"script ${index}"`));
      expect(own.length).toBeGreaterThan(scripts[index]?.length ?? 0);
      expectPromptsMatch(own, messages);
      expectStablePrefix(own);
    }
  });

  test('is the transcript even if a zombie finishes after the attempt that counts', async () => {
    const [own, ledger] = [await startStub(), await startLedger()];
    own.answer((request) => {
      if (request.assistantMessages === 0) {
        return replyCalls([{ name: 'spin', arguments: { forMs: 3_500 } }]);
      }
      // Another step, so that the zombie's worker has time to cache its late result.
      if (request.assistantMessages < 4) {
        return replyCalls([
          { name: 'put', arguments: { step: request.assistantMessages, part: 0 } },
        ]);
      }
      return replyText('done');
    });
    const env = {
      ADDRESS: inject('temporalAddress'),
      QUEUE: `zombie-${randomUUID()}`,
      LEDGER: ledger.url,
      OPENAI_BASE_URL: own.baseUrl,
      PERDURE_HOME: rig.home,
    };
    const workers = [await workerChild(env), await workerChild(env)];
    const handle = await rig.client.workflow.start('agent', {
      taskQueue: env.QUEUE,
      workflowId: env.QUEUE,
      args: [{ agent: 'crash', message: 'go' }],
    });
    const { projection, outcome } = await rig.end(handle);
    const messages = projection.state?.transcript.messages ?? [];
    expect(outcome.status).toBe('completed');
    expect(messages.find(({ role }) => role === 'tool')?.text).toMatch(/attempt [2-9]/);
    expectPromptsMatch(own.requests, messages);
    await Promise.all([...workers.map((worker) => worker.kill()), own.close(), ledger.close()]);
  });
});
