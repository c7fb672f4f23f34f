import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import type { Model, ModelRequest } from '../../src/models/model.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { asking, decide } from '../support/conversation.js';
import { readRun } from '../../src/history/read-run.js';
import { toRunStatus } from '../../src/client/status.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

let rig: Rig;
const executions = new Map<string, string[]>();

/** Never returns the first time, so that its outcome is unknown. */
const pay = (verify?: 'happened' | 'not' | 'unknown' | 'throws') =>
  defineTool({
    name: 'pay',
    description: 'pays',
    input: z.object({ run: z.string() }),
    effect: 'once',
    timeout: 300,
    async execute({ run }, { idempotencyKey }) {
      const keys = executions.get(run) ?? [];
      executions.set(run, [...keys, idempotencyKey]);
      if (keys.length === 0) await new Promise(() => undefined);
      return 'paid';
    },
    ...(verify && {
      verify: (key: string) => {
        if (verify === 'throws') throw new Error('the bank is down');
        if (verify === 'unknown') return undefined;
        return verify === 'happened'
          ? { happened: true as const, result: `found ${key.slice(0, 4)}` }
          : { happened: false as const };
      },
    }),
  });

/** Pays, then reports what it read. */
const payer: Model = {
  async call({ messages }: ModelRequest) {
    const [first] = messages;
    const last = messages.at(-1);
    if (last?.role === 'tool') return replyText(`read: ${last.text}`);
    return replyCall('pay', { run: first?.text ?? '' });
  },
};

const agents = (['ask', 'happened', 'not', 'unknown', 'throws'] as const).map((verify) =>
  defineAgent({
    name: verify,
    instructions: 'pay',
    model: 'payer',
    tools: [pay(verify === 'ask' ? undefined : verify)],
  }),
);

beforeAll(async () => {
  rig = await createMemoryRig();
  await rig.worker(agents, { models: { payer } });
});
afterAll(async () => await rig.close());

async function parked(
  agent: string,
): Promise<{ handle: WorkflowHandle; run: string; status: RunStatus }> {
  const run = randomUUID();
  const handle = await rig.start({ agent, message: run });
  const status = await asking(handle);
  return { handle, run, status };
}

const resolve = async (handle: WorkflowHandle, decision: unknown): Promise<unknown> =>
  await handle.executeUpdate('resolve', { args: [decision] });

describe('a once tool whose outcome is unknown', () => {
  test('parks the run, names the call, and sets the search attributes', async () => {
    const { handle, status, run } = await parked('ask');
    expect(status).toMatchObject({
      status: 'waiting_decision',
      reason: 'outcome_unknown',
      pending: [{ id: 'r1', kind: 'outcome_unknown', call: 'call_1_1_0', tool: 'pay' }],
    });
    expect(status.pending[0]?.idempotencyKey).toBe(executions.get(run)?.[0]);
    const { searchAttributes } = await handle.describe();
    expect(searchAttributes).toMatchObject({
      AgentStatus: ['waiting_decision'],
      AgentReason: ['outcome_unknown'],
    });
    await decide(handle, { as: 'abandon' });
    await rig.end(handle);
  });

  test('continues with the result that a person provides', async () => {
    const { handle, run } = await parked('ask');
    await decide(handle, { as: 'happened', result: { receipt: 7 } });
    const { outcome } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'read: {"receipt":7}' });
    expect(executions.get(run)).toHaveLength(1);
  });

  test('is executed again with the same key if a person decides that it did not happen', async () => {
    const { handle, run } = await parked('ask');
    await decide(handle, { as: 'retry' });
    const { outcome } = await rig.end(handle);
    expect(outcome.answer).toBe('read: paid');
    const keys = executions.get(run) ?? [];
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  });

  test('is abandoned as an error that the model reads', async () => {
    const { handle, run } = await parked('ask');
    await decide(handle, { as: 'abandon' });
    const { outcome } = await rig.end(handle);
    expect(outcome.answer).toContain('abandoned');
    expect(executions.get(run)).toHaveLength(1);
  });

  test('refuses decisions that do not fit, with a reason, and can be canceled', async () => {
    const { handle } = await parked('ask');
    const refused: readonly (readonly [unknown, string])[] = [
      [
        { request: 'r9', digest: 'x', as: 'retry' },
        'request: expected an open request, got "r9" (open: r1)',
      ],
      [{ request: 'r1', digest: 'x', as: 'maybe' }, 'resolve.as: expected'],
      [{ request: 'r1', digest: 'x', as: 'retry' }, 'digest: expected the current digest of r1'],
      ['nonsense', 'resolve: expected {request, digest, as}, got "nonsense"'],
    ];
    for (const [decision, reason] of refused) {
      await expect(resolve(handle, decision)).rejects.toMatchObject({
        cause: expect.objectContaining({ message: expect.stringContaining(reason) }),
      });
    }
    await handle.cancel();
    const { outcome } = await rig.end(handle);
    expect(outcome.status).toBe('cancelled');
  });

  test('is resolved by verify: it happened', async () => {
    const run = randomUUID();
    const { outcome } = await rig.run({ agent: 'happened', message: run });
    expect(outcome.answer).toBe(`read: found ${executions.get(run)?.[0]?.slice(0, 4)}`);
    expect(executions.get(run)).toHaveLength(1);
  });

  test('is resolved by verify: it did not happen, so it is retried', async () => {
    const run = randomUUID();
    const { outcome } = await rig.run({ agent: 'not', message: run });
    expect(outcome.answer).toBe('read: paid');
    expect(new Set(executions.get(run)).size).toBe(1);
    expect(executions.get(run)).toHaveLength(2);
  });

  test('is left to a person if verify does not know', async () => {
    const { handle } = await parked('unknown');
    const seen = toRunStatus(await readRun(rig.client, handle.workflowId), Date.now());
    expect(seen).toMatchObject({ status: 'waiting_decision', reason: 'outcome_unknown' });
    expect(seen.pending).toMatchObject([{ call: 'call_1_1_0' }]);
    await decide(handle, { as: 'happened' });
    expect((await rig.end(handle)).outcome.answer).toContain('A person confirmed');
  });
});
