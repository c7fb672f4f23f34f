import { stripVTControlCharacters } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import { playRun } from '../../src/memory/run-in-memory.js';
import { recordingOf } from '../../src/recordings/rerun.js';
import {
  answer,
  approve,
  approveSome,
  deny,
  edit,
  evaluate,
  nodeContext,
  readRecording,
  recordRun,
  replyCall,
  replyError,
  replyText,
  rerun,
  runInMemory,
  startStub,
  toolContext,
  withFaults,
  writeRecording,
} from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { mcpServer } from '../../src/tools.js';
import { createRunInput } from '../../src/updates/start.js';
// oxlint-disable-next-line import/no-unassigned-import -- it adds the matchers to vitest
import '../../src/vitest.js';
import { look, pay, useSourceBundle } from '../support/memory.js';

const base = { name: 'desk', instructions: 'Help.', model: 'm' };
const desk = defineAgent({ ...base, tools: [look, pay] });
const model = [replyCall('look', { n: 1 }), replyText('Done.')];
const played = async () => await runInMemory(desk, { message: 'Go', model });

beforeAll(useSourceBundle);

/** Returns the message with which an expectation fails; null if it holds. */
function failure(expectation: () => void): string | null {
  try {
    expectation();
    return null;
  } catch (error) {
    return error instanceof Error ? stripVTControlCharacters(error.message) : String(error);
  }
}

describe('a negated matcher', () => {
  test('refuses a name that the run cannot have, and so proves nothing', async () => {
    const run = await played();
    expect(() => expect(run).not.toHaveCalled('pya')).toThrow(
      'toHaveCalled: expected a tool of the agent, got "pya" (did you mean "pay"?)',
    );
    expect(() => expect(run).toHaveCalled('pya', {}, { times: 0 })).toThrow('"pya"');
    expect(() => expect(run).not.toHaveCalled('look', { m: 1 })).toThrow(
      'toHaveCalled: expected an argument of tool "look", got "m"',
    );
    expect(() => expect(run).not.toHaveAsked('pya')).toThrow(
      'toHaveAsked: expected a tool of the agent or a kind of request, got "pya" (did you mean "pay"?)',
    );
    expect(() => expect(run).not.toEndAs('faild')).toThrow(
      'toEndAs: expected a status or a reason, got "faild" (did you mean "failed"?)',
    );
    expect(() => expect(run).not.toEndAs({ reason: 'anser' })).toThrow('did you mean "answer"?');
  });

  test('accepts every name that the run can have', async () => {
    const run = await played();
    expect(run).not.toHaveCalled('pay');
    expect(run).not.toHaveCalled('read_result');
    expect(run).not.toHaveCalled('look', { n: expect.any(String) });
    expect(run).not.toHaveAsked('question');
    expect(run).not.toHaveAsked('pay');
    expect(run).not.toEndAs('steps');
    expect({ ...run }).not.toHaveCalled('of a run that a test has put together');
  });

  test('accepts any tool of an MCP server that has listed none', async () => {
    const mcp = [mcpServer({ name: 'shop', transport: 'stdio', command: 'no-such-program' })];
    const remote = defineAgent({ name: 'remote', instructions: 'Help.', mcp });
    const run = await runInMemory(remote, { message: 'Go', model: [] });
    expect(run.outcome.status).toBe('failed');
    expect(failure(() => expect(run).not.toHaveCalled('shop__buy'))).not.toContain(
      'expected a tool',
    );
  });

  test('knows the tools of a run that is executed again', async () => {
    const first = await playRun(desk, { message: 'Go', model });
    const again = await rerun(recordingOf(first, { blobs: {} }), { agent: desk });
    expect(again).toHaveCalled('look', { n: 1 });
    expect(() => expect(again).not.toHaveCalled('lok')).toThrow('did you mean "look"?');
  });
});

test('a matcher that fails names what a misspelled name may mean', async () => {
  const run = await played();
  expect(failure(() => expect(run).toHaveCalled('lok'))).toContain('did you mean "look"?');
  expect(failure(() => expect(run).toHaveAsked('pya'))).toContain('did you mean "pay"?');
  const end = failure(() => expect(run).toEndAs('complete'));
  expect(end).toContain('did you mean "completed"?');
  expect(end).not.toContain('"reason"');
  const reason = failure(() => expect(run).toEndAs('steps'));
  expect(reason).toContain('-   "reason": "steps"');
  expect(reason).not.toContain('"status"');
});

