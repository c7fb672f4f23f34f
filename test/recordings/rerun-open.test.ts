import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { type MemoryOptions, playPartly } from '../../src/memory/run-in-memory.js';
import type { Model } from '../../src/models/model.js';
import { evaluate } from '../../src/recordings/evaluate.js';
import type { Recording } from '../../src/recordings/recording.js';
import { parseRecording } from '../../src/recordings/parse-recording.js';
import { writeRecording } from '../../src/recordings/recording-files.js';
import { recordingOf, rerun } from '../../src/recordings/rerun.js';
import {
  after,
  approve,
  cancelRun,
  cancelTurn,
  closeRun,
  noDecision,
  replyCall,
  replyCalls,
  replyError,
  replyText,
  scriptedModel,
  send,
  setRunLimits,
} from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

const input = z.object({ n: z.number().optional() });
const common = { description: 'Does.', input } as const;
const look = defineTool({
  ...common,
  name: 'look',
  effect: 'read',
  execute: ({ n }) => `saw ${n}`,
});
const pay = defineTool({
  ...common,
  name: 'pay',
  effect: 'once',
  approval: 'always',
  execute: ({ n }) => `paid ${n}`,
});
const hang = defineTool({
  ...common,
  name: 'hang',
  effect: 'keyed',
  execute: async (_, { signal }) =>
    await new Promise<string>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')));
    }),
});
const tools = [look, pay, hang];
const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools });
const asking = defineAgent({ name: 'asking', instructions: 'Help.', tools, onLimit: 'ask' });
const timed = defineAgent({
  name: 'timed',
  instructions: 'Help.',
  tools,
  rules: [{ tool: 'pay', then: 'ask', expires: '1 day' }],
});
const helper = defineAgent({
  name: 'helper',
  description: 'Helps.',
  instructions: 'Look.',
  tools,
});
const boss = defineAgent({ name: 'boss', instructions: 'Lead.', agents: [helper], tools });
const planner = planAndExecute({ name: 'planner', instructions: 'Plan.', tools: [look, pay] });
const plan = replyText(
  JSON.stringify({ actions: [{ id: 'a1', tool: 'pay', arguments: { n: 2 } }] }),
);

const script = scriptedModel([replyCall('pay', { n: 1 })]);
/** Replies once. */
const replyThenWait: Model = {
  ...script,
  async call(request, context) {
    if (script.requests.length === 0) return await script.call(request, context);
    return await new Promise<never>((_resolve, reject) => {
      const abort = (): void => reject(new Error('aborted'));
      if (context.signal.aborted) abort();
      context.signal.addEventListener('abort', abort);
    });
  },
};

/** Records a run, which may wait for something that does not come. */
async function record(agent: Agent, options: MemoryOptions): Promise<Recording> {
  const { run } = await playPartly(agent, { message: 'Go', ...options });
  return parseRecording(JSON.parse(JSON.stringify(recordingOf(run, { blobs: {} }))));
}

/** Returns a recording as 0.2.0 made it. */
function asOf020(recording: Recording): Recording {
  const runs = recording.runs.map(({ undecided: _undecided, lastTurn: _lastTurn, ...run }) => run);
  return { ...recording, runs };
}

interface Form {
  readonly agent: Agent;
  readonly options: MemoryOptions;
  readonly ends: string;
}

