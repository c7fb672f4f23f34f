import { readFileSync } from 'node:fs';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { describe, expect, test } from 'vitest';
import { actionsOf } from '../bench/kit/actions.js';
import { benchCommand } from '../bench/options.js';
import { pictures, withResults } from '../bench/report/page.js';
import { withGroup, type Results } from '../bench/report/results.js';
import { keptResults, reportFiles } from '../bench/report/write.js';
import type { RawEvent } from '../src/history/history-event.js';
import { isMet, medianRun, recoverySeries, type Bar, type Row } from '../bench/row.js';
import { exponent, median, quantile, slope, spreadOf, type Point } from '../bench/statistics.js';

function power(e: number): readonly Point[] {
  return [25, 50, 100, 200].map((x) => ({ x, y: 5 * x ** e }));
}

describe('statistics of the bench', () => {
  test('the median of an odd count is the middle value, that of an even count the mean of the two', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([10, 1, 3, 2])).toBe(2.5);
    expect(median([7])).toBe(7);
    expect(median([])).toBeNaN();
  });

  test('numbers are sorted numerically, and the input list is unchanged', () => {
    const values = [100, 20, 3];
    expect(median(values)).toBe(20);
    expect(values).toEqual([100, 20, 3]);
  });

  test('a quantile between two values is interpolated', () => {
    expect(quantile([0, 10, 20, 30], 0.25)).toBe(7.5);
    expect(spreadOf([4, 1, 3, 2, 5])).toEqual({
      least: 1,
      lowerQuartile: 2,
      median: 3,
      upperQuartile: 4,
      most: 5,
    });
  });

  test('the slope is that of the line, whatever its intercept', () => {
    const line = [1, 4, 9].map((x) => ({ x, y: 3 * x - 7 }));
    expect(slope(line)).toBeCloseTo(3, 10);
  });

  test('the exponent distinguishes linear from quadratic growth', () => {
    expect(exponent(power(1))).toBeCloseTo(1, 10);
    expect(exponent(power(2))).toBeCloseTo(2, 10);
  });
});

test.each<{ bar: Bar; met: readonly number[]; missed: readonly number[] }>([
  { bar: { atMost: 2 }, met: [-1, 2], missed: [2.1, Number.NaN] },
  { bar: { atLeast: 2 }, met: [2, 3], missed: [1.9, Number.NaN] },
  { bar: { between: [0.9, 1.1] }, met: [0.9, 1, 1.1], missed: [0.89, 1.11, Number.NaN] },
])('a target of $bar is met by $met and missed by $missed', ({ bar, met, missed }) => {
  const row = { name: '', what: '', unit: 'x', bar, samples: [], detail: '' } as const;
  expect(met.filter((value) => !isMet({ ...row, value }))).toEqual([]);
  expect(missed.filter((value) => isMet({ ...row, value }))).toEqual([]);
});

