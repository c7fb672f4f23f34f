import { COMPACTION } from '../core/compaction.js';
import type { Compaction, ModelSettings } from '../core/definition/definition.js';
import { computerHandler, nativeToolsOf } from '../core/definition/native-tools.js';
import type { Json } from '../core/json.js';
import { agentTool } from '../tools/built-in/agent-tool.js';
import { createToolRegistry, type ToolRegistry } from '../tools/registry.js';
import type { Tool } from '../tools/tool.js';
import { answerContract } from './agent-output.js';
import type { Agent, AgentOptions, CalledAgent } from './agent.js';
import { refuseCatalog } from './catalog-entry.js';
import { assertAgentOptions, isAgent, isTemplate } from './options.js';
import { createRememberer } from './memory.js';
import { createRetriever } from './retriever.js';

/**
 * Makes an agent. Throws an `Error` if the definition cannot work, with a line
 * `field: expected X, got Y; fix` for each fault.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { fileTools } from 'perdure/tools';
 *
 * export const reader = defineAgent({
 *   name: 'reader',
 *   instructions: 'Answer questions about the files. Look; never guess.',
 *   tools: [...fileTools({ root: '.' })],
 *   limits: { steps: 20, run: { costUsd: 2 } },
 * });
 * ```
 */
export function defineAgent<Output = Json>(options: AgentOptions<Output>): Agent<Output> {
  assertAgentOptions(options);
  const { name, instructions, output, retrieve, remember } = options;
  const called = (options.agents ?? []).map((entry) => (isAgent(entry) ? { agent: entry } : entry));
  const tools = registryOf(name, [
    ...(options.tools ?? []),
    ...called.map((entry) => callingTool(name, entry)),
  ]);
  const { decide = 'tools', toolExposure = 'all' } = options;
  refuseEndless(options, tools);
  if (toolExposure === 'catalog') refuseCatalog(name, { decide, names: tools.names });
  return Object.freeze({
    name,
    instructions: isTemplate(instructions) ? instructions.text : instructions,
    template: isTemplate(instructions) ? instructions : null,
    answer: output === undefined ? null : answerContract(name, output),
    attempts: options.attempts ?? null,
    onInvalid: options.onInvalid ?? 'fail',
    decide,
    onPlainText: options.onPlainText ?? 'respond',
    retrieve: retrieve === undefined ? null : createRetriever(retrieve),
    remember: remember === undefined ? null : createRememberer(remember),
    model: options.model ?? null,
    tools,
    toolExposure,
    toolChoice: options.toolChoice ?? 'auto',
    toolCalls: options.toolCalls ?? 'parallel',
    limits: options.limits ?? {},
    onLimit: options.onLimit ?? 'answer',
    settings: checkedSettings(options),
    forkFrom: [...new Set(options.forkFrom)].toSorted(),
    ...(options.compaction !== undefined && { compaction: withDefaults(options.compaction) }),
    description: options.description ?? '',
    mcp: options.mcp ?? [],
    agents: called.map(({ agent }) => agent),
    rules: options.rules ?? [],
    ...(options.texts && { texts: options.texts }),
  });
}

/** Returns the tools of an agent by name. Throws an `Error` if two share a name. */
function registryOf(name: string, tools: readonly Tool[]): ToolRegistry {
  try {
    return createToolRegistry(tools);
  } catch (error) {
    throw new Error(`agent "${name}": ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** Returns the tool with which an agent calls another one. */
function callingTool(name: string, { agent, as, description, parentClose }: CalledAgent): Tool {
  const text = description ?? agent.description;
  if (text === '') {
    throw new Error(
      `agent "${name}": agent "${agent.name}" has no description, so no model knows when to call it; ` +
        'give it `description`',
    );
  }
  const readsNoMessage = agent.graph?.definition.messageTo === undefined;
  return agentTool({
    agent: agent.name,
    description: text,
    ...(as !== undefined && { as }),
    ...(parentClose && { parentClose }),
    ...(readsNoMessage && agent.graph && { input: agent.graph.input }),
    ...(agent.template && { args: agent.template.args }),
  });
}

/** Throws an `Error` if the model must always call a tool, and none of its tools ends the turn. */
function refuseEndless<Output>(
  { name, toolChoice, decide = 'tools', settings = {} }: AgentOptions<Output>,
  tools: ToolRegistry,
): void {
  if (toolChoice !== 'required' || decide !== 'tools') return;
  // After a tool of the provider, the same reply may give the answer.
  if (settings['nativeTools'] !== undefined) return;
  if (tools.names.some((tool) => tools.get(tool)?.ends === true)) return;
  throw new Error(
    `agent "${name}": toolChoice: expected a tool with \`ends: true\` beside "required", got none; ` +
      'each turn would go on to a limit: add answer() from perdure/tools, or use "auto"',
  );
}

/** Returns the settings; most reach the provider unchanged. Throws an `Error` for invalid native tools. */
function checkedSettings<Output>({
  name,
  settings = {},
  tools = [],
  decide,
}: AgentOptions<Output>): ModelSettings {
  const path = `agent "${name}": settings.nativeTools`;
  const nativeTools = nativeToolsOf(settings['nativeTools'], path);
  const handler = computerHandler(settings);
  if (handler === null) return settings;
  const own = tools.flatMap((tool) => (tool.kind === undefined ? tool.name : []));
  if (!own.includes(handler)) {
    const known = own.length === 0 ? 'it has no tools' : `its tools are ${own.join(', ')}`;
    throw new Error(`${path}: handler "${handler}" is not a tool of this agent; ${known}`);
  }
  if (decide !== undefined && decide !== 'tools') {
    throw new Error(`${path}: actions on a screen are native calls; leave \`decide\` out`);
  }
  return { ...settings, nativeTools };
}

/** Returns the shares in force, or null if the agent never compacts its conversation. */
function withDefaults(compaction: Partial<Compaction> | false): Compaction | null {
  return compaction === false ? null : { ...COMPACTION, ...compaction };
}
