import type { GraphPlace, NodeVisits } from '../state/state.js';
import { visible } from '../state/summaries.js';
import { formatDuration } from '../text/text.js';
import {
  type Drawing,
  type DrawnEdge,
  type DrawnKind,
  type DrawnNode,
  type RunGraph,
  START_ID,
} from './draw.js';
import { nodeShape } from './node-kinds.js';

/** Returns the delimiters of a node's text, which determine its shape. */
function shapeOf(kind: DrawnKind): readonly [string, string] {
  if (kind === 'start' || kind === 'end') return ['(["', '"])'];
  return kind === 'missing' ? ['["', '"]'] : nodeShape(kind);
}

const STYLES = [
  ['terminal', 'fill:#e2e8f0,stroke:#475569,color:#0f172a'],
  ['missing', 'fill:#fee2e2,stroke:#dc2626,color:#7f1d1d'],
  ['visited', 'fill:#dcfce7,stroke:#16a34a,color:#14532d'],
  ['here', 'fill:#fef08a,stroke:#a16207,stroke-width:4px,color:#422006'],
  ['unvisited', 'fill:#ffffff,stroke:#94a3b8,stroke-dasharray:5 5,color:#475569'],
] as const;

/**
 * Returns a drawing as the text of a Mermaid flow chart. All ids are perdure's own, and names and
 * labels are escaped, so no text can add a line, a link, a style, Markdown, or HTML.
 */
export function toMermaid({ nodes, edges }: Drawing): string {
  const classes = STYLES.flatMap(([name, style]) => {
    const ids = nodes.filter((node) => classOf(node) === name).map(({ id }) => id);
    if (ids.length === 0) return [];
    return [`classDef ${name} ${style}`, `class ${ids.join(',')} ${name}`];
  });
  const taken = edges.flatMap(({ taken: count = 0 }, index) => (count > 0 ? [index] : []));
  const lines = [
    ...nodes.map(nodeLine),
    ...edges.map(edgeLine),
    ...classes,
    ...(taken.length === 0 ? [] : [`linkStyle ${taken.join(',')} stroke:#16a34a,stroke-width:3px`]),
  ];
  return ['flowchart TD', ...lines.map((line) => `  ${line}`)].join('\n');
}

function classOf({ kind, mark }: DrawnNode): string | undefined {
  if (kind === 'start' || kind === 'end') return 'terminal';
  return kind === 'missing' ? 'missing' : mark;
}

function nodeLine(node: DrawnNode): string {
  const [open, close] = shapeOf(node.kind);
  const { label, about, note = '' } = node;
  const own = [label, about === label ? '' : about].map(mermaidText);
  const shown = [...own, visitText(node), mermaidText(note)].filter((text) => text !== '');
  return `${node.id}${open}${shown.join('<br/>')}${close}`;
}

/** Returns `3×, 1.2 s`; empty without a visit. */
function visitText({ visits, ms }: DrawnNode): string {
  if (visits === undefined) return '';
  return ms === undefined ? `${visits}×` : `${visits}×, ${formatDuration(ms)}`;
}

function edgeLine({ from, to, exit, taken }: DrawnEdge): string {
  // The start is taken in every turn, so its count would say nothing.
  const count = taken === undefined || taken === 0 || from === START_ID ? [] : [`${taken}×`];
  const texts = [mermaidText(exit ?? ''), ...count].filter((text) => text !== '');
  const label = texts.length === 0 ? '' : `|"${texts.join(' ')}"|`;
  const arrow = taken === undefined ? '-->' : taken > 0 ? '==>' : '-.->';
  return `${from} ${arrow}${label} ${to}`;
}

/**
 * Matches characters to escape: all but letters, digits, spaces, commas, and hyphens inside a word.
 */
const UNSAFE = /(?<![\p{L}\p{N}])[-_]|[-_](?![\p{L}\p{N}])|[^\p{L}\p{N} ,_-]|ﬂ/gu;

/**
 * Returns one line of text for a quoted label, with Mermaid's character references such as `#39;`.
 * Mermaid renders labels as Markdown and as HTML, parses directives before quotes, and uses `ﬂ` to
 * begin its internal form of a reference.
 */
function mermaidText(text: string): string {
  return visible(text)
    .trim()
    .replaceAll(/\s+/g, ' ')
    .replaceAll(UNSAFE, (character) => `#${character.codePointAt(0) ?? 0};`);
}

/** Maximum number of nodes in the line of visited nodes. */
const MAX_NODES = 8;

/**
 * Returns up to two lines for people about a run's position in its graph: the current node, and the
 * nodes visited in this turn (between turns: in the last one). `now`: Unix time in ms; null:
 * without times. For example: `node ask, visit 2, for 3.0 s` and `done: load, sort`.
 */
export function describeGraph(
  { definition, state }: RunGraph,
  now: number | null,
): readonly string[] {
  const labels = new Map(definition.nodes.map(({ name, label }) => [name, label]));
  const named = (name: string): string => {
    const label = labels.get(name);
    return visible(label === undefined ? name : `${name} (${label})`);
  };
  const done = state.visited.flatMap((visited) => {
    const times = timesLeft(visited, state.at);
    if (times === 0) return [];
    return [times === 1 ? visible(visited.node) : `${visible(visited.node)} ${times}×`];
  });
  const left = done.length - MAX_NODES;
  const shown = left > 0 ? [`${left} more`, ...done.slice(-MAX_NODES)] : done;
  return [
    ...(state.at === null ? [] : [placeText(state.at, named, now)]),
    ...(shown.length === 0 ? [] : [`done: ${shown.join(', ')}`]),
  ];
}

function placeText(
  { node, visit, since }: GraphPlace,
  named: (name: string) => string,
  now: number | null,
): string {
  const again = visit > 1 ? `, visit ${visit}` : '';
  const time = now === null ? '' : `, for ${formatDuration(now - since)}`;
  return `node ${named(node)}${again}${time}`;
}

/** Returns the number of a node's ended visits in the turn. */
function timesLeft({ node, inTurn }: NodeVisits, at: GraphPlace | null): number {
  return Math.max(0, at?.node === node ? inTurn - 1 : inTurn);
}
