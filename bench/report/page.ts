import { isMet, PLOTS, type PlotName, type Row } from '../row.js';
import { spreadOf } from '../statistics.js';
import { show, showBar } from '../table.js';
import { AXES, plotSvg } from './plot.js';
import type { Figure, Results } from './results.js';

const BEGIN = '<!-- measured: written by npm run bench -- --report -->';
const END = '<!-- /measured -->';
/** Where the pictures are, relative to the page. */
const PICTURES = 'benchmarks';

/** Each is optional, since it can be measured alone. */
export interface Measured {
  /** `npm run bench`. */
  readonly own?: Results | undefined;
  /** `bench/peers`. */
  readonly peers?: Results | undefined;
  /** `npm run engines` in `bench/peers`. */
  readonly engines?: Results | undefined;
}

/**
 * Returns the page with the results between its marks; everything outside of them stays. Throws if
 * the page lacks the marks.
 */
export function withResults(page: string, measured: Measured): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) {
    throw new Error(`docs/benchmarks.md: expected the lines ${BEGIN} and ${END}; restore them`);
  }
  return `${page.slice(0, begin)}${BEGIN}\n\n${section(measured)}\n\n${page.slice(end)}`;
}

/** The pictures of the page: text of each SVG file by its path, relative to the page. */
export function pictures(measured: Measured): Readonly<Record<string, string>> {
  return Object.fromEntries(
    PLOTS.flatMap((plot) => {
      const results = drawnFrom(plot, measured);
      return results === undefined ? [] : [[pathOf(plot), plotSvg(plot, results.series)]];
    }),
  );
}

/** What the table of engines cannot say by itself. */
const ENGINES =
  'Each on its own storage, so the rows compare whole products and not their code: perdure on the embedded Temporal server (SQLite), the others in PostgreSQL on the same machine. The program of each runs and recovers its own conversations; LangGraph writes each state before the next node begins (`durability: "sync"`), the durable agent of Mastra is a beta.';

function section({ own, peers, engines }: Measured): string {
  const parts: string[] = [];
  if (own !== undefined) parts.push(conditions(own), targets(own), misses(own.rows));
  if (peers !== undefined) {
    parts.push(
      '### Beside others',
      conditions(peers),
      sideBySide(peers.figures),
      measuredApart(peers),
    );
  }
  if (engines !== undefined) {
    const { figures } = engines;
    parts.push(
      '### On other engines',
      ENGINES,
      conditions(engines),
      sideBySide(figures),
      measuredApart(engines),
    );
  }
  for (const plot of PLOTS) {
    const results = drawnFrom(plot, { own, peers });
    if (results === undefined) continue;
    const { title, x, y } = AXES[plot];
    const sides = [...new Set(seriesOf(plot, results).map(({ side }) => side))].join(', ');
    parts.push(`![${title}: ${y} against ${x}, of ${sides}](${pathOf(plot)})`);
  }
  return parts.filter((part) => part !== '').join('\n\n');
}

/** All lines of a plot are of one run. That with others comes first. */
function drawnFrom(plot: PlotName, { own, peers }: Measured): Results | undefined {
  return [peers, own].find((one) => one !== undefined && seriesOf(plot, one).length > 0);
}

function seriesOf(plot: PlotName, { series }: Results): Results['series'] {
  return series.filter((one) => one.plot === plot);
}

function pathOf(plot: PlotName): string {
  return `${PICTURES}/${plot}.svg`;
}

function conditions(results: Results): string {
  const { machine, load, failed } = results;
  const said = [
    `Measured on ${dateOf(results.at)} with perdure ${results.perdure}, Temporal SDK ${results.sdk}, Temporal server ${results.server ?? 'unknown'}, and Node ${results.node}, on ${machine.cores} cores (${machine.cpu}, ${machine.memoryGb} GB, ${machine.system}).`,
    `Load of the machine: ${load.before.toFixed(1)} before, ${load.after.toFixed(1)} at the end, which includes the measurement.`,
  ];
  if (load.before > machine.cores / 4) {
    said.push(
      '**The machine was busy with other programs: compare the columns, and measure again before you quote a time.**',
    );
  }
  if (results.quick) said.push('**Few repeats: this shows that the bench works, and no more.**');
  if (failed.length > 0) said.push(`**Could not be measured: ${failed.join(', ')}.**`);
  return said.join(' ');
}