describe('the report', () => {
  const row: Row = {
    name: 'latency/http',
    what: 'step latency',
    value: 1.2,
    unit: 'x',
    bar: { atMost: 1.15 },
    samples: [1.1, 1.2, 1.3],
    detail: '36.0 against 30.0 ms per step',
  };
  const own: Results = {
    at: '2026-11-26T12:00:00.000Z',
    perdure: '0.2.0',
    sdk: '1.24.0',
    node: 'v20.20.0',
    server: '1.32.0',
    machine: { cpu: 'a processor', cores: 2, memoryGb: 24, system: 'Linux 6' },
    load: { before: 0.1, after: 2.34 },
    quick: false,
    failed: [],
    rows: [row, { ...row, name: 'b', value: 1.1, samples: [] }],
    figures: [],
    series: [
      { plot: 'throughput', side: 'perdure', points: [{ x: 40, y: 80 }] },
      { plot: 'throughput', side: 'perdure', points: [{ x: 1, y: 30 }] },
      { plot: 'throughput', side: 'a < b', points: [{ x: 1, y: 40 }] },
      recoverySeries('perdure', [9_000, 5_000]),
    ],
  };
  const peers: Results = {
    ...own,
    quick: true,
    load: { before: 12, after: 13 },
    rows: [],
    figures: [
      { what: 'step', side: 'perdure', value: 36, unit: 'ms', samples: [35, 36, 37] },
      { what: 'step', side: 'other', value: 48.123, unit: 'ms', samples: [48.123] },
      { what: 'ends at', side: 'other', value: 'step 147', unit: '', samples: [] },
    ],
    series: [{ plot: 'bytes', side: 'other', points: [{ x: 25, y: 0.1 }] }],
  };

  test('that is about one group keeps the other rows and lines', () => {
    const line = { plot: 'throughput', side: 'perdure', points: [{ x: 1, y: 33 }] } as const;
    const rows = [
      { ...row, value: 1.3 },
      { ...row, name: 'c' },
    ];
    const { failed, ...results } = withGroup({ ...own, failed: ['kill', 'latency'] }, 'latency', {
      ...own,
      at: '2026-11-30T00:00:00.000Z',
      machine: { ...own.machine, cpu: 'another' },
      load: { before: 0.5, after: 1 },
      rows,
      series: [line],
    });
    expect(failed).toEqual(['kill']);
    const apart = {
      at: '2026-11-30T00:00:00.000Z',
      cpu: 'another',
      node: own.node,
      load: 0.5,
    };
    expect(results.rows).toEqual([{ ...rows[0], apart }, own.rows[1], { ...rows[1], apart }]);
    expect(results.series).toEqual([own.series[0], own.series[2], own.series[3], line]);
    expect(results).toMatchObject({ at: own.at, machine: own.machine, load: own.load });
  });

  const page = readFileSync(new URL('../docs/benchmarks.md', import.meta.url), 'utf8');

  test('of several runs has the median run of each row, and the values of all', () => {
    const run = (...values: readonly number[]): readonly Row[] =>
      values.map((value, at) => ({ ...row, name: `row ${at}`, value, samples: [value] }));
    const [low, high] = medianRun([run(1, 9), run(3, 7), run(2, 8)]);
    expect(low).toMatchObject({ value: 2, samples: [2], runs: [1, 3, 2] });
    expect(high).toMatchObject({ value: 8, samples: [8], runs: [9, 7, 8] });
    // Of two, the one further from the target, never the better one.
    expect(medianRun([run(1), run(2)])).toMatchObject([{ value: 2 }]);
    const atLeast = run(1).map((one) => ({ ...one, bar: { atLeast: 3 } }));
    expect(medianRun([run(2), atLeast])).toMatchObject([{ value: 2 }]);
    expect(medianRun([atLeast, run(2)])).toMatchObject([{ value: 1 }]);
    expect(medianRun([run(5)])).toEqual(run(5));
  });

  test('has value, quartiles, target, and misses of each row, and keeps what people wrote', () => {
    const text = withResults(page, { own });
    expect(text).toContain(
      '| step latency | **1.20 ×** (missed) | 1.15–1.25 | ≤ 1.15 | 36.0 against 30.0 ms per step |',
    );
    expect(text).toContain('| step latency | 1.10 × |  | ≤ 1.15 |');
    const apart = withGroup(own, 'latency', {
      ...own,
      at: '2026-11-30T00:00:00.000Z',
      machine: { ...own.machine, cpu: 'another' },
      load: { before: 9.87, after: 9 },
      rows: [{ ...row, runs: [1.1, 1.2, 1.3] }],
    });
    expect(withResults(page, { own: apart })).toContain(
      'per step; median of 3 runs: 1.10, 1.20, 1.30; 30 November 2026, another, load 9.9 |',
    );
    const again = withGroup(own, 'latency', { ...own, rows: [row] });
    expect(withResults(page, { own: again })).toContain('30.0 ms per step; load 0.1 |');
    expect(text).toContain('1 of 2 targets are met. Missed: `latency/http`.');
    expect(text).toContain('Measured on 26 November 2026 with perdure 0.2.0');
    expect(text).toContain('0.1 before, 2.3 at the end');
    expect(text).not.toContain('busy with other programs');
    expect(text).toContain(page.slice(page.indexOf('## Shared rates')));
    expect(withResults(text, { own })).toBe(text);
  });

  test('shows as many digits as a miss needs, and no figure below zero', () => {
    const rows: readonly Row[] = [
      { ...row, name: 'bytes', value: 2600.319, unit: 'bytes', bar: { atMost: 2600 }, samples: [] },
      { ...row, name: 'ratio', value: 1.1507, samples: [] },
      { ...row, name: 'memory', value: -0.0172, unit: 'MB', samples: [] },
    ];
    const text = withResults(page, { own: { ...own, rows } });
    expect(text).toContain('| **2600.3 bytes** (missed) |  | ≤ 2600 |');
    expect(text).toContain('| **1.151 ×** (missed) |  | ≤ 1.15 |');
    expect(text).toContain('| not measurable |');
  });

  test('compares side by side, and says what makes the figures worth little', () => {
    const text = withResults(page, { own, peers });
    expect(text).toContain('| step | 36 ms (35.5–36.5) | 48.1 ms |');
    expect(text).toContain('| ends at | – | step 147 |');
    expect(text).toContain('busy with other programs');
    expect(text).toContain('Few repeats');
    expect(withResults(page, { own: { ...own, failed: ['kill'] } })).toContain(
      'Could not be measured: kill.',
    );
  });

  test('names the lines of a comparison that were measured apart', () => {
    const [first] = peers.figures;
    const now = { ...peers, at: '2026-11-30T00:00:00.000Z', node: 'v24.1.0', load: own.load };
    const apart = withGroup(peers, 'latency', { ...now, figures: first ? [first] : [] });
    expect(withResults(page, { own, peers: apart })).toContain(
      'Apart (30 November 2026, Node v24.1.0, load 0.1): step.',
    );
  });

  test('keeps engines of other kinds in a table of their own', () => {
    const text = withResults(page, { own, engines: peers });
    expect(text).not.toContain('### Beside others');
    expect(text.slice(text.indexOf('### On other engines'))).toContain('Each on its own storage');
    expect(text).toContain('| step | 36 ms (35.5–36.5) | 48.1 ms |');
  });

  test('shows each plot that has points, in the colors of its own ground', () => {
    const drawn = pictures({ own, peers });
    expect(Object.keys(drawn)).toEqual([
      'benchmarks/bytes.svg',
      'benchmarks/throughput.svg',
      'benchmarks/recovery.svg',
    ]);
    const text = withResults(page, { own, peers });
    for (const path of Object.keys(drawn)) expect(text).toContain(`](${path})`);
    const svg = drawn['benchmarks/throughput.svg'] ?? '';
    // One line a side, from the fewest runs to the most.
    expect([...svg.matchAll(/<polyline[^>]*points="([^"]+)"/g)].map(([, at]) => at)).toEqual([
      '82.6,256 574,106',
      '82.6,226',
    ]);
    expect(svg).toContain('a &lt; b');
    expect(svg).toContain('prefers-color-scheme: dark');
    expect(svg).toContain('class="ground"');
  });

  test('the page and the plots are those of the kept results', async () => {
    const kept = keptResults();
    if (kept.own === undefined && kept.peers === undefined) return;
    const written = await reportFiles(kept);
    const found = Object.keys(written).map((name) => [
      name,
      readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'),
    ]);
    expect(Object.fromEntries(found)).toEqual(written);
  });

  test('the help explains each option, and a wrong one gets one line', () => {
    const command = benchCommand(['latency', 'kill']);
    const help = command.helpInformation().replaceAll(/\s+/g, ' ');
    for (const option of ['quick', 'only', 'runs', 'json', 'check', 'profile', 'report']) {
      expect(help).toMatch(new RegExp(`--${option}[^-]* [a-z]{4}`));
    }
    const errors: string[] = [];
    const parse = (...args: string[]): unknown =>
      benchCommand(['latency', 'kill'])
        .exitOverride()
        .configureOutput({ writeErr: (text) => void errors.push(text) })
        .parse(args, { from: 'user' })
        .opts();
    expect(parse('--only', 'kill', '--report')).toEqual({ only: 'kill', report: true });
    expect(parse('--report', 'kept')).toEqual({ report: 'kept' });
    expect(() => parse('--quik')).toThrow('unknown option');
    expect(() => parse('--only', 'nothing')).toThrow('is invalid');
    expect(() => parse('latency')).toThrow('too many arguments');
    expect(errors.join('')).toMatch(/^error: unknown option '--quik'/);
    expect(errors.join('')).toContain('Allowed choices are latency, kill.');
  });
});

