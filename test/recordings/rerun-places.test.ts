import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { type MemoryOptions, playRun } from '../../src/memory/run-in-memory.js';
import { binaryClassify, classify } from '../../src/output/classes/classes.js';
import type { Recording } from '../../src/recordings/recording.js';
import { parseRecording } from '../../src/recordings/parse-recording.js';
import { recordingOf, rerun } from '../../src/recordings/rerun.js';
import {
  type ScriptStep,
  approve,
  noDecision,
  replyCall,
  replyCalls,
  replyText,
  scriptedModel,
} from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';

const executed: string[] = [];
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ n: z.number() }),
  effect: 'read',
  execute: ({ n }) => `saw ${n}`,
});

async function record(agent: Agent, options: MemoryOptions): Promise<Recording> {
  const run = await playRun(agent, options);
  return parseRecording(JSON.parse(JSON.stringify(recordingOf(run, { blobs: {} }))));
}

/** Returns the texts of the assistant in the run that was called with a message. */
function saidIn({ runs }: Recording, message: string): readonly string[] {
  const run = runs.find(({ input }) => input.message === message);
  return (run?.messages ?? []).flatMap(({ role, text }) =>
    role === 'assistant' && text !== '' ? [text] : [],
  );
}

describe('the recorded model replies by run, turn, and step', () => {
  const helper = defineAgent({
    name: 'helper',
    description: 'Helps.',
    instructions: 'Look.',
    tools: [look],
  });
  const calls = ['red', 'blue'].map((message) => ({ name: 'helper', arguments: { message } }));
  const boss = defineAgent({ name: 'boss', instructions: 'Lead.', agents: [helper] });

  const reply: ScriptStep = ({ messages }) => {
    const texts = messages.map(({ text }) => text);
    if (texts.includes('Go')) return texts.length === 1 ? replyCalls(calls) : replyText('Both.');
    if (texts.length === 1) return replyCall('look', { n: 1 });
    return replyText(texts.includes('red') ? 'It is red.' : 'It is blue.');
  };

  test('to one of two agents whose prompts end alike, also if the other is not called', async () => {
    const recording = await record(boss, {
      message: 'Go',
      model: [reply, reply, reply, reply, reply, reply],
    });
    const strict = defineAgent({
      name: 'boss',
      instructions: 'Lead.',
      agents: [helper],
      rules: [{ tool: 'helper', where: { op: 'eq', path: 'message', value: 'red' }, then: 'deny' }],
    });
    const { divergence, recording: again } = await rerun(recording, { agent: strict });
    expect(divergence).toMatchObject({ agent: 'boss', turn: 1, step: 1, kind: 'message' });
    expect(saidIn(recording, 'blue')).toEqual(['It is blue.']);
    expect(saidIn(again, 'blue')).toEqual(['It is blue.']);
  });

  test('and to no call that a decision function makes', async () => {
    const deciding = defineAgent({
      name: 'twice',
      instructions: 'Think twice.',
      model: 'm',
      decide: async ({ model }) => {
        const draft = await model.call();
        return { ...draft, text: `${draft.text} Really.` };
      },
    });
    const decided = await record(deciding, { message: 'Go', model: [replyText('Yes.')] });
    const again = await rerun(decided, { agent: deciding });
    expect(again.divergence).toMatchObject({ agent: 'twice', turn: 1, step: 1, kind: 'model' });
    expect(saidIn(again.recording, 'Go')).toEqual([]);
  });

  test('with summaries, which are no steps, also in a recording that does not tell them apart', async () => {
    const long = 'x'.repeat(900);
    const note = defineTool({
      name: 'note',
      description: 'Notes.',
      input: z.object({ n: z.number() }),
      effect: 'keyed',
      execute: ({ n }) => `${n} ${long}`,
    });
    const clerk = defineAgent({ name: 'clerk', instructions: 'Note.', model: 'm', tools: [note] });
    const model = scriptedModel(
      Array.from({ length: 40 }, () => ({ messages, tools }) => {
        const usage = {
          inputTokens: JSON.stringify(messages).length >> 2,
          outputTokens: 5,
          cachedTokens: 0,
        };
        const results = messages.filter(({ role }) => role === 'tool').length;
        if (tools.length === 0) return { ...replyText('What was before.'), usage };
        const isOver = JSON.stringify(messages).includes('What was before.') && results > 3;
        return { ...(isOver ? replyText('Done.') : replyCall('note', { n: results })), usage };
      }),
    );
    const recording = await record(clerk, {
      message: 'Go',
      models: { m: { ...model, window: 3_000 } },
    });
    const summaries = recording.runs[0]?.facts.filter(
      (fact) => fact.type === 'reply' && fact.summary === true,
    );
    expect(summaries?.length).toBeGreaterThan(0);
    expect((await rerun(recording, { agent: clerk })).divergence?.text).toBeUndefined();
    const older = parseRecording(
      JSON.parse(
        JSON.stringify(recording, (key, value: unknown) => (key === 'summary' ? undefined : value)),
      ),
    );
    expect((await rerun(older, { agent: clerk })).divergence?.text).toBeUndefined();
  });

  test('with the probabilities of classes, and with votes', async () => {
    const mood = defineAgent({
      name: 'mood',
      instructions: 'Judge.',
      output: classify(['calm', 'angry']),
    });
    const logprobs = [
      {
        token: 'B',
        logprob: Math.log(0.7),
        top: [
          { token: 'B', logprob: Math.log(0.7) },
          { token: 'A', logprob: Math.log(0.2) },
        ],
      },
    ];
    const probable = await record(mood, {
      message: 'Go',
      model: [{ ...replyText('B'), logprobs }],
    });
    const again = await rerun(probable, { agent: mood });
    expect(again.divergence?.text).toBeUndefined();
    expect(again.outcome?.answer).toBe('angry');
    expect(JSON.stringify(again.outcome?.output)).toContain('"probability":0.7');

    const sure = defineAgent({
      name: 'sure',
      instructions: 'Judge.',
      output: binaryClassify({ samples: 4 }),
    });
    const voted = await record(sure, {
      message: 'Go',
      model: ['true', 'false', 'nonsense', 'true'].map((text) => replyText(text)),
    });
    const votes = await rerun(voted, { agent: sure });
    expect(votes.divergence?.text).toBeUndefined();
    expect(votes.outcome?.output).toEqual(voted.runs[0]?.outcome?.output);
    expect(votes.outcome?.usage).toEqual(voted.runs[0]?.outcome?.usage);
  });
});

