import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { learnSecrets } from '../../src/secrets/known.js';
import {
  answer,
  defaultTools,
  listArtifacts,
  today,
} from '../../src/tools/built-in/default-tools.js';
import {
  artifact,
  isArtifact,
  defaultArtifactName,
  artifactValue,
  kindOf,
} from '../../src/tools/built-in/artifact.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { normalizeResult } from '../../src/tools/result/normalize.js';
import { createToolRegistry } from '../../src/tools/tool.js';
import { returnedError } from '../../src/tools/result/plain.js';
import { ToolError } from '../../src/tools/errors.js';
import { callFailure, callTool } from './support.js';

describe('artifact', () => {
  test.each(['orders', 'orders_2', '2026-11', 'x'.repeat(64)])('accepts the name %j', (name) => {
    expect(artifact([1], { name })).toMatchObject({ value: [1], name });
  });

  test.each(['', 'Orders', 'orders 2', 'a/b', 'x'.repeat(65), 7])(
    'refuses the name %j, in an error that the model reads',
    (name) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as JavaScript would
      const make = (): unknown => artifact(1, { name: name as string });
      expect(make).toThrow(ToolError);
      expect(make).toThrow(/artifact: name: expected 1 to 64 of a-z, 0-9, "_" and "-", got /);
    },
  );

  test.each([
    [undefined, 'expected a value, got undefined'],
    [Promise.resolve(1), 'a promise; await it first'],
    [artifact(1), 'an artifact already'],
  ])('refuses %o', (value, message) => {
    expect(() => artifact(value)).toThrow(message);
  });

  test('puts its summary into one short line', () => {
    const { summary } = artifact(1, { summary: ` of\n ${'x'.repeat(400)}` });
    expect(summary).toBe(`of ${'x'.repeat(297)}`);
    expect(artifact(1, { summary: ' ' })).not.toHaveProperty('summary');
  });

  test('shows no secret in its summary, not even the start of one, and no half character', () => {
    process.env['ARTIFACT_TEST_TOKEN'] = 'canary-4711-canary';
    learnSecrets({ env: process.env });
    try {
      const summary = `${'x'.repeat(290)} canary-4711-canary`;
      expect(artifact(1, { summary }).summary).toBe(`${'x'.repeat(290)} [redacted`);
      expect(artifact(1, { summary: `${'x'.repeat(299)}😀` }).summary).toBe(
        `${'x'.repeat(299)}\ufffd`,
      );
    } finally {
      delete process.env['ARTIFACT_TEST_TOKEN'];
    }
  });

  test('reports where it belongs if it is inside another value', async () => {
    const text = await normalizeResult({ rows: artifact([1]) });
    expect(text).toBe('{"rows":"[an artifact has to be the whole result of a tool]"}');
    expect([artifact(1), { value: 1 }, null].map(isArtifact)).toEqual([true, false, false]);
  });

  test('has the name of its tool, in the letters that a name may have', () => {
    expect(defaultArtifactName('loadOrders')).toBe('loadorders_result');
    expect(defaultArtifactName('X'.repeat(64))).toHaveLength(55);
  });
});

describe('the value of an artifact', () => {
  test.each([
    ['a text', '"', 'text of 1 characters'],
    [[1, 2], '[1,2]', 'array of 2'],
    [
      [{ id: 1, 'a b': 2 }],
      '[{"id":1,"a b":2}]',
      'array of 1 objects, the first with keys id, "a b"',
    ],
    [{ a: new Date(0) }, '{"a":"1970-01-01T00:00:00.000Z"}', 'object with keys a'],
    [new Map([['k', 1n]]), '{"k":"1"}', 'object with keys k'],
    [{}, '{}', 'empty object'],
    [null, 'null', 'null'],
    [false, 'false', 'boolean false'],
  ])('is stored as data: %o', async (value, content, kind) => {
    const given = value === 'a text' ? '"' : value;
    expect(await artifactValue(given)).toMatchObject({ content, kind, head: content });
  });

  test('of a stream is its content', async () => {
    async function* rows(): AsyncGenerator<{ n: number }> {
      yield { n: 1 };
      yield await Promise.resolve({ n: 2 });
    }
    expect(await artifactValue(rows())).toMatchObject({ content: '[{"n":1},{"n":2}]' });
  });

  test.each([
    [{ file: Buffer.from([0, 1]) }, '2 bytes that are not text'],
    [[() => 1], 'a function'],
    [{ later: Promise.resolve(1) }, 'something promise'],
    [Array.from({ length: 1_000_001 }, () => 0), 'more than 1000000 values'],
  ])('is refused if something would be lost: %#', async (value, lost) => {
    expect(await artifactValue(value)).toEqual({
      problem: expect.stringContaining(`holds ${lost}, which an artifact cannot store; give plain`),
    });
  });

  test('starts with at most 500 bytes of it, and is described in one line (property)', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const kept = await artifactValue(value);
        if ('problem' in kept) throw new Error(kept.problem);
        expect(Buffer.byteLength(kept.head)).toBeLessThanOrEqual(500);
        expect(kept.content.startsWith(kept.head)).toBe(true);
        expect(kept.kind).toMatch(/^.{1,200}$/u);
      }),
    );
    expect(kindOf(Object.fromEntries(Array.from({ length: 15 }, (_, n) => [`k${n}`, n])))).toMatch(
      /k11 and 3 more$/,
    );
  });
});

