import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { keptResults } from '../bench/report/write.js';
import type { Results } from '../bench/report/results.js';
import { median } from '../bench/statistics.js';
import { KNOWN_MODELS } from '../src/models/known-models.js';
import { REQUEST_KINDS } from '../src/core/transcript/request.js';

const { own, peers, engines } = keptResults();

const read = (page: string): string =>
  readFileSync(new URL(`../${page}`, import.meta.url), 'utf8').replaceAll(/\s+/g, ' ');

/** The figure of the side whose name begins so; throws if there is none. */
function valueOf(results: Results | undefined, what: string, side: string): number | string {
  const found = results?.figures.find(
    (one) => one.what === what && (one.side === side || one.side.startsWith(`${side} `)),
  );
  if (found === undefined) throw new Error(`bench/results: nothing about "${what}" of ${side}`);
  return found.value;
}

function rowOf(name: string): Results['rows'][number] {
  const found = own?.rows.find((row) => row.name === name);
  if (found === undefined) throw new Error(`bench/results: no row ${name}`);
  return found;
}

const whole = (value: number | string): string => Number(value).toFixed(0);
const megabytes = (value: number | string): string =>
  Number(value) < 10 ? Number(value).toFixed(2) : Number(value).toFixed(1);
const stepOf = (value: number | string): string => String(value).replace(/^step /, '');

const STEP = 'a step, messages of 500 B';
const SIZE = 'history at 100 steps of 2 kB';
const END = 'the server ends the run at (messages of 2 kB)';
const AT_ONCE = 'steps, 10 runs at once';
const OPENAI = '@temporalio/openai-agents';
const AI_SDK = '@temporalio/ai-sdk';

const RATIOS = ['latency/scripted', 'latency/http']
  .map((name) => rowOf(name).value.toFixed(2))
  .toSorted()
  .join(' to ');

