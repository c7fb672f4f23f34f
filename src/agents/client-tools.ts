import type { AgentDefinition } from '../core/definition/definition.js';
import type { ClientTool, ToolDefinition } from '../core/definition/tool-definition.js';
import { InputError } from '../core/errors.js';
import { type ExtendedAgent, addedToolsProblem } from '../core/input/client-tools.js';
import { type Json, type JsonObject, isJsonObject } from '../core/text/json.js';
import { argumentsOf } from '../mcp/call-tool.js';
import { readSchema, stripHidden } from '../mcp/listed-tool.js';
import { workflowOlder } from '../tools/errors.js';
import { type Tool, type ToolRegistry, createToolRegistry } from '../tools/tool.js';

const DEFAULT_MS = 120_000;
const HEARTBEAT_MS = 10_000;

/**
 * Returns the tools that the caller of a run adds to those of its agent. Throws an `InputError` if
 * the agent cannot have them, or if no model can use a schema. `field`: what the caller calls them.
 */
export function addedTools(
  agent: ExtendedAgent,
  given: readonly ClientTool[],
  field = 'clientTools',
): readonly ToolDefinition[] {
  const problem = addedToolsProblem(agent, given, field);
  if (problem !== null) throw new InputError(problem);
  return given.flatMap((tool, at): readonly ToolDefinition[] =>
    agent.tools.some(({ name }) => name === tool.name)
      ? []
      : [toDefinition(tool, `${field}.${at}`)],
  );
}

/** Returns a caller's tool as a run pins it. What the call does is unknown, so its effect is `once`. */
function toDefinition(
  { name, description = '', parameters = { type: 'object', properties: {} } }: ClientTool,
  at: string,
): ToolDefinition {
  const read = readSchema(parameters, 'stdio');
  if (!read.ok) {
    throw new InputError(`${at}.parameters: ${read.problem}; correct the schema`);
  }
  return {
    name,
    description: stripHidden(description),
    parameters: read.schema,
    effect: 'once',
    // Only the caller knows whether to do it again.
    repeat: 'allow',
    kind: 'client',
    caller: true,
    timeoutMs: DEFAULT_MS,
    heartbeatMs: HEARTBEAT_MS,
    attempts: 1,
  };
}

/**
 * Returns the tools of this worker with those that the caller of a run has defined. They have the
 * pinned form, whichever tools of these names the agent has now.
 */
export function withCallerTools(
  tools: ToolRegistry,
  {
    definition,
    builtIn,
  }: { readonly definition: AgentDefinition; readonly builtIn: readonly Tool[] },
): ToolRegistry {
  const added = definition.tools.filter(({ caller }) => caller === true).map(toTool);
  if (added.length === 0) return tools;
  const names = new Set(added.map(({ name }) => name));
  const missing = builtIn.filter(({ name }) => tools.get(name) === undefined);
  const kept = [...tools.tools, ...missing].filter(({ name }) => !names.has(name));
  return createToolRegistry([...kept, ...added]);
}

function toTool(definition: ToolDefinition): Tool {
  const { name, description, parameters, effect, timeoutMs, heartbeatMs, attempts } = definition;
  return {
    name,
    description,
    input: argumentsOf(withoutPatterns(parameters)),
    parameters,
    effect,
    repeat: 'allow',
    kind: 'client',
    timeoutMs,
    heartbeatMs,
    attempts,
    execute: async () => refuseExecution(),
    executeParsed: refuseExecution,
  };
}

/** Keywords whose value holds schemas by name, and those whose value is data. */
const BY_NAME = new Set(['properties', '$defs', 'definitions', 'dependentSchemas']);
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required']);

/**
 * Returns a schema without regular expressions, for checks on the worker: the pattern of one caller can
 * take so long that the checks of other runs wait. The model and the caller get the whole schema.
 */
function withoutPatterns(schema: JsonObject): JsonObject {
  const { pattern: _, patternProperties, ...rest } = schema;
  const kept = Object.entries(rest).filter(
    ([keyword]) =>
      patternProperties === undefined ||
      (keyword !== 'additionalProperties' && keyword !== 'unevaluatedProperties'),
  );
  const clean = (value: Json = null): Json => {
    if (Array.isArray(value)) return value.map(clean);
    return isJsonObject(value) ? withoutPatterns(value) : value;
  };
  return Object.fromEntries(
    kept.map(([keyword, value]) => {
      if (DATA.has(keyword)) return [keyword, value];
      if (!BY_NAME.has(keyword) || !isJsonObject(value)) return [keyword, clean(value)];
      const named = Object.entries(value).map(([name, one]) => [name, clean(one)] as const);
      return [keyword, Object.fromEntries(named)];
    }),
  );
}

function refuseExecution(): never {
  throw workflowOlder('the caller of the run executes this tool');
}
