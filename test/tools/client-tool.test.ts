import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/tools/define-tool.js';
import { toToolDefinition } from '../../src/tools/tool.js';
import { ToolError } from '../../src/tools/errors.js';
import { askPerson } from '../../src/tools/built-in/workflow-tools.js';
import { checkArguments } from '../../src/tools/arguments/check-arguments.js';
import { toolContext } from '../../src/testing.js';

const common = {
  name: 'pick_color',
  description: 'Lets the user pick a color.',
  input: z.object({ from: z.array(z.string()) }),
  effect: 'read',
} as const;

/** What a JavaScript author could write. */
function defineLoosely(changes: Record<string, unknown>): unknown {
  return Reflect.apply(defineTool, undefined, [{ ...common, ...changes }]);
}

describe('a tool without execute', () => {
  test('is executed by the caller, with the schema of its result', () => {
    const tool = defineTool({
      ...common,
      output: z.object({ color: z.string() }),
      expires: 60_000,
    });
    expect(toToolDefinition(tool)).toMatchObject({
      kind: 'client',
      expiresMs: 60_000,
      result: { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] },
    });
    expect(toToolDefinition(defineTool(common))).not.toHaveProperty('result');
  });

  test('is not executed by the engine', async () => {
    const executed = defineTool(common).execute({ from: [] }, toolContext());
    await expect(executed).rejects.toThrow(ToolError);
    await expect(executed).rejects.toThrow('the tool has no `execute`');
  });

  test.each(['timeout', 'heartbeat'])('refuses %s', (option) => {
    expect(() => defineLoosely({ [option]: 1_000 })).toThrow(
      `${option}: expected none without \`execute\`: the worker executes nothing`,
    );
  });

  test.each<[Record<string, unknown>, string]>([
    [{ retry: { attempts: 2 } }, 'retry: expected none without `execute`'],
    [{ effect: 'once', verify: () => undefined }, 'verify: expected none without `execute`'],
    [{ effect: 'keyed', undo: () => undefined }, 'undo: expected none without `execute`'],
    [
      { expires: 0 },
      'expires: expected a whole number of ms or words such as "30 seconds" or "2 days", got 0; at most 36500 days',
    ],
    [{ output: z.date() }, 'output'],
    [{ expires: 5, execute: () => 1 }, 'expires: expected only without `execute`'],
    [{ execute: undefined }, 'execute: expected a function'],
  ])('refuses %o', (changes, message) => {
    expect(() => defineLoosely(changes)).toThrow(message);
  });

  test('may expire later than the longest timer of Node', () => {
    const expires = 180 * 24 * 60 * 60_000;
    expect(defineTool({ ...common, expires }).expiresMs).toBe(expires);
  });
});

describe('a tool with undo', () => {
  const undoable = { effect: 'keyed', execute: () => 1, undo: () => undefined };

  test('has a window of 24 hours, or the one that it sets', () => {
    expect(defineLoosely(undoable)).toMatchObject({ undoMs: 86_400_000 });
    expect(defineLoosely({ ...undoable, undoWithin: 5 })).toMatchObject({ undoMs: 5 });
  });

  test('is refused if it only reads, and so is a window without undo', () => {
    expect(() => defineLoosely({ ...undoable, effect: 'read' })).toThrow(
      'undo: expected none with effect "read", which changes nothing',
    );
    expect(() => defineLoosely({ execute: () => 1, undoWithin: 5 })).toThrow(
      'undoWithin: expected only with `undo`',
    );
  });

  test('pins its window, and no other tool gets a new field', () => {
    const tool = defineTool({ ...common, ...undoable, effect: 'keyed' });
    expect(toToolDefinition(tool)).toMatchObject({ undoMs: 86_400_000 });
    const plain = defineTool({ ...common, execute: () => 1, approval: 'never' });
    const fields = Object.keys(toToolDefinition(plain)).toSorted();
    expect(fields).toEqual(
      'attempts description effect heartbeatMs name parameters timeoutMs'.split(' '),
    );
  });
});

test('a tool with an approval pins that it has one', () => {
  const asked = defineTool({ ...common, execute: () => 1, approval: () => false });
  expect(toToolDefinition(asked)).toMatchObject({ approval: true });
});

describe('askPerson', () => {
  test('is a question that may be repeated, and expires only if it should', () => {
    const definition = toToolDefinition(askPerson());
    expect(definition).toMatchObject({
      name: 'ask_person',
      kind: 'question',
      effect: 'read',
      repeat: 'allow',
    });
    expect(definition).not.toHaveProperty('expiresMs');
    expect(toToolDefinition(askPerson({ expires: 9 }))).toMatchObject({ expiresMs: 9 });
    expect(() => askPerson({ expires: -1 })).toThrow(
      'askPerson: expires: expected a whole number of ms or words',
    );
  });

  test.each([
    [{ question: 'Which?' }, true],
    [{ question: 'Which?', options: ['a', 'b'] }, true],
    [{ question: 'x'.repeat(2_001) }, false],
    [{ question: 'Which?', options: Array.from({ length: 21 }, () => 'a') }, false],
    [{ question: 'Which?', options: ['x'.repeat(201)] }, false],
    [{}, false],
  ])('accepts %o: %s', async (input, fits) => {
    expect((await checkArguments(askPerson(), input)).ok).toBe(fits);
  });
});