describe('recorded results', () => {
  const gates: (() => void)[] = [];
  let ticks = 0;
  const tick = defineTool({
    name: 'tick',
    description: 'Counts.',
    input: z.object({}),
    effect: 'read',
    async execute() {
      ticks += 1;
      const mine = ticks;
      // The first call ends after the second.
      if (mine === 1) await new Promise<void>((resolve) => gates.push(resolve));
      else for (const open of gates.splice(0)) setTimeout(open, 5);
      return `tick ${mine}`;
    },
  });
  const clock = defineAgent({ name: 'clock', instructions: 'Count.', tools: [tick] });
  const both = replyCalls([
    { name: 'tick', arguments: {} },
    { name: 'tick', arguments: {} },
  ]);

  test('belong to their calls, if two calls are alike', async () => {
    const recording = await record(clock, { message: 'Go', model: [both, replyText('Two.')] });
    const results = recording.runs[0]?.messages.filter(({ role }) => role === 'tool');
    expect(results?.map(({ text }) => text)).toEqual(['tick 1', 'tick 2']);
    expect((await rerun(recording, { agent: clock })).divergence?.text).toBeUndefined();

    const model = scriptedModel([both, both, replyText('Four.')]);
    const more = await rerun(recording, { agent: clock, model });
    expect(more.effects.flatMap(({ result }) => result ?? [])).toEqual(['tick 1', 'tick 2']);
    expect(more.divergence?.text).toBe(
      'clock, turn 1, step 2: called tick {}; recorded nothing here, but the same call elsewhere',
    );
    expect(ticks).toBe(2);
  });

  test('of verify are recorded, too: it is not executed', async () => {
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({ n: z.number() }),
      effect: 'once',
      approval: 'always',
      execute: ({ n }) => `paid ${n}`,
      verify() {
        executed.push('verify');
        return { happened: true, result: 'paid, says the bank' };
      },
    });
    const desk = defineAgent({ name: 'desk', instructions: 'Pay.', tools: [pay] });
    const recording = await record(desk, {
      message: 'Go',
      model: [replyCall('pay', { n: 1 }), replyText('Done.')],
      on: { request: { pay: approve() } },
      faults: [{ at: 'after-effect', call: 1, kill: true }],
    });
    expect(executed).toEqual(['verify']);
    executed.length = 0;
    const { divergence, transcript } = await rerun(recording, { agent: desk });
    expect(divergence?.text).toBeUndefined();
    expect(transcript.messages.map(({ text }) => text)).toContain('paid, says the bank');
    expect((await rerun(recording)).divergence?.text).toBeUndefined();
    expect(executed).toEqual([]);
    const facts = recording.runs[0]?.facts.filter(
      (fact) => fact.type !== 'activity' || fact.activity !== 'runFunction',
    );
    const cut = {
      ...recording,
      runs: recording.runs.map((one) => ({ ...one, facts: facts ?? [] })),
    };
    const lacking = await rerun(cut, { agent: desk });
    expect(lacking.divergence?.text).toBe(
      'desk, turn 1, step 1: called verify of pay {"n":1}; recorded nothing',
    );
    expect(executed).toEqual([]);
  });

  test('of a retrieval that the recording does not have are a difference', async () => {
    const plain = defineAgent({ name: 'reader', instructions: 'Read.' });
    const recording = await record(plain, { message: 'Go', model: [replyText('Read.')] });
    const agent = defineAgent({
      name: 'reader',
      instructions: 'Read.',
      retrieve: () => ['a text'],
    });
    const { divergence } = await rerun(recording, { agent });
    expect(divergence?.text).toBe(
      'reader, turn 1: called retrieve {"query":"Go"}; recorded nothing',
    );
  });
});

