// The graph of a run, drawn in rows from the start to the end.
import { get, runPath } from './api.js';
import { Failure, useLoaded, visible } from './parts.js';
import { html } from './vendor/htm-preact.js';

const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [150, 40, 24, 46];

/** Returns the row of each node: one below the lowest node that leads to it, without going back. */
function rowsOf({ nodes, edges }) {
  const rows = new Map([[nodes[0]?.id, 0]]);
  for (let round = 0; round < nodes.length; round += 1) {
    for (const { from, to } of edges) {
      if (rows.has(from) && !rows.has(to)) rows.set(to, rows.get(from) + 1);
    }
  }
  const last = Math.max(0, ...rows.values());
  for (const { id, kind } of nodes) {
    if (kind === 'end') rows.set(id, last + (rows.get(id) === last ? 0 : 1));
    else if (!rows.has(id)) rows.set(id, last);
  }
  return rows;
}

export function layout(graph) {
  const rows = rowsOf(graph);
  const columns = new Map();
  const places = new Map();
  for (const { id } of graph.nodes) {
    const row = rows.get(id);
    const column = columns.get(row) ?? 0;
    columns.set(row, column + 1);
    places.set(id, { row, column });
  }
  const most = Math.max(1, ...columns.values());
  const width = most * (WIDTH + GAP_X) + GAP_X + 60;
  for (const place of places.values()) {
    const own = columns.get(place.row) * (WIDTH + GAP_X) - GAP_X;
    place.x = (width - own) / 2 + place.column * (WIDTH + GAP_X);
    place.y = 10 + place.row * (HEIGHT + GAP_Y);
  }
  const height = 20 + (Math.max(0, ...rows.values()) + 1) * (HEIGHT + GAP_Y) - GAP_Y + 10;
  return { places, width, height };
}

function Edge({ edge, places, width }) {
  const [from, to] = [places.get(edge.from), places.get(edge.to)];
  if (!from || !to) return null;
  const [x1, y1, x2, y2] = [from.x + WIDTH / 2, from.y + HEIGHT, to.x + WIDTH / 2, to.y];
  const isBack = to.y <= from.y;
  const side = width - 12;
  const path = isBack
    ? `M${from.x + WIDTH},${from.y + HEIGHT / 2} C${side},${from.y + HEIGHT / 2} ${side},${to.y + HEIGHT / 2} ${to.x + WIDTH},${to.y + HEIGHT / 2}`
    : `M${x1},${y1} C${x1},${y1 + GAP_Y / 2} ${x2},${y2 - GAP_Y / 2} ${x2},${y2}`;
  const label = edge.exit ? `${visible(edge.exit)}${edge.taken > 1 ? ` ×${edge.taken}` : ''}` : '';
  return html`<g class=${edge.taken > 0 ? 'edge taken' : 'edge'}>
    <path d=${path} marker-end=${edge.taken > 0 ? 'url(#arrow-taken)' : 'url(#arrow)'} />
    ${label && html`<text x=${isBack ? Math.max(x1, x2) + WIDTH / 2 + 6 : (x1 + x2) / 2 + 6} y=${isBack ? (from.y + to.y + HEIGHT) / 2 : (y1 + y2) / 2}>${label}</text>`}
  </g>`;
}

const cut = (text) => (text.length > 20 ? `${text.slice(0, 19)}…` : text);

export function Graph({ id, version }) {
  const { value, error } = useLoaded(() => get(runPath(id, '/graph')), [id], { changes: [version] });
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<p class="loading">Drawing …</p>`;
  const { places, width, height } = layout(value);
  const marker = (name) => html`<marker id=${name} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" /></marker>`;
  return html`<div class="drawing" tabindex="0" role="group" aria-label="graph"><svg viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} role="img" aria-label="the graph of the run">
    <defs>${marker('arrow')}${marker('arrow-taken')}</defs>
    ${value.edges.map((edge) => html`<${Edge} edge=${edge} places=${places} width=${width} />`)}
    ${value.nodes.map((node) => {
      const { x, y } = places.get(node.id);
      const label = node.kind === 'start' || node.kind === 'end' ? node.kind : visible(node.label);
      return html`<g class=${`node ${node.kind} ${node.mark ?? ''}`} transform=${`translate(${x} ${y})`}>
        <title>${label}</title>
        <rect width=${WIDTH} height=${HEIGHT} rx=${node.kind === 'start' || node.kind === 'end' ? 20 : 8} />
        <text x=${WIDTH / 2} y=${HEIGHT / 2}>${cut(label)}${node.visits > 1 ? ` ×${node.visits}` : ''}</text>
      </g>`;
    })}
  </svg></div>`;
}
