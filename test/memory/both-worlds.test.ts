import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Agent } from '../../src/agents/agent.js';
import { openClient } from '../../src/client/create-client.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import type { MemoryOptions } from '../../src/memory/run-in-memory.js';
import type { ScriptStep } from '../../src/testing/script.js';
import {
  type Action,
  answer,
  approve,
  approveSome,
  closeRun,
  decision,
  deny,
  edit,
  replyCall,
  replyCalls,
  replyError,
  replyRefusal,
  replyText,
  runInMemory,
  scriptedModel,
  send,
} from '../../src/testing.js';
import { askPerson } from '../../src/tools.js';
import { look, pay, peek, useSourceBundle } from '../support/memory.js';
import { type Rig, createRig } from '../support/rig.js';

/** A script that both a server and memory can play: nothing in it depends on time. */
interface Scenario {
  readonly agent: Agent;
  readonly model: readonly ScriptStep[];
  readonly options?: Pick<MemoryOptions, 'limits' | 'open'>;
  /** By tool or kind, as in `on.request`. */
  readonly decides?: Readonly<Record<string, Action>>;
  readonly waiting?: readonly Action[];
}

const desk = defineAgent({ name: 'desk', instructions: 'Help.', model: 'm', tools: [look, pay] });
const reader = defineAgent({ name: 'reader', instructions: 'Help.', model: 'm', tools: [peek] });
const typed = defineAgent({
  name: 'typed',
  instructions: 'Count.',
  model: 'm',
  output: z.object({ count: z.int() }),
});
const helper = defineAgent({
  name: 'helper',
  description: 'Looks.',
  instructions: 'Look.',
  model: 'm',
  tools: [look],
});
const boss = defineAgent({ name: 'boss', instructions: 'Lead.', model: 'm', agents: [helper] });
const curious = defineAgent({
  name: 'curious',
  instructions: 'Ask.',
  model: 'm',
  tools: [askPerson()],
});
const asking = defineAgent({
  name: 'asking',
  instructions: 'Look.',
  model: 'm',
  tools: [look],
  onLimit: 'ask',
});
const planner = planAndExecute({
  name: 'planner',
  instructions: 'Plan.',
  model: 'm',
  tools: [look, pay],
  confirm: { when: 'always' },
});
const plan = JSON.stringify({
  actions: [
    { id: 'a1', tool: 'look', arguments: { n: 1 } },
    { id: 'a2', tool: 'pay', arguments: { n: 2 }, after: ['a1'] },
  ],
});
const looks = (count: number): readonly ScriptStep[] =>
  Array.from({ length: count }, (_, n) => replyCall('look', { n }));
const pays = [replyCall('pay', { n: 6 }), replyText('Done.')];

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'an answer': { agent: desk, model: [replyText('Hello.')] },
  'calls one after another': { agent: desk, model: [...looks(3), replyText('Done.')] },
  'parallel calls': {
    agent: desk,
    model: [
      replyCalls([1, 2, 3].map((n) => ({ name: 'look', arguments: { n } }))),
      replyText('Done.'),
    ],
  },
  'inline reads, of which one throws': {
    agent: reader,
    model: [
      replyCalls([1, 2, 13].map((n) => ({ name: 'peek', arguments: { n } }))),
      replyCall('peek', { n: 3 }),
      replyText('Done.'),
    ],
  },
  'an approval': { agent: desk, model: pays, decides: { pay: approve({ by: 'ann' }) } },
  'a denial with a note': { agent: desk, model: pays, decides: { pay: deny({ note: 'no' }) } },
  'an edit': { agent: desk, model: pays, decides: { pay: edit({ n: 2 }) } },
  'a result of a person': { agent: desk, model: pays, decides: { pay: answer('paid by hand') } },
  'a question': {
    agent: curious,
    model: [replyCall('ask_person', { question: 'Which?' }), replyText('Thanks.')],
    decides: { question: answer('the red one') },
  },
  'an unknown tool and bad arguments': {
    agent: desk,
    model: [replyCall('lok', {}), replyCall('look', { n: 'x' }), replyText('Sorry.')],
  },
  'a refused answer, repaired': {
    agent: typed,
    model: [replyText('{"count":"x"}'), replyText('{"count":3}')],
  },
  'a refusal of the model': { agent: desk, model: [replyRefusal('I will not.')] },
  'a failed attempt': {
    agent: desk,
    model: [replyError(500, { message: 'down' }), replyText('Hello.')],
  },
  'a limit of steps': {
    agent: desk,
    model: [...looks(2), replyText('So far.')],
    options: { limits: { steps: 2 } },
  },
  'a raised limit': {
    agent: asking,
    model: [...looks(3), replyText('Done.')],
    options: { limits: { steps: 2 } },
    decides: { limit: decision({ as: 'raise', arguments: { steps: 5 } }) },
  },
  'a called agent': {
    agent: boss,
    model: [
      replyCall('helper', { message: 'look' }),
      replyCall('look', { n: 1 }),
      replyText('Seen.'),
      replyText('Done.'),
    ],
  },
  'a whole plan': {
    agent: planner,
    model: [replyText(plan), replyText('Report.')],
    decides: { plan: approve() },
  },
  'a part of a plan': {
    agent: planner,
    model: [replyText(plan), replyText('Report.')],
    decides: { plan: approveSome(['a1']) },
  },
  'an open run, closed': {
    agent: desk,
    model: [replyText('1'), replyText('2')],
    options: { open: true },
    waiting: [send('Two'), closeRun()],
  },
};

