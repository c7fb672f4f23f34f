import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem, type as systemName } from 'node:os';
import { isObject } from '../../src/core/text/json.js';
import { ownVersion } from '../../src/storage/files.js';
import type { MeasuredApart, Row, Series, Unit } from '../row.js';

/** What one side of a comparison took. */
export interface Figure {
  readonly what: string;
  /** For example `perdure`, or a package with its version. */
  readonly side: string;
  /** A text where there is no number, such as `not within 170 steps`. */
  readonly value: number | string;
  readonly unit: Unit | 'per s' | '';
  readonly samples: readonly number[];
  /** Only of a part that was measured apart from the others. */
  readonly apart?: MeasuredApart;
}

/** Everything that one run of a bench has measured, and on what. */
export interface Results {
  /** ISO 8601. */
  readonly at: string;
  readonly perdure: string;
  readonly sdk: string;
  readonly node: string;
  readonly server: string | null;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly memoryGb: number;
    readonly system: string;
  };
  /** Average load of the last minute; the later one includes the bench itself. */
  readonly load: { readonly before: number; readonly after: number };
  /** Fewer repeats, which show that the bench works, and not how fast perdure is. */
  readonly quick: boolean;
  /** Groups of rows that could not be measured. */
  readonly failed: readonly string[];
  readonly rows: readonly Row[];
  /** Side by side with others; empty in a run that measures perdure alone. */
  readonly figures: readonly Figure[];
  readonly series: readonly Series[];
}

type Measured = Pick<Results, 'quick' | 'server' | 'failed' | 'rows' | 'figures'> & {
  readonly series?: readonly Series[];
};

export function loadNow(): number {
  return loadavg()[0] ?? Number.NaN;
}

/** Adds the machine, the versions, and the time to what was measured. */
export function resultsOf(loadBefore: number, measured: Measured): Results {
  const [cpu] = cpus();
  return {
    at: new Date().toISOString(),
    perdure: ownVersion(),
    sdk: sdkVersion(),
    node: process.version,
    server: measured.server,
    machine: {
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      memoryGb: Math.round(totalmem() / 2 ** 30),
      system: `${systemName()} ${release()}`,
    },
    load: { before: loadBefore, after: loadNow() },
    quick: measured.quick,
    failed: measured.failed,
    rows: measured.rows.map(({ series: _series, ...row }) => row),
    figures: measured.figures,
    series: [...measured.rows.flatMap(({ series = [] }) => series), ...(measured.series ?? [])],
  };
}

/**
 * Returns the results with the rows and figures of one group in place of the earlier ones. Each of
 * these rows says when, on which processor, and beside how much load it was measured; the rest says
 * it of all other rows.
 */
export function withGroup(before: Results, group: string, results: Results): Results {
  const { at, machine, node, load } = results;
  const apart = { at, cpu: machine.cpu, node, load: load.before };
  const rows = results.rows.map((row) => ({ ...row, apart }));
  const figures = results.figures.map((figure) => ({ ...figure, apart }));
  const measured = new Map(rows.map((row) => [row.name, row]));
  const earlier = before.rows.map((row) => measured.get(row.name) ?? row);
  const known = new Set(before.rows.map(({ name }) => name));
  const isReplaced = (line: Series): boolean =>
    results.series.some(
      (now) => now.plot === line.plot && now.side === line.side && meet(now, line),
    );
  return {
    ...before,
    failed: [...before.failed.filter((name) => name !== group), ...results.failed],
    rows: [...earlier, ...rows.filter(({ name }) => !known.has(name))],
    figures: replaced(before.figures, figures),
    series: [...before.series.filter((line) => !isReplaced(line)), ...results.series],
  };
}

/** Figures keep their places, so that the table does. */
function replaced(before: readonly Figure[], now: readonly Figure[]): readonly Figure[] {
  const nameOf = ({ what, side }: Figure): string => JSON.stringify([what, side]);
  const fresh = new Map(now.map((one) => [nameOf(one), one]));
  const known = new Set(before.map(nameOf));
  return [
    ...before.map((one) => fresh.get(nameOf(one)) ?? one),
    ...now.filter((one) => !known.has(nameOf(one))),
  ];
}

/** Whether two lines show the same: the steps or runs of a plot are fixed, and times are not. */
function meet(now: Series, before: Series): boolean {
  return (
    now.plot === 'recovery' || now.points.some(({ x }) => before.points.some((one) => one.x === x))
  );
}

function sdkVersion(): string {
  const path = new URL('../../node_modules/@temporalio/worker/package.json', import.meta.url);
  const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
  return isObject(manifest) ? String(manifest['version']) : 'unknown';
}
