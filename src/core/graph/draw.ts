import { END, type EachBody, type GraphDefinition, type GraphNode } from './definition.js';
import { END_ID, START_ID, type DrawnEdge, type DrawnNode, type Drawing } from './drawing.js';
import type { GraphState, NodeVisits } from './graph-state.js';

/** A run to be shown in the drawing of its graph. */
export interface Overlay {
  readonly state: GraphState;
  /** The note for the run's current node, such as `waits here`. */
  readonly here?: string;
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
        ...(overlay && marksOf(node.name, overlay, visits.get(node.name))),
      })),
      ...missing.map((name) => missingNode(name, idOf(name))),
      ...(targets.includes(END) ? [END_NODE] : []),
    ],
    edges: [begins, ...nodes.flatMap((node) => edgesOf(node, { idOf, visits, overlay }))],
  };
}

/** The node at which a turn ends. */
export const END_NODE: DrawnNode = { id: END_ID, name: END, label: 'end', kind: 'end', about: '' };

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

function marksOf(name: string, overlay: Overlay, visited: NodeVisits | undefined): Marks {
  const { state, here } = overlay;
  const place = state.at?.node === name ? state.at : null;
  const total = Math.max(visited?.total ?? 0, place?.visit ?? 0);
  const ended = place === null ? total : total - 1;
  return {
    mark: place === null ? (total === 0 ? 'unvisited' : 'visited') : 'here',
    ...(total > 0 && { visits: total }),
    ...(ended > 0 && visited && { ms: visited.ms }),
    ...(place !== null && here !== undefined && { note: here }),
  };
}

/** Returns what a node does, in a few words. */
function aboutNode(node: GraphNode): string {
  switch (node.kind) {
    case 'agent':
      return `agent ${node.agent}`;
    case 'graph':
      return `graph ${node.graph}`;
    case 'tool':
      return `tool ${node.tool}`;
    case 'each':
      return `each ${aboutBody(node.body)}, ${node.atOnce} at once`;
    default:
      return node.kind;
  }
}

function aboutBody(body: EachBody): string {
  switch (body.kind) {
    case 'agent':
      return `agent ${body.agent}`;
    case 'graph':
      return `graph ${body.graph}`;
    case 'tool':
      return `tool ${body.tool}`;
    case 'run':
      return 'run';
  }
}
