import type { AgentDefinition, OnLimit } from '../definition/definition.js';
import { END } from '../definition/node-data.js';
import type { GraphDefinition } from '../definition/graph-definition.js';
import { type GraphNode, aboutNode, drawnAs } from '../definition/node-kinds.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import { runGraph } from './describe.js';
import { type ItemCount, itemsByNode, itemsText } from './items.js';
import type { GraphState, NodeVisits, RunState } from '../state/state.js';
import { visible } from '../state/summaries.js';
import { formatDuration } from '../text/text.js';

/**
 * A graph in drawable form: one from `defineGraph`, or an agent's built-in loop. It is plain JSON.
 */
export interface Drawing {
  /** The start comes first. */
  readonly nodes: readonly DrawnNode[];
  readonly edges: readonly DrawnEdge[];
}

interface DrawnNode {
  /** Unique in the drawing, and assigned by perdure: `start`, `finish`, `n0`, `n1`, … */
  readonly id: string;
  /** The name in the definition; for the start and the end, their kind. */
  readonly name: string;
  /** One line for people, from the author. It may contain any characters. */
  readonly label: string;
  readonly kind: DrawnKind;
  /**
   * What the node does, such as `agent desk`. It may contain any characters and is empty for start
   * and end.
   */
  readonly about: string;
  /**
   * Whether a run has visited the node or is at it; absent in a drawing without a run. `failed`: it has
   * left the node, and never by an exit other than `failed`.
   */
  readonly mark?: 'visited' | 'failed' | 'here' | 'unvisited';
  /** Number of visits; absent if there were none. */
  readonly visits?: number;
  /**
   * Total time of all ended visits in ms, without waits for people; absent if none has ended, and for a
   * `confirm`, which only waits for a person.
   */
  readonly ms?: number;
  /** The items of an `each`: those of the visit under way, or else of the last one. */
  readonly items?: ItemCount;
  /** The caller's note for the run's current node, such as `waits here`. */
  readonly note?: string;
}

/** The node kinds of a graph, the start, the end, and a target missing from the definition. */
type DrawnKind = GraphNode['kind'] | 'start' | 'end' | 'missing';

interface DrawnEdge {
  /** Ids of nodes. */
  readonly from: string;
  readonly to: string;
  /** Null if the node has only this exit. */
  readonly exit: string | null;
  /**
   * How often a run has taken this edge; absent in a drawing without a run. For the start: 0 or 1.
   */
  readonly taken?: number;
}

/** The ids of the two ends. A drawing without an exit to `END` has no end. */
const START_ID = 'start';
const END_ID = 'finish';

/** A run to be shown in the drawing of its graph. */
interface Overlay {
  readonly state: GraphState;
  /** The note for the run's current node, such as `waits here`. */
  readonly here?: string;
  readonly items?: ReadonlyMap<string, ItemCount>;
  /** How long the run waited for people in the ended visits of each node, in ms. */
  readonly waited?: ReadonlyMap<string, number>;
}

/** Returns the drawing of a graph. With `overlay`, a run's visits are marked. */
export function drawGraph(definition: GraphDefinition, overlay?: Overlay): Drawing {
  const { start, nodes } = definition;
  const known = new Set(nodes.map(({ name }) => name));
  const targets = [start, ...nodes.flatMap(({ exits }) => exits.map(({ to }) => to))];
  const missing = [...new Set(targets)].filter((name) => name !== END && !known.has(name));
  const ids = new Map([...known, ...missing].map((name, index) => [name, `n${index}`]));
  const idOf = (name: string): string => ids.get(name) ?? END_ID;
  const visits = new Map(overlay?.state.visited.map((visited) => [visited.node, visited]));
  const begins: DrawnEdge = {
    from: START_ID,
    to: idOf(start),
    exit: null,
    ...(overlay && { taken: visits.has(start) || overlay.state.at?.node === start ? 1 : 0 }),
  };
  return {
    nodes: [
      { id: START_ID, name: 'start', label: 'start', kind: 'start', about: '' },
      ...nodes.map((node) => ({
        id: idOf(node.name),
        name: node.name,
        label: node.label ?? node.name,
        kind: node.kind,
        about: aboutNode(node),
        ...(overlay && marksOf(node, overlay, visits.get(node.name))),
      })),
      ...missing.map((name) => missingNode(name, idOf(name))),
      ...(targets.includes(END) ? [END_NODE] : []),
    ],
    edges: [begins, ...nodes.flatMap((node) => edgesOf(node, { idOf, visits, overlay }))],
  };
}

