import { guarded } from '../tools/guard.js';
import { ToolError } from '../tools/tool-error.js';
import type { Tool } from '../tools/tool.js';

/**
 * What a tool returned, through its `output` schema. A read that does not fit fails, as an error the
 * model hears. What has changed the world has happened, fitting or not: it is reported as it is, so
 * that nobody does it again for the sake of its form.
 */
export async function checkedOutput(
  tool: Pick<Tool, 'name' | 'output' | 'effect'>,
  returned: unknown,
  warn: (message: string) => void,
): Promise<unknown> {
  const schema = tool.output;
  if (schema === undefined) return returned;
  const checked = await guarded(() => schema.safeParseAsync(returned));
  if (checked.ok && checked.value.success) return checked.value.data;
  const fault = checked.ok ? checked.value.error?.message : checked.message;
  const message = `the result of ${tool.name} does not fit its output schema: ${fault ?? ''}`;
  if (tool.effect === 'read') throw new ToolError(message);
  warn(message);
  return returned;
}
