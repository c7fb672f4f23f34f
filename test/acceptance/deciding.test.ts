import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { AgentOptions } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { CLOSING_INSTRUCTION } from '../../src/core/rules/documents.js';
import { replyCalls, replyError, replyText, type Reply } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { openDesk, sent, spoken, type Desk, type RunReport } from '../support/desk.js';
import { createMemoryRig } from '../support/memory-rig.js';

const BESIDE = 'another call in this message ends the turn';
/** The arguments of each execution of `note`, by every agent. */
const noted: string[] = [];
/** Executions of `meet`, which waits for three of them. */
let waiting: (() => void)[] = [];

const lookUp = defineTool({
  name: 'look_up',
  description: 'looks a fact up',
  input: z.object({ what: z.string() }),
  effect: 'read',
  execute: ({ what }) => `${what}: found`,
});
const note = defineTool({
  name: 'note',
  description: 'writes a text down',
  input: z.object({ text: z.string() }),
  effect: 'keyed',
  execute: ({ text }) => {
    noted.push(text);
    return `noted ${text}`;
  },
});
const meet = defineTool({
  name: 'meet',
  description: 'ends when three are there, the last one first',
  input: z.object({ who: z.string() }),
  effect: 'read',
  execute: async ({ who }) => {
    await new Promise<void>((resolve) => {
      waiting.unshift(resolve);
      if (waiting.length === 3) for (const one of waiting) one();
    });
    return who;
  },
});
const respond = defineTool({
  name: 'respond',
  description: 'gives the answer',
  input: z.object({ response: z.string() }),
  effect: 'read',
  ends: true,
  execute: ({ response }) => response,
});
const handOver = defineTool({
  name: 'hand_over',
  description: 'gives a value',
  input: z.object({ value: z.unknown() }),
  effect: 'read',
  ends: true,
  execute: ({ value }) => value,
});
const runCode = defineTool({
  name: 'run_code',
  description: 'runs code',
  input: z.object({ code: z.string() }),
  effect: 'read',
  execute: ({ code }) => (code === '' ? null : { error: 'NameError: x', code }),
});

const tools = [lookUp, note, meet, respond, handOver, runCode];

function agent(name: string, rest: Partial<AgentOptions> = {}) {
  return defineAgent({ name, instructions: 'Use your tools.', model: 'm', tools, ...rest });
}

let desk: Desk;
beforeAll(async () => {
  const agents = [
    agent('plain'),
    agent('sequential', { toolCalls: 'sequential' }),
    agent('first', { toolCalls: 'first' }),
    agent('composing', { onLimit: 'compose' }),
    agent('failing', { onLimit: 'fail' }),
    agent('no-text', { onPlainText: 'fail' }),
    agent('required', { toolChoice: 'required' }),
    agent('required-o1', { toolChoice: 'required', model: 'o1-mini' }),
    agent('reader', { tools: [lookUp] }),
    agent('writer', { tools: [lookUp, note] }),
    agent('own-decision', {
      decide: ({ messages }) => {
        const last = messages.at(-1);
        if (last?.role === 'tool') return { answer: `so: ${last.text}` };
        return { calls: [{ name: 'look_up', arguments: { what: 'gold' } }] };
      },
    }),
  ];
  desk = await openDesk(agents, { m: {}, 'o1-mini': {} }, { rig: await createMemoryRig() });
});
afterAll(async () => await desk.close());

const call = (name: string, args: Record<string, unknown> | string = {}) =>
  ({ name, arguments: args }) as Parameters<typeof replyCalls>[0][number];
const calls = (...all: readonly ReturnType<typeof call>[]): Reply => replyCalls(all);
const results = ({ messages }: RunReport): readonly string[] =>
  messages.flatMap(({ role, text }) => (role === 'tool' ? [text] : []));

