import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { gate } from '../support/gate.js';
import { killTogether } from '../support/kill-together.js';
import { startLedger, type Ledger } from '../support/ledger.js';
import { createDesk, type Desk } from '../support/requests.js';

const CALLS = (
  [
    ['put', 'keyed', 'after', { step: 1, part: 0 }],
    ['look', 'read', 'before', { step: 1, part: 0 }],
    ['pay', 'once', 'before', { amount: 7 }],
    ['pay', 'once', 'after', { amount: 7 }],
  ] as const
).map(([name, effect, when, args]) => {
  return { name, effect, when, args, id: `killed-${randomUUID()}`, door: gate() };
});

let desk: Desk;
let home: string;
let stub: Stub;
let ledger: Ledger;
let madeUnapproved: number;
let handles: readonly WorkflowHandle[] = [];
let stop = (): Promise<void> => Promise.resolve();

beforeAll(async () => {
  [desk, stub, ledger] = [await createDesk(), await startStub(), await startLedger()];
  home = await mkdtemp(join(tmpdir(), 'perdure-killed-'));
  for (const { name, args, id } of CALLS) {
    stub.scriptFor(id, replyCalls([{ name, arguments: args }]), replyText('Done.'));
  }
  ledger.onAttempt = async (_, at, { run }) => {
    const call = CALLS.find(({ id, when }) => id === run && when === at);
    await call?.door.wait();
  };
  ({ handles, stop } = await killTogether(desk.rig.client, {
    env: {
      ADDRESS: inject('temporalAddress'),
      QUEUE: `killed-${randomUUID()}`,
      LEDGER: ledger.url,
      OPENAI_BASE_URL: stub.baseUrl,
      PERDURE_HOME: home,
    },
    runs: CALLS.map(({ name, id }) => ({
      id,
      input: { agent: 'crash', message: id, rules: [{ tool: name, then: 'ask' }] },
      held: (handle) => desk.statusWhere(handle, ({ pending }) => pending.length === 1),
    })),
    last: async (asking) => {
      madeUnapproved = ledger.attempts.length;
      await Promise.all(asking.map((handle) => desk.decide(handle, { as: 'approve' })));
      await Promise.all(CALLS.map(({ door }) => door.reached));
    },
  }));
  for (const { door } of CALLS) door.release();
});
afterAll(async () => {
  await desk.close();
  await Promise.all([stop(), stub.close(), ledger.close()]);
  await rm(home, { recursive: true, force: true });
});

test.concurrent.each(CALLS)(
  'an approved call of $name ($effect) whose worker is killed $when its effect is approved once',
  async ({ name, effect, id }) => {
    expect(madeUnapproved).toBe(0);
    const handle = handles.find(({ workflowId }) => workflowId === id);
    if (handle === undefined) throw new Error(`there is no run ${id}`);
    if (effect === 'once') {
      // The approval was for one execution; whether it took effect is a separate request.
      const { pending } = await desk.statusWhere(handle, ({ pending: [one] }) => one?.id === 'r2');
      expect(pending).toMatchObject([{ kind: 'outcome_unknown', tool: name }]);
      await desk.decide(handle, { as: 'happened', result: 'paid' });
    }
    const { outcome, projection } = await desk.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Done.' });
    const made = ledger.attemptsOf(id);
    expect(made.length).toBe(effect === 'once' ? 1 : 2);
    expect(new Set(made.map(({ key }) => key)).size).toBe(1);
    const approvals = (projection.state?.decisions ?? []).filter(({ as }) => as === 'approve');
    expect(approvals).toHaveLength(1);
  },
);
