import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextCommandAbout } from '../../src/cli/reports/next-command.js';
import { wrappedCommand } from '../../src/cli/format/format.js';
import { countHidden, shellLine, shellWord } from '../../src/core/text/text.js';

/** Returns the words that a shell passes to the program `perdure`. */
function passed(line: string, shell = 'sh'): readonly string[] {
  const script = `perdure() { printf '%s\\0' "$@"; }\n${line}`;
  const output = execFileSync(shell, ['-c', script], { encoding: 'utf8', stdio: 'pipe' });
  return output.split('\0').slice(0, -1);
}

const IDS = [
  'desk-1',
  'a b',
  "it's",
  '$(touch x)`id`"\\',
  'a;b|c&d>e<f*g?h[i]{j}~k#l!m%n',
  '=ls',
  '~',
  '--full',
  '-x',
  '',
  'a\nb',
  'tab\there',
  'x\u202ey\u200bz',
  'caf\u00e9 \u6f22 \u{1f600}',
  "\u001b[2J%s\\n'$(id)'",
  '\u{e0041}\u00ad!!',
];

describe('a printed command', () => {
  test.each(IDS)('passes any id as one word and shows every character: %j', (id) => {
    const line = shellLine({
      program: 'perdure approve',
      operands: [id, 'r1'],
      options: ['--digest', 'ab12'],
    });
    expect(countHidden(line)).toBe(0);
    expect(line).not.toContain('\n');
    const words = id.startsWith('-')
      ? ['approve', '--digest', 'ab12', '--', id, 'r1']
      : ['approve', id, 'r1', '--digest', 'ab12'];
    expect(passed(line)).toEqual(words);
    for (const width of [40, 80]) {
      expect(passed(wrappedCommand(line, width).join('\n'))).toEqual(words);
    }
  });

  test('keeps line breaks at the end of a word', () => {
    expect(passed(`perdure ${shellWord('a\n\n')}`, 'bash')).toEqual(['a\n\n']);
  });

  test('is one word for any text', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'binary', minLength: 1 }), { minLength: 1 }),
        (given) => {
          // An argument of a program cannot contain NUL.
          const words = given.map((word) => `${word.replaceAll('\0', '')}.`);
          expect(passed(`perdure ${words.map(shellWord).join(' ')}`)).toEqual(words);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('puts its options before an id that looks like one', () => {
    const context = { env: {}, options: { address: 'host:7233', namespace: 'a b' } };
    const line = nextCommandAbout(context, ['inbox', '--json', 'r1', '--full']);
    expect(line).toMatch(/ inbox --full --address host:7233 --namespace 'a b' -- --json r1$/);
  });
});