describe('an error that a tool returns', () => {
  test.each([
    [{ error: 'declined', code: 'E42' }, 'declined (code E42)'],
    [{ error: 'no such name', code: 'a =\nb' }, 'no such name\ncode:\na =\nb'],
    [{ error: { status: 402 } }, '{"status":402}'],
    [{ error: new Error('inner'), code: null }, 'inner'],
    [new TypeError('x is no number'), 'x is no number'],
    [{ error: true }, 'true'],
    [{ success: false, error: 'the day is full', message: 'No.' }, 'the day is full'],
    [{ success: false, message: 'No.', rows: [] }, 'No.'],
    [{ success: false, rows: [] }, '{"success":false,"rows":[]}'],
  ])('is recognized: %o', (value, message) => {
    expect(returnedError(value)).toBe(message);
  });

  test.each([
    { error: null },
    { error: '', code: 0 },
    { error: 'x', rows: [] },
    { success: true, error: 'x' },
    {},
    [],
    'error',
    null,
  ])('is not recognized in %o', (value) => expect(returnedError(value)).toBeNull());
});

describe('the default tools', () => {
  test('are four, by name', () => {
    const names = ['answer', 'list_artifacts', 'return_artifact', 'today'];
    expect(createToolRegistry(defaultTools()).names).toEqual(names);
  });

  test('precede the given tools, which replace those of the same name', () => {
    const own = today({ timeZone: 'UTC' });
    const tools = defaultTools([own]);
    expect(tools.map(({ name }) => name)).toEqual([
      'answer',
      'list_artifacts',
      'return_artifact',
      'today',
    ]);
    expect(tools.at(-1)).toBe(own);
    expect(defaultTools(tools)).toEqual(tools);
  });

  test('answer: with a text, with the keys of an object, with any other type', async () => {
    expect(await callTool(answer(), { answer: 'yes' })).toBe('yes');
    const typed = answer({ output: z.object({ n: z.number() }) });
    expect(await callTool(typed, { n: 1 })).toBe('{"n":1}');
    const list = answer({ output: z.array(z.number()) });
    expect(await callTool(list, { answer: [1, 2] })).toBe('[1,2]');
  });

  test('list_artifacts is not executed on a worker', async () => {
    expect(listArtifacts().kind).toBe('artifacts');
    expect((await callFailure(listArtifacts(), {})).message).toContain('upgrade the workflow code');
  });

  test('output types a value whether or not it is an artifact', () => {
    const options = { name: 't', description: 't', input: z.object({}), effect: 'read' } as const;
    const output = z.object({ n: z.number() });
    const made = [
      defineTool({ ...options, output, execute: () => artifact({ n: 1 }) }),
      defineTool({ ...options, output, execute: async () => ({ n: 1 }) }),
      // @ts-expect-error -- the value is not what the schema says
      defineTool({ ...options, output, execute: () => artifact({ n: 'one' }) }),
      defineTool({
        ...options,
        output,
        execute: async (_, { artifacts }) => await artifacts.get('a', output),
      }),
    ];
    expect(made.map((tool) => tool.output)).toEqual(made.map(() => output));
  });
});
