import { isMet, type Bar, type Row } from './row.js';
import { spreadOf } from './statistics.js';

const COLUMNS = ['what', 'measured', 'bar', '', 'spread', 'detail'];

/** Returns the rows as a text table; the last column is not padded. */
export function table(rows: readonly Row[]): string {
  const lines = [COLUMNS, ...rows.map(cells)];
  const widths = COLUMNS.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const rule = widths.map((width) => '-'.repeat(Math.min(width, 60)));
  return [lines[0], rule, ...lines.slice(1)]
    .map((line) =>
      (line ?? [])
        .map((cell, column) => (column < 5 ? cell.padEnd(widths[column] ?? 0) : cell))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function cells(row: Row): string[] {
  const { least, lowerQuartile, upperQuartile, most } = spreadOf(row.samples);
  const spread =
    row.samples.length < 2
      ? ''
      : `${show(least)} [${show(lowerQuartile)}–${show(upperQuartile)}] ${show(most)}`;
  const unit = row.unit === 'x' ? '×' : ` ${row.unit}`;
  const met = isMet(row) ? 'met' : 'MISSED';
  return [row.what, `${show(row.value)}${unit}`, showBar(row.bar), met, spread, row.detail];
}

export function showBar(bar: Bar): string {
  if ('atMost' in bar) return `≤ ${show(bar.atMost)}`;
  return 'atLeast' in bar ? `≥ ${show(bar.atLeast)}` : bar.between.map(show).join('–');
}

/** On a shared machine, more than three digits are noise. */
export function show(value: number): string {
  if (Number.isInteger(value) || Math.abs(value) >= 1_000) return String(Math.round(value));
  return value.toPrecision(3);
}
