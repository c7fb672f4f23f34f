import { reduceCapabilities, type ModelCapabilities } from '../capabilities.js';
import type { ModelRequest, ResponseSchema } from '../model.js';
import type { RequestParameter } from '../parameters.js';

/** The parameters that the server accepts in this request, regardless of the API. */
export interface Terms {
  readonly accepts: ModelCapabilities;
  /** The parameters that it has refused. */
  readonly without: readonly RequestParameter[];
}

export function createTerms(
  { without = [] }: ModelRequest,
  capabilities: ModelCapabilities,
): Terms {
  return { accepts: reduceCapabilities(capabilities, without), without };
}

/** Returns true for a setting that the model does not accept or its server has refused. */
export function isLeftOut(setting: string, { accepts, without }: Terms): boolean {
  if (without.includes(`settings.${setting}`)) return true;
  if (setting === 'temperature' || setting === 'top_p') return !accepts.temperature;
  return setting === 'parallel_tool_calls' && !accepts.parallelTools;
}

/**
 * Returns the tools to send with the choice among them. Tools that must not be called are omitted
 * if the server refuses `tool_choice: 'none'`.
 */
export function selectTools<Tool>(
  tools: readonly Tool[],
  { toolChoice }: ModelRequest,
  { accepts, without }: Terms,
): { readonly tools?: readonly Tool[]; readonly tool_choice?: 'auto' | 'required' | 'none' } {
  const choice = toolChoice === 'required' && !accepts.requiredToolChoice ? 'auto' : toolChoice;
  const isRefused = without.includes(`tool_choice:${choice}`);
  if (tools.length === 0 || (choice === 'none' && isRefused)) return {};
  return { tools, ...(!isRefused && { tool_choice: choice }) };
}

const DEMAND =
  'You must call one of the tools in every reply; a reply in text alone is not accepted. To answer, ' +
  'call the tool that gives the answer.';

/**
 * Returns the instructions, with the schema in words if the schema itself cannot be sent, and with
 * a demand for a call if the server does not accept `required`.
 */
export function composeInstructions(
  { instructions, responseFormat, toolChoice, tools, demandCall = DEMAND }: ModelRequest,
  { accepts }: Terms,
): string {
  const isSent = accepts.responseFormat === 'json_schema';
  const inWords = isSent ? undefined : responseFormat?.instruction;
  const isDemanded = toolChoice === 'required' && !accepts.requiredToolChoice && tools.length > 0;
  return [instructions, inWords, isDemanded ? demandCall : undefined]
    .filter((text) => text !== undefined && text !== '')
    .join('\n\n');
}

/** Returns the name of a schema in the characters and length that servers accept. */
export function toSchemaName({ name }: ResponseSchema): string {
  return name.replaceAll(/[^\w-]/g, '_').slice(0, 64) || 'answer';
}