/** The runs that a test executes in memory and on a server. */
const SCRIPTS = (() => {
  const source = readFileSync(new URL('memory/both-worlds.test.ts', import.meta.url), 'utf8');
  const [, text = ''] = source.split(/^const SCENARIOS\b/m);
  const [table = ''] = text.split('\n};');
  return [...table.matchAll(/^ {2}(?:'[^']+'|\w+): \{/gm)].length;
})();

/** What the pages say in prose, with the figures of the results. */
const QUOTES: readonly (readonly [page: string, quote: string])[] = [
  [
    'README.md',
    `100 steps of 2 kB take ${megabytes(valueOf(peers, SIZE, 'perdure'))} MB, against ` +
      `${megabytes(valueOf(peers, SIZE, OPENAI))} MB in \`${OPENAI}\` and ` +
      `${megabytes(valueOf(peers, SIZE, AI_SDK))} MB in \`${AI_SDK}\``,
  ],
  [
    'README.md',
    `near steps ${stepOf(valueOf(peers, END, OPENAI))} and ${stepOf(valueOf(peers, END, AI_SDK))}`,
  ],
  ['README.md', `${RATIOS} times`],
  [
    'docs/comparison.md',
    `takes ${whole(valueOf(peers, STEP, 'perdure, inline reads'))} to ${whole(valueOf(peers, STEP, 'perdure'))} ms`,
  ],
  ['README.md', `There are ${REQUEST_KINDS.length} kinds of requests`],
  ['README.md', `${SCRIPTS} scripts run in both worlds`],
  ['docs/coming-from-temporal.md', `${RATIOS} times`],
  [
    'docs/coming-from-temporal.md',
    `${megabytes(valueOf(peers, SIZE, 'perdure'))} MB instead of ${megabytes(valueOf(peers, SIZE, 'loop that resends'))} MB`,
  ],
  [
    'README.md',
    `${[peers, engines]
      .map((results) => whole(valueOf(results, STEP, 'perdure')))
      .toSorted()
      .join(' to ')} ms`,
  ],
  [
    'README.md',
    `${whole(valueOf(peers, STEP, OPENAI))} and ${whole(valueOf(peers, STEP, AI_SDK))} ms in Temporal's own two; ` +
      `${whole(valueOf(engines, STEP, 'DBOS'))} ms in DBOS, ${whole(valueOf(engines, STEP, 'LangGraph'))} ms in LangGraph`,
  ],
  ['docs/production.md', `| ${whole(valueOf(peers, AT_ONCE, 'perdure'))} (messages of 500 B`],
  [
    'docs/production.md',
    `${rowOf('idle/empty').value.toFixed(2)} MB empty, ${rowOf('idle/full').value.toFixed(1)} MB with a full segment`,
  ],
  [
    'docs/production.md',
    `${rowOf('history/events').value} events and ${(rowOf('history/bytes').value / 1_000).toFixed(2)} kB in addition to its messages`,
  ],
  ['docs/production.md', `(${megabytes(valueOf(peers, SIZE, 'perdure'))} MB each)`],
  [
    'docs/production.md',
    `${(median(rowOf('kill/next-step').samples) / 1_000).toFixed(1)} s (median), ${(rowOf('kill/next-step').value / 1_000).toFixed(1)} s (maximum)`,
  ],
  ['docs/production.md', `| ${(rowOf('worker-start').value / 1_000).toFixed(1)} s |`],
];

test.each(QUOTES)('%s quotes what was measured: %s', (page, quote) => {
  expect(read(page)).toContain(quote);
});

/** The cells of the measured rows of a table in comparison.md, by the words of the row. */
function measuredRows(section: string): ReadonlyMap<string, readonly string[]> {
  const page = readFileSync(new URL('../docs/comparison.md', import.meta.url), 'utf8');
  const [, text = ''] = page.split(`\n## ${section}\n`);
  const [here = ''] = text.split('\n## ');
  const rows = [...here.matchAll(/^\| (.+?) \(_measured_\) +\| (.*) \|$/gm)];
  return new Map(
    rows.map(([, label = '', cells = '']) => [label, cells.split('|').map((cell) => cell.trim())]),
  );
}

describe('docs/comparison.md', () => {
  test('has the figures beside others on Temporal', () => {
    const sides = ['perdure', OPENAI, AI_SDK, 'loop that resends'];
    const rows = measuredRows('On Temporal');
    const inline = whole(valueOf(peers, STEP, 'perdure, inline reads'));
    const all = (what: string, form: (value: number | string) => string): readonly string[] =>
      sides.map((side) => form(valueOf(peers, what, side)));
    const [first = '', ...others] = all(STEP, whole);
    expect(rows.get('ms per step, messages of 500 B')).toEqual([
      `${first}; inline reads ${inline}`,
      ...others,
    ]);
    expect(rows.get('steps per second at 10 runs')).toEqual(all(AT_ONCE, whole));
    expect(rows.get('history at 100 steps of 2 kB')).toEqual(
      all(SIZE, (value) => `${megabytes(value)} MB`),
    );
    expect(rows.get('the server ends the run')).toEqual(
      all(END, (value) => (String(value).startsWith('step') ? `at ${value}` : String(value))),
    );
    const requests = all(
      'insufficient_quota',
      (value) => /\d+ requests/.exec(`${value}`)?.[0] ?? '',
    );
    expect(rows.get('quota used up')?.slice(0, 3)).toEqual(
      requests.slice(0, 3).map((text) => expect.stringContaining(text)),
    );
  });

  test('has the figures on other engines', () => {
    const sides = ['perdure', 'LangGraph', 'DBOS', 'Mastra'];
    const rows = measuredRows('Other engines');
    const all = (what: string, form: (value: number | string) => string): readonly string[] =>
      sides.map((side) => form(valueOf(engines, what, side)));
    expect(rows.get('ms per step, messages of 500 B')).toEqual(all(STEP, whole));
    expect(rows.get('steps per second at 10 runs')).toEqual(all(AT_ONCE, whole));
    expect(rows.get('storage of 100 steps of 2 kB')).toEqual(
      all('growth of the storage, 100 steps of 2 kB', (value) => `${megabytes(value)} MB`),
    );
    const killed = 'kill -9 during a model call, next process at once: until the next request';
    expect(rows.get('seconds until a killed run goes on')).toEqual(
      all(killed, (value) => (typeof value === 'number' ? value.toFixed(1) : 'did not go on')),
    );
  });
});

test('the page about models has the window and the prices of each known one', () => {
  const page = readFileSync(new URL('../docs/models.md', import.meta.url), 'utf8');
  const rows = page.split('\n').flatMap((line) => {
    const [, names = '', ...figures] = line.split('|').map((cell) => cell.trim());
    const models = [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    const isRow = models.length > 0 && /^[\d,]+$/.test(figures[0] ?? '');
    return isRow ? models.map((model) => [model, ...figures.slice(0, 5)]) : [];
  });
  const shown = (value: number | undefined): string =>
    value === undefined ? '' : String(Number(value.toFixed(6)));
  const known = [...KNOWN_MODELS].map(([model, { window, price }]) => [
    model,
    window.toLocaleString('en-US'),
    ...[price?.input, price?.cachedInput, price?.cacheWrite, price?.output].map(shown),
  ]);
  expect(rows).toEqual(known);
});
