import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { askProblem } from '../../src/core/run/ask.js';
import { definitionHash, hasOwnHash, unloadedConfig } from '../../src/core/rules/limits.js';
import { isProblem, parseRunInput } from '../../src/core/input/input.js';
import { checkLimits } from '../../src/core/input/limits.js';
import {
  NewerStateError,
  parseCarriedState,
  STATE_VERSION,
} from '../../src/core/segments/migrations.js';
import { reduce } from '../../src/core/run/reduce.js';
import { problemText, show } from '../../src/core/text/text.js';
import type { Work } from '../../src/core/state/work.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { rangeProblem } from '../../src/core/run/status.js';
import { pathsOf, replaced, rubbish } from '../support/hostile-json.js';
import { callReply, begun, config, toolDefinition } from '../support/scripts.js';
import { refusalText } from '../support/refusal-text.js';

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

const BEGUN: RunState = JSON.parse(
  JSON.stringify(
    reduce(begun(config()), { type: 'model-replied', reply: callReply(['look'], ['pay']), at: 1 }),
  ),
);
/** Work in every phase, with every optional field. */
const WORK: readonly Work[] = [
  {
    name: 'call_1_1_0',
    block: {
      reason: 'tool_changed',
      message: 'changed',
      reports: [{ type: 'http_502', status: 502, attempt: 1, waitMs: 0, at: 1, message: 'bad' }],
      definition: 'd',
      blob: 'f'.repeat(64),
      until: 30_000,
    },
    request: { id: 'r1', kind: 'tool_changed', why: 'changed', raisedAt: 1, definition: 'd' },
    probeMs: 30_000,
    checked: ['f'],
    paid: 1,
    phase: 'waiting',
  },
  {
    name: 'call_1_1_1',
    starts: 2,
    startAt: 9,
    key: 'e'.repeat(64),
    unknown: 'who knows',
    found: true,
    retried: true,
    approved: true,
    grant: 'g1',
    again: true,
    request: {
      id: 'r2',
      kind: 'approval',
      why: 'who knows',
      raisedAt: 1,
      expiresAt: 5,
      deciders: ['not_requester', ['ann']],
      notified: true,
    },
    proposal: {
      at: 1,
      id: 'u',
      decision: { request: 'r2', digest: 'd', as: 'edit', arguments: { x: 1 }, note: 'less' },
    },
    phase: 'asking',
  },
  {
    name: 'limit',
    request: {
      id: 'r3',
      kind: 'limit',
      why: 'the limit was reached',
      raisedAt: 1,
      limit: { name: 'steps', used: 3, limit: 3 },
    },
    proposal: {
      at: 1,
      id: 'u',
      decision: {
        request: 'r3',
        digest: 'd',
        as: 'approve',
        result: 'r',
        grant: { scope: 'tool', where: { op: 'eq', path: 'x', value: 1 } },
        by: 'ann',
      },
    },
    phase: 'in-flight',
    as: 'decide',
  },
  { name: 'undo:call_1_0_0', key: 'e'.repeat(64), phase: 'waiting' },
  { name: 'agent', resumed: true, missing: 'gone', slow: true, phase: 'in-flight', as: 'attempt' },
  { name: 'model', cut: 4, phase: 'in-flight', as: 'probe' },
];
const PENDING = {
  type: 'outcome_unknown',
  tool: 'pay',
  arguments: '{}',
  idempotencyKey: 'e'.repeat(64),
  fix: 'resolve it',
};
const RESOLUTION = { call: 'call_1_1_1', as: 'happened', result: 'r' };
const DECISION = { what: 'setLimits', id: 'u', at: 1, by: 'ann' } as const;
/** A state in the middle of a batch, with its optional fields. */
const STATE: RunState = {
  ...BEGUN,
  work: WORK,
  requestedLimits: [{ limits: { steps: 3 }, decision: DECISION }],
  decisions: [
    { what: 'resolve', id: 'v', at: 2, request: 'r1', call: 'c', as: 'retry' },
    { what: 'resolve', id: 'w', at: 2, request: 'r2', call: 'c', as: 'edit', refused: 'no' },
  ],
  requests: 3,
  grants: [
    { id: 'g1', tool: 'pay', scope: 'same_call', digest: 'd', shown: 'pay', request: 'r1', at: 1 },
    {
      id: 'g2',
      tool: 'put',
      scope: 'tool',
      where: { op: 'under', path: 'x', value: 3 },
      shown: 'put',
      request: 'r2',
      at: 1,
      by: 'ann',
    },
  ],
  kept: [
    {
      call: { id: 'call_1_0_0', name: 'put', arguments: '{}', digest: 'd' },
      turn: 1,
      step: 0,
      key: 'e'.repeat(64),
      text: 'done',
      blob: { sha256: 'a'.repeat(64), bytes: 1 },
      until: 9,
      state: 'failed',
      message: 'no',
    },
  ],
  notes: ['undone'],
  unattended: 'deny',
  firstRunId: 'first',
  stayUntil: { step: 9, at: 5 },
  archives: true,
  forks: true,
};
const CARRIED = { schema: STATE_VERSION, state: STATE, shown: 'working' };

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

  test('of any value gives a problem or an input, never splits a character, and never throws', () => {
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
    expect(parseCarriedState(CARRIED)).toEqual({ carried: CARRIED });
  });

  test('of schema version 1 has its blocked work as part of the state, which people decide about again', () => {
    const { work: _, turn, ...rest } = BEGUN;
    const { phase, limit: __, ...kept } = turn;
    const batch = phase.type === 'acting' ? phase.batch : null;
    const none = { batch, callsRefused: null, clippedBy: null, closing: null, outcome: null };
    const older = { ...kept, ...none, deadlineReached: false, recorded: false };
    const asking = { pending: { ...PENDING, call: 'call_1_1_1' }, resolution: RESOLUTION };
    const blocked = [
      { name: 'model', reason: 'provider', message: 'down', probeMs: 60_000 },
      { name: 'agent', reason: 'agent_missing', message: 'gone', probeMs: 1_000, asked: true },
      { name: 'call_1_1_1', reason: 'outcome_unknown', message: 'x', probeMs: 0, ...asking },
    ];
    const found = parseCarriedState({
      schema: 1,
      state: { ...rest, turn: older, schema: 1 },
      shown: '',
      blocked,
    });
    const work: readonly Work[] = [
      {
        name: 'model',
        probeMs: 60_000,
        block: { reason: 'provider', message: 'down', until: 0 },
        phase: 'waiting',
      },
      { name: 'agent', probeMs: 1_000, phase: 'waiting' },
      {
        name: 'call_1_1_1',
        key: 'e'.repeat(64),
        request: { id: 'r3', kind: 'outcome_unknown', why: 'x', raisedAt: 0 },
        phase: 'asking',
      },
    ];
    const state = { ...BEGUN, work, requests: 3 };
    expect(found).toEqual({ carried: { schema: STATE_VERSION, state, shown: '' } });
    const broken = parseCarriedState({
      schema: 1,
      state: BEGUN,
      shown: '',
      blocked: [{ name: 7 }],
    });
    expect(isProblem(broken)).toBe(true);
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
    const free = /\.(parameters|settings|output|limits|paid|arguments|result|value)\b|\[\d+\]$/;
    let checked = 0;
    for (const path of pathsOf(CARRIED)) {
      const value = path.reduce<unknown>(
        (inner, key) => Reflect.get(inner as object, key),
        CARRIED,
      );
      const kind = value === null ? 'object' : typeof value;
      const wrong = parseCarriedState(replaced(CARRIED, path, other[kind as keyof typeof other]));
      if (free.test(path.join('.')) && !isProblem(wrong)) continue;
      const problem: unknown = expect.stringContaining(path[0] ?? '');
      expect({ path, found: wrong }).toEqual({ path, found: { problem } });
      checked += 1;
    }
    expect(checked).toBeGreaterThan(150);
  });

  test('without any required field is refused', () => {
    for (const key of Object.keys(BEGUN)) {
      const { [key as keyof RunState]: _, ...rest } = STATE;
      const found = parseCarriedState({ ...CARRIED, state: rest });
      expect({ key, refused: isProblem(found) }).toEqual({ key, refused: true });
    }
  });

  test('of any value gives a problem or a state, and never throws', () => {
    const names = ['schema', 'state', 'shown', 'work'];
    const mutated = fc
      .tuple(fc.constantFrom(...pathsOf(CARRIED)), rubbish(names))
      .map(([path, by]) => replaced(CARRIED, path, by));
    fc.assert(
      fc.property(fc.oneof(rubbish(names), mutated), (value) => {
        try {
          const problem = problemOf(parseCarriedState(value));
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
          askProblem(value) ?? refusalText(STATE, value as { message: string }, 'id'),
          checkLimits(value, 'limits'),
          rangeProblem('transcript', value),
          rangeProblem('prompt', value, ['from', 'to']),
        ];
        return found.every((problem) => problem === null || isWhole(problemText(problem)));
      }),
      { numRuns: 3_000 },
    );
  });

  test('is truncated in a quote, but never inside a character', () => {
    expect(isWhole(show(`${'a'.repeat(58)}😀${'b'.repeat(9)}`))).toBe(true);
  });
});