describe('what a run costs on Temporal', () => {
  const page = readFileSync(new URL('../docs/benchmarks.md', import.meta.url), 'utf8');
  const eventsOf = (name: string): readonly RawEvent[] => {
    const text = readFileSync(new URL(`histories/${name}.json`, import.meta.url), 'utf8');
    return historyFromJSON(JSON.parse(text)).events ?? [];
  };
  const cost = (name: string): { readonly events: number; readonly actions: number } => {
    const events = eventsOf(name);
    return { events: events.length, actions: actionsOf(events) };
  };
  const row = (unit: string): readonly string[] =>
    page
      .split('\n')
      .find((line) => line.startsWith(`| ${unit}`))
      ?.split('|')
      .map((cell) => cell.trim())
      .slice(2, 4) ?? [];
  const oneReply = 5;

  test('a run of one reply, a step, and a segment cost what the table says', () => {
    expect(cost('instructions-of-a-template')).toEqual({ events: 15, actions: oneReply });
    expect(row('a run of one reply')).toEqual([`15`, expect.stringMatching(/^5: /)]);
    // Five steps and the start of the segment; the next start belongs to the next segment.
    expect(cost('long-turn-middle-segment')).toEqual({ events: 5 * 12 + 5, actions: 5 * 2 + 1 });
    expect(row('a step: one')).toEqual([expect.stringMatching(/^12, /), '2']);
    expect(row('a further segment')).toEqual(['one start', '1']);
  });

  test('so do further calls, decisions, and waits', () => {
    // One more model call, and twelve calls of tools.
    expect(cost('twelve-calls-in-one-message').actions).toBe(oneReply + 1 + 12);
    expect(row('each further')[1]).toBe('1');
    // A step more, and a decision without a deadline, and with one.
    expect(cost('unknown-outcome-resolved-by-result').actions).toBe(oneReply + 2 + 3);
    expect(cost('earlier-plan-denied').actions).toBe(oneReply + 2 + 4);
    expect(row("a person's decision")[1]).toMatch(/^3: .*; 4 with a deadline$/);
    // A model call more, and a wait.
    expect(cost('wait-over').actions).toBe(oneReply + 1 + 3);
    expect(row('a wait of the agent')[1]).toMatch(/^3: /);
  });

  test('waiting for a person costs nothing, however long it lasts', () => {
    const events = eventsOf('unknown-outcome-resolved-by-result');
    const asked = events.findIndex((event) => event.activityTaskCompletedEventAttributes);
    const decided = events.findIndex(
      (event) => event.workflowExecutionUpdateAcceptedEventAttributes,
    );
    expect(asked).toBeLessThan(decided);
    expect(events.filter((event) => event.timerStartedEventAttributes)).toEqual([]);
    expect(row('a month of waiting')).toEqual([expect.stringMatching(/^0: /), '0']);
  });
});
