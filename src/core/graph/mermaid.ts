import { formatDuration } from '../text/duration.js';
import { visible } from '../text/summaries.js';
import {
  START_ID,
  type DrawnEdge,
  type DrawnKind,
  type DrawnNode,
  type Drawing,
} from './drawing.js';

/**
 * Returns the delimiters of a node's text, which determine its shape. Mermaid has no shape for a
 * person, so an emoji marks one.
 */
function shapeOf(kind: DrawnKind): readonly [string, string] {
  switch (kind) {
    case 'start':
    case 'end':
      return ['(["', '"])'];
    case 'choose':
      return ['{"', '"}'];
    case 'route':
    case 'decide':
      return ['{{"', '"}}'];
    case 'agent':
    case 'graph':
      return ['[["', '"]]'];
    // In flow charts, a trapezoid is a manual operation.
    case 'confirm':
      return ['[\\"👤 ', '"/]'];
    default:
      return ['["', '"]'];
  }
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