let rig: Rig;
let client: PerdureClient;

beforeAll(async () => {
  await useSourceBundle();
  rig = await createRig();
  client = await openClient({ client: rig.client, taskQueue: rig.taskQueue, home: rig.home });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

interface Seen {
  readonly transcript: unknown;
  readonly outcome: unknown;
  readonly status: unknown;
  readonly requests: readonly unknown[];
  readonly modelRequests: readonly unknown[];
}

const MESSAGE = 'Go';

async function inMemory(scenario: Scenario): Promise<Seen> {
  const { agent, model, options, decides = {}, waiting = [] } = scenario;
  const on = { request: decides, waiting };
  return await runInMemory(agent, {
    message: MESSAGE,
    ...options,
    model: scriptedModel(model),
    on,
  });
}

async function onServer(scenario: Scenario): Promise<Seen> {
  const { agent, options = {}, decides = {}, waiting = [] } = scenario;
  const model = scriptedModel(scenario.model);
  await rig.worker([agent], { models: { m: model } });
  const { id } = await client.start(agent, { message: MESSAGE, ...options });
  const requests = new Map<string, unknown>();
  const left = [...waiting];
  for (;;) {
    const { status, pending } = await client.status(id);
    if (status === 'done') break;
    for (const request of pending.filter((one) => !requests.has(one.id))) {
      const { kind, tool = '' } = request;
      const action = decides[kind] ?? decides[tool];
      if (action?.type !== 'decide') throw new Error(`no decision for ${kind}`);
      requests.set(request.id, { ...request, run: id, decided: [action.decision] });
      await client.resolve(id, { request: request.id, digest: request.digest, ...action.decision });
    }
    if (status === 'waiting_message') {
      const action = left.shift();
      if (action?.type === 'send') await client.send(id, { ...action.message, id: 'sent' });
      else await client.close(id);
    }
    await pause(20);
  }
  await rig.stopWorkers();
  const status = await client.status(id);
  return {
    transcript: await client.transcript(id, { side: true }),
    outcome: status.outcome,
    status,
    requests: [...requests.values()],
    modelRequests: model.requests,
  };
}

/** Fields with ids and times of the world in which the run happened. */
const OF_WORLD = new Set([
  'at',
  'digest',
  'expiresAt',
  'fix',
  'historyLength',
  'id',
  'raisedAt',
  'run',
  'runId',
  'waitMs',
]);

/** Writes what both worlds have in common, with sorted keys. */
function normalized(seen: Seen): string {
  const { transcript, outcome, status, requests, modelRequests } = seen;
  return JSON.stringify(
    { transcript, outcome, status, requests, modelRequests },
    (key, value: unknown) => {
      if (OF_WORLD.has(key)) return undefined;
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
      return Object.fromEntries(
        Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)),
      );
    },
    1,
  );
}

describe('a scripted run is the same on a server and in memory', () => {
  test.each(Object.keys(SCENARIOS))('%s', async (name) => {
    const scenario = SCENARIOS[name];
    if (scenario === undefined) throw new Error(name);
    const memory = normalized(await inMemory(scenario));
    expect(memory).toBe(normalized(await onServer(scenario)));
  });
});
