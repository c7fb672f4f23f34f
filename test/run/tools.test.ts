import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { ModelReply, ModelRequest } from '../../src/models/model.js';
import { replyCall, replyCalls, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { ToolError } from '../../src/tools/errors.js';
import { gate } from '../support/gate.js';
import { historyText } from '../support/history-text.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Ended, Rig } from '../support/rig.js';

let rig: Rig;
/** Maps the first message of a run to its model's replies, by the number of earlier replies. */
const scripts = new Map<string, (step: number, request: ModelRequest) => ModelReply>();
const model = {
  async call(request: ModelRequest) {
    const step = request.messages.filter(({ role }) => role === 'assistant').length;
    const script = scripts.get(request.messages[0]?.text ?? '');
    return script?.(step, request) ?? replyText('no script');
  },
};
const executions: string[] = [];
let running = 0;
let mostRunning = 0;
let contextSeen: unknown;

const tool = (
  name: string,
  execute: (text: string, context: { attempt: number }) => unknown,
  effect: 'read' | 'keyed' = 'read',
) =>
  defineTool({
    name,
    description: name,
    input: z.object({ text: z.string() }),
    effect,
    async execute({ text }, { call, context }) {
      executions.push(`${name} ${text}`);
      contextSeen = context;
      return await execute(text, { attempt: call.attempt });
    },
  });

const fiveRun = gate();

const tools = [
  tool('busy', async (text) => {
    running += 1;
    mostRunning = Math.max(mostRunning, running);
    if (running === 5) fiveRun.release();
    // The first five wait for each other, which proves that they run at once.
    if (/^part [0-4]$/.test(text)) await fiveRun.wait();
    running -= 1;
    return text;
  }),
  tool('large', () => `start ${'ä'.repeat(1_500_000)} end`),
  defineTool({
    name: 'misfit',
    description: 'returns what its schema does not say',
    input: z.object({}),
    output: z.object({ n: z.number() }),
    effect: 'read',
    execute: async () => JSON.parse('{"n":"seven"}') as { n: number },
  }),
  ...(['read', 'keyed'] as const).map((effect) =>
    tool(
      effect === 'read' ? 'strange' : 'odd',
      () => ({ big: 10n, map: new Map([['a', new Set([1])]]), error: new Error('inner') }),
      effect,
    ),
  ),
  tool('flaky', (_text, { attempt }) => {
    if (attempt < 3) throw new Error(`not yet ${attempt}`);
    return `attempt ${attempt}`;
  }),
  tool('broken', () => {
    throw new ToolError('it is broken; use another one');
  }),
  tool('hopeless', () => {
    throw 'a text';
  }),
  defineTool({
    name: 'finish',
    description: 'ends the turn',
    input: z.object({ total: z.number() }),
    effect: 'read',
    ends: true,
    execute: async ({ total }) => ({ total, currency: 'EUR' }),
  }),
  defineTool({
    name: 'store',
    description: 'stores',
    input: z.object({ content: z.string() }),
    effect: 'keyed',
    execute: async ({ content }) => `stored ${content.length}`,
  }),
];

beforeAll(async () => {
  rig = await createMemoryRig();
  const agent = defineAgent({ name: 'a', instructions: 'hi', model: 'm', tools });
  const queue = defineAgent({
    name: 'q',
    instructions: 'hi',
    model: 'm',
    tools,
    toolCalls: 'sequential',
  });
  await rig.worker([agent, queue], { models: { m: model } });
});
afterAll(async () => await rig.close());

async function run(
  message: string,
  script: (step: number, request: ModelRequest) => ModelReply,
  rest: Record<string, unknown> = {},
): Promise<Ended & { texts: readonly string[] }> {
  scripts.set(message, script);
  const ended = await rig.run({ agent: 'a', message, ...rest });
  const texts = (ended.projection.state?.transcript.messages ?? [])
    .filter(({ role }) => role === 'tool')
    .map(({ text }) => text);
  return { ...ended, texts };
}

const once = (first: ModelReply) => (step: number) => (step === 0 ? first : replyText('done'));

/** For each call, the workflow task that scheduled it. */
function tasksOfCalls(history: Ended['history']): readonly string[] {
  return (history.events ?? [])
    .flatMap((event) => event.activityTaskScheduledEventAttributes ?? [])
    .filter(({ activityType }) => activityType?.name === 'runTool')
    .map(({ workflowTaskCompletedEventId }) => String(workflowTaskCompletedEventId));
}

describe('tool calls', () => {
  test('of one message are scheduled in one workflow task, at most five at once, with results in order', async () => {
    const names = Array.from({ length: 12 }, (_, n) => `part ${n}`);
    const { texts, history } = await run(
      'parallel',
      once(replyCalls(names.map((text) => ({ name: 'busy', arguments: { text } })))),
    );
    expect(texts).toEqual(names);
    expect(mostRunning).toBe(5);
    const tasks = tasksOfCalls(history);
    expect(tasks.filter((task) => task === tasks[0])).toHaveLength(5);
  });

  test('run one after the other if the agent requires it', async () => {
    const calls = ['x', 'y', 'z'].map((text) => ({ name: 'busy', arguments: { text } }));
    scripts.set('sequential', once(replyCalls(calls)));
    const { outcome, history } = await rig.run({ agent: 'q', message: 'sequential' });
    expect(outcome).toMatchObject({ status: 'completed', toolCalls: 3 });
    expect(new Set(tasksOfCalls(history)).size).toBe(3);
  });

  test('that end the turn return their value as output', async () => {
    const { outcome } = await run('ends', once(replyCall('finish', { total: 12 })));
    expect(outcome).toMatchObject({
      status: 'completed',
      reason: 'tool',
      answer: '{"total":12,"currency":"EUR"}',
      output: { total: 12, currency: 'EUR' },
    });
  });
});

describe('results', () => {
  test('too large for the history are stored by reference, and can be read on', async () => {
    const { texts, history } = await run('large', (step, request) => {
      const last = request.messages.at(-1)?.text ?? '';
      if (step === 0) return replyCall('large', { text: '' });
      if (step > 1) return replyText('done');
      const [, ref = '', offset = ''] =
        /read_result\(\{"ref":"(\w+)","offset":(\d+)\}/.exec(last) ?? [];
      return replyCall('read_result', { ref, offset: Number(offset) });
    });
    expect(texts[0]).toMatch(/^start ä+.*bytes omitted.*ä+ end$/s);
    expect(texts[1]).toContain('ääää');
    for (const event of history.events ?? []) {
      expect(historyText({ events: [event] }).length).toBeLessThan(256 * 1024);
    }
  });

  test('of any shape become text before anything else handles them', async () => {
    executions.length = 0;
    const { texts } = await run('odd', once(replyCall('odd', { text: '' })));
    const [note = '', json = ''] = texts[0]?.split('\n') ?? [];
    expect(note).toBe(
      '[the call was executed; the result of odd is not plain JSON: got a BigInt at $.big; let the tool return plain JSON]',
    );
    expect(JSON.parse(json)).toMatchObject({ big: '10', error: { message: 'inner' } });
    expect(executions).toEqual(['odd ']);
  });

  test('that is not plain JSON is an error of the read, which names the place and the type', async () => {
    const { texts } = await run('strange', once(replyCall('strange', { text: '' })));
    expect(texts[0]).toMatch(/tool_error.*not plain JSON: got a BigInt at \$\.big/);
  });
});

describe('a result', () => {
  test('that does not match the output schema is an error of the read', async () => {
    const { texts } = await run('misfit', once(replyCall('misfit', {})));
    expect(texts[0]).toMatch(/tool_error.*does not fit its output schema/);
  });

  test('is recorded once, whatever its shape', async () => {
    const { history } = await run('odd again', once(replyCall('odd', { text: 'only here' })));
    expect(historyText(history).split('inner').length - 1).toBe(1);
  });
});

describe('errors', () => {
  test('of a read are retried by Temporal, then sent to the model', async () => {
    const { texts } = await run(
      'errors',
      once(
        replyCalls([
          { name: 'flaky', arguments: { text: '' } },
          { name: 'hopeless', arguments: { text: '' } },
          { name: 'broken', arguments: { text: '' } },
        ]),
      ),
    );
    expect(texts[0]).toBe('attempt 3');
    expect(JSON.parse(texts[1] ?? '')).toEqual({
      error: { type: 'tool_error', message: 'a text' },
    });
    expect(texts[2]).toContain('it is broken; use another one');
    expect(executions.filter((each) => each === 'broken ')).toHaveLength(1);
    expect(executions.filter((each) => each === 'hopeless ')).toHaveLength(3);
  });
});

describe('arguments', () => {
  test('too large for the history reach the tool whole', async () => {
    const content = randomBytes(200_000).toString('hex');
    const { texts, history } = await run('store', once(replyCall('store', { content })));
    expect(texts).toEqual(['stored 400000']);
    expect(historyText(history)).not.toContain(content.slice(1_000, 1_200));
  });
});

describe('the context of a run', () => {
  test.each([
    ['small', { tenant: 'acme' }],
    ['large', { tenant: 'acme', notes: 'n'.repeat(50_000) }],
  ])('reaches every tool and never the model: %s', async (size, context) => {
    let prompts = '';
    await run(
      `context ${size}`,
      (step, request) => {
        prompts += JSON.stringify(request);
        return step === 0 ? replyCall('busy', { text: 'x' }) : replyText('done');
      },
      { context },
    );
    expect(contextSeen).toEqual(context);
    expect(prompts).not.toContain('acme');
  });
});
