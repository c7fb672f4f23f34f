import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { runTool } from '../../src/activities/tool/run-tool.js';
import type { RunToolInput } from '../../src/core/run/contract.js';
import type { Effect } from '../../src/core/definition/tool-definition.js';
import { CallFault } from '../../src/tools/arguments/check-arguments.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { toToolDefinition } from '../../src/tools/tool.js';
import { inActivity, pinnedAgent, toolCall, workerDeps } from '../support/activity.js';

interface Executed {
  readonly effect: Effect;
  readonly attempt?: number;
  readonly options?: object;
  readonly pinned?: object;
}

/** Executes one call of a tool that returns or throws something. */
async function run(
  execute: () => unknown,
  { effect, attempt = 1, options = {}, pinned = {} }: Executed,
): Promise<unknown> {
  const tool = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({}),
    effect,
    ...(effect !== 'once' && { retry: { attempts: 2 } }),
    execute,
    ...options,
  });
  const definition = { ...toToolDefinition(tool), ...pinned };
  const input = {
    definition: 'h',
    turn: 1,
    step: 1,
    call: toolCall('pay', {}),
    key: 'key',
    effect,
  } satisfies RunToolInput;
  const deps = workerDeps(pinnedAgent([tool], { pinned: [definition] }));
  return await inActivity(() => runTool(deps, input), { attempt });
}

const poisoned = (): unknown => ({
  get success(): boolean {
    throw new Error('no access');
  },
});

describe('a call whose function has returned', () => {
  test.each<[string, () => unknown, object]>([
    ['cannot be read', poisoned, {}],
    [
      'is judged by a `failed` that throws',
      () => 7,
      {
        failed: () => {
          throw new Error('oops');
        },
      },
    ],
    ['is refused by its `output` schema', () => 7, { output: z.string() }],
    [
      'is refused by a schema that throws',
      () => 7,
      {
        output: z.custom(() => {
          throw new Error('oops');
        }),
      },
    ],
  ])('is never a failure if its result %s', async (_, execute, options) => {
    for (const effect of ['keyed', 'once'] as const) {
      expect(await run(execute, { effect, options })).toMatchObject({ ok: true });
    }
    const read = run(execute, { effect: 'read', attempt: 2, options });
    expect(await read).toMatchObject({ ok: false });
  });

  test('tells the model that it was executed', async () => {
    expect(await run(poisoned, { effect: 'once' })).toEqual({
      ok: true,
      text: '[the call was executed; its result cannot be read: no access]',
      lost: 'its result cannot be read: no access',
    });
  });
});

describe('a keyed call that was sent', () => {
  const unanswered = (): never => {
    throw new CallFault('unanswered', 'the line went dead');
  };
  const never = (): Promise<never> => new Promise(() => undefined);

  test('is attempted again under its key, and then its outcome is unknown', async () => {
    await expect(run(unanswered, { effect: 'keyed' })).rejects.toThrow('the line went dead');
    expect(await run(unanswered, { effect: 'keyed', attempt: 2 })).toEqual({
      ok: 'unknown',
      message: 'the line went dead',
    });
    expect(await run(unanswered, { effect: 'read', attempt: 2 })).toMatchObject({ ok: false });
  });

  test('is treated alike if it times out', async () => {
    const options = { timeout: 10 };
    await expect(run(never, { effect: 'keyed', options })).rejects.toThrow('timed out');
    expect(await run(never, { effect: 'keyed', attempt: 2, options })).toEqual({
      ok: 'unknown',
      message: 'pay timed out after 10 ms',
    });
    expect(await run(never, { effect: 'read', options })).toMatchObject({ ok: false });
  });
});
