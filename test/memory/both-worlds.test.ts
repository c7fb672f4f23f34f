import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { openClient } from '../../src/client/create-client.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import type { ScriptStep } from '../../src/testing/script.js';
import {
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
  send,
} from '../../src/testing.js';
import { askPerson } from '../../src/tools.js';
import { type Scenario, inMemory, normalized, onServer } from '../support/both-worlds.js';
import { look, pay, peek, useSourceBundle } from '../support/memory.js';
import { type Rig, createRig } from '../support/rig.js';

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

describe('a scripted run is the same on a server and in memory', () => {
  test.each(Object.keys(SCENARIOS))('%s', async (name) => {
    const scenario = SCENARIOS[name];
    if (scenario === undefined) throw new Error(name);
    const memory = normalized(await inMemory(scenario));
    const seen = await onServer(scenario, { client, temporal: rig.client }, async (model) => {
      await rig.worker([scenario.agent], { models: { m: model } });
    });
    await rig.stopWorkers();
    expect(memory).toBe(normalized(seen));
  });
});
