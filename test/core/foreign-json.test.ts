import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJsonOption } from '../../src/cli/input/option-parsers.js';
import { followUp } from '../../src/cli/requests/prompt.js';
import {
  parseForeignJson,
  quoteLargeIntegers,
  wellFormedJson,
  checkContext,
  checkInput,
} from '../../src/core/text/json.js';
import { headOf, tailOf } from '../../src/core/text/text.js';
import { resultText } from '../../src/mcp/call-tool.js';
import { parseCallsInContent } from '../../src/models/calls-in-markup.js';
import { parseBounded } from '../../src/models/wire/reply-limits.js';
import { extractJson } from '../../src/output/extract-json.js';
import { parseArguments } from '../../src/tools/arguments/arguments.js';
import { withId } from '../../src/updates/ask.js';
import { resolveRequests } from '../../src/updates/decide.js';
import { createRunInput } from '../../src/updates/start.js';

const ID = '2512292042121000001';

describe('a number in JSON from outside', () => {
  test.each([ID, `-${ID}`, '9007199254740993', '1e999', '-1e400', '1e-999', '9007199254740993.0'])(
    '%s is refused with the advice to send text',
    (number) => {
      const json = `{"id": [${number}]}`;
      const advice = expect.stringContaining(`send it as text: "${number}"`);
      expect(parseForeignJson(json)).toEqual({ ok: false, isJson: true, problem: advice });
      expect(parseArguments(json)).toMatchObject({ ok: false, problem: { message: advice } });
      expect(parseArguments(JSON.stringify(json))).toMatchObject({ ok: false });
      expect(extractJson(`It is ${json}.`)).toEqual({ ok: false, problem: advice });
      expect(extractJson(json)).toEqual({ ok: false, problem: advice });
      expect(() => parseJsonOption(json)).toThrow(`send it as text: "${number}"`);
      expect(followUp('edit', { kind: 'approval' } as never)?.read(json)).toEqual(advice);
      expect(followUp('happened', { kind: 'outcome' } as never)?.read(json)).toEqual(advice);
    },
  );

  test.each([
    '0',
    '9007199254740991',
    '-9007199254740991',
    '0.1',
    '1e21',
    '1.5e300',
    '123456789.25',
  ])('%s is kept', (number) => {
    expect(parseForeignJson(number)).toEqual({ ok: true, value: Number(number) });
    expect(quoteLargeIntegers(`[${number}]`)).toBe(`[${number}]`);
  });

  test('is not searched for in texts', () => {
    const json = JSON.stringify({ [ID]: `${ID} \\" ${ID}`, 'a"': '\\' });
    expect(parseForeignJson(json)).toEqual({ ok: true, value: JSON.parse(json) });
    expect(quoteLargeIntegers(json)).toBe(json);
  });

  test('-0 becomes 0, which is what is digested', () => {
    expect(parseArguments('{"x":-0}')).toEqual({ ok: true, value: { x: 0 } });
  });

  test('that was received with a result or a paid reply becomes text, digit by digit', () => {
    expect(parseBounded(`{"input":{"id":${ID}},"usage":{"n":12}}`)).toEqual({
      input: { id: ID },
      usage: { n: 12 },
    });
    const tools = [{ name: 'look', description: '', parameters: {} }];
    const text = `{"name":"look","arguments":{"id":${ID}}}`;
    expect(parseCallsInContent(text, tools)).toEqual([
      { name: 'look', arguments: `{"id":"${ID}"}` },
    ]);
  });

  test('never changes any other JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.stringify(value);
        const parsed = parseForeignJson(json);
        if (parsed.ok) expect(JSON.stringify(parsed.value)).toBe(JSON.stringify(JSON.parse(json)));
        else expect(json).toMatch(/\d{16}/);
        expect(() => JSON.parse(quoteLargeIntegers(json))).not.toThrow();
      }),
    );
  });
});

