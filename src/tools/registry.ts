import { InputError } from '../core/errors.js';
import { isObject } from '../core/json.js';
import type { Tool } from './tool.js';

/** The tools of one agent by name. */
export interface ToolRegistry {
  get(name: string): Tool | undefined;
  /** The names, sorted to keep the prompt prefix stable. */
  readonly names: readonly string[];
  /** The tools in the order of `names`. */
  readonly tools: readonly Tool[];
}

/** Throws an `InputError` if two tools share a name. */
export function createToolRegistry(tools: readonly Tool[]): ToolRegistry {
  const byName = new Map<string, { readonly tool: Tool; readonly position: number }>();
  for (const [index, tool] of tools.entries()) {
    const position = index + 1;
    const first = byName.get(tool.name);
    if (first)
      throw new InputError(duplicate(tool, { first: first.tool, at: [first.position, position] }));
    byName.set(tool.name, { tool, position });
  }
  const names = [...byName.keys()].toSorted();
  return {
    get: (name) => byName.get(name)?.tool,
    names,
    tools: names.flatMap((name) => byName.get(name)?.tool ?? []),
  };
}

/** Returns whether a value was made by `defineTool`. */
export function isTool(value: unknown): value is Tool {
  return isObject(value) && typeof value['execute'] === 'function' && 'parameters' in value;
}

function duplicate(
  tool: Tool,
  { first, at }: { readonly first: Tool; readonly at: readonly [number, number] },
): string {
  const where = `items ${at[0]} and ${at[1]} of \`tools\``;
  if (first === tool) return `the tool "${tool.name}" is listed twice (${where}); list it once`;
  return (
    `two tools are named "${tool.name}" (${where}): "${clip(first.description)}" and ` +
    `"${clip(tool.description)}"; rename one of them`
  );
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
