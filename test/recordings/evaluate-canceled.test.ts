import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { playRun } from '../../src/memory/run-in-memory.js';
import { evaluate } from '../../src/recordings/evaluate.js';
import { writeRecording } from '../../src/recordings/recording-files.js';
import { recordingOf } from '../../src/recordings/rerun.js';
import { cancelRun, noDecision, replyCall, replyError, scriptedModel } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { useSourceBundle } from '../support/memory.js';

const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  input: z.object({ order: z.int() }),
  effect: 'once',
  approval: 'always',
  execute: () => 'paid',
});
const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools: [refund] });

beforeAll(useSourceBundle);

test('a failed call of another model is an error, also in a run that was canceled', async () => {
  const cases = await mkdtemp(join(tmpdir(), 'cases-'));
  onTestFinished(async () => await rm(cases, { recursive: true }));
  const run = await playRun(desk, {
    message: 'Refund order 17',
    model: [replyCall('refund', { order: 17 })],
    on: { request: { refund: noDecision() } },
    at: { '1 hour': cancelRun() },
  });
  expect(run.outcome.status).toBe('cancelled');
  await writeRecording(join(cases, 'canceled.json'), recordingOf(run, { blobs: {} }));
  const model = scriptedModel([
    replyError(401, { message: 'No key.', type: 'auth', code: 'auth' }),
  ]);
  const evaluated = await evaluate(cases, { agents: [desk], model });
  expect(evaluated.cases[0]?.candidates[0]).toMatchObject({
    run: null,
    error: expect.stringContaining('No key.'),
  });
  expect(evaluated.passed).toBe(false);
});
