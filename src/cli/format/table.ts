import { palette, type Palette } from './output.js';
import type { CliContext } from '../context.js';

const GAP = '  ';

/** Rows under each other in aligned columns; the last column is left as long as it is. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => (row[at] ?? '').length)),
  );
  return rows.map((row) =>
    row
      .map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
      .join(GAP)
      .trimEnd(),
  );
}

/** A name with what belongs to it; no lines: the name is left out. */
export interface Entry {
  readonly name: string;
  readonly lines: readonly string[];
}

/** Names on the left, what belongs to them on the right, indented alike. */
export function entries(all: readonly Entry[], paint: Palette): readonly string[] {
  const width = Math.max(...all.map(({ name }) => name.length));
  return all.flatMap(({ name, lines }) =>
    lines.map((line, at) => {
      const label = at === 0 ? paint.dim(name.padEnd(width)) : ' '.repeat(width);
      return `${label}${GAP}${line}`.trimEnd();
    }),
  );
}

/** Colors for data: only where it goes to a terminal, or somebody insists. */
export function dataPalette({ color, env }: Pick<CliContext, 'color' | 'env'>): Palette {
  return palette(color && (process.stdout.isTTY || Boolean(env['FORCE_COLOR'])));
}
