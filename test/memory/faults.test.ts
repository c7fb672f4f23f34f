import { randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { openClient } from '../../src/client/create-client.js';
import { defineConfig } from '../../src/config.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import { type Fault, decision, runInMemory, withFaults } from '../../src/testing.js';
import { faultyAgent, faultyModel } from '../support/faulty-agent.js';
import { useSourceBundle } from '../support/memory.js';
import { type Rig, createRig } from '../support/rig.js';
import { workerChild } from '../support/worker-child.js';

/** The faults, and what the ledger has after the run. A person says that an unknown call did not happen. */
const SCENARIOS: Readonly<Record<string, readonly [readonly Fault[], string]>> = {
  'before and after a call, and after a reply': [
    [
      { at: 'before-effect', call: 1, kill: true },
      { at: 'after-effect', call: 2, kill: true },
      { at: 'after-reply', step: 4, kill: true },
    ],
    'look 1, put 1, put 1, pay 1',
  ],
  'after a call that must not be repeated': [
    [{ at: 'after-effect', call: 3, kill: true }],
    'look 1, put 1, pay 1, pay 1',
  ],
};

interface Seen {
  readonly outcome: Pick<Outcome<unknown>, 'status' | 'answer' | 'steps' | 'toolCalls'>;
  readonly ledger: string;
}

let rig: Rig;
beforeAll(async () => {
  await useSourceBundle();
  rig = await createRig();
});
afterAll(async () => await rig.close());

async function seenIn(ledger: string, outcome: Outcome<unknown>): Promise<Seen> {
  const { status, answer, steps, toolCalls } = outcome;
  const lines = (await readFile(ledger, 'utf8')).trim().split('\n').join(', ');
  await rm(ledger);
  return { outcome: { status, answer, steps, toolCalls }, ledger: lines };
}

function newFile(): string {
  return join(tmpdir(), `ledger-${randomUUID()}`);
}

const retry = { as: 'retry', note: 'it did not happen' } as const;

async function inMemory(faults: readonly Fault[]): Promise<Seen> {
  const ledger = newFile();
  const run = await runInMemory(faultyAgent(ledger), {
    message: 'Go',
    model: faultyModel,
    on: { request: { outcome_unknown: decision(retry) } },
    faults,
  });
  return await seenIn(ledger, run.outcome);
}

async function onServer(faults: readonly Fault[]): Promise<Seen> {
  const [LEDGER, NOTES, QUEUE] = [newFile(), newFile(), rig.taskQueue];
  const env = { FAULTS: JSON.stringify(faults), ADDRESS: inject('temporalAddress') };
  const client = await openClient({ client: rig.client, taskQueue: QUEUE, home: rig.home });
  const run = await client.start('faulty', 'Go');
  const deaths: (NodeJS.Signals | null)[] = [];
  const keepWorker = async (): Promise<void> => {
    for (;;) {
      const worker = await workerChild({
        ...env,
        LEDGER,
        NOTES,
        QUEUE,
        HEARTBEAT_MS: '1000',
        PERDURE_HOME: rig.home,
      });
      const signal = await Promise.race([worker.gone, over]);
      if (signal === 'over') return await worker.kill();
      deaths.push(signal);
    }
  };
  let end: (over: 'over') => void = () => undefined;
  const over = new Promise<'over'>((resolve) => {
    end = resolve;
  });
  const working = keepWorker();
  for await (const event of client.events(run)) {
    if (event.type !== 'request-raised') continue;
    const [request] = (await client.status(run)).pending;
    if (request)
      await client.resolve(run, { request: request.id, digest: request.digest, ...retry });
  }
  const outcome = await client.result(run);
  end('over');
  await working;
  await client.disconnect();
  expect(deaths).toEqual(faults.map(() => 'SIGKILL'));
  await rm(NOTES);
  return await seenIn(LEDGER, outcome);
}

describe('faults as values', () => {
  test.each(Object.entries(SCENARIOS))(
    '%s: in memory and on a server',
    async (_name, [faults, ledger]) => {
      const memory = await inMemory(faults);
      expect(memory).toEqual({
        outcome: { status: 'completed', answer: 'Done.', steps: 4, toolCalls: 3 },
        ledger,
      });
      expect(await onServer(faults)).toEqual(memory);
    },
  );

  test('one that the run does not reach is an error', async () => {
    const ledger = newFile();
    const run = runInMemory(faultyAgent(ledger), {
      message: 'Go',
      model: faultyModel,
      faults: [{ at: 'after-effect', call: 4, kill: true }],
    });
    await expect(run).rejects.toThrow(
      'has not reached a place of its script: faults[0]: {"at":"after-effect","call":4,"kill":true}; ' +
        'it ended as completed (answer) after 3 executed calls and 4 model calls',
    );
    await rm(ledger);
  });

  test('cannot be given for an agent whose calls are not counted', () => {
    const mcp = [mcpServer({ name: 'far', transport: 'http', url: 'http://127.0.0.1:1/' })];
    const config = defineConfig({ agents: [defineAgent({ name: 'far', instructions: 'x', mcp })] });
    expect(() => withFaults(config, [])).toThrow(
      'agent "far": mcp: expected no MCP servers, got 1',
    );
    expect(() => withFaults(config, [{ at: 'now' } as never])).toThrow(/faults: expected a fault/);
  });
});
