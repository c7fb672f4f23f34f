import stringWidth from 'string-width';
import { palette, type Palette } from './output.js';
import type { CliContext } from '../context.js';

const GAP = '  ';

/** Aligns rows in columns by their display width. The last column is not padded. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => stringWidth(row[at] ?? ''))),
  );
  return rows.map((row) =>
    row
      .map((cell, at) => (at === row.length - 1 ? cell : padEnd(cell, widths[at] ?? 0)))
      .join(GAP)
      .trimEnd(),
  );
}

function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - stringWidth(text)));
}

/** A labeled group of lines. It is omitted if there are no lines. */
export interface ListEntry {
  readonly name: string;
  readonly lines: readonly string[];
}

/** Lays out entries with names on the left and their lines on the right, equally indented. */
export function entries(all: readonly ListEntry[], paint: Palette): readonly string[] {
  const width = Math.max(...all.map(({ name }) => name.length));
  return all.flatMap(({ name, lines }) =>
    lines.map((line, at) => {
      const label = at === 0 ? paint.dim(name.padEnd(width)) : ' '.repeat(width);
      return `${label}${GAP}${line}`.trimEnd();
    }),
  );
}

/** Returns the palette for data: colored only on a terminal, or with FORCE_COLOR. */
export function dataPalette({ color, env }: Pick<CliContext, 'color' | 'env'>): Palette {
  return palette(color && (process.stdout.isTTY || Boolean(env['FORCE_COLOR'])));
}
