import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { readCall, type ReadCall } from '../../src/activities/model/reply-calls.js';
import { recordReply } from '../../src/activities/model/record-reply.js';
import { createRuleContext } from '../../src/activities/requests/evaluate-call.js';
import type { Rule, Verdict } from '../../src/core/definition/rules.js';
import { listArtifacts } from '../../src/tools/built-in/default-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { toToolDefinition, type Tool } from '../../src/tools/tool.js';
import { activityContext, memoryBlobs, pinnedAgent } from '../support/activity.js';

const input = z.object({ euros: z.coerce.number().default(100), note: z.string().optional() });
const pay = (approval?: Tool['approval'], rest: object = {}): Tool =>
  defineTool({
    name: 'pay',
    description: 'Pays.',
    input,
    effect: 'keyed',
    execute: () => 'paid',
    ...(approval !== undefined && { approval }),
    ...rest,
  });

interface Asked {
  readonly tools: readonly Tool[];
  readonly pinned?: readonly Tool[];
  readonly worker?: readonly Rule[];
  readonly agent?: readonly Rule[];
  readonly run?: readonly Rule[];
  readonly args?: string;
  readonly name?: string;
  readonly isGivenUp?: boolean;
  readonly catalog?: boolean;
}

/** Decodes a call as the worker does when it records the reply. */
async function read(asked: Asked): Promise<ReadCall> {
  const { tools, worker = [], agent = [], args = '{"euros": 60}', name = 'pay' } = asked;
  const catalog = { summary: '', category: 'other', actions: [] };
  const pinned = pinnedAgent(tools, {
    ...(asked.pinned && { pinned: asked.pinned.map((tool) => toToolDefinition(tool)) }),
    definition: {
      ...(agent.length > 0 && { rules: agent }),
      ...(asked.catalog && {
        toolExposure: 'catalog' as const,
        tools: tools.map((tool) => ({ ...toToolDefinition(tool), catalog })),
      }),
    },
  });
  const ruleContext = createRuleContext({
    requests: { rules: worker },
    pinned,
    input: { turn: 2, step: 3, ...(asked.run && { rules: asked.run }) },
    info: activityContext().info,
    userContext: { user: 'ada' },
  });
  return await readCall(
    { name, arguments: args },
    { isGivenUp: asked.isGivenUp ?? false, ruleContext },
  );
}

const verdictOf = async (asked: Asked): Promise<Verdict | undefined> => (await read(asked)).verdict;
const over50 = { tool: 'pay', where: { op: 'over', path: 'euros', value: 50 } } as const;

describe('an approval', () => {
  test('that is not required leaves no trace', async () => {
    expect(await read({ tools: [pay()] })).not.toHaveProperty('verdict');
    expect(await read({ tools: [pay('never')] })).not.toHaveProperty('verdict');
    expect(await read({ tools: [pay(() => false)] })).not.toHaveProperty('verdict');
  });

  test('that is required raises a request', async () => {
    expect(await verdictOf({ tools: [pay('always')] })).toMatchObject({ then: 'ask' });
    expect(await verdictOf({ tools: [pay(async () => true)] })).toEqual({
      then: 'ask',
      why: 'the tool requires approval of this call',
    });
  });

  test('receives the parsed arguments, the run, and its context', async () => {
    const seen: unknown[] = [];
    const approval: Tool['approval'] = (...given) => seen.push(given) < 0;
    expect(await verdictOf({ tools: [pay(approval)], args: '{}' })).toBeUndefined();
    const run = { id: 'run-1', runId: 'segment-1', turn: 2, step: 3 };
    expect(seen).toEqual([[{ euros: 100 }, { run, context: { user: 'ada' } }]]);
  });

  test.each<[string, () => unknown, string]>([
    [
      'throws',
      () => {
        throw new Error('no database');
      },
      'failed: no database',
    ],
    [
      'rejects',
      async () => {
        throw new Error('sk-abcdefgh12345');
      },
      'failed: [redacted]',
    ],
    [
      'throws nothing',
      () => {
        throw undefined;
      },
      'failed: it threw undefined',
    ],
    ['returns a text', () => 'no', 'returned "no" instead of true or false'],
    ['returns nothing', () => undefined, 'returned undefined instead of true or false'],
    ['returns 0', () => 0, 'returned 0 instead of true or false'],
    [
      'returns a Boolean object',
      () => Object(false) as unknown,
      'returned false instead of true or false',
    ],
    [
      'returns what cannot be shown',
      () => ({
        toJSON() {
          throw new Error('x');
        },
      }),
      'returned object',
    ],
    ['resolves to a lie', async () => ({ approved: false }), 'returned {"approved":false}'],
    ['returns a thenable that lies', () => ({ then: (ok: (v: string) => void) => ok('f') }), '"f"'],
  ])('is requested if the check %s', async (_how, check, why) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a check that lies about its type
    const verdict = await verdictOf({ tools: [pay(check as () => boolean)] });
    expect(verdict).toMatchObject({ then: 'ask' });
    expect(verdict?.why).toContain(why);
  });

  test('is requested if the check hangs', async () => {
    const verdict = await verdictOf({ tools: [pay(() => new Promise(() => undefined))] });
    expect(verdict?.why).toContain('failed: it did not finish within 5 s');
  });

  test('is requested without the check if the check was abandoned', async () => {
    const neverRun = (): never => {
      throw new Error('it ran');
    };
    const fixed = { input: z.object({ euros: z.number() }) };
    const tools = [pay(neverRun, fixed)];
    const call = await read({ tools, isGivenUp: true });
    expect(call.problem).toBeUndefined();
    expect(call.verdict?.why).toContain('took too long and was abandoned');
  });

  const changed = pay(() => false, { input: z.object({ euros: z.number() }) });
  test.each<[string, readonly Tool[], readonly Tool[]]>([
    ['is not on the worker', [], [pay(() => false)]],
    ['has changed its arguments', [changed], [pay(() => false)]],
    ['has lost its check', [pay()], [pay(() => false)]],
    ['has gained a check', [pay(() => false)], [pay()]],
    ['now always requires approval', [pay('always')], [pay()]],
  ])('is requested if the tool %s since the run began', async (_how, tools, pinned) => {
    expect(await verdictOf({ tools, pinned })).toMatchObject({ then: 'ask' });
  });
});

