import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { text } from '../../src/graphs/values.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import type { MemoryOptions } from '../../src/memory/run-in-memory.js';
import type { Model } from '../../src/models/model.js';
import type { Recording } from '../../src/recordings/recording.js';
import { rerun } from '../../src/recordings/rerun.js';
import {
  answer,
  approve,
  approveSome,
  cancelTurn,
  closeRun,
  decision,
  deny,
  edit,
  replyCall,
  replyCalls,
  noDecision,
  replyText,
  send,
} from '../../src/testing.js';
import { askPerson } from '../../src/tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { ToolError } from '../../src/tools/errors.js';
import { serveAsking } from '../support/asking-server.js';
import { playAndRecord, useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

const executed: string[] = [];
const input = z.object({ n: z.number().default(1) });
const LONG = 'words and more words '.repeat(10_000);

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input,
  effect: 'read',
  execute: ({ n }) => {
    executed.push(`look ${n}`);
    if (n === 0) throw new ToolError('there is no such thing');
    return n === 99 ? LONG : `saw ${n}`;
  },
});
const put = defineTool({
  name: 'put',
  description: 'Puts.',
  input,
  output: z.object({ id: z.number() }),
  effect: 'keyed',
  execute: ({ n }) => {
    executed.push(`put ${n}`);
    return { id: n };
  },
});
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input,
  effect: 'once',
  approval: 'always',
  execute: ({ n }) => {
    executed.push(`pay ${n}`);
    return `paid ${n}`;
  },
});
const tools = [look, put, pay];
const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools });
const helper = defineAgent({
  name: 'helper',
  description: 'Looks.',
  instructions: 'Look.',
  tools: [look],
});
const boss = defineAgent({ name: 'boss', instructions: 'Lead.', agents: [helper], tools: [pay] });
const planner = planAndExecute({ name: 'planner', instructions: 'Plan.', tools: [look, pay] });
const sure = planAndExecute({
  name: 'sure',
  instructions: 'Plan.',
  tools: [look, pay],
  confirm: { when: 'always' },
});
const plan = replyText(
  JSON.stringify({
    actions: [
      { id: 'a1', tool: 'look', arguments: { n: 1 } },
      { id: 'a2', tool: 'pay', arguments: { n: 2 }, after: ['a1'] },
    ],
  }),
);
const graph = defineGraph({
  name: 'mail',
  instructions: 'Write.',
  state: z.object({
    text: z.string(),
    words: z.array(z.string()).default([]),
    sizes: z.array(z.json()).optional(),
    helped: z.string().optional(),
    draft: z.object({ body: z.string() }).optional(),
  }),
  messageTo: 'text',
  tools: [put],
  nodes: ({ run, each, decide, confirm, tool, agent }) => ({
    split: run({ run: async ({ text: all }) => ({ words: all.split(' ') }) }),
    count: each({
      over: (s) => s.words,
      run: async (_, word: string) => word.length,
      save: 'sizes',
    }),
    help: agent({ agent: helper, message: (s) => text`Look for ${s.text}`, save: 'helped' }),
    write: decide({ output: z.object({ body: z.string() }), save: 'draft' }),
    ask: confirm({ show: (s) => text`Send ${s.draft}?` }),
    keep: tool({ tool: put, arguments: () => ({ n: 5 }) }),
  }),
}).wire({
  start: 'split',
  edges: {
    split: 'count',
    count: { done: 'help', failed: 'end' },
    help: { done: 'write', stopped: 'end', failed: 'end' },
    write: { done: 'ask', failed: 'end' },
    ask: { yes: 'keep', no: 'write' },
    keep: { done: 'end', failed: 'end' },
  },
});

interface Form {
  readonly agent: Agent;
  readonly options: MemoryOptions;
}

