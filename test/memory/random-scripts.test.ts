import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { openClient } from '../../src/client/create-client.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { Model } from '../../src/models/model.js';
import type { ScriptStep } from '../../src/testing/script.js';
import {
  type Action,
  answer,
  approve,
  cancelRun,
  cancelTurn,
  closeRun,
  decision,
  deny,
  edit,
  replyCalls,
  replyError,
  replyRefusal,
  replyText,
  send,
} from '../../src/testing.js';
import { askPerson, wait } from '../../src/tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { ToolError } from '../../src/tools/errors.js';
import { type Scenario, inMemory, normalized, onServer } from '../support/both-worlds.js';
import { look, pay, useSourceBundle } from '../support/memory.js';
import { replayLater } from '../support/replays.js';
import { type Rig, createRig } from '../support/rig.js';

/**
 * Random scripts that both worlds play. All 200 are played with `PERDURE_SCRIPTS=200`, and any other number of
 * them likewise; a single one with `PERDURE_SCRIPTS=1 PERDURE_SEED=17`.
 */
const COUNT = Number(process.env['PERDURE_SCRIPTS'] ?? 24);
const FIRST = Number(process.env['PERDURE_SEED'] ?? 1);
/** How many scripts are played at once. */
const AT_ONCE = 4;

type Random = () => number;

/** Returns numbers from 0 up to 1 that depend on the seed alone. */
function randomOf(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) % 2 ** 32;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function pick<T>(random: Random, from: readonly T[]): T {
  const picked = from[Math.floor(random() * from.length)];
  if (picked === undefined) throw new Error('there is nothing to pick');
  return picked;
}

const number = z.object({ n: z.number() });
/** Ends in a way that depends on its argument. */
const moody = defineTool({
  name: 'moody',
  description: 'Notes something.',
  effect: 'keyed',
  input: number,
  retry: { attempts: 1 },
  execute: ({ n }) => {
    if (n % 3 === 0) throw new ToolError(`not ${n}; take another one`);
    if (n % 3 === 1) throw new Error(`${n} is broken`);
    return { noted: n, long: 'x'.repeat(n * 700) };
  },
});
const tools = [look, pay, moody, askPerson(), wait()];
const base = { instructions: 'Help.', model: 'm', tools };
const helper = defineAgent({
  ...base,
  name: 'helper',
  description: 'Helps.',
  tools: [look, moody],
});
const AGENTS: readonly Agent[] = [
  defineAgent({ ...base, name: 'desk' }),
  defineAgent({ ...base, name: 'asking', onLimit: 'ask', limits: { steps: 3 } }),
  defineAgent({ ...base, name: 'short', limits: { steps: 3, toolCalls: 4 } }),
  defineAgent({ ...base, name: 'typed', output: z.object({ count: z.int() }) }),
];
const boss = defineAgent({ ...base, name: 'boss', tools: [look], agents: [helper] });

function callsOf(random: Random): ScriptStep {
  const one = () =>
    pick(random, [
      () => ({ name: 'look', arguments: { n: Math.floor(random() * 9) } }),
      () => ({ name: 'look', arguments: { n: Math.floor(random() * 9) } }),
      () => ({ name: 'moody', arguments: { n: Math.floor(random() * 9) } }),
      () => ({ name: 'pay', arguments: { n: Math.floor(random() * 9) } }),
      () => ({ name: 'ask_person', arguments: { question: 'Which?' } }),
      () => ({ name: 'wait', arguments: { seconds: 1 } }),
      () => ({ name: 'look', arguments: { n: 'seven' } }),
      () => ({ name: 'lok', arguments: {} }),
    ])();
  return replyCalls(Array.from({ length: 1 + Math.floor(random() ** 2 * 3) }, one));
}

const DOWN = replyError(500, { message: 'down' });

/** A turn of the model: some steps, and an answer. */
function turnOf(random: Random): readonly ScriptStep[] {
  const steps = Array.from({ length: Math.floor(random() * 4) }, () => callsOf(random));
  const faults = random() < 0.1 ? [DOWN] : [];
  const ends = [
    [replyText('Done.')],
    [replyText('{"count":3}')],
    [replyText('{"count":"x"}'), replyText('{"count":4}')],
    [replyRefusal('I will not.')],
  ];
  return [...steps, ...faults, ...pick(random, ends)];
}