describe('a run with tools', () => {
  test('T-01 a tool, then the one that ends: question, call, result, call, answer, under our own call ids', async () => {
    const runReport = await desk.run('plain', [
      calls(call('look_up', { what: 'iron' })),
      calls(call('respond', { response: 'Iron is found.' })),
    ]);
    expect(runReport.outcome).toMatchObject({
      status: 'completed',
      reason: 'tool',
      answer: 'Iron is found.',
      steps: 2,
      toolCalls: 2,
    });
    expect(spoken(runReport.messages).slice(1)).toEqual([
      ['assistant', ''],
      ['tool', 'iron: found'],
      ['assistant', ''],
      ['tool', 'Iron is found.'],
    ]);
    // The stub gives both calls the same id.
    const ids = runReport.messages.flatMap((one) => (one.role === 'tool' ? [one.callId] : []));
    expect(ids).toEqual(['call_1_1_0', 'call_1_2_0']);
  });

  test('T-02 a cap of one permits one decision, then one extra closing call with the same tools and tool_choice none', async () => {
    const look = calls(call('look_up', { what: 'iron' }));
    const limits = { limits: { steps: 1 } };
    const { outcome, requests } = await desk.run(
      'plain',
      [look, replyText('As far as I know.')],
      limits,
    );
    expect(outcome).toMatchObject({
      status: 'stopped',
      reason: 'steps',
      answer: 'As far as I know.',
      steps: 1,
    });
    expect(sent(requests[1]).at(-1)).toEqual(['user', CLOSING_INSTRUCTION]);
    expect(requests[1]?.body).toMatchObject({
      tool_choice: 'none',
      tools: requests[0]?.body['tools'],
    });
  });

  test('T-02 with onLimit compose, the model is not called again, and the answer names the limit', async () => {
    const look = calls(call('look_up', { what: 'iron' }));
    const { outcome, requests } = await desk.run('composing', [look], { limits: { steps: 1 } });
    expect(outcome).toMatchObject({ status: 'stopped', reason: 'steps' });
    expect(outcome.answer).toMatch(/limit "steps" was reached after 1 step.*iron: found/s);
    expect(requests).toHaveLength(1);
  });

  test('T-02 with onLimit fail, it ends in a typed failure that names the limit', async () => {
    const look = calls(call('look_up', { what: 'iron' }));
    const { outcome, requests } = await desk.run('failing', [look], { limits: { steps: 1 } });
    expect(outcome).toMatchObject({ status: 'failed', reason: 'limit', limit: 'steps' });
    expect(outcome.error).toContain('steps');
    expect(requests).toHaveLength(1);
  });

  test('T-03 the question after a capped one has its own cap', async () => {
    const look = calls(call('look_up', { what: 'iron' }));
    const steps = [look, replyText('capped'), look, replyText('capped again')];
    const run = await desk.open('plain', steps, { limits: { steps: 1 } });
    expect(run.first).toMatchObject({ status: 'stopped', answer: 'capped' });
    expect(await run.ask('and now?')).toMatchObject({ answer: 'capped again', steps: 1 });
    expect((await run.close()).outcome).toMatchObject({ reason: 'closed', steps: 2 });
  });

  test('T-04 a turn without an answer never returns that of the previous turn', async () => {
    const run = await desk.open('plain', [
      calls(call('hand_over', { value: { secret: 7 } })),
      replyText('', { finish: 'content_filter' }),
    ]);
    expect(run.first).toMatchObject({ reason: 'tool', output: { secret: 7 } });
    const second = await run.ask('and now?');
    expect(second).toMatchObject({
      status: 'failed',
      reason: 'filtered',
      answer: null,
      output: null,
    });
    await run.close();
  });

  test('T-05 by default, only the call that ends the turn is executed', async () => {
    noted.length = 0;
    const run = await desk.open('plain', [
      calls(
        call('note', { text: 'T-05 before' }),
        call('respond', { response: 'done' }),
        call('note', { text: 'T-05 behind' }),
      ),
      replyText('nothing left to do'),
    ]);
    expect(run.first).toMatchObject({ reason: 'tool', answer: 'done', toolCalls: 1 });
    expect(await run.ask('go on')).toMatchObject({ answer: 'nothing left to do', toolCalls: 0 });
    const [before, , behind] = results(await run.close());
    for (const result of [before, behind]) expect(result).toContain(BESIDE);
    expect(noted).toEqual([]);
  });

  test('T-05 calls after the one that ends are dropped permanently', async () => {
    const run = await desk.open('sequential', [
      calls(
        call('note', { text: 'T-05 before' }),
        call('respond', { response: 'done' }),
        call('note', { text: 'T-05 behind' }),
      ),
      replyText('nothing left to do'),
    ]);
    expect(run.first).toMatchObject({ reason: 'tool', answer: 'done', toolCalls: 2 });
    expect(await run.ask('go on')).toMatchObject({ answer: 'nothing left to do', toolCalls: 0 });
    expect(results(await run.close())[2]).toContain('the turn ended before it');
    expect(noted.filter((text) => text.startsWith('T-05'))).toEqual(['T-05 before']);
  });
});

