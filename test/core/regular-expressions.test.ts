import { Script } from 'node:vm';
import { analyse } from 'scslre';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import {
  expressionsIn,
  expressionsOf,
  type FoundExpression,
} from '../../scripts/walls/regular-expressions.js';
import { endsInTime } from '../support/ends-in-time.js';

const SRC = new URL('../../src/', import.meta.url).pathname;
const FOUND = expressionsOf(SRC);

/** Expressions that are built when they are used, and why they take linear time. */
const BUILT_ON_USE: Readonly<Record<string, string>> = {
  'output/extract-json.ts': 'the indentation has at most 100 characters, at the start of a line',
  'output/parse-tags.ts': 'a copy of a literal',
  'core/text/shape.ts': 'a number of hexadecimal digits between both ends',
  'models/wire/refusals.ts': 'a name of perdure between both ends',
  'models/openai/chat/index.ts': 'names of perdure without repetition',
  'cli/commands/limits.ts': 'a name of perdure without repetition',
  'models/demo/named-calls.ts': 'the name of a tool between both ends',
  'http/errors.ts': 'names of perdure, with parts of a path between slashes',
  'tools/files/search-text.ts': 'written by a model; V8 runs it with a time limit',
};

type Expression = Pick<FoundExpression, 'at' | 'source' | 'flags'>;

/** Expressions whose time grows faster than the text, for texts that repeat one character. */
function superLinear(expressions: readonly Expression[]): readonly string[] {
  const bySource = new Map(expressions.map((each) => [`/${each.source}/${each.flags}`, each]));
  return [...bySource].flatMap(([written, { at, source, flags }]) => {
    const { reports } = analyse({ source, flags });
    return reports.map(
      ({ type, character }) => `${at}: ${type} at ${character.pick} in ${written}`,
    );
  });
}

/** The texts that an expression itself repeats: its literal parts, and pairs of them. */
function pumps(source: string): readonly string[] {
  const plain = source.replaceAll(/\\[sS]/g, ' ').replaceAll(/\\[dDwW]/g, '1');
  const parts = plain.split(/[()[\]{}|?*+^$.\\]+/).filter((part) => part !== '');
  return [
    ...new Set([
      ...parts,
      ...(parts.length > 1 ? [parts.join('')] : []),
      ...parts.map((part) => `${part} `),
    ]),
  ].slice(0, 12);
}

test('no regular expression of the product takes more than linear time', () => {
  expect(FOUND.literals.length).toBeGreaterThan(300);
  expect(superLinear(FOUND.literals)).toEqual([]);
});

test('no regular expression that is built at the start takes more than linear time', async () => {
  const files = [...new Set(FOUND.built.map(({ file }) => file))];
  const seen: Expression[] = [];
  const real = globalThis.RegExp;
  vi.resetModules();
  globalThis.RegExp = new Proxy(real, {
    construct(target, args, self) {
      const made = Reflect.construct(target, args, self) as RegExp;
      const [, at = ''] = /\/src\/(\S+?):\d+:\d+/.exec(new Error().stack ?? '') ?? [];
      if (at !== '') seen.push({ at, source: made.source, flags: made.flags });
      return made;
    },
  });
  try {
    for (const file of files)
      await import(/* @vite-ignore */ new URL(file, `file://${SRC}`).pathname);
  } finally {
    globalThis.RegExp = real;
    vi.resetModules();
  }
  expect(superLinear(seen)).toEqual([]);
  const atStart = new Set(seen.map(({ at }) => at));
  const others = files.filter((file) => !atStart.has(file) && BUILT_ON_USE[file] === undefined);
  expect(others).toEqual([]);
});

test('no format of zod, with which texts of models are checked, takes more than linear time', () => {
  const formats = Object.entries(z.regexes).flatMap(([at, each]) =>
    each instanceof RegExp ? [{ at, source: each.source, flags: each.flags }] : [],
  );
  expect(superLinear(formats)).toEqual([]);
});

test('each expression passes over 64 KiB of what it looks for', () => {
  const slow: string[] = [];
  for (const { at, source, flags } of FOUND.literals) {
    const texts = pumps(source).map((part) => part.repeat(Math.ceil((64 * 1024) / part.length)));
    const script = new Script('for (const text of texts) text.replace(pattern, "")');
    if (!endsInTime(script, { texts, pattern: new RegExp(source, flags) }))
      slow.push(`${at}: /${source}/${flags}`);
  }
  expect(slow).toEqual([]);
});

test('the check finds what has stopped workers before', () => {
  const sources = [
    String.raw`const a = /^\s*(?:all|some)?\s*:?\s*(.+?)\s*\.?\s*$/is;`,
    String.raw`const b = /[\s"'.]+$/u;`,
    String.raw`const c = /<(?=\s*\/?\s*document)/gi;`,
    String.raw`const d = /(a+)+$/;`,
  ];
  for (const source of sources) {
    expect(superLinear(expressionsIn('x.ts', source).literals)).not.toEqual([]);
  }
});
