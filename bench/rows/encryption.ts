import { randomBytes, randomUUID } from 'node:crypto';
import { Client } from '@temporalio/client';
import { encryptionCodec } from '../../src/encryption/payload-codec.js';
import { startRun } from '../../src/updates/start.js';
import { openingMessage, type Script } from '../conversation.js';
import type { Bench, BenchWorker } from '../kit/bench.js';
import { interleave, medians, ratios } from '../kit/interleave.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const STEPS = 25;
const SCRIPT: Script = { name: 'encryption', steps: STEPS, tools: ['work'], bytes: 2_000 };

/** Measures a step of a worker that encrypts all that it records, against one that does not. */
export async function measureEncryption(bench: Bench): Promise<readonly Row[]> {
  const key = randomBytes(32).toString('base64');
  const codec = encryptionCodec({ keys: { bench: key }, current: 'bench' });
  const { connection } = bench.client;
  const encrypting = new Client({ connection, dataConverter: { payloadCodecs: [codec] } });
  const encrypted = await bench.worker('perdure', { PERDURE_ENCRYPTION_KEYS: `bench:${key}` });
  const clear = await bench.worker('perdure');
  const both = {
    perdure: async () => await run(encrypting, encrypted),
    bare: async () => await run(bench.client, clear),
  };
  await interleave(bench.quick ? 1 : 4, both);
  const compared = await interleave(bench.quick ? 2 : 20, both);
  await Promise.all([encrypted.end(), clear.end()]);
  const { perdure, bare } = medians(compared);
  return [
    {
      name: 'encryption/step',
      what: 'step latency with encryption against without, scripted model, messages of 2 kB',
      value: median(ratios(compared)),
      unit: 'x',
      bar: { atMost: 1.1 },
      samples: ratios(compared),
      detail: `${show(perdure / STEPS)} against ${show(bare / STEPS)} ms per step`,
    },
  ];
}

/** Milliseconds from start to result. */
async function run(client: Client, { queue }: BenchWorker): Promise<number> {
  const begun = performance.now();
  const input = { agent: 'scripted', message: openingMessage(SCRIPT) };
  const { id, runId } = await startRun(client, input, { id: randomUUID(), taskQueue: queue });
  await client.workflow.getHandle(id, undefined, { firstExecutionRunId: runId }).result();
  return performance.now() - begun;
}
