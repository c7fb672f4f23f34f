import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { rerun } from '../../src/recordings/rerun.js';
import type { Recording } from '../../src/recordings/recording.js';
import { closeRun, replyText, send } from '../../src/testing.js';
import { playAndRecord, useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

const counter = (count: z.ZodType): Agent =>
  defineAgent({ name: 'counter', instructions: 'Count.', output: z.object({ count }) });
const plain = counter(z.number());
const changed = counter(z.number().transform((n) => (n === 3 ? 30 : n)));

async function foundBy(recording: Recording, agent: Agent): Promise<string | null> {
  const { divergence } = await rerun(recording, { agent });
  return divergence?.text ?? null;
}

/** Returns the recording as an older version wrote it. */
function older({ runs, ...rest }: Recording): Recording {
  return { ...rest, runs: runs.map(({ outputs: _outputs, ...run }) => run) };
}

describe('a rerun finds another output although the words are the same', () => {
  const difference = 'ended as {"output":{"count":30}}; recorded {"output":{"count":3}}';

  test('of a run', async () => {
    const recording = await playAndRecord(plain, {
      message: 'Go',
      model: [replyText('{"count":3}')],
    });
    expect(await foundBy(recording, plain)).toBeNull();
    expect(await foundBy(recording, changed)).toBe(`counter, turn 1: ${difference}`);
    expect(await foundBy(older(recording), plain)).toBeNull();
    expect(await foundBy(older(recording), changed)).toBe(`counter, turn 1: ${difference}`);
  });

  test('of a turn in the middle of a conversation', async () => {
    const recording = await playAndRecord(plain, {
      message: 'Go',
      open: true,
      model: [2, 3, 4].map((count) => replyText(JSON.stringify({ count }))),
      on: { waiting: [send('And?'), send('And?'), closeRun()] },
    });
    expect(recording.runs[0]?.outputs).toEqual(
      [2, 3, 4].map((count, at) => ({ turn: at + 1, output: { count } })),
    );
    expect(await foundBy(recording, plain)).toBeNull();
    expect(await foundBy(recording, changed)).toBe(`counter, turn 2: ${difference}`);
    expect(await foundBy(older(recording), plain)).toBeNull();
  });

  test('of a graph, in a field that is not its answer', async () => {
    const graph = (note: string): Agent =>
      defineGraph({
        name: 'mail',
        instructions: 'Write.',
        state: z.object({ text: z.string(), note: z.string().optional() }),
        messageTo: 'text',
        answerFrom: 'text',
        nodes: ({ run }) => ({ write: run({ run: async () => ({ note }) }) }),
      }).wire({ start: 'write', edges: { write: 'end' } });
    const recording = await playAndRecord(graph('one'), { message: 'Go', model: [] });
    expect(await foundBy(recording, graph('one'))).toBeNull();
    expect(await foundBy(recording, graph('two'))).toBe(
      'mail, turn 1: ended as {"output":{"text":"Go","note":"two"}}; recorded {"output":{"text":"Go","note":"one"}}',
    );
  });
});

describe('a rerun finds that a node of a graph', () => {
  const echo = defineGraph({
    name: 'echo',
    description: 'Says it again.',
    instructions: 'Say.',
    state: z.object({ text: z.string() }),
    messageTo: 'text',
    nodes: ({ run }) => ({ keep: run({ run: async () => ({}) }) }),
  }).wire({ start: 'keep', edges: { keep: 'end' } });
  const boss = (isCalled: boolean): Agent =>
    defineGraph({
      name: 'boss',
      instructions: 'Lead.',
      state: z.object({ text: z.string() }),
      messageTo: 'text',
      answerFrom: 'text',
      nodes: ({ route, graph }) => ({
        begin: route({
          exits: ['yes', 'no'],
          run: async (_, { exit }) => exit(isCalled ? 'yes' : 'no'),
        }),
        help: graph({ graph: echo, input: (s) => ({ text: s.text }) }),
      }),
    }).wire({
      start: 'begin',
      edges: {
        begin: { yes: 'help', no: 'end' },
        help: { done: 'end', stopped: 'end', failed: 'end' },
      },
    });
  const play = async (isCalled: boolean): Promise<Recording> =>
    await playAndRecord(boss(isCalled), { message: 'Go', model: [] });

  test('does not call an agent any more', async () => {
    const recording = await play(true);
    expect(recording.runs).toHaveLength(2);
    expect(await foundBy(recording, boss(true))).toBeNull();
    expect(await foundBy(recording, boss(false))).toBe(
      'boss, turn 1: called nothing; recorded echo {"input":{"text":"Go"}}',
    );
  });

  test('calls one that it did not call', async () => {
    expect(await foundBy(await play(false), boss(true))).toBe(
      'boss, turn 1: called echo {"input":{"text":"Go"}}; recorded nothing',
    );
  });
});
