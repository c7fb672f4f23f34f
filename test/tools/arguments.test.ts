import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  parseArguments,
  unknownTool,
  jsonFaultPosition,
} from '../../src/tools/arguments/arguments.js';

function problemOf(text: string): { readonly type: string; readonly message: string } {
  const parsed = parseArguments(text);
  if (parsed.ok) throw new Error(`accepted as ${JSON.stringify(parsed.value)}`);
  return parsed.problem;
}

function nested(levels: number): string {
  return `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
}

describe('parseArguments', () => {
  it.each(['', '  ', '\n'])('treats %j as no arguments', (text) => {
    expect(parseArguments(text)).toEqual({ ok: true, value: {} });
  });

  it('accepts an object, and one that was encoded twice', () => {
    const value = { path: 'a "quoted" name', list: [1, null] };
    expect(parseArguments(JSON.stringify(value))).toEqual({ ok: true, value });
    expect(parseArguments(JSON.stringify(JSON.stringify(value)))).toEqual({ ok: true, value });
    expect(parseArguments('"{}"')).toEqual({ ok: true, value: {} });
  });

  it.each([
    ['{"path":}', 'character "}" at position 8 is wrong, in "{\\"path\\":}"'],
    ["{'path': 1}", 'character "\'" at position 1'],
    ['{"a":1,}', 'character "}" at position 7'],
    ['path=x', 'character "p" at position 0'],
    ['{"a":1} and more', 'character "a" at position 8'],
    ['{"path":"src', 'they end too early, after 12 characters'],
    ['"{\\"a\\":"', 'they end too early, after 5 characters'],
  ])('reports where %j stops being JSON', (text, expected) => {
    const problem = problemOf(text);
    expect(problem.type).toBe('invalid_json');
    expect(problem.message).toContain(expected);
    expect(problem.message).toContain('Send one complete JSON object');
  });

  it('shows only a short sample of long text', () => {
    const text = `{"a":"${'x'.repeat(100_000)}", oops}`;
    expect(problemOf(text).message).toContain(' oops}');
    expect(problemOf(text).message.length).toBeLessThan(300);
  });

  it.each([
    ['[1]', 'The arguments are an array, not a JSON object'],
    ['3', 'The arguments are a number'],
    ['null', 'The arguments are null'],
    ['"text"', 'The arguments are a string'],
    ['"[1]"', 'The arguments are a string'],
    ['{"n":1e999}', 'The number 1e999 cannot be kept exactly'],
  ])('refuses %s', (text, expected) => {
    expect(problemOf(text)).toMatchObject({ type: 'invalid_arguments' });
    expect(problemOf(text).message).toContain(expected);
  });

  it.each([
    '{"__proto__":{"admin":true}}',
    '{"a":[{"b":{"__proto__":1}}]}',
    '{"\\u005f_proto__":1}',
    '{"constructor":{"prototype":{"admin":true}}}',
    '"{\\"__proto__\\":1}"',
  ])('refuses what could reach a prototype: %s', (text) => {
    expect(problemOf(text).message).toMatch(
      /The key "(__proto__|constructor\.prototype)" is refused/,
    );
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  it('keeps harmless keys with similar names', () => {
    const text = '{"constructor":"Bob","prototype":1,"proto":{}}';
    expect(parseArguments(text)).toEqual({ ok: true, value: JSON.parse(text) as unknown });
  });

  it('accepts 64 levels and refuses 65 and a hundred thousand', () => {
    expect(parseArguments(nested(64)).ok).toBe(true);
    expect(problemOf(nested(65)).message).toContain('nested deeper than 64 levels');
    expect(problemOf(`{"a":${'['.repeat(1e5)}${']'.repeat(1e5)}}`).message).toContain('levels');
  });

  it('never throws, whatever the model wrote', () => {
    const pieces = fc.oneof(fc.string(), fc.json(), fc.constantFrom('{', '}', '"', ':', ',', '\\'));
    fc.assert(
      fc.property(fc.array(pieces), (parts) => {
        const parsed = parseArguments(parts.join(''));
        expect(parsed.ok || parsed.problem.message.length < 500).toBe(true);
      }),
    );
  });
});

describe('jsonFaultPosition', () => {
  it('finds a foreign character wherever it is inserted between tokens', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (json, seed) => {
        const spots = [...json.matchAll(/[{}[\],:](?=(?:[^"]*"[^"]*")*[^"]*$)/g)];
        fc.pre(!json.includes('\\') && spots.length > 0);
        const at = (spots[seed % spots.length]?.index ?? 0) + 1;
        expect(jsonFaultPosition(`${json.slice(0, at)}§${json.slice(at)}`)).toBe(at);
      }),
    );
  });

  it('agrees with JSON.parse on what is JSON', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        expect(jsonFaultPosition(json)).toBe(json.length);
        expect(jsonFaultPosition(`${json}]`)).toBe(json.length);
      }),
    );
  });

  it('reads strings of millions of escapes', () => {
    const text = `{"a":"${'\\n'.repeat(2e6)}`;
    expect(jsonFaultPosition(text)).toBe(text.length);
  });
});

describe('unknownTool', () => {
  it('names the tools, nearest first', () => {
    expect(unknownTool('read_fiel', ['write_file', 'search_text', 'read_file'])).toEqual({
      type: 'unknown_tool',
      message: 'Unknown tool "read_fiel". Tools: read_file, write_file, search_text.',
    });
  });

  it('reports that there are none, and stays short if there are many', () => {
    expect(unknownTool('x', []).message).toContain('Tools: none; answer in text');
    const many = Array.from({ length: 500 }, (_, index) => `tool_${index}`);
    expect(unknownTool('tool_499', many).message).toContain('Tools: tool_499, ');
    expect(unknownTool('tool_499', many).message).toContain('and 460 more');
    expect(unknownTool('x'.repeat(1e6), many).message.length).toBeLessThan(1_000);
  });
});
