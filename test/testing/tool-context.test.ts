import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineTool, ToolError, type ToolContext } from '../../src/index.js';
import { artifact } from '../../src/tools/built-in/artifact.js';
import { nodeContext, toolContext } from '../../src/testing.js';

describe('toolContext', () => {
  test('has a default for every part of the context', () => {
    const context = toolContext();
    expectTypeOf(context).toExtend<ToolContext>();
    expect(context).toMatchObject({
      idempotencyKey: 'test-key',
      context: null,
      run: { id: 'test-run', runId: 'test-run-segment', turn: 1, step: 1 },
      call: { id: 'test-call', attempt: 1 },
      artifacts: { names: [] },
    });
    expect(context.signal.aborted).toBe(false);
  });

  test('uses the parts that a test passes, and keeps the defaults of the others', () => {
    const signal = AbortSignal.abort();
    const context = toolContext({
      idempotencyKey: 'k1',
      context: { tenant: 'acme' },
      signal,
      run: { turn: 3 },
      call: { attempt: 2 },
    });
    expect(context).toMatchObject({ idempotencyKey: 'k1', context: { tenant: 'acme' }, signal });
    expect(context.run).toMatchObject({ id: 'test-run', turn: 3 });
    expect(context.call).toEqual({
      id: 'test-call',
      attempt: 2,
      scheduledAt: expect.any(Number),
    });
  });

  test('records heartbeats and logs', () => {
    const context = toolContext();
    context.heartbeat();
    context.heartbeat({ done: 3 });
    context.log('half way', { done: 3 });
    context.log('finished');
    expect(context.heartbeats).toEqual([undefined, { done: 3 }]);
    expect(context.logged).toEqual([
      { message: 'half way', fields: { done: 3 } },
      { message: 'finished' },
    ]);
  });

  test('passes artifacts as a run does: as JSON, checked by a schema, or as a ToolError', async () => {
    const due = new Date('2027-01-01T00:00:00Z');
    const { artifacts } = toolContext({ artifacts: { report: { rows: [1, 2], due } } });
    expect(artifacts.names).toEqual(['report']);
    expect(await artifacts.get('report')).toEqual({ rows: [1, 2], due: due.toISOString() });
    const rows = await artifacts.get('report', z.object({ rows: z.array(z.number()) }));
    expectTypeOf(rows).toEqualTypeOf<{ rows: number[] }>();
    expect(rows).toEqual({ rows: [1, 2] });
    await expect(artifacts.get('report', z.string())).rejects.toThrow(
      'artifact "report" does not fit this tool',
    );
    const missing = artifacts.get('reprt');
    await expect(missing).rejects.toThrow(ToolError);
    await expect(missing).rejects.toThrow('unknown artifact "reprt"; available: report');
  });
});

test('a tool is tested without a run', async () => {
  const total = defineTool({
    name: 'total',
    description: 'Adds up the rows of an artifact.',
    effect: 'read',
    input: z.object({ from: z.string() }),
    async execute({ from }, context) {
      const rows = await context.artifacts.get(from, z.array(z.number()));
      context.log('added up', { rows: rows.length });
      return artifact(rows.reduce((sum, row) => sum + row, 0));
    },
  });
  const context = toolContext({ artifacts: { rows: [1, 2, 3] } });
  expect(await total.execute({ from: 'rows' }, context)).toMatchObject({ value: 6 });
  expect(context.logged).toEqual([{ message: 'added up', fields: { rows: 3 } }]);
  await expect(total.execute({ from: 7 as never }, context)).rejects.toThrow(
    'from: expected string, got 7',
  );
});

describe('nodeContext', () => {
  test('lets a test call the functions of nodes as they are written in a graph', async () => {
    type Exit = Parameters<ReturnType<typeof nodeContext<'urgent' | 'later'>>['exit']>[0];
    const trim = async (s: { text: string }, given: ToolContext) => {
      given.log('trimmed');
      return { text: `${s.text.trim()} for ${JSON.stringify(given.context)}` };
    };
    const sort = async (
      s: { text: string },
      { exit }: { exit: (name: Exit, patch?: object) => unknown },
    ) => (s.text.includes('!') ? exit('urgent', { text: 'now' }) : exit('later'));
    const context = nodeContext<'urgent' | 'later'>({ context: { tenant: 'acme' } });
    expect(await trim({ text: ' a ' }, context)).toEqual({ text: 'a for {"tenant":"acme"}' });
    expect(context.logged).toEqual([{ message: 'trimmed' }]);
    expect(await sort({ text: 'fire!' }, context)).toEqual({
      exit: 'urgent',
      patch: { text: 'now' },
    });
    expect(await sort({ text: 'hm' }, context)).toEqual({ exit: 'later' });
    // @ts-expect-error the node has no such exit
    context.exit('never');
  });
});

test('the context of a node gives scripted replies to generate, checked by the schema', async () => {
  const context = nodeContext({ replies: ['Hello.', { kind: 'bill' }, { kind: 7 }] });
  const output = z.object({ kind: z.string() });
  expect(await context.generate({ message: 'Greet' })).toBe('Hello.');
  const sorted = await context.generate({ model: 'small', message: 'Sort', output });
  expectTypeOf(sorted).toEqualTypeOf<{ kind: string }>();
  expect(sorted).toEqual({ kind: 'bill' });
  await expect(context.generate({ message: 'Sort', output })).rejects.toThrow('kind');
  await expect(context.generate({ message: 'More' })).rejects.toThrow('no further reply');
  expect(context.generated).toMatchObject([
    { message: 'Greet' },
    { model: 'small', message: 'Sort' },
    { message: 'Sort' },
    { message: 'More' },
  ]);
});