describe('a value that is nested deeply', () => {
  const json = '['.repeat(100_000) + ']'.repeat(100_000);
  const value: unknown = JSON.parse(json);

  test('is refused by name, and exhausts no stack', () => {
    expect(checkContext(value)).toContain('context: expected at most 200 levels');
    expect(checkInput({ a: value })).toContain('input: expected at most 200 levels');
    expect(() => parseJsonOption(json)).toThrow('at most 200 levels');
    expect(parseArguments(`{"a":${json}}`)).toMatchObject({ ok: false });
    expect(extractJson(json)).toMatchObject({ ok: false });
    expect(wellFormedJson(value)).toBe(value);
  });

  test('is refused from a program: of a start, a message, and a decision', async () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    const client = {} as never;
    for (const deep of [{ a: value }, cycle] as never[]) {
      for (const field of ['context', 'input', 'args', 'settings'] as const) {
        const refused = `${field}: expected at most 200 levels`;
        const rest = field === 'input' ? {} : { message: 'x' };
        expect(() => createRunInput('a', { ...rest, [field]: deep })).toThrow(refused);
        if (field === 'args') continue;
        expect(() => withId({ message: 'x', [field]: deep })).toThrow(
          'expected at most 200 levels',
        );
      }
      for (const field of ['arguments', 'result', 'grant'] as const) {
        const decision = { request: 'r1', as: 'edit', [field]: deep } as never;
        await expect(resolveRequests(client, 'run', [decision])).rejects.toThrow(
          'decisions[0]: expected at most 200 levels, got more; flatten the value',
        );
      }
    }
  });

  test('is cut in a result of a server, because the call was executed', async () => {
    const deep = { a: value };
    const texts = [JSON.stringify({ ok: 1 }), json.slice(60_000, 140_000)];
    const results = [
      { structuredContent: deep },
      { content: [deep, 'done'] },
      { content: [{ type: 'text', text: deep }] },
      { content: [{ type: 'resource', resource: deep }] },
      { toolResult: deep },
      { structuredContent: { ok: 1 }, content: texts.map((text) => ({ type: 'text', text })) },
    ];
    for (const result of results) {
      const read = await resultText(result, {} as never);
      expect(read.isError).toBe(false);
      expect(read.text.length).toBeLessThan(100_000);
    }
    const { text } = await resultText(results[0], {} as never);
    expect(text).toContain('[["[more than 200 levels, omitted]"]]');
  });
});

describe('half of a surrogate pair', () => {
  test('becomes U+FFFD in parsed JSON, also in names', () => {
    const json = '{"a\\ud83d":["x\\ude00","\\ud83d\\ude00"]}';
    const value = { 'a\ufffd': ['x\ufffd', '\u{1f600}'] };
    expect(parseForeignJson(json)).toEqual({ ok: true, value });
    expect(parseArguments(json)).toEqual({ ok: true, value });
    expect(extractJson(json)).toEqual({ ok: true, value });
    expect(wellFormedJson(JSON.parse(json))).toEqual(value);
  });

  test('becomes U+FFFD in whatever a program sends to a run', async () => {
    const context = { 'k\ud83d': ['v\ud83d'] };
    const clean = { 'k\ufffd': ['v\ufffd'] };
    const start = { message: 'm\ud83d', context, tags: ['t\ud83d'], by: 'b\ud83d' };
    expect(createRunInput('a', start)).toEqual({
      agent: 'a',
      message: 'm\ufffd',
      context: clean,
      tags: ['t\ufffd'],
      by: 'b\ufffd',
    });
    expect(createRunInput('a', { input: context })).toEqual({ agent: 'a', input: clean });
    expect(withId({ message: 'm\ud83d', context, id: '1' })).toEqual({
      message: 'm\ufffd',
      context: clean,
      id: '1',
    });
    const sent: unknown[] = [];
    const executeUpdate = async (_: unknown, { args }: { args: unknown[] }) => {
      sent.push(args[0]);
      return { resolved: [] };
    };
    const withAbortSignal = async (_: unknown, work: () => unknown) => await work();
    const client = {
      workflow: { getHandle: () => ({ executeUpdate }) },
      withAbortSignal,
      withDeadline: withAbortSignal,
    } as never;
    const decision = {
      request: 'r1',
      digest: 'd',
      as: 'edit',
      arguments: context,
      note: 'n\ud83d',
    } as const;
    await resolveRequests(client, 'run', decision);
    expect(sent).toEqual([{ ...decision, arguments: clean, note: 'n\ufffd' }]);
  });

  test('becomes U+FFFD in the structured content of a server', async () => {
    const { text } = await resultText({ structuredContent: { a: 'x\ud83d' } }, {} as never);
    expect(text).toBe('{"a":"x\ufffd"}');
  });

  test('is never made by a cut', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(20), (text, units) => {
        for (const cut of [headOf(text, units), tailOf(text, units)]) {
          expect(cut.length).toBeLessThanOrEqual(units);
          expect(text).toContain(cut);
          expect(cut.isWellFormed()).toBe(text.isWellFormed());
        }
      }),
    );
  });
});