const undecided = { pay: noDecision() };
const FORMS: Readonly<Record<string, Form>> = {
  'the run was canceled while a request was open': {
    agent: desk,
    options: {
      model: [replyCall('pay', { n: 1 }), replyText('Paid.')],
      on: { request: undecided },
      at: { '1 hour': cancelRun() },
    },
    ends: 'cancelled',
  },
  'a turn was canceled while one of two requests was open': {
    agent: desk,
    options: {
      open: true,
      model: [
        replyCalls([
          { name: 'pay', arguments: { n: 1 } },
          { name: 'pay', arguments: { n: 2 } },
        ]),
        replyText('Better.'),
      ],
      on: {
        request: { pay: (request) => (request.arguments === '{"n":1}' ? approve() : noDecision()) },
        waiting: [send('Again'), closeRun()],
      },
      at: { '1 hour': cancelTurn() },
    },
    ends: 'completed',
  },
  'a turn was canceled while a tool ran': {
    agent: desk,
    options: {
      open: true,
      model: [replyCall('hang', {}), replyText('Better.')],
      on: { call: { hang: cancelTurn() }, waiting: [send('Again'), closeRun()] },
    },
    ends: 'completed',
  },
  'the run was canceled while two tools ran': {
    agent: desk,
    options: {
      model: [
        replyCalls([
          { name: 'look', arguments: { n: 1 } },
          { name: 'hang', arguments: {} },
        ]),
        replyText('Done.'),
      ],
      on: { call: { hang: cancelRun() } },
    },
    ends: 'cancelled',
  },
  'the run was canceled while a called agent waited for a tool': {
    agent: boss,
    options: {
      model: [
        replyCall('helper', { message: 'Help' }),
        replyCall('look', { n: 1 }),
        replyCall('hang', {}),
        replyText('Helped.'),
      ],
      on: { call: { hang: cancelRun() } },
    },
    ends: 'cancelled',
  },
  'the run was canceled while it waited for a message': {
    agent: desk,
    options: { open: true, model: [replyText('Hello.')], on: { waiting: [cancelRun()] } },
    ends: 'cancelled',
  },
  'limits were raised while the run asked for more': {
    agent: asking,
    options: {
      limits: { steps: 2 },
      model: [...[1, 2, 3].map((n) => replyCall('look', { n })), replyText('Seen.')],
      on: { request: { limit: noDecision() } },
      at: { '1 hour': setRunLimits({ steps: 9 }) },
    },
    ends: 'completed',
  },
  'limits were lowered before a decision': {
    agent: desk,
    options: {
      model: [replyCall('pay', { n: 1 }), replyText('Closing.')],
      on: { request: { pay: after('2 hours', approve()) } },
      at: { '1 hour': setRunLimits({ steps: 1 }) },
    },
    ends: 'stopped',
  },
  'a plan was approved by a message': {
    agent: planner,
    options: {
      model: [plan, replyText('Report.')],
      on: { request: { plan: noDecision() } },
      at: { '1 hour': send('yes') },
    },
    ends: 'completed',
  },
  'a request had expired before the run was canceled': {
    agent: timed,
    options: {
      model: replyThenWait,
      on: { request: undecided, step: { 2: cancelRun() } },
    },
    ends: 'cancelled',
  },
  'a request had expired': {
    agent: timed,
    options: {
      model: [replyCall('pay', { n: 1 }), replyText('No.')],
      on: { request: undecided },
    },
    ends: 'completed',
  },
};

describe('a rerun repeats what came from outside', () => {
  test.each(Object.entries(FORMS))('%s', async (_name, { agent, options, ends }) => {
    const recording = await record(agent, options);
    const [root] = recording.runs;
    expect(root?.outcome?.status).toBe(ends);
    const again = await rerun(recording, { agent });
    expect(again.divergence?.text).toBeUndefined();
    expect(again.outcome).toMatchObject({ status: ends, reason: root?.outcome?.reason });
    // Those of 0.2.0 do not say which requests nobody decided.
    const older = await rerun(asOf020(recording), { agent });
    expect(older.divergence?.text).toBeUndefined();
  });
});

