import { createToolRegistry, type ToolRegistry } from '../tools/registry.js';
import type { Tool } from '../tools/tool.js';

/** The tools of an agent by name. Throws with the value at fault and the cure. */
export function registryOf(name: string, tools: readonly Tool[]): ToolRegistry {
  const registry = checkedRegistry(name, tools);
  const asking = registry.tools.find(({ approval = 'never' }) => approval !== 'never');
  if (asking !== undefined) {
    // Better no agent than one that acts without the consent its author asked for.
    throw new Error(
      `agent "${name}": tool "${asking.name}" wants approval, which this version cannot ask for; ` +
        'leave `approval` out, or give "never"',
    );
  }
  return registry;
}

function checkedRegistry(name: string, tools: readonly Tool[]): ToolRegistry {
  try {
    return createToolRegistry(tools);
  } catch (error) {
    throw new Error(`agent "${name}": ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