function dateOf(at: string): string {
  const style = { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' } as const;
  return new Date(at).toLocaleDateString('en-GB', style);
}

function targets(results: Results): string {
  const { rows } = results;
  if (rows.length === 0) return '';
  return table(
    ['what', 'measured', 'quartiles', 'target', 'in figures'],
    rows.map((row) => {
      const value = shown(row);
      return [
        row.what,
        isMet(row) ? value : `**${value}** (missed)`,
        quartiles(row.samples),
        showBar(row.bar),
        [row.detail, ...runsOf(row), ...apartOf(row, results)].join('; '),
      ];
    }),
  );
}

function runsOf({ runs }: Row): readonly string[] {
  return runs === undefined ? [] : [`median of ${runs.length} runs: ${runs.map(show).join(', ')}`];
}

/** What a row or a figure that was measured by itself says of the time and the machine. */
function apartOf(
  { apart }: Pick<Row, 'apart'>,
  whole: Pick<Results, 'at' | 'machine' | 'node'>,
): readonly string[] {
  if (apart === undefined) return [];
  const said = [
    ...(dateOf(apart.at) === dateOf(whole.at) ? [] : [dateOf(apart.at)]),
    ...(apart.cpu === whole.machine.cpu ? [] : [apart.cpu]),
    ...(apart.node === whole.node ? [] : [`Node ${apart.node}`]),
    ...(apart.load === undefined ? [] : [`load ${apart.load.toFixed(1)}`]),
  ];
  return [said.join(', ')];
}

/** Names the lines of a table that were measured apart from the others. */
function measuredApart(results: Results): string {
  const named = new Map<string, Set<string>>();
  for (const figure of results.figures) {
    for (const when of apartOf(figure, results)) {
      named.set(when, (named.get(when) ?? new Set<string>()).add(figure.what));
    }
  }
  return [...named].map(([when, lines]) => `Apart (${when}): ${[...lines].join('; ')}.`).join(' ');
}

/** A value that only noise can make negative has no figure; a miss has the digits that show it. */
function shown({ value, unit, bar }: Row): string {
  if (value < 0 && (unit === 'MB' || unit === '%')) return 'not measurable';
  const usual = show(value);
  if (isMet({ value, bar }) || !isMet({ value: Number(usual), bar })) return withUnit(usual, unit);
  const [, decimals = ''] = usual.split('.');
  const longer = [1, 2, 3].map((more) => value.toFixed(decimals.length + more));
  const text = longer.find((one) => !isMet({ value: Number(one), bar }));
  return withUnit(text ?? usual, unit);
}

function misses(rows: readonly Row[]): string {
  if (rows.length === 0) return '';
  const missed = rows.filter((row) => !isMet(row));
  const met = `${rows.length - missed.length} of ${rows.length} targets are met.`;
  if (missed.length === 0) return met;
  return `${met} Missed: ${missed.map(({ name }) => `\`${name}\``).join(', ')}.`;
}

/** A line for each thing measured, and a column for each side. */
function sideBySide(figures: readonly Figure[]): string {
  const sides = [...new Set(figures.map(({ side }) => side))];
  const measured = [...new Set(figures.map(({ what }) => what))];
  const lines = measured.map((what) => [
    what,
    ...sides.map((side) => cell(figures.find((one) => one.side === side && one.what === what))),
  ]);
  return table(['median (quartiles)', ...sides], lines);
}

function cell(figure: Figure | undefined): string {
  if (figure === undefined) return '–';
  const { value, unit, samples } = figure;
  if (typeof value === 'string') return value;
  const spread = quartiles(samples);
  const middle = withUnit(show(value), unit);
  return spread === '' ? middle : `${middle} (${spread})`;
}

function quartiles(samples: readonly number[]): string {
  if (samples.length < 2) return '';
  const { lowerQuartile, upperQuartile } = spreadOf(samples);
  return `${show(lowerQuartile)}–${show(upperQuartile)}`;
}

function withUnit(value: string, unit: Figure['unit']): string {
  if (unit === 'x') return `${value} ×`;
  return ['', 'count', 'exponent'].includes(unit) ? value : `${value} ${unit}`;
}

function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const rule = head.map(() => '---');
  return [head, rule, ...lines].map((line) => `| ${line.map(inCell).join(' | ')} |`).join('\n');
}

function inCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