/** The node at which a turn ends. */
const END_NODE: DrawnNode = { id: END_ID, name: END, label: 'end', kind: 'end', about: '' };

function missingNode(name: string, id: string): DrawnNode {
  return { id, name, label: name, kind: 'missing', about: 'not in the graph' };
}

function edgesOf(
  { name, exits }: GraphNode,
  { idOf, visits, overlay }: EdgeContext,
): readonly DrawnEdge[] {
  const counts = new Map(visits.get(name)?.taken.map(({ exit, count }) => [exit, count]));
  return exits.map((exit) => ({
    from: idOf(name),
    to: idOf(exit.to),
    exit: exits.length === 1 ? null : exit.name,
    ...(overlay && { taken: counts.get(exit.name) ?? 0 }),
  }));
}

interface EdgeContext {
  readonly idOf: (name: string) => string;
  readonly visits: ReadonlyMap<string, NodeVisits>;
  readonly overlay: Overlay | undefined;
}

type Marks = Pick<DrawnNode, 'mark' | 'visits' | 'ms' | 'note'>;

function marksOf(
  { name, kind }: GraphNode,
  overlay: Overlay,
  visited: NodeVisits | undefined,
): Marks {
  const { state, here, waited } = overlay;
  const items = overlay.items?.get(name);
  const place = state.at?.node === name ? state.at : null;
  const total = Math.max(visited?.total ?? 0, place?.visit ?? 0);
  const ended = place === null ? total : total - 1;
  return {
    mark: place === null ? (total === 0 ? 'unvisited' : endMark(visited)) : 'here',
    ...(total > 0 && { visits: total }),
    ...(ended > 0 &&
      visited &&
      kind !== 'confirm' && { ms: Math.max(0, visited.ms - (waited?.get(name) ?? 0)) }),
    ...(items !== undefined && { items }),
    ...(place !== null && here !== undefined && { note: here }),
  };
}

function endMark(visited: NodeVisits | undefined): 'visited' | 'failed' {
  return visited?.taken.some(({ exit }) => exit !== 'failed') ? 'visited' : 'failed';
}

/** What the loop of an agent depends on. */
export type LoopParts = Pick<
  AgentDefinition,
  'model' | 'tools' | 'onLimit' | 'decide' | 'output' | 'onPlainText'
>;

const DECIDE_ID = 'n0';
const CLOSING_ID = 'closing';

/**
 * Returns the drawing of the loop that perdure runs for an agent without a graph: the model
 * decides, tools are executed, and a text is the answer.
 */
export function drawLoop(agent: LoopParts): Drawing {
  const closing = closingNode(agent.onLimit);
  const tools = agent.tools.map((tool, index) => ({ tool, node: toolNode(tool, `n${index + 1}`) }));
  return {
    nodes: [
      { id: START_ID, name: 'start', label: 'start', kind: 'start', about: '' },
      { id: DECIDE_ID, name: 'decide', label: 'decide', kind: 'decide', about: aboutDecide(agent) },
      ...tools.map(({ node }) => node),
      ...(closing === null ? [] : [closing]),
      END_NODE,
    ],
    edges: [
      { from: START_ID, to: DECIDE_ID, exit: null },
      ...tools.flatMap(({ tool, node }) => toolEdges(tool, node)),
      ...textEdges(agent),
      ...limitEdges(agent.onLimit, closing),
    ],
  };
}

function aboutDecide({ decide, model }: LoopParts): string {
  if (decide === 'function') return 'own function';
  const name = model === '' ? 'model' : `model ${model}`;
  return decide === 'schema' ? `${name}, by schema` : name;
}