describe('T-06 three calls in one reply', () => {
  const three = calls(...['a', 'b', 'c'].map((text) => call('note', { text: `T-06 ${text}` })));

  test('T-06 sequential: one model call, three executions, in order', async () => {
    noted.length = 0;
    const runReport = await desk.run('sequential', [three, replyText('ok')]);
    expect(noted).toEqual(['T-06 a', 'T-06 b', 'T-06 c']);
    expect(results(runReport)).toEqual(['noted T-06 a', 'noted T-06 b', 'noted T-06 c']);
    expect(runReport.requests).toHaveLength(2);
  });

  test('T-06 first: one execution, and the others get a result that says why they were not executed', async () => {
    noted.length = 0;
    const runReport = await desk.run('first', [three, replyText('ok')]);
    expect(noted).toEqual(['T-06 a']);
    expect(results(runReport).slice(1)).toEqual([
      expect.stringContaining('only the first call'),
      expect.stringContaining('only the first call'),
    ]);
  });

  test('T-06 parallel: all at once, results in the order of the calls', async () => {
    waiting = [];
    const meeting = calls(...['a', 'b', 'c'].map((who) => call('meet', { who })));
    const runReport = await desk.run('plain', [meeting, replyText('ok')]);
    expect(results(runReport)).toEqual(['a', 'b', 'c']);
    expect(runReport.requests).toHaveLength(2);
  });
});

