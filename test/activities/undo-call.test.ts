import { defineAgent } from '../../src/agents/define-agent.js';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { ActivityDependencies } from '../../src/activities/activity-context.js';
import { runFunction, runTool, recordedValue } from '../../src/activities/tool/run-tool.js';
import type { RunFunctionInput, RunFunctionResult } from '../../src/core/run/contract.js';
import { sha256Hex } from '../../src/core/text/json.js';
import { isFunctionResult } from '../../src/core/guards/recorded.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { ToolError } from '../../src/tools/errors.js';
import type { Tool } from '../../src/tools/tool.js';
import { inActivity, pinnedAgent, toolCall, workerDeps } from '../support/activity.js';

let undone: unknown[] = [];
const book = (rest: object = {}): Tool =>
  defineTool({
    name: 'book',
    description: 'Books.',
    input: z.object({ room: z.string() }),
    effect: 'keyed',
    retry: { attempts: 2 },
    execute: () => ({ booking: 7 }),
    undo: (...given) => void undone.push(given),
    ...rest,
  });
const once = { effect: 'once', retry: undefined };

interface Undone {
  readonly tool?: Tool;
  readonly requests?: Partial<ActivityDependencies['requests']>;
  readonly input?: Partial<RunFunctionInput>;
  readonly attempt?: number;
  readonly blobs?: ActivityDependencies['blobs'];
}

const functionInput = (tool: Tool, rest: Partial<RunFunctionInput> = {}): RunFunctionInput => ({
  function: 'undo',
  definition: 'h',
  turn: 1,
  step: 1,
  call: toolCall('book', { room: 'R1' }),
  effect: tool.effect,
  key: 'k',
  result: { text: '{"booking":7}' },
  ...rest,
});

async function undo({
  tool = book(),
  requests,
  input,
  attempt = 1,
  blobs,
}: Undone = {}): Promise<RunFunctionResult> {
  undone = [];
  const deps = { ...workerDeps(pinnedAgent([tool]), requests), ...(blobs && { blobs }) };
  const run = () => runFunction(deps, functionInput(tool, input));
  const result = await inActivity(run, { attempt });
  expect(isFunctionResult(result)).toBe(true);
  return result;
}

const DONE = { happened: true, result: { ok: true, text: '' } };
const deny = { tool: 'book', then: 'deny' } as const;
const ask = { tool: 'book', then: 'ask' } as const;

describe('undo', () => {
  test('receives the arguments, the result, and a key of its own', async () => {
    expect(await undo({ input: { context: { user: 'ada' } } })).toEqual(DONE);
    const run = { id: 'run-1', runId: 'segment-1', turn: 1, step: 1 };
    const idempotencyKey = sha256Hex('undo k');
    expect(undone).toEqual([
      [
        { room: 'R1' },
        { booking: 7 },
        { idempotencyKey, run, context: { user: 'ada' }, signal: expect.any(AbortSignal) },
      ],
    ]);
  });

  test('receives the whole result from the blob store', async () => {
    const agent = pinnedAgent([book()]);
    const { blobs } = workerDeps(agent);
    const blob = await blobs.put('{"booking":8}');
    await undo({ input: { result: { text: '{"boo…', blob } }, blobs });
    expect(undone).toMatchObject([[{}, { booking: 8 }, {}]]);
  });

  test.each([
    ['the worker', { requests: { rules: [ask] } }],
    ['the run', { input: { rules: [ask] } }],
    ['the tool', { tool: book({ approval: () => true }) }],
    [
      'a tool whose check fails',
      {
        tool: book({
          approval: () => {
            throw new Error('x');
          },
        }),
      },
    ],
  ])('requires approval if %s asks', async (_who, given) => {
    expect(await undo(given)).toMatchObject({ happened: 'undecided', verdict: { then: 'ask' } });
    expect(undone).toEqual([]);
    const approved = {
      ...given,
      input: { ...('input' in given && given.input), approved: true },
    } as const;
    expect(await undo(approved)).toEqual(DONE);
    expect(undone).toHaveLength(1);
  });

  test('shows what it gets, if no reply of a model has recorded that', async () => {
    const input = z.object({ room: z.string(), nights: z.number().default(9) });
    const tool = book({ input });
    const node = { call: toolCall('book', { room: 'R1' }, { node: 'n' }) };
    const asked = await undo({ tool, requests: { rules: [ask] }, input: node });
    const json = '{"nights":9,"room":"R1"}';
    const parsed = { arguments: json, digest: sha256Hex(json) };
    expect(asked).toMatchObject({ happened: 'undecided', parsed });
    const approved = { call: { ...node.call, parsed }, approved: true } as const;
    const other = book({ input: input.extend({ nights: z.number().default(1) }) });
    expect(await undo({ tool: other, requests: { rules: [ask] }, input: approved })).toEqual(DONE);
    expect(undone).toMatchObject([[{ room: 'R1', nights: 9 }, {}, {}]]);
  });

  test('is denied by a rule, even if a person has approved it meanwhile', async () => {
    const denied = { happened: 'undecided', verdict: { then: 'deny', why: 'rule: deny book' } };
    expect(await undo({ requests: { rules: [deny] } })).toEqual(denied);
    expect(await undo({ requests: { rules: [deny] }, input: { approved: true } })).toEqual(denied);
    expect(undone).toEqual([]);
  });

  const failing = (error: Error, rest: object = {}) =>
    book({
      undo: () => {
        throw error;
      },
      ...rest,
    });

  test('that throws is retried as often as the tool allows', async () => {
    const tool = failing(new Error('https://user:geheim@rooms.example is down'));
    await expect(undo({ tool, attempt: 1 })).rejects.toThrow('undo of book: https://[redacted]@');
    expect(await undo({ tool, attempt: 2 })).toEqual({
      happened: 'unknown',
      message: 'undo of book: https://[redacted]@rooms.example is down',
    });
  });

  test('that throws a ToolError is not retried', async () => {
    const tool = failing(new ToolError('too late'));
    expect(await undo({ tool })).toEqual({
      happened: 'unknown',
      message: 'undo of book: too late',
    });
  });

  test('of a once tool is called at most once', async () => {
    expect(await undo({ tool: failing(new Error('down'), once) })).toMatchObject({
      happened: 'unknown',
    });
    expect(await undo({ tool: book(once) })).toEqual(DONE);
    expect(await undo({ tool: book(once), attempt: 2 })).toMatchObject({ happened: 'unknown' });
    expect(undone).toEqual([]);
  });

  test('that times out has an unknown outcome', async () => {
    const tool = book({ timeout: 10, undo: () => new Promise(() => undefined) });
    expect(await undo({ tool })).toEqual({
      happened: 'unknown',
      message: 'undo of book timed out after 10 ms',
    });
  });

  test('does nothing if the worker lacks the tool', async () => {
    const rest = Object.entries(book()).filter(([key]) => key !== 'undo');
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tool without one part
    const tool = Object.fromEntries(rest) as unknown as Tool;
    expect(await undo({ tool })).toMatchObject({
      happened: 'unknown',
      message: expect.stringContaining('nothing was undone'),
    });
  });
});

