import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { gate } from '../support/gate.js';
import { killTogether } from '../support/kill-together.js';
import { startLedger, type Ledger } from '../support/ledger.js';
import { expectPromptsMatch } from '../support/prompts.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';

const [RETRIEVAL, CALL] = [`retrieval-${randomUUID()}`, `call-${randomUUID()}`];

let rig: Rig;
let home: string;
let stub: Stub;
let ledger: Ledger;
const ends = new Map<string, Ended>();

beforeAll(async () => {
  [rig, stub, ledger] = [await createRig(), await startStub(), await startLedger()];
  home = await mkdtemp(join(tmpdir(), 'perdure-retrieve-kill-'));
  const door = gate();
  ledger.onAttempt = async (_, when, { key }) => {
    if (key === RETRIEVAL && when === 'after') await door.wait();
  };
  stub.scriptFor(CALL, replyText('lost', { holdBeforeHeaders: CALL }));
  stub.answer(() => replyText('answered'));
  const doomed = (id: string, reached: Promise<unknown>) => ({
    id,
    input: { agent: 'retrieving', message: `rain ${id}` },
    held: () => reached,
  });
  const { handles, stop } = await killTogether(rig.client, {
    env: {
      ADDRESS: inject('temporalAddress'),
      QUEUE: `retrieve-kill-${randomUUID()}`,
      LEDGER: ledger.url,
      OPENAI_BASE_URL: stub.baseUrl,
      PERDURE_HOME: home,
    },
    runs: [doomed(RETRIEVAL, door.reached), doomed(CALL, stub.barrier(CALL).reached)],
  });
  door.release();
  const all = await Promise.all(handles.map((handle) => rig.end(handle)));
  for (const ended of all) ends.set(ended.handle.workflowId, ended);
  await stop();
});
afterAll(async () => {
  await Promise.all([rig.close(), stub.close(), ledger.close()]);
  await rm(home, { recursive: true, force: true });
});

test.each([
  { where: 'retrieval', id: RETRIEVAL, retrievals: 2, requests: 1 },
  { where: 'model call', id: CALL, retrievals: 1, requests: 2 },
])(
  'a worker killed by SIGKILL in the $where has no effect on the run',
  ({ id, retrievals, requests }) => {
    const ended = ends.get(id);
    expect(ended?.outcome).toMatchObject({ status: 'completed', answer: 'answered', steps: 1 });
    expect(ledger.attempts.filter(({ key }) => key === id)).toHaveLength(retrievals);
    const asked = stub.requests.filter(({ text }) => text.includes(id));
    expect(asked).toHaveLength(requests);
    const messages = ended?.projection.messages ?? [];
    expect(messages.map(({ role }) => role)).toEqual(['user', 'user', 'user', 'assistant']);
    expectPromptsMatch(asked, messages);
  },
);
