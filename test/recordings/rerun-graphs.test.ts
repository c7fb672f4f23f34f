import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { cases } from '../../src/graphs/cases.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { text } from '../../src/graphs/values.js';
import { evaluate } from '../../src/recordings/evaluate.js';
import type { Recording } from '../../src/recordings/recording.js';
import { rerun } from '../../src/recordings/rerun.js';
import { answer, approveSome, deny, replyText, scriptedModel } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { playAndRecord, useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

const input = z.object({ n: z.number() });
const tool = (name: string, effect: 'read' | 'once') =>
  defineTool({ name, description: name, input, effect, execute: ({ n }) => `${name} ${n}` });
const [look, pay] = [tool('look', 'read'), tool('pay', 'once')];

/** Returns what a candidate does otherwise that replies with these texts. */
async function differenceWith(
  recording: Recording,
  agent: Agent,
  replies: readonly string[],
): Promise<string> {
  const model = scriptedModel(replies.map((one) => replyText(one)));
  const { divergence } = await rerun(recording, { agent, model });
  return divergence?.text ?? 'same';
}

const planOf = (...actions: readonly { readonly tool: string; readonly n: number }[]): string =>
  JSON.stringify({
    actions: actions.map(({ tool: name, n }, at) => ({
      id: `a${at + 1}`,
      tool: name,
      arguments: { n },
    })),
  });
const NOTHING = '{"actions":[],"answer":"Nothing to plan."}';

describe('another model that plans', () => {
  const clerk = planAndExecute({ name: 'clerk', instructions: 'Plan.', tools: [look, pay] });
  const careful = planAndExecute({
    name: 'careful',
    instructions: 'Plan.',
    tools: [look, pay],
    rules: [{ tool: 'pay', then: 'ask' }],
  });
  const twoLooks = planOf({ tool: 'look', n: 1 }, { tool: 'look', n: 2 });

  test('and plans nothing lacks the first executed action', async () => {
    const recording = await playAndRecord(careful, {
      message: 'Go',
      model: [
        replyText(planOf({ tool: 'look', n: 1 }, { tool: 'pay', n: 2 })),
        replyText('Report.'),
      ],
      on: { request: { plan: approveSome(['a1']) } },
    });
    expect(await differenceWith(recording, careful, [NOTHING, 'None.'])).toBe(
      'careful, turn 1: called nothing; recorded look {"n":1}',
    );
  });

  test('and plans nothing where nothing was executed was not asked', async () => {
    const recording = await playAndRecord(careful, {
      message: 'Go',
      model: [replyText(planOf({ tool: 'pay', n: 2 })), replyText('Report.')],
      on: { request: { plan: deny() } },
    });
    expect(await differenceWith(recording, careful, [NOTHING, 'None.'])).toMatch(
      /^careful, turn 1: asked for no decision about "The plan has 1 action:/,
    );
  });

  test('and plans a part lacks the rest; the order of one plan is none', async () => {
    const recording = await playAndRecord(clerk, {
      message: 'Go',
      model: [replyText(twoLooks), replyText('Report.')],
    });
    const part = planOf({ tool: 'look', n: 2 });
    expect(await differenceWith(recording, clerk, [part, 'Done.'])).toBe(
      'clerk, turn 1: called look {"n":2}; recorded look {"n":1}',
    );
    const turned = planOf({ tool: 'look', n: 2 }, { tool: 'look', n: 1 });
    expect(await differenceWith(recording, clerk, [turned, 'Done.'])).toBe('same');
  });

  test('has the actions of its plan among the calls of an evaluation', async () => {
    const recording = await playAndRecord(clerk, {
      message: 'Go',
      model: [replyText(twoLooks), replyText('Report.')],
    });
    const folder = await mkdtemp(join(tmpdir(), 'perdure-planned-'));
    onTestFinished(async () => await rm(folder, { recursive: true }));
    await writeFile(join(folder, 'one.json'), JSON.stringify(recording));
    const {
      cases: [one],
    } = await evaluate(folder, {
      agents: [clerk],
      model: () => scriptedModel([NOTHING, 'None.'].map((each) => replyText(each))),
    });
    expect(one?.recorded?.calls).toEqual([1, 2].map((n) => ({ tool: 'look', arguments: { n } })));
    expect(one?.candidates[0]?.run?.calls).toEqual([]);
  });
});

describe('another model in a graph', () => {
  const mail = (isSwapped: boolean) =>
    defineGraph({
      name: 'mail',
      instructions: 'Sort.',
      state: z.object({
        text: z.string(),
        sorted: z.object({ kind: z.enum(['order', 'spam', 'note', 'ask']) }).optional(),
      }),
      messageTo: 'text',
      tools: [pay],
      nodes: ({ run, decide, choose, confirm, tool: call }) => ({
        sort: decide({
          output: z.object({ kind: z.enum(['order', 'spam', 'note', 'ask']) }),
          save: 'sorted',
        }),
        which: choose({
          on: (s) =>
            cases({
              order: s.sorted.kind.is('order'),
              note: s.sorted.kind.is('note'),
              ask: s.sorted.kind.is('ask'),
            }),
        }),
        keep: call({ tool: pay, arguments: () => ({ n: 5 }) }),
        write: run({ run: async () => ({}) }),
        ask: confirm({ show: () => text`Sure?` }),
      }),
    }).wire({
      start: 'sort',
      edges: {
        sort: { done: 'which', failed: 'end' },
        which: {
          order: isSwapped ? 'write' : 'keep',
          note: isSwapped ? 'keep' : 'write',
          ask: 'ask',
          else: 'end',
        },
        keep: { done: 'end', failed: 'end' },
        write: { done: 'end', failed: 'end' },
        ask: { yes: 'end', no: 'end' },
      },
    });
  const record = async (kind: string) =>
    await playAndRecord(mail(false), {
      message: 'Go',
      model: [replyText(JSON.stringify({ kind }))],
      on: { request: { question: answer('yes') } },
    });

  test('whose decision leads past a tool, a function, or a question differs', async () => {
    const [order, note, ask] = [await record('order'), await record('note'), await record('ask')];
    const spam = ['{"kind":"spam"}'];
    const agent = mail(false);
    expect(await differenceWith(order, agent, spam)).toBe(
      'mail, turn 1: called nothing; recorded pay {"n":5}',
    );
    expect(await differenceWith(note, agent, spam)).toBe(
      'mail, turn 1: called nothing; recorded node write',
    );
    expect(await differenceWith(ask, agent, spam)).toMatch(
      /^mail, turn 1: asked for no decision about .*Sure\?.*; recorded a decision$/,
    );
    expect(await differenceWith(await record('spam'), agent, ['{"kind":"note"}'])).toBe(
      'mail, turn 1: called node write; recorded nothing',
    );
    expect(await differenceWith(order, agent, ['{"kind":"order"}'])).toBe('same');
  });

  test('and so does a graph that leads past it with the recorded model', async () => {
    const { divergence } = await rerun(await record('order'), { agent: mail(true) });
    expect(divergence?.text).toBe('mail, turn 1: called node write; recorded pay {"n":5}');
  });
});
