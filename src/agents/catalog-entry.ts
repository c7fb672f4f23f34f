import { InputError } from '../core/errors.js';
import { CATALOG_NAMES } from '../core/catalog/catalog.js';
import type { CatalogEntry } from '../core/definition/tool-definition.js';
import type { Tool } from '../tools/tool.js';

const SUMMARY_CHARACTERS = 160;
/** Matches up to the end of the first sentence or of the paragraph. */
const SENTENCE = /^.+?(?:[.!?](?=\s+\p{Lu})|(?=\n\s*\n)|$)/su;

/**
 * Returns a tool's entry in the catalog: the author's, or one derived from the start of its
 * description.
 */
export function catalogEntryOf({
  catalog,
  description,
  effect,
}: Pick<Tool, 'catalog' | 'description' | 'effect'>): CatalogEntry {
  if (catalog !== undefined) {
    const { summary, category, actions } = catalog;
    return { summary, category, actions };
  }
  const first = SENTENCE.exec(description.trim())?.[0] ?? '';
  const line = first.replaceAll(/\s+/g, ' ');
  const summary =
    line.length > SUMMARY_CHARACTERS ? `${line.slice(0, SUMMARY_CHARACTERS - 1)}…` : line;
  return { summary, category: 'other', actions: [effect === 'read' ? 'read' : 'write'] };
}

/** Throws an `InputError` if an agent cannot expose its tools as a catalog. */
export function refuseCatalog(
  agent: string,
  { decide, names }: { readonly decide: unknown; readonly names: readonly string[] },
): void {
  if (typeof decide === 'function') {
    throw new InputError(
      `agent "${agent}": toolExposure "catalog" is for models; a decide function gets all tools, omit it`,
    );
  }
  const reserved = names.find((name) => CATALOG_NAMES.includes(name));
  if (reserved === undefined) return;
  throw new InputError(
    `agent "${agent}": with toolExposure "catalog" the engine itself uses the name "${reserved}"; rename that tool`,
  );
}
