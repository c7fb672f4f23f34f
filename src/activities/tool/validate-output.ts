import type { z } from 'zod';
import type { Effect } from '../../core/definition/definition.js';
import { parseWithZod } from '../../output/parse-zod.js';
import { guarded } from '../../tools/guard.js';
import { toPlain } from '../../tools/result/plain.js';
import { ToolError } from '../../tools/tool-error.js';
import type { Tool } from '../../tools/tool.js';

/** What is inline in a result; what is larger is no typed output any more, but text by reference. */
const OUTPUT_BYTES = 64 * 1024;

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
  const checked = await guarded(`output schema of tool "${tool.name}"`, () =>
    schema.safeParseAsync(returned),
  );
  if (checked.ok && checked.value.success) return checked.value.data;
  const fault = checked.ok ? checked.value.error?.message : checked.message;
  const message = `the result of ${tool.name} does not fit its output schema: ${fault ?? ''}`;
  return unfitting(tool.effect, { returned, message, warn });
}

/**
 * What a tool with `ends` gave, through the `output` of its agent: it becomes the turn's output, which
 * people take to have that type. Where it does not fit, as above.
 */
export async function checkedEnding(
  tool: { readonly name: string; readonly effect: Effect; readonly contract: z.ZodType },
  returned: unknown,
  warn: (message: string) => void,
): Promise<unknown> {
  const parsed = await parseWithZod(tool.contract, toPlain(returned));
  const bytes = parsed.ok ? Buffer.byteLength(JSON.stringify(parsed.output)) : 0;
  if (parsed.ok && bytes <= OUTPUT_BYTES) return parsed.output;
  const fault = parsed.ok
    ? `it has ${bytes} bytes as JSON, at most ${OUTPUT_BYTES} fit`
    : parsed.problem;
  const message = `the result of ${tool.name} cannot be the output of this agent: ${fault}`;
  return unfitting(tool.effect, { returned, message, warn });
}

function unfitting(
  effect: Effect,
  { returned, message, warn }: { returned: unknown; message: string; warn: (text: string) => void },
): unknown {
  if (effect === 'read') throw new ToolError(message);
  warn(message);
  return returned;
}