function toolNode({ name, kind, calls }: ToolDefinition, id: string): DrawnNode {
  const base = { id, name, label: name };
  if (kind === 'agent') return { ...base, kind: 'agent', about: `agent ${calls?.agent ?? name}` };
  if (kind === 'question') return { ...base, kind: 'confirm', about: 'a person answers' };
  if (kind === 'client') return { ...base, kind: 'confirm', about: 'the caller executes it' };
  return { ...base, kind: 'tool', about: 'tool' };
}

function toolEdges(tool: ToolDefinition, { id }: DrawnNode): readonly DrawnEdge[] {
  const called: DrawnEdge = { from: DECIDE_ID, to: id, exit: tool.name };
  if (tool.ends !== true) return [called, { from: id, to: DECIDE_ID, exit: null }];
  return [
    called,
    { from: id, to: END_ID, exit: 'done' },
    { from: id, to: DECIDE_ID, exit: 'failed' },
  ];
}

function textEdges({ tools, output, onPlainText }: LoopParts): readonly DrawnEdge[] {
  const fails = onPlainText === 'fail' && tools.length > 0;
  const text: DrawnEdge = {
    from: DECIDE_ID,
    to: END_ID,
    exit: fails ? 'text, the turn fails' : 'text',
  };
  if (output === undefined || fails) return [text];
  return [text, { from: DECIDE_ID, to: DECIDE_ID, exit: 'invalid answer' }];
}

function closingNode(onLimit: OnLimit): DrawnNode | null {
  const base = { id: CLOSING_ID, name: 'closing' };
  switch (onLimit) {
    case 'answer':
      return { ...base, label: 'closing answer', kind: 'decide', about: 'without tools' };
    case 'compose':
      return { ...base, label: 'closing answer', kind: 'run', about: 'from the results so far' };
    case 'ask':
      return { ...base, label: 'raise the limit?', kind: 'confirm', about: 'a person decides' };
    case 'fail':
      return null;
  }
}

function limitEdges(onLimit: OnLimit, closing: DrawnNode | null): readonly DrawnEdge[] {
  if (closing === null) {
    return [{ from: DECIDE_ID, to: END_ID, exit: 'limit, the turn fails' }];
  }
  const { id } = closing;
  const limit: DrawnEdge = { from: DECIDE_ID, to: id, exit: 'limit' };
  if (onLimit !== 'ask') return [limit, { from: id, to: END_ID, exit: null }];
  return [
    limit,
    { from: id, to: DECIDE_ID, exit: 'raise' },
    { from: id, to: END_ID, exit: 'stop, closing answer' },
  ];
}

/**
 * Returns the drawing of a run's graph, marked with the run's visits, or that of the agent's loop.
 * `here`: the note for the run's current node. `waited`: how long it waited for people, by node.
 */
export function drawRun(
  state: RunState,
  { here, waited }: { readonly here: string; readonly waited: ReadonlyMap<string, number> },
): Drawing {
  const graph = runGraph(state);
  if (graph !== null) {
    const overlay = { state: graph.state, here, waited, items: itemsByNode(state) };
    return drawGraph(graph.definition, overlay);
  }
  const { definition } = state.config;
  // The run has not begun its first turn.
  if (definition.graph !== undefined) return drawGraph(definition.graph);
  return drawLoop(definition);
}

/** Returns the delimiters of a node's text, which determine its shape. */
function shapeOf(kind: DrawnKind): readonly [string, string] {
  if (kind === 'start' || kind === 'end') return ['(["', '"])'];
  return kind === 'missing' ? ['["', '"]'] : drawnAs(kind);
}

const STYLES = [
  ['terminal', 'fill:#e2e8f0,stroke:#475569,color:#0f172a'],
  ['missing', 'fill:#fee2e2,stroke:#dc2626,color:#7f1d1d'],
  ['visited', 'fill:#dcfce7,stroke:#16a34a,color:#14532d'],
  ['failed', 'fill:#fee2e2,stroke:#dc2626,color:#7f1d1d'],
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
  const { label, about, items, note = '' } = node;
  const progress = items === undefined ? '' : itemsText(items);
  const own = [label, about === label ? '' : about].map(mermaidText);
  const shown = [...own, visitText(node), progress, mermaidText(note)].filter(
    (text) => text !== '',
  );
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