const one = { message: 'Go' };
const FORMS: Readonly<Record<string, Form>> = {
  'a plan': {
    agent: planner,
    options: { ...one, model: [plan, replyText('Report.')], on: { request: { plan: approve() } } },
  },
  'a plan that nobody decided': {
    agent: planner,
    options: {
      ...one,
      model: [plan, replyText('Report.')],
      on: { request: { plan: noDecision() } },
    },
  },
  'a part of a plan': {
    agent: sure,
    options: {
      ...one,
      model: [plan, replyText('Report.')],
      on: { request: { plan: approveSome(['a1']) } },
    },
  },
  'a graph with functions, an each, an agent, a decision, a confirmation, and a tool': {
    agent: graph,
    options: {
      message: 'to be or',
      model: [
        replyCall('look', { n: 1 }),
        replyText('Seen.'),
        replyText('{"body":"Draft."}'),
        replyText('{"body":"Better."}'),
      ],
      on: { request: { question: [answer('no'), answer('yes')] } },
    },
  },
  'several segments, with messages and a steering one': {
    agent: desk,
    options: {
      ...one,
      open: true,
      segment: { steps: 2, bytes: 2_000_000 },
      model: [
        ...[1, 2, 3, 4].map((n) => replyCall('look', { n })),
        replyText('One.'),
        replyCall('look', { n: 5 }),
        replyText('Two.'),
      ],
      on: {
        step: { 3: send({ message: 'Be quick', mode: 'steer' }) },
        waiting: [send({ message: 'And?', by: 'ann' }), closeRun()],
      },
    },
  },
  'called agents at once': {
    agent: boss,
    options: {
      ...one,
      models: {},
      model: [
        replyCalls([
          { name: 'helper', arguments: { message: 'look for red' } },
          { name: 'helper', arguments: { message: 'look for blue' } },
        ]),
        ({ messages }) => replyCall('look', { n: messages.at(-1)?.text.includes('red') ? 1 : 2 }),
        ({ messages }) => replyCall('look', { n: messages.at(-1)?.text.includes('red') ? 1 : 2 }),
        ({ messages }) => replyText(`${messages.at(-1)?.text} indeed`),
        ({ messages }) => replyText(`${messages.at(-1)?.text} indeed`),
        replyText('Both.'),
      ],
    },
  },
  'parallel calls, failures, repeats, a denial, an edit, and a result of a person': {
    agent: desk,
    options: {
      ...one,
      model: [
        replyCalls([
          { name: 'look', arguments: { n: 0 } },
          { name: 'put', arguments: { n: 2 } },
          { name: 'lok', arguments: {} },
          { name: 'look', arguments: { n: 'x' } },
        ]),
        replyCall('look', {}),
        replyCall('pay', { n: 1 }),
        replyCall('pay', { n: 2 }),
        replyCall('pay', { n: 3 }),
        replyText('Done.'),
      ],
      on: { request: { pay: [deny({ note: 'no' }), edit({ n: 7 }), answer('paid by hand')] } },
    },
  },
  'a call whose outcome was unknown': {
    agent: desk,
    options: {
      ...one,
      model: [replyCall('pay', { n: 1 }), replyText('Done.')],
      on: {
        request: {
          pay: approve(),
          outcome_unknown: decision({ as: 'happened', result: 'found on the statement' }),
        },
      },
      faults: [{ at: 'before-effect', call: 1, kill: true }],
    },
  },
  'a large result, of which a part is read': {
    agent: desk,
    options: {
      ...one,
      model: [
        replyCall('look', { n: 99 }),
        ({ messages }) => {
          const [, ref = ''] = /"ref": ?"([0-9a-f]+)"/.exec(messages.at(-1)?.text ?? '') ?? [];
          return replyCall('read_result', { ref, offset: 100, length: 50 });
        },
        replyText('Read.'),
      ],
    },
  },
  'a question, an output that was repaired, and documents': {
    agent: defineAgent({
      name: 'typed',
      instructions: 'Count.',
      tools: [askPerson()],
      output: z.object({ count: z.int() }),
      retrieve: () => [{ id: 'd1', source: 'the shelf', text: 'A <b>document</b>' }, 'another'],
    }),
    options: {
      ...one,
      model: [
        replyCall('ask_person', { question: 'Which?' }),
        replyText('{"count":"x"}'),
        replyText('{"count":3}'),
      ],
      on: { request: { question: answer('the red one') } },
    },
  },
  'a limit, a raised one, and a canceled turn': {
    agent: defineAgent({ name: 'asking', instructions: 'Look.', tools, onLimit: 'ask' }),
    options: {
      ...one,
      open: true,
      limits: { steps: 2 },
      model: [1, 2, 3, 4, 5, 6].map((n) => replyCall('look', { n })),
      on: {
        request: {
          limit: [decision({ as: 'raise', arguments: { steps: 3 } }), decision({ as: 'stop' })],
        },
        waiting: [send('More'), closeRun()],
        step: { 5: cancelTurn() },
      },
    },
  },
  'a model that failed': {
    agent: desk,
    options: { ...one, model: [replyCall('look', { n: 1 })] },
  },
  'decisions that were refused, some after their check': {
    agent: desk,
    options: {
      ...one,
      model: [replyCall('pay', { n: 3 }), replyCall('pay', { n: 4 }), replyText('Paid.')],
      on: {
        request: {
          pay: [
            edit({ n: 'many' }),
            edit({ n: 'many' }),
            decision({ as: 'approve', digest: 'another' }),
            decision({ as: 'happened' }),
            approve(),
            edit({ n: 'many' }),
            deny(),
          ],
        },
      },
    },
  },
  'decisions under a schema': {
    agent: defineAgent({ name: 'schema', instructions: 'Look.', tools: [look], decide: 'schema' }),
    options: {
      ...one,
      model: [
        replyText('{"decision":"look"}'),
        replyText('{"decision":{"action":"look","arguments":{"n":1}}}'),
        replyText('{"decision":{"action":"answer","answer":"Done."}}'),
      ],
    },
  },
};