describe('errors of a model', () => {
  test('T-07 broken JSON in the second of three calls affects only that call, and is repaired', async () => {
    const runReport = await desk.run('sequential', [
      calls(
        call('look_up', { what: 'iron' }),
        call('look_up', '{"what": "gold'),
        call('look_up', { what: 'zinc' }),
      ),
      calls(call('look_up', { what: 'gold' })),
      replyText('ok'),
    ]);
    expect(runReport.outcome).toMatchObject({ status: 'completed', toolCalls: 3 });
    const [first, second, third, repaired] = results(runReport);
    expect([first, third, repaired]).toEqual(['iron: found', 'zinc: found', 'gold: found']);
    expect(second).toContain('invalid_json');
  });

  test('T-08 a call of an unknown tool has a result that lists the known tools', async () => {
    const runReport = await desk.run('reader', [calls(call('lookup')), replyText('ok')]);
    expect(runReport.outcome).toMatchObject({ status: 'completed', toolCalls: 0 });
    expect(results(runReport)[0]).toMatch(/unknown_tool.*look_up/);
  });

  test('T-09 text without a call is the answer', async () => {
    const { outcome } = await desk.run('plain', [replyText('Hello!')]);
    expect(outcome).toMatchObject({ status: 'completed', reason: 'answer', answer: 'Hello!' });
  });

  test('T-09 with onPlainText fail, it is a failure with the fixes, including Ollama’s', async () => {
    const { outcome } = await desk.run('no-text', [replyText('Hello!')]);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'invalid_output', answer: 'Hello!' });
    expect(outcome.error).toMatch(/model "m".*toolChoice "required".*decide "schema".*Ollama/s);
  });

  test('T-09 a reply with neither text nor call is requested three times, then is a failure that names the server', async () => {
    const nothing = replyText('', { headers: { 'retry-after-ms': '10' } });
    const { outcome, requests } = await desk.run('plain', [nothing, nothing, nothing]);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'error' });
    expect(outcome.error).toContain('neither text nor calls');
    expect(outcome.error).toContain(desk.stub.baseUrl);
    expect(requests).toHaveLength(3);
  });

  test('T-10 required is sent unchanged, and as auto to a model that does not support it', async () => {
    const ending = calls(call('respond', { response: 'ok' }));
    const { requests } = await desk.run('required', [ending]);
    expect(requests[0]?.body).toMatchObject({ tool_choice: 'required' });
    const other = await desk.run('required-o1', [ending]);
    expect(other.requests[0]?.body).toMatchObject({ tool_choice: 'auto' });
  });

  test('T-10 a server that refuses required gets auto at once, and for the rest of the run', async () => {
    const runReport = await desk.run('required', [
      replyError(400, {
        message: 'tool_choice "required" is not supported',
        param: 'tool_choice',
      }),
      calls(call('look_up', { what: 'iron' })),
      calls(call('respond', { response: 'ok' })),
    ]);
    expect(runReport.outcome).toMatchObject({ status: 'completed', steps: 2 });
    const choices = runReport.requests.map(({ body }) => body['tool_choice']);
    expect(choices).toEqual(['required', 'auto', 'auto']);
    const systems = runReport.requests.map(({ body }) => JSON.stringify(body['messages']));
    const demand = 'You must call one of the tools in every reply';
    expect(systems.map((text) => text.includes(demand))).toEqual([false, true, true]);
  });

  test('T-11 an error that a tool returns reaches the model with its code, and so does null', async () => {
    const runReport = await desk.run('plain', [
      calls(call('run_code', { code: 'print(x)' }), call('run_code', { code: '' })),
      replyText('ok'),
    ]);
    expect(results(runReport)).toEqual([
      expect.stringMatching(/tool_error.*NameError: x.*print\(x\)/),
      'null',
    ]);
  });

  test('T-11 an ending tool that returns an error has failed, and does not end the turn', async () => {
    const runReport = await desk.run('plain', [
      calls(call('hand_over', { value: { error: 'NameError: x' } })),
      calls(call('hand_over', { value: { x: 1 } })),
    ]);
    expect(results(runReport)[0]).toMatch(/tool_error.*NameError: x/);
    expect(runReport.outcome).toMatchObject({ reason: 'tool', output: { x: 1 }, steps: 2 });
  });
});

describe('agents on one worker', () => {
  test('T-13 share tools but never each other’s calls, even concurrently', async () => {
    noted.length = 0;
    const steps = [calls(call('note', { text: 'T-13' })), replyText('ok')];
    const both = await Promise.all(
      ['reader', 'writer'].map(async (name) => {
        const message = desk.conversation(...steps);
        const { id } = await desk.client.start(name, { message });
        await desk.client.result(id);
        return await desk.report(id, message);
      }),
    );
    expect(both.map(results)).toEqual([[expect.stringContaining('unknown_tool')], ['noted T-13']]);
    expect(noted).toEqual(['T-13']);
    const shown = both.map(({ requests: [first] }) => JSON.stringify(first?.body['tools'] ?? []));
    expect(shown.map((json) => json.includes('"note"'))).toEqual([false, true]);
  });

  test('T-15 can decide by a function instead of a model, with the same tools and outcome', async () => {
    const runReport = await desk.run('own-decision', []);
    expect(runReport.outcome).toMatchObject({
      status: 'completed',
      answer: 'so: gold: found',
      steps: 2,
    });
    expect(runReport.requests).toEqual([]);
  });

  test('T-15 refuse tools with the same name, and anything that is not a tool, when they are defined', () => {
    expect(() => agent('twice', { tools: [lookUp, note, lookUp] })).toThrow(
      /look_up.*items 1 and 3/,
    );
    const none = [{ name: 'f' }, lookUp, () => 1] as unknown as AgentOptions['tools'];
    expect(() => agent('none', { tools: none ?? [] })).toThrow(
      /tools\[0\]: expected a tool, .*\n.*tools\[2\]: .*defineTool/,
    );
  });
});