describe('rules', () => {
  test.each(['worker', 'agent', 'run'] as const)('of the %s apply', async (level) => {
    const verdict = await verdictOf({ tools: [pay()], [level]: [{ ...over50, then: 'ask' }] });
    expect(verdict).toEqual({ then: 'ask', why: 'rule: ask pay where euros over 50' });
  });

  test('of a lower level never allow what a higher level asks for', async () => {
    const run = [{ tool: '*', then: 'allow' } as const];
    const worker = [{ ...over50, then: 'deny' } as const];
    const agent = [{ tool: 'pay', then: 'ask', deciders: ['ada'] } as const];
    const asked = { tools: [pay(() => false)], worker, agent, run };
    expect(await verdictOf(asked)).toMatchObject({ then: 'deny' });
  });

  test('see what the tool will get, and what the model wrote', async () => {
    const worker = [{ ...over50, then: 'deny' } as const];
    for (const args of ['{}', '{"euros": "60"}', '{"euros": 60}', '"{\\"euros\\": 60}"']) {
      expect(await verdictOf({ tools: [pay()], worker, args })).toMatchObject({ then: 'deny' });
    }
    expect(await verdictOf({ tools: [pay()], worker, args: '{"euros": 50}' })).toBeUndefined();
  });

  test('leave a record of what the tool will get, if that is not what was written', async () => {
    const parsedOf = async (asked: Asked): Promise<string | undefined> =>
      (await read(asked)).parsedCanonical;
    expect(await parsedOf({ tools: [pay()], args: '{"euros": "99999"}' })).toBe('{"euros":99999}');
    expect(await parsedOf({ tools: [pay()], args: '{}' })).toBe('{"euros":100}');
    expect(await read({ tools: [pay()], args: '{"euros": 60}' })).not.toHaveProperty('parsed');
    const invoked = { args: '{"tool": "pay", "arguments": {}}', name: 'invoke_tool' };
    expect(await parsedOf({ tools: [pay()], ...invoked, catalog: true })).toBe('{"euros":100}');
    // A worker that has newer code executes its own.
    const newer = pay(undefined, { input: z.object({ euros: z.number().default(7) }) });
    expect(await parsedOf({ tools: [newer], pinned: [pay()], args: '{}' })).toBe('{"euros":7}');
  });

  test('evaluate large arguments in full', async () => {
    const where = { op: 'matches', path: 'note', value: '*needle' } as const;
    const worker = [{ tool: 'pay', where, then: 'deny' } as const];
    const args = JSON.stringify({ note: `${'x'.repeat(2_000_000)}needle` });
    expect(await verdictOf({ tools: [pay()], worker, args })).toMatchObject({ then: 'deny' });
  });

  test('evaluate a call through invoke_tool as one of the real tool', async () => {
    const worker = [{ tool: 'pay', then: 'deny' } as const];
    const args = '{"tool": "pay", "arguments": {"euros": 1}}';
    const call = await read({ tools: [pay()], worker, args, name: 'invoke_tool', catalog: true });
    expect(call).toMatchObject({ name: 'pay', via: 'catalog', verdict: { then: 'deny' } });
  });

  test('ignore calls with a problem, artifacts, and the catalog', async () => {
    const worker = [{ tool: '*', then: 'deny' } as const];
    const tools = [pay(), listArtifacts()];
    expect(await read({ tools, worker, args: '{"euros": "many"}' })).not.toHaveProperty('verdict');
    const listed = await read({ tools, worker, args: '{}', name: listArtifacts().name });
    expect(listed.problem).toBeUndefined();
    expect(listed).not.toHaveProperty('verdict');
    const found = { tools, worker, args: '{}', name: 'discover_tools', catalog: true };
    expect(await read(found)).not.toHaveProperty('verdict');
  });
});

test('calls that a model wrote as text are evaluated when they are recorded', async () => {
  const pinned = pinnedAgent([pay()]);
  const rules = [{ ...over50, then: 'deny' } as const];
  const { info } = activityContext();
  const ruleContext = createRuleContext({
    requests: { rules },
    pinned,
    input: { turn: 1, step: 1 },
    info,
    userContext: null,
  });
  const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
  const record = async (euros: number) => {
    const text = JSON.stringify({ name: 'pay', arguments: { euros } });
    const source = {
      pinned,
      ruleContext,
      blobs: memoryBlobs(),
      userContext: null,
      isGivenUp: false,
    };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parts that are not read here
    const rest = { request: {}, input: {} } as Pick<
      Parameters<typeof recordReply>[1],
      'request' | 'input'
    >;
    return await recordReply({ text, calls: [], finish: 'stop', usage }, { ...source, ...rest });
  };
  expect((await record(60)).calls).toMatchObject([{ name: 'pay', verdict: { then: 'deny' } }]);
  expect(Object.keys((await record(50)).calls?.[0] ?? {})).toEqual(['name', 'digest', 'arguments']);
});