describe('a rerun of a run that was open', () => {
  const refused = (status: number) =>
    scriptedModel(
      Array.from({ length: 40 }, () =>
        replyError(status, { error: { message: 'not like this', code: 'invalid' } }),
      ),
    );
  const waiting = { open: true, model: [replyCall('look', { n: 1 }), replyText('Seen.')] };
  const withRequest = {
    model: [replyCall('pay', { n: 1 })],
    on: { request: undecided },
    within: '1 hour',
  } as const;

  test('waits where it waited: for a message, or for a decision that may expire', async () => {
    for (const [agent, options] of [
      [desk, waiting],
      [desk, withRequest],
      [timed, withRequest],
    ] as const) {
      const recording = await record(agent, options);
      expect(recording.runs[0]?.endedAt).toBeNull();
      const { divergence } = await rerun(recording, { agent });
      expect(divergence?.text).toBeUndefined();
      const [, reply = replyText('')] = options.model;
      const model = scriptedModel([...options.model.slice(0, 1), reply]);
      const other = await rerun(recording, { agent, model });
      expect(other.divergence?.text).toBeUndefined();
    }
  });

  test('ends where the recording ends: with a model call, or with a tool that runs', async () => {
    const model = [replyCall('look', { n: 1 }), replyText('Seen.')];
    const recording = await record(desk, { model });
    // The messages are the question, the call, its result, and the answer.
    for (const [known, replies] of [
      [3, 1],
      [2, 1],
      [1, 0],
    ] as const) {
      const runs = recording.runs.map((run) => ({
        ...run,
        endedAt: null,
        outcome: null,
        lastTurn: null,
        messages: run.messages.slice(0, known),
        facts: run.facts.filter(
          (fact) =>
            (fact.type !== 'result' || known > 2) &&
            (fact.type !== 'reply' || fact.step <= replies),
        ),
      }));
      const { divergence, transcript } = await rerun({ ...recording, runs }, { agent: desk });
      expect(divergence?.text).toBeUndefined();
      expect(transcript.messages).toHaveLength(known);
    }
  });

  test('rejects with the error of a model that cannot be called', async () => {
    for (const options of [waiting, withRequest]) {
      const recording = await record(desk, options);
      for (const status of [400, 401]) {
        const again = rerun(recording, { agent: desk, model: refused(status) });
        await expect(again).rejects.toThrow('not like this');
      }
    }
  });

  test('finds that the last turn failed, or ended otherwise', async () => {
    const recording = await record(desk, waiting);
    const limited = (onLimit: 'fail' | 'answer'): Agent =>
      defineAgent({ name: 'desk', instructions: 'Help.', tools, limits: { steps: 1 }, onLimit });
    const model = () => scriptedModel([replyCall('look', { n: 1 }), replyText('Closing.')]);
    const failed = await rerun(recording, { agent: limited('fail'), model: model() });
    expect(failed.divergence).toMatchObject({ kind: 'outcome', turn: 1 });
    expect(failed.divergence?.text).toContain('failed: steps: the limit was reached');
    const stopped = await rerun(recording, { agent: limited('answer'), model: model() });
    expect(stopped.divergence).toMatchObject({
      kind: 'outcome',
      actual: { status: 'stopped', reason: 'steps' },
      recorded: { status: 'completed', reason: 'answer' },
    });
    const stuck = await rerun(recording, {
      agent: defineAgent({
        name: 'desk',
        instructions: 'Help.',
        tools,
        rules: [{ tool: 'look', then: 'ask' }],
      }),
      model: scriptedModel([replyCall('look', { n: 1 }), replyText('Seen.')]),
    });
    expect(stuck.divergence).toMatchObject({ kind: 'request', turn: 1, step: 1 });
  });

  test('has the answer of its last turn on both sides of an evaluation', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'open-'));
    const recording = await record(desk, waiting);
    await writeRecording(join(folder, 'new.json'), recording);
    await writeRecording(join(folder, 'old.json'), asOf020(recording));
    const { cases } = await evaluate(folder, {
      agents: [desk],
      model: () => scriptedModel([replyCall('look', { n: 1 }), replyText('I saw it.')]),
    });
    await rm(folder, { recursive: true });
    for (const { recorded, replayed, candidates } of cases) {
      expect([recorded, replayed, candidates[0]?.run].map((side) => side?.answer)).toEqual([
        'Seen.',
        'Seen.',
        'I saw it.',
      ]);
    }
    expect(cases[0]?.recorded?.outcome).toMatchObject({ status: 'completed' });
    expect(cases).toHaveLength(2);
  });
});
