import { expect, test } from 'vitest';
import { inFlags } from '../../src/cli/input/run-settings.js';
import { decidedLines } from '../../src/cli/run-view/status-lines.js';
import { actorText, recordedName } from '../../src/core/state/summaries.js';

const ANN = 'unverified:os-user:ann';

test('a refused decision has its reason in lines of its own, and no row is wider for it', () => {
  const refused = `arguments: expected arguments of pay, got others\n- to: missing\n- from: unknown; ${'omit it '.repeat(12)}`;
  const edit = {
    id: 'd1',
    what: 'resolve',
    as: 'edit',
    request: 'r1',
    call: 'call_1',
    by: ANN,
    at: 0,
  } as const;
  const decisions = [
    { ...edit, refused },
    { ...edit, as: 'approve' as const },
  ];
  const lines = decidedLines({ decisions }, 70);
  expect(lines[0]).toMatch(/^\S+  edit r1 \(call_1\)     by os-user:ann \(not verified\)$/);
  expect(lines[1]).toMatch(/^ {10}refused: arguments: expected arguments of pay, got others/);
  expect(lines.at(-1)).toMatch(/^\S+  approve r1 \(call_1\)  by os-user:ann/);
  expect(lines.join(' ')).toContain('omit it');
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(70);
  const texts = lines.slice(1, -1).map((line) => line.trim());
  expect(texts.join(' ')).toContain(
    refused.replaceAll('\n- to', ' to').replaceAll('\n- ', '; ').trim(),
  );
});

test('decisions are in the order of their times', () => {
  const decisions = [
    { id: 'd2', what: 'pause', by: 'bob', at: 5_000 },
    { id: 'd1', what: 'resolve', as: 'approve', request: 'r1', by: 'ann', at: 2_000 },
  ] as const;
  const lines = decidedLines({ decisions }, 70);
  expect(lines.map((line) => line.split('  ')[1]?.trim())).toEqual(['approve r1', 'pause']);
});

test('a decision says which grant it revoked, and which limits it set', () => {
  const decisions = [
    { id: 'd1', what: 'revoke', grant: 'g1', at: 1_000 },
    { id: 'd2', what: 'setLimits', limits: 'cost-usd=0.5 run.steps=none', at: 2_000 },
    // An older history does not say it.
    { id: 'd3', what: 'revoke', at: 3_000 },
    { id: 'd4', what: 'setLimits', at: 4_000 },
  ] as const;
  const lines = decidedLines({ decisions }, 70);
  expect(lines.map((line) => line.split('  ')[1]?.trim())).toEqual([
    'revoke g1',
    'limits cost-usd=0.5 run.steps=none',
    'revoke',
    'limits',
  ]);
});

test('an error about a limit names it as the option does', () => {
  const text = [
    "limits.costUsd: expected at most the agent's 0.5, got 1",
    "limits.run.wallMs: expected at most the agent's 1 min, got 2 min",
    'limits: expected an object',
    'tags[0]: expected a text',
  ].join('\n');
  expect(inFlags(text).split('\n')).toEqual([
    "--limit cost-usd: expected at most the agent's 0.5, got 1",
    "--limit run.wall: expected at most the agent's 1 min, got 2 min",
    '--limit: expected an object',
    '--tag: expected a text',
  ]);
});

test('a name that is shown leads to the person who is recorded, and to no one else', () => {
  expect(actorText({ by: ANN })).toBe('os-user:ann (not verified)');
  expect(actorText({ by: 'ann' })).toBe('ann');
  expect(recordedName('os-user:ann', [ANN])).toBe(ANN);
  expect(recordedName('os-user:ann (not verified)', [ANN])).toBe(ANN);
  expect(recordedName('os-user:ann', [ANN, 'os-user:ann'])).toBe('os-user:ann');
  expect(recordedName('os-user:ann', ['bob'])).toBe('os-user:ann');
});
