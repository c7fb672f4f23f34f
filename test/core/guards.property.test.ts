import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { askProblem, askRefusal } from '../../src/core/ask.js';
import { definitionHash } from '../../src/core/definition/hash.js';
import { checkLimits, isProblem, parseRunInput } from '../../src/core/input/input.js';
import { NewerStateError, readForm, SCHEMA } from '../../src/core/segments/migrations.js';
import { reduce } from '../../src/core/reduce.js';
import { problemText, show } from '../../src/core/text/format-value.js';
import type { BlockedWork } from '../../src/core/blocked-work.js';
import { initialState, type RunState } from '../../src/core/state.js';
import { hasOwnHash, unloadedConfig } from '../../src/core/definition/initial-config.js';
import { rangeProblem } from '../../src/core/transcript/pages.js';
import { pathsOf, replaced, rubbish } from '../support/rubbish.js';
import { asks, begun, config, toolDefinition } from '../support/scripts.js';

const INPUT = {
  agent: 'a',
  message: 'go',
  open: true,
  limits: { steps: 3, run: { tokens: 9 } },
  context: { a: [1] },
  contextBlob: { sha256: 'a'.repeat(64), bytes: 1 },
  tags: ['t'],
  archive: true,
  depth: 1,
  budget: { tokens: 5 },
  args: { city: 'Rome' },
  fork: { run: 'r', at: 2 },
  attachments: [{ type: 'image', url: 'https://example.org/a.png' }],
  called: { key: 'b'.repeat(64), again: true },
};

/** A state in the middle of a batch, with every optional field. */
const STATE: RunState = JSON.parse(
  JSON.stringify(
    reduce(begun(config()), { type: 'model-replied', reply: asks(['look'], ['pay']), at: 1 }),
  ),
);
const BLOCKED: readonly BlockedWork[] = [
  {
    name: 'call_1_1_0',
    reason: 'tool_changed',
    message: 'changed',
    reports: [{ type: 'http_502', status: 502, attempt: 1, waitMs: 0, at: 1, message: 'bad' }],
    definition: 'd',
    probeMs: 30_000,
    asked: true,
  },
  {
    name: 'call_1_1_1',
    reason: 'safety_check',
    message: 'look',
    probeMs: 0,
    pending: {
      type: 'safety_check',
      call: 'call_1_1_1',
      tool: 'pay',
      arguments: '{}',
      checks: [{ id: 'c', code: 'k', message: 'm' }],
      fix: 'resolve it',
    },
  },
  {
    name: 'call_1_1_2',
    reason: 'outcome_unknown',
    message: 'who knows',
    probeMs: 0,
    pending: {
      type: 'outcome_unknown',
      call: 'call_1_1_2',
      tool: 'pay',
      arguments: '{}',
      idempotencyKey: 'e'.repeat(64),
      fix: 'resolve it',
    },
    resolution: { call: 'call_1_1_2', as: 'happened', result: 'r', definition: 'd' },
  },
];
const CARRIED = { schema: SCHEMA, state: STATE, shown: 'working', blocked: BLOCKED };

const problemOf = (value: object): string | null =>
  isProblem(value) ? problemText(value.problem) : null;
const isWhole = (text: string): boolean => !/\p{Surrogate}/u.test(text);

describe('a run’s input', () => {
  test('is accepted if it is valid', () => {
    expect(parseRunInput(INPUT)).toEqual(INPUT);
  });

  test('is refused with a text if `contextBlob` is not a reference', () => {
    const found = parseRunInput({ ...INPUT, contextBlob: { sha256: { toString: 1 } } });
    expect(problemOf(found)).toContain('contextBlob: expected a blob reference');
  });

  test('of any value gives a problem or an input, in whole characters, and never throws', () => {
    const paths = pathsOf(INPUT);
    const mutated = fc
      .tuple(fc.constantFrom(...paths), rubbish(Object.keys(INPUT)))
      .map(([path, by]) => replaced(INPUT, path, by));
    fc.assert(
      fc.property(fc.oneof(rubbish(Object.keys(INPUT)), mutated), (value) => {
        const problem = problemOf(parseRunInput(value));
        return problem === null || (isWhole(problem) && problem.length <= 2_001);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe('carried state', () => {
  test('is accepted as a segment passes it on', () => {
    expect(readForm(CARRIED)).toEqual({ form: CARRIED });
  });

  test('has the hash of its definition, or of the placeholder for an agent that is not loaded', () => {
    const { hash: _, ...content } = config().definition;
    const { definition: empty } = unloadedConfig('clerk');
    const tools = [toolDefinition('look', 'read')];
    const hashed = [
      { ...content, hash: definitionHash(content) },
      { ...content, hash: 'f'.repeat(64) },
      { ...content, hash: '' },
      empty,
      { ...empty, tools },
    ].map((definition) => hasOwnHash(initialState({ ...config(), definition })));
    expect(hashed).toEqual([true, false, false, true, false]);
  });

  test('with a value of another type anywhere is refused with its path', () => {
    const other = { string: 7, number: 'x', boolean: {}, object: 'x' } as const;
    const free = /\.(parameters|settings|output|limits|resolution\.result)\b|\[\d+\]$/;
    let checked = 0;
    for (const path of pathsOf(CARRIED)) {
      const value = path.reduce<unknown>(
        (inner, key) => Reflect.get(inner as object, key),
        CARRIED,
      );
      const kind = value === null ? 'object' : typeof value;
      const wrong = readForm(replaced(CARRIED, path, other[kind as keyof typeof other]));
      if (free.test(path.join('.')) && !isProblem(wrong)) continue;
      const problem: unknown = expect.stringContaining(path[0] ?? '');
      expect({ path, found: wrong }).toEqual({ path, found: { problem } });
      checked += 1;
    }
    expect(checked).toBeGreaterThan(150);
  });

  test('without any required field is refused', () => {
    for (const key of Object.keys(STATE)) {
      const { [key as keyof RunState]: _, ...rest } = STATE;
      const found = readForm({ ...CARRIED, state: rest });
      expect({ key, refused: isProblem(found) }).toEqual({ key, refused: true });
    }
  });

  test('of any value gives a problem or a form, and never throws', () => {
    const names = ['schema', 'state', 'shown', 'blocked'];
    const mutated = fc
      .tuple(fc.constantFrom(...pathsOf(CARRIED)), rubbish(names))
      .map(([path, by]) => replaced(CARRIED, path, by));
    fc.assert(
      fc.property(fc.oneof(rubbish(names), mutated), (value) => {
        try {
          const problem = problemOf(readForm(value));
          return problem === null || isWhole(problem);
        } catch (error) {
          return error instanceof NewerStateError;
        }
      }),
      { numRuns: 3_000 },
    );
  });
});

describe('a message or a decision', () => {
  test('of any value is refused with a text or accepted, and never throws', () => {
    const names = ['message', 'id', 'mode', 'pin', 'refresh', 'attachments', 'from', 'to', 'steps'];
    fc.assert(
      fc.property(rubbish(names), (value) => {
        const found = [
          askProblem(value) ?? askRefusal(STATE, value as { message: string }, 'id'),
          checkLimits(value, 'limits'),
          rangeProblem('transcript', value),
          rangeProblem('prompt', value, ['from', 'to']),
        ];
        return found.every((problem) => problem === null || isWhole(problemText(problem)));
      }),
      { numRuns: 3_000 },
    );
  });

  test('is quoted cut, but never inside a character', () => {
    expect(isWhole(show(`${'a'.repeat(58)}😀${'b'.repeat(9)}`))).toBe(true);
  });
});