const DECISIONS: readonly Action[] = [
  approve({ by: 'ann' }),
  deny({ note: 'no' }),
  edit({ n: 2 }),
  answer('done by hand'),
];

/**
 * Returns the script of a seed. It has more replies than the run takes, so that none is missing. `calls`: how many
 * model calls the run makes if nothing happens in the middle; with 0, nothing does.
 */
function scenarioOf(seed: number, calls: number): Scenario {
  const random = randomOf(seed);
  const isBoss = random() < 0.15;
  const open = random() < 0.5;
  const limited = pick(random, [
    decision({ as: 'raise', arguments: { steps: 30 } }),
    decision({ as: 'stop' }),
  ]);
  const called = ['one', 'two'].flatMap((message) => [
    replyCalls([{ name: 'helper', arguments: { message: `${message} #${seed}#` } }]),
    replyCalls([{ name: 'look', arguments: { n: 1 } }]),
    replyText('Seen.'),
  ]);
  const model = isBoss ? called : [turnOf(random), turnOf(random), turnOf(random)].flat();
  const spare = Array.from({ length: 12 }, () => replyText('{"count":5}'));
  const messages = Array.from({ length: Math.floor(random() * 3) }, (_, at) =>
    send(`More ${at} #${seed}#`),
  );
  const middle: readonly (readonly [number, Action])[] =
    random() < 0.4
      ? [
          [
            1 + Math.floor(random() * calls),
            pick(random, [
              send(`By the way #${seed}#`),
              send({ message: `Also this #${seed}#`, mode: 'steer' }),
              cancelTurn(),
              cancelRun(),
            ]),
          ],
        ]
      : [];
  const kill = { at: 'before-reply', step: 1 + Math.floor(random() * calls), kill: true } as const;
  return {
    agent: isBoss ? boss : pick(random, AGENTS),
    message: `Go #${seed}#`,
    model: [...model, ...spare],
    options: { open },
    decides: { pay: pick(random, DECISIONS), question: answer('the red one'), limit: limited },
    step: open && calls > 0 ? Object.fromEntries(middle) : {},
    waiting: open ? [...messages, closeRun()] : [],
    // A lost call counts as one, and the report of a failed call has the number of its attempt.
    faults:
      calls > 0 && middle.length === 0 && !model.includes(DOWN) && random() < 0.5 ? [kill] : [],
  };
}

let rig: Rig;
let client: PerdureClient;
/** The models of the runs that are being played, by the seed, which is in each message of a person. */
const models = new Map<string, Model>();
const byMessage: Model = {
  async call(request, context) {
    const seed = /#(\d+)#/.exec(request.messages.map(({ text }) => text).join(' '))?.[1] ?? '';
    const model = models.get(seed);
    if (model === undefined) throw new Error(`no script has the seed ${seed}`);
    return await model.call(request, context);
  },
};

beforeAll(async () => {
  await useSourceBundle();
  rig = await createRig();
  client = await openClient({ client: rig.client, taskQueue: rig.taskQueue, home: rig.home });
  await rig.worker([...AGENTS, boss], { models: { m: byMessage } });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

const seeds = Array.from({ length: COUNT }, (_, at) => FIRST + at);
const groups = Array.from({ length: Math.ceil(COUNT / AT_ONCE) }, (_, at) =>
  seeds.slice(at * AT_ONCE, (at + 1) * AT_ONCE),
);

test.each(groups)(
  'random scripts %i and the next are the same in both worlds',
  async (...group) => {
    const played = group.map(async (seed) => {
      const { modelRequests } = await inMemory(scenarioOf(seed, 0));
      const scenario = scenarioOf(seed, modelRequests.length);
      const memory = await inMemory(scenario);
      for (const { id, history } of memory.history) replayLater(history, id);
      const server = await onServer(scenario, { client, temporal: rig.client }, (model) => {
        models.set(String(seed), model);
      });
      expect({ seed, seen: normalized(memory) }).toEqual({ seed, seen: normalized(server) });
    });
    const ends = await Promise.allSettled(played);
    const failed = ends.flatMap((end) =>
      end.status === 'rejected' ? [end.reason as unknown] : [],
    );
    if (failed.length > 0) throw failed.length === 1 ? failed[0] : new AggregateError(failed);
  },
);