test('an option that does not exist is refused by every function that takes options', async () => {
  const recording = recordingOf(await playRun(desk, { message: 'Go', model }), { blobs: {} });
  const config = defineConfig({ agents: [desk] });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- wrong on purpose
  const wrong = { agnt: desk, filee: 'x' } as object;
  const message = /is not an option; (did you mean|the options are) /;
  await expect(rerun(recording, wrong)).rejects.toThrow(
    '"agnt" is not an option; did you mean agent?',
  );
  await expect(evaluate('x', { model: 'm', ...wrong })).rejects.toThrow(message);
  await expect(readRecording('x.json', wrong)).rejects.toThrow(message);
  await expect(writeRecording('x.json', recording, wrong)).rejects.toThrow(message);
  await expect(recordRun({} as never, 'x', wrong)).rejects.toThrow(message);
  await expect(startStub(wrong)).rejects.toThrow(message);
  expect(() => withFaults(config, [], { filee: 'x' } as object)).toThrow('did you mean file?');
  expect(() => toolContext(wrong)).toThrow(message);
  expect(() => nodeContext({ ...wrong, replies: [] })).toThrow(message);
  expect(() => replyText('x', { finsh: 'length' } as object)).toThrow('did you mean finish?');
  expect(() => replyCall('x', {}, { texts: 'x' } as object)).toThrow(message);
  expect(() => replyError(500, {}, { dlay: 5 } as object)).toThrow('did you mean delay?');
  const misspelled = { nte: 'x' } as object;
  for (const [name, make] of [
    ['approve', () => approve(misspelled)],
    ['approveSome', () => approveSome(['a1'], misspelled)],
    ['deny', () => deny(misspelled)],
    ['edit', () => edit({}, misspelled)],
    ['answer', () => answer('x', misspelled)],
  ] as const) {
    expect(make).toThrow(`${name}: "nte" is not an option; did you mean note?`);
  }
});

test('the name of an agent is refused where the agent itself is expected', async () => {
  const name = 'desk' as never;
  const message = 'agent: expected an agent, got "desk"; make it with defineAgent({…})';
  await expect(runInMemory(name, { message: 'Go', model })).rejects.toThrow(message);
  const recording = recordingOf(await playRun(desk, { message: 'Go', model }), { blobs: {} });
  await expect(rerun(recording, { agent: name })).rejects.toThrow(message);
  const other = { agents: [name], message: 'Go', model, on: { request: { pay: approve() } } };
  await expect(runInMemory(desk, other)).rejects.toThrow(message);
});

test('what is not an agent and not its name is refused before a run starts', () => {
  const message = 'agent: expected an agent or the name of one, got ';
  expect(() => createRunInput(undefined as never, { message: 'Go' })).toThrow(
    `${message}undefined`,
  );
  expect(() => createRunInput({} as never, { message: 'Go' })).toThrow(`${message}{}`);
});

test('a misspelled field of a start is refused with the nearest one, and without those of perdure', () => {
  const wrong = { message: 'Go', opne: true } as { readonly message: string };
  const start = (): unknown => createRunInput('desk', wrong);
  expect(start).toThrow(/^opne: expected a field of a message; did you mean open\?$/);
  expect(start).not.toThrow(/contextBlob|turnContext|depth|requesters|door/);
});

test('a divergence of a rerun says the failure of a tool in plain words', async () => {
  const recording = recordingOf(await playRun(desk, { message: 'Go', model }), { blobs: {} });
  const strict = defineTool({
    name: 'look',
    description: 'Looks.',
    effect: 'read',
    input: z.object({ number: z.int() }),
    execute: () => 'seen',
  });
  const agent = defineAgent({ ...base, tools: [strict, pay] });
  const { divergence } = await rerun(recording, { agent });
  expect(divergence?.text).toMatch(/has the result "invalid_arguments: .*number/);
  expect(divergence?.text).not.toContain('{"role":"tool"');
});

test('a run in memory says what its model and its messages have to be', async () => {
  const run = async (wrong: object): Promise<unknown> =>
    await runInMemory(desk, { message: 'Go', model, ...wrong });
  await expect(run({ model: ['hello'] })).rejects.toThrow(
    `model[0]: expected a reply, got "hello"; make it with replyText('…')`,
  );
  await expect(run({ model: 'gpt-5' })).rejects.toThrow(
    'model: expected a list of replies or a model, got "gpt-5"',
  );
  await expect(run({ message: undefined, messages: 'x' })).rejects.toThrow(/^messages: expected/);
});
