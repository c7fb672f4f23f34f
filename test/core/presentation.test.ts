import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { currentDetails } from '../../src/core/run/details.js';
import { parseRunInput } from '../../src/core/input/input.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunState } from '../../src/core/state/state.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { callSummary, formatBytes, stepSummary, visible } from '../../src/core/state/summaries.js';
import { transcriptPage } from '../../src/core/run/status.js';
import { asking, mail } from './graph/fixture.js';
import { callReply, begun, config, withResults } from '../support/scripts.js';

/** A run that has made one call with these arguments and this result. */
function called(value: unknown, result: string): RunState {
  const asked = reduce(begun(config()), {
    type: 'model-replied',
    reply: callReply(['look', value]),
    at: 0,
  });
  return withResults(asked, [{ id: 'call_1_1_0', ok: true, text: result, executed: true }], 0);
}

const statusOf = (state: RunState, rest: Partial<RunStatus> = {}): RunStatus => ({
  id: 'i',
  runId: 'r',
  historyLength: 3,
  agent: 'a',
  status: 'working',
  reason: null,
  message: null,
  turn: 1,
  step: 1,
  segments: 1,
  queued: 0,
  limits: state.config.limits,
  usage: state.total.usage,
  pending: [],
  doing: null,
  reports: [],
  outcome: null,
  ...rest,
});

describe('summaries', () => {
  test('name the call, its arguments, and the size of what the model reads', () => {
    const state = called({ path: 'src/a.ts', line: 7 }, 'x'.repeat(3_100));
    const [, assistant] = state.transcript.messages;
    const call = assistant?.role === 'assistant' ? assistant.calls?.[0] : undefined;
    expect(call && callSummary(call)).toBe('look src/a.ts 7');
    expect(stepSummary(state, false)).toBe('step 2 · after look src/a.ts 7 · 3.1 kB');
    expect(stepSummary(begun(config()), false)).toBe('step 1 · m');
  });

  test('show control characters, escape sequences, and direction marks as escapes', () => {
    expect(visible('a\u001b]0;title\u0007b\u202ec\nd')).toBe('a\\u001b]0;title\\u0007b\\u202ec d');
  });

  test("fit into Temporal's limit, whatever the arguments are", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const [, message] = called({ value }, 'r').transcript.messages;
        const call = message?.role === 'assistant' ? message.calls?.[0] : undefined;
        expect(Buffer.byteLength(call ? callSummary(call) : '')).toBeLessThanOrEqual(400 + 80);
      }),
    );
  });

  test.each([
    [999, '999 B'],
    [3_100, '3.1 kB'],
    [2_500_000, '2.5 MB'],
  ])('format %i bytes as %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe('current details', () => {
  test('show a success whose text reads like an error by its size', () => {
    const text = '{"error":{"type":"denied","message":"a line of a log"}}';
    const state = called({}, text);
    expect(currentDetails(state, statusOf(state))).toContain('55 B');
  });

  test("have one row for the run's position in its graph", () => {
    const state = begun(config());
    const definition = { ...state.config.definition, graph: mail };
    const inGraph = { ...state, config: { ...state.config, definition }, graph: asking };
    const details = currentDetails(inGraph, statusOf(state)).split('\n');
    expect(details.filter((line) => line.startsWith('| **Graph**'))).toEqual([
      '| **Graph**\u2003 | node ask, visit 2; done: load, sort, ask, send |',
    ]);
  });

  test('are tables that no argument, result, or message can break out of', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), (text) => {
        const state = called({ text: `${text}|\n|<img src=x>[a](b)*c*` }, text);
        const details = currentDetails(state, statusOf(state, { message: text, doing: text }));
        for (const line of details.split('\n'))
          expect(line === '' || line.startsWith('|')).toBe(true);
        expect(details.replaceAll(/\\./g, '')).not.toMatch(/[<[*]img|\]\(/);
        expect(Buffer.byteLength(details)).toBeLessThan(20_000);
      }),
    );
  });
});

describe('parseRunInput', () => {
  test('accepts any value and returns an input or a problem', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withMap: true, withDate: true }), (value) => {
        expect(parseRunInput(value)).toBeTypeOf('object');
      }),
      { numRuns: 2_000 },
    );
  });

  test('accepts any field of any type', () => {
    const field = fc.constantFrom(
      'agent',
      'message',
      'open',
      'limits',
      'context',
      'tags',
      '__proto__',
    );
    fc.assert(
      fc.property(fc.dictionary(field, fc.jsonValue()), (value) => {
        expect(parseRunInput({ agent: 'a', message: 'm', ...value })).toBeTypeOf('object');
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a page of the transcript', () => {
  test('is never too large for a query, never empty if there is more, and all pages join to the whole', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(fc.integer({ min: 0, max: 64 * 1_024 }), fc.constantFrom('x', 'ü', '漢')),
          { maxLength: 30 },
        ),
        (sizes) => {
          const messages = sizes.map(([size, letter], n) => ({
            n,
            turn: 1,
            step: 0,
            at: 0,
            role: 'user' as const,
            text: letter.repeat(size),
          }));
          const transcript = {
            next: messages.length,
            chunks: [],
            messages,
            keptAside: [],
            head: '',
            tokens: 0,
          };
          const joined: unknown[] = [];
          while (joined.length < messages.length) {
            const page = transcriptPage(transcript, { from: joined.length });
            expect(page.messages.length).toBeGreaterThan(0);
            expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(700_000);
            joined.push(...page.messages);
          }
          expect(joined).toEqual(messages);
        },
      ),
      { numRuns: 50 },
    );
  });
});