describe('a recorded result', () => {
  test.each([
    ['{"a":1}', { a: 1 }],
    ['[1]', [1]],
    ['42', 42],
    ['null', null],
    ['"quoted"', '"quoted"'],
    ['plain text', 'plain text'],
    ['', ''],
  ])('%j is read as %j', (text, value) => {
    expect(recordedValue({}, text)).toEqual(value);
    expect(recordedValue({ output: z.unknown() }, text)).toEqual(value);
    expect(recordedValue({ output: z.string() }, text)).toBe(text);
  });
});

describe('a rule that denies, right before the execution', () => {
  let executed = 0;
  const counting = (rest: object = {}): Tool => book({ execute: () => (executed += 1), ...rest });
  const run = async (tool: Tool, rules: readonly object[], rest: object = {}, attempt = 1) => {
    executed = 0;
    const { function: _, result: __, ...input } = functionInput(tool);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- rules of a test
    const deps = workerDeps(pinnedAgent([tool]), { rules: rules as never });
    return await inActivity(() => runTool(deps, { ...input, ...rest }), { attempt });
  };

  test('prevents the execution of the tool', async () => {
    for (const tool of [counting(), counting(once)]) {
      const result = await run(tool, [deny]);
      expect(result).toEqual({
        ok: false,
        text: '{"error":{"type":"denied","message":"book was not executed: rule: deny book"}}',
      });
      expect(executed).toBe(0);
    }
  });

  test('also counts if the current agent has it, for a call and for its undo', async () => {
    const tool = counting();
    const agent = defineAgent({ name: 'a', instructions: 'x', tools: [tool], rules: [deny] });
    const now = { ...pinnedAgent([tool]), agent };
    const { function: _, result: __, ...input } = functionInput(tool);
    executed = 0;
    const result = await inActivity(() => runTool(workerDeps(now), input), { attempt: 1 });
    expect(result).toMatchObject({ ok: false, text: expect.stringContaining('rule: deny book') });
    expect(executed).toBe(0);
    const approved = functionInput(tool, { approved: true });
    const undoing = await inActivity(() => runFunction(workerDeps(now), approved), { attempt: 1 });
    expect(undoing).toMatchObject({ happened: 'undecided', verdict: { then: 'deny' } });
  });

  test('is the only rule that counts: one that asks has been answered', async () => {
    expect(await run(counting(), [ask])).toMatchObject({ ok: true });
    expect(executed).toBe(1);
  });

  test('does not claim that nothing happened if an earlier attempt may have acted', async () => {
    expect(await run(counting(once), [deny], {}, 2)).toMatchObject({ ok: 'unknown' });
    expect(await run(counting(once), [deny], { again: true })).toMatchObject({ ok: 'unknown' });
    const { text = '' } = (await run(counting(), [deny], {}, 2)) as { text?: string };
    expect(text).toContain('an earlier attempt may have taken effect');
    expect(executed).toBe(0);
  });

  test('does not apply to a probe', async () => {
    expect(await run(counting(), [deny], { find: true })).toMatchObject({ ok: 'not_started' });
  });
});

describe('verify', () => {
  async function verified(answer: unknown): Promise<RunFunctionResult> {
    const tool = book({ ...once, undo: undefined, verify: () => answer });
    const deps = workerDeps(pinnedAgent([tool]));
    const input = functionInput(tool, { function: 'verify' });
    return await inActivity(() => runFunction(deps, input));
  }

  test.each([true, false, 'yes', {}, 7, [], null, undefined, { happened: 'no' }, { happened: 0 }])(
    'leaves the outcome unknown if it answers %j',
    async (answer) => {
      const message = 'verify returned no clear answer';
      expect(await verified(answer)).toEqual({ happened: 'unknown', message });
    },
  );

  test('answers with true and a result, or with false', async () => {
    const result = { ok: true, text: 'booked' };
    expect(await verified({ happened: true, result: 'booked' })).toEqual({
      happened: true,
      result,
    });
    expect(await verified({ happened: false })).toEqual({ happened: false });
  });
});