describe('the first difference is reported', () => {
  const input = z.object({ n: z.number() });
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input,
    effect: 'once',
    approval: 'always',
    execute: ({ n }) => `paid ${n}`,
  });
  const tools = [look, pay];
  const timed = defineAgent({
    name: 'timed',
    instructions: 'Help.',
    tools,
    rules: [{ tool: 'pay', then: 'ask', expires: '1 day' }],
  });
  const both = [replyCall('look', { n: 1 }), replyCall('pay', { n: 1 }), replyText('Done.')];

  test('and not a request that nobody decided then either', async () => {
    const recording = await record(timed, {
      message: 'Go',
      model: [replyCall('pay', { n: 1 }), replyCall('look', { n: 1 }), replyText('No.')],
      on: { request: { pay: noDecision() } },
    });
    const changed: Recording = JSON.parse(
      JSON.stringify(recording).replaceAll('"text":"saw 1"', '"text":"saw 2"'),
    );
    const runs = recording.runs.map((run, at) => ({
      ...run,
      messages: changed.runs[at]?.messages ?? [],
    }));
    const { divergence } = await rerun({ ...recording, runs }, { agent: timed });
    expect(divergence).toMatchObject({ kind: 'message', turn: 1, step: 2 });
  });

  test('and not a request that came after it', async () => {
    const free = defineTool({
      name: 'pay',
      description: 'Pays.',
      input,
      effect: 'once',
      execute: ({ n }) => `paid ${n}`,
    });
    const before = defineAgent({ name: 'desk', instructions: 'Help.', tools: [look, free] });
    const recording = await record(before, { message: 'Go', model: both });
    const strict = defineTool({
      name: 'look',
      description: 'Looks.',
      effect: 'read',
      input: z.object({ n: z.number().max(0) }),
      execute: () => 'saw',
    });
    const now = defineAgent({ name: 'desk', instructions: 'Help.', tools: [strict, pay] });
    const { divergence } = await rerun(recording, { agent: now });
    expect(divergence).toMatchObject({ kind: 'message', turn: 1, step: 1 });
    const asks = defineAgent({ name: 'desk', instructions: 'Help.', tools: [look, pay] });
    const asked = await rerun(recording, { agent: asks });
    expect(asked.divergence).toMatchObject({ kind: 'request', turn: 1, step: 2 });
  });

  test('with the step at which a limit asked', async () => {
    const recording = await record(timed, {
      message: 'Go',
      model: both,
      on: { request: { pay: approve() } },
    });
    const limited = defineAgent({
      name: 'timed',
      instructions: 'Help.',
      tools,
      onLimit: 'ask',
      limits: { steps: 2 },
    });
    const { divergence } = await rerun(recording, { agent: limited });
    expect(divergence).toMatchObject({ kind: 'request', turn: 1, step: 2 });
  });
});