async function record({ agent, options }: Form): Promise<Recording> {
  return await playAndRecord(agent, options);
}

describe('a rerun of the recorded run is the same', () => {
  test.each(Object.entries(FORMS))('%s', async (_name, form) => {
    const recording = await record(form);
    executed.length = 0;
    const again = await rerun(recording, { agent: form.agent });
    expect(again.divergence?.text ?? null).toBeNull();
    expect(again.outcome).toEqual({
      ...recording.runs[0]?.outcome,
      segments: again.outcome?.segments,
      usage: again.outcome?.usage,
    });
    expect(executed).toEqual([]);
    if (form.agent.graph !== undefined) return;
    const pinned = await rerun(recording);
    expect(pinned.divergence?.text ?? null).toBeNull();
  });
});

test('a rerun with the tools of an MCP server needs no server, nor what that has asked', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-rerun-'));
  const server = await serveAsking(join(folder, 'ledger.jsonl'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const shop = mcpServer({ name: 'shop', transport: 'http', url: server.url });
  const agent = defineAgent({ name: 'clerk', instructions: 'Deploy.', mcp: [shop] });
  const recording = await record({
    agent,
    options: {
      message: 'Deploy',
      model: [replyCall('shop__deploy', {}), replyText('Deployed.')],
      on: { request: { question: answer({ confirm: true }) } },
    },
  });
  await server.close();
  const without = { ...agent, mcp: [{ ...shop, denyTools: ['deploy'] }] };
  for (const options of [{}, { agent }]) {
    const again = await rerun(recording, options);
    expect(again.divergence?.text ?? null).toBeNull();
    expect(again.outcome).toMatchObject({ answer: 'Deployed.' });
  }
  // As `evaluate` does it.
  const model: Model = {
    call: async ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? replyText('It is out.') : replyCall('shop__deploy', {}),
  };
  const other = await rerun(recording, { agent, model });
  expect(other.divergence?.text ?? null).toBeNull();
  expect(other.outcome).toMatchObject({ answer: 'It is out.' });
  const denied = await rerun(recording, { agent: without });
  expect(denied.divergence?.text).toContain('unknown_tool');
});
