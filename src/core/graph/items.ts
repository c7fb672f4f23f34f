import type { GraphNode } from '../definition/node-kinds.js';
import type { RunState } from '../state/state.js';
import { graphOf, itemProgress } from '../state/turn-definition.js';
import { type JsonObject, isObject } from '../text/json.js';
import { formatCount } from '../text/text.js';

/** How many items of an `each` have ended, and how many of those have failed. */
export interface ItemCount {
  readonly ended: number;
  readonly failed: number;
  readonly total: number;
}

/** Returns the progress of items as text: `4 of 4 items, 1 failed`. */
export function itemsText({ ended, failed, total }: ItemCount): string {
  const failures = failed === 0 ? '' : `, ${failed} failed`;
  return `${ended} of ${formatCount(total, 'item')}${failures}`;
}

/** Returns what an `each` has saved for its items; null for any other node, or before it has ended. */
export function savedItems(
  node: GraphNode | undefined,
  values: JsonObject,
): readonly unknown[] | null {
  const field = node?.kind === 'each' ? node.save : undefined;
  const saved = field === undefined ? undefined : values[field];
  return Array.isArray(saved) ? saved : null;
}

/** Returns the items of each `each` that a run has visited, by the name of the node. */
export function itemsByNode(state: RunState): ReadonlyMap<string, ItemCount> {
  const { nodes = [] } = graphOf(state) ?? {};
  const { visited = [], at = null, values = {} } = state.graph ?? {};
  const now = itemProgress(state);
  return new Map(
    nodes.flatMap((node) => {
      if (node.name === at?.node) {
        if (now === null) return [];
        return [[node.name, { ended: now.done, failed: now.failed, total: now.total }]];
      }
      const saved = visited.some((one) => one.node === node.name) ? savedItems(node, values) : null;
      if (saved === null) return [];
      const failed = saved.filter((item) => isObject(item) && item['ok'] === false).length;
      return [[node.name, { ended: saved.length, failed, total: saved.length }]];
    }),
  );
}
