import type { PlotName, Series } from '../row.js';
import { show } from '../table.js';

interface Axes {
  readonly title: string;
  readonly x: string;
  readonly y: string;
}

export const AXES: Readonly<Record<PlotName, Axes>> = {
  latency: { title: 'Latency of a step', x: 'steps of the run', y: 'ms per step' },
  bytes: { title: 'Size of the history', x: 'steps of the run', y: 'MB' },
  throughput: { title: 'Throughput', x: 'runs at once', y: 'steps per second' },
  recovery: {
    title: 'Recovery after kill -9',
    x: 'seconds after the kill',
    y: '% of runs that had gone on',
  },
};

const WIDTH = 720;
const HEIGHT = 400;
const FRAME = { left: 70, right: 20, top: 46, bottom: 54 };
const LEGEND_LINE = 18;
const TICKS = 5;
/** Distinct in light and dark, and by lightness, for those who do not see colors. */
const COLORS = ['#d9480f', '#1c7ed6', '#2f9e44', '#9c36b5', '#868e96', '#e8a200'] as const;
const DASHES = ['', '7 4', '2 3', '9 3 2 3', '4 4', '1 4'] as const;

/** The picture has a ground of its own, so that it is readable wherever it is shown. */
const STYLE = `
  .ground { fill: #ffffff } text { fill: #1f2328 } .grid { stroke: #d0d7de }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #1b1f24 } text { fill: #e6edf3 } .grid { stroke: #444c56 }
  }`;

/** Draws the lines of one plot as SVG. Lines of the same side are joined. */
export function plotSvg(plot: PlotName, all: readonly Series[]): string {
  const lines = joined(all.filter((one) => one.plot === plot));
  const { title, x, y } = AXES[plot];
  const points = lines.flatMap((line) => line.points);
  const mostX = niceMost(Math.max(0, ...points.map((point) => point.x)));
  const mostY = niceMost(Math.max(0, ...points.map((point) => point.y)));
  const atX = (value: number): number =>
    round(FRAME.left + (value / mostX) * (WIDTH - FRAME.left - FRAME.right));
  const atY = (value: number): number =>
    round(HEIGHT - FRAME.bottom - (value / mostY) * (HEIGHT - FRAME.top - FRAME.bottom));
  const ticks = Array.from({ length: TICKS + 1 }, (_, at) => at / TICKS);
  const height = HEIGHT + LEGEND_LINE * lines.length;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" font-family="system-ui, sans-serif" font-size="13">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="ground" width="${WIDTH}" height="${height}" rx="8"/>`,
    `<text x="${FRAME.left}" y="26" font-size="16" font-weight="600">${escaped(title)}</text>`,
    ...ticks.flatMap((share) => [
      `<line class="grid" x1="${FRAME.left}" x2="${WIDTH - FRAME.right}" y1="${atY(share * mostY)}" y2="${atY(share * mostY)}"/>`,
      text(FRAME.left - 8, atY(share * mostY) + 4, 'end', show(share * mostY)),
      text(atX(share * mostX), HEIGHT - FRAME.bottom + 18, 'middle', show(share * mostX)),
    ]),
    text(WIDTH / 2, HEIGHT - 12, 'middle', x),
    `<text transform="translate(18 ${HEIGHT / 2}) rotate(-90)" text-anchor="middle">${escaped(y)}</text>`,
    ...lines.flatMap((line, at) => drawn(line, at, atX, atY)),
    '</svg>',
    '',
  ].join('\n');
}

function drawn(
  { side, points }: Series,
  at: number,
  atX: (value: number) => number,
  atY: (value: number) => number,
): readonly string[] {
  const color = COLORS[at % COLORS.length];
  const stroke = `stroke="${color}" stroke-width="2.5" stroke-dasharray="${DASHES[at % DASHES.length]}"`;
  const places = points.map(({ x, y }) => `${atX(x)},${atY(y)}`);
  const legend = HEIGHT + LEGEND_LINE * at;
  return [
    `<polyline fill="none" ${stroke} points="${places.join(' ')}"/>`,
    ...points.map(({ x, y }) => `<circle cx="${atX(x)}" cy="${atY(y)}" r="3.5" fill="${color}"/>`),
    `<line x1="${FRAME.left}" x2="${FRAME.left + 34}" y1="${legend}" y2="${legend}" ${stroke}/>`,
    text(FRAME.left + 44, legend + 4, 'start', side),
  ];
}

function joined(lines: readonly Series[]): readonly Series[] {
  const firsts = lines.filter(
    (line, at) => lines.findIndex(({ side }) => side === line.side) === at,
  );
  return firsts.map((first) => {
    const same = lines.filter(({ side }) => side === first.side);
    return { ...first, points: same.flatMap(({ points }) => points).toSorted((a, b) => a.x - b.x) };
  });
}

/** The least of 1, 2, 2.5, and 5 times a power of ten that is not below the value. */
function niceMost(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 2.5, 5, 10].find((one) => one * power >= value) ?? 10;
  return factor * power;
}

function text(x: number, y: number, anchor: 'start' | 'middle' | 'end', words: string): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}">${escaped(words)}</text>`;
}

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
