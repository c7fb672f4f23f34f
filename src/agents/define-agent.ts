import type { z } from 'zod';
import { InputError } from '../core/errors.js';
import { COMPACTION } from '../core/rules/compaction.js';
import type { Compaction, ModelSettings } from '../core/definition/definition.js';
import { computerHandler, nativeToolsOf } from '../core/input/turn-settings.js';
import type { Json } from '../core/text/json.js';
import { toMs } from '../core/text/text.js';
import { rulesInMs } from '../core/definition/rules.js';
import type { TemplateArgs } from '../prompts/template.js';
import { agentTool } from '../tools/built-in/workflow-tools.js';
import { createToolRegistry, type ToolRegistry, type Tool } from '../tools/tool.js';
import { namesHint } from '../validation/near-names.js';
import { answerContract, createRememberer, createRetriever } from './agent-parts.js';
import type { Agent, AgentOptions, CalledAgent } from './agent.js';
import { calledEntry } from './given-agent.js';
import { assertRuleNames, assertAgentOptions, isTemplate } from './options.js';
import { refuseCatalog } from './agent-definition.js';
import { toLimits } from '../core/input/limits.js';
import { namedPrompts, type NamedPrompt, type PromptTable } from './prompts.js';

/**
 * Makes an agent. Throws an `InputError` if the definition is invalid, with a line `field: expected
 * X, got Y; fix` for each fault.
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
export function defineAgent<
  Output = Json,
  // oxlint-disable-next-line typescript/no-empty-object-type -- an agent without prompts has none
  Prompts extends PromptTable = {},
  Args extends z.ZodObject = z.ZodObject,
>(options: AgentOptions<Output, Prompts, Args>): Agent<Output, Prompts, TemplateArgs<Args>> {
  assertAgentOptions(options);
  const { name, instructions, output, retrieve, remember } = options;
  const called = (options.agents ?? []).map(calledEntry);
  const tools = registryOf(name, [
    ...(options.tools ?? []),
    ...called.map((entry) => callingTool(name, entry)),
  ]);
  const { decide = 'tools', toolExposure = 'all' } = options;
  refuseEndless(options, tools);
  assertRuleNames(options.rules, [{ tools, mcp: options.mcp ?? [] }], `agent "${name}"`);
  const prompts = promptsOf(options, tools);
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
    ...modelsOf(options.model),
    tools,
    toolExposure,
    toolChoice: options.toolChoice ?? 'auto',
    toolCalls: options.toolCalls ?? 'parallel',
    limits: toLimits(options.limits ?? {}),
    onLimit: options.onLimit ?? 'answer',
    settings: checkedSettings(options),
    ...(options.callSettings && { callSettings: [...new Set(options.callSettings)].toSorted() }),
    forkFrom: [...new Set(options.forkFrom)].toSorted(),
    ...(options.compaction !== undefined && { compaction: withDefaults(options.compaction) }),
    ...(options.retention !== undefined && { retentionMs: toMs(options.retention) }),
    description: options.description ?? '',
    mcp: options.mcp ?? [],
    agents: called.map(({ agent }) => agent),
    rules: rulesInMs(options.rules ?? []),
    ...(options.texts && { texts: options.texts }),
    ...(prompts && { prompts }),
  });
}

function modelsOf(model: AgentOptions['model']): Pick<Agent, 'model' | 'fallbacks'> {
  const [first = null, ...fallbacks] = typeof model === 'string' ? [model] : (model ?? []);
  return { model: first, fallbacks };
}

/**
 * Returns the named prompts of an agent; undefined if it has none. Throws an `InputError` for an
 * invalid prompt.
 */
function promptsOf<Output>(
  options: AgentOptions<Output>,
  tools: ToolRegistry,
): ReadonlyMap<string, NamedPrompt> | undefined {
  const { name, prompts = {}, mcp = [], output } = options;
  if (Object.keys(prompts).length === 0) return undefined;
  for (const [prompt, { tools: chosen }] of Object.entries(prompts)) {
    if (chosen === undefined || chosen.length === 0) continue;
    const own = tools.tools.filter((tool) => chosen.includes(tool.name));
    refuseEndless({ ...options, name: `${name}.prompts.${prompt}` }, createToolRegistry(own));
  }
  const owner = {
    name,
    tools: tools.names,
    servers: mcp.map((server) => server.name),
    hasOutput: output !== undefined,
  };
  return namedPrompts(prompts, owner);
}

/** Returns the tools of an agent by name. Throws an `InputError` if two share a name. */
function registryOf(name: string, tools: readonly Tool[]): ToolRegistry {
  try {
    return createToolRegistry(tools);
  } catch (error) {
    throw new InputError(
      `agent "${name}": ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    );
  }
}

/** Returns the tool through which an agent or a graph calls an agent. */
export function callingTool(
  name: string,
  { agent, as, description, parentClose, prompt }: CalledAgent,
): Tool {
  const text = description ?? agent.description;
  if (text === '') {
    throw new InputError(
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
    ...(prompt !== undefined && { prompt: calledPrompt(name, agent, prompt) }),
  });
}

/**
 * Returns the prompt by which an agent is called. Throws an `InputError` that names the nearest
 * one.
 */
function calledPrompt(
  caller: string,
  { name, prompts = new Map<string, NamedPrompt>() }: Agent,
  prompt: string,
): NonNullable<Parameters<typeof agentTool>[0]['prompt']> {
  const found = prompts.get(prompt);
  if (found !== undefined) return { name: prompt, ...(found.args && { args: found.args }) };
  const hint = namesHint(prompt, [...prompts.keys()]);
  throw new InputError(
    `agent "${caller}": agents: expected a prompt of agent "${name}", got "${prompt}" (${hint}); correct the name`,
  );
}

/**
 * Throws an `InputError` if the model must always call a tool, and none of its tools ends the turn.
 */
function refuseEndless<Output>(
  { name, toolChoice, decide = 'tools', settings = {} }: AgentOptions<Output>,
  tools: ToolRegistry,
): void {
  if (toolChoice !== 'required' || decide !== 'tools') return;
  // After a provider tool, the same reply may contain the answer.
  if (settings['nativeTools'] !== undefined) return;
  if (tools.names.some((tool) => tools.get(tool)?.ends === true)) return;
  throw new InputError(
    `agent "${name}": toolChoice: expected a tool with \`ends: true\` for "required", got none; ` +
      'each turn would run until a limit: add answer() from perdure/tools, or use "auto"',
  );
}

/**
 * Returns the settings; most reach the provider unchanged. Throws an `InputError` for invalid
 * native tools.
 */
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
    throw new InputError(`${path}: handler "${handler}" is not a tool of this agent; ${known}`);
  }
  if (decide !== undefined && decide !== 'tools') {
    throw new InputError(`${path}: actions on a screen are native calls; omit \`decide\``);
  }
  return { ...settings, nativeTools };
}

/** Returns the effective shares, or null if the agent never compacts its conversation. */
function withDefaults(compaction: Partial<Compaction> | false): Compaction | null {
  return compaction === false ? null : { ...COMPACTION, ...compaction };
}
