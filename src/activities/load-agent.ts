import { ApplicationFailure } from '@temporalio/common';
import { filledDefinition } from '../agents/agent-definition.js';
import type { LoadedAgent } from '../agents/catalog.js';
import type { BlobStore } from '../blobs/blob-store.js';
import type { ActivityProblem } from '../core/failure.js';
import type { AgentDefinition } from '../core/definition.js';
import type { Json } from '../core/json.js';
import { renderTemplate } from '../prompts/render-template.js';
import { effectiveLimits, withinBudget } from '../core/limits.js';
import type { BlobRef } from '../core/messages.js';
import type { RunConfig } from '../core/state.js';
import type { LoadAgentInput } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { withMcpTools } from './mcp-listing.js';

const INLINE_CHARACTERS = 16_000;

/**
 * Gives all that a run pins at its start. Fails with `AgentUnknown` (another worker may know it),
 * `AgentRefused` (no worker can start it like this) or `AgentNeedsTime` (ask `patient`ly).
 */
export async function loadAgent(
  { agents, definitions, models, blobs, mcp, searchAttributes, segment }: ActivityDependencies,
  input: LoadAgentInput,
): Promise<RunConfig> {
  const loaded = agents.named(input.agent);
  if (loaded === undefined) throw unknownAgent(input.agent, agents.names);
  const definition = await complete({ mcp }, loaded, input);
  if (definition.hash !== loaded.definition.hash) definitions.note(definition);
  if (definition.model === '') {
    throw refused(`agent "${definition.name}" names no model; give it one, or set PERDURE_MODEL`);
  }
  const asked = effectiveLimits(definition.limits, input.limits);
  if (typeof asked === 'string') throw refused(asked);
  const limits = withinBudget(asked, input.budget ?? {});
  const { price, window } = models.resolve(definition.model);
  if (price === null && (isSet(limits.turn.costUsd) || isSet(limits.run.costUsd))) {
    throw refused(
      `limits.costUsd: nobody knows the price of model "${definition.model}"; ` +
        'give `price` with the model in the config, or use limits.tokens',
    );
  }
  const contextBlob = input.context === undefined ? null : await keepContext(blobs, input.context);
  return {
    definition,
    limits,
    price,
    ...(window !== null && { window }),
    searchAttributes: await searchAttributes(),
    ...(contextBlob && { contextBlob }),
    ...(segment && { segment }),
    ...(input.depth !== undefined && input.depth > 0 && { depth: input.depth }),
  };
}

/** The definition of this run; to ask MCP servers, there has to be time. */
async function complete(
  deps: Pick<ActivityDependencies, 'mcp'>,
  loaded: LoadedAgent,
  input: LoadAgentInput,
): Promise<AgentDefinition> {
  const definition = filled(loaded, input);
  if (loaded.agent.mcp.length === 0) return definition;
  if (input.patient !== true) {
    throw ApplicationFailure.create({
      type: 'AgentNeedsTime',
      nonRetryable: true,
      message: 'its MCP servers have to be asked for their tools',
    });
  }
  return await withMcpTools(deps, loaded, { definition, refuse: refused });
}

/** The definition of this run: where the instructions are a template, with its arguments. */
function filled(
  { agent, definition }: LoadedAgent,
  { args = {} }: LoadAgentInput,
): AgentDefinition {
  const { template } = agent;
  if (template === null) {
    if (Object.keys(args).length === 0) return definition;
    throw refused(`args: agent "${agent.name}" takes none; its instructions are no template`);
  }
  try {
    const instructions = renderTemplate(template, args);
    return filledDefinition(definition, { instructions, template: template.hash });
  } catch (error) {
    throw refused(`args: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** A small one may also travel with every call, should the store be down. */
async function keepContext(blobs: BlobStore, context: Json): Promise<BlobRef | null> {
  const text = JSON.stringify(context);
  try {
    return await blobs.put(text);
  } catch (error) {
    if (text.length <= INLINE_CHARACTERS) return null;
    throw error;
  }
}

function isSet(limit: number | null | undefined): boolean {
  return limit !== undefined && limit !== null;
}

function unknownAgent(name: string, known: readonly string[]): ApplicationFailure {
  const list = known.length === 0 ? 'it has none' : `it has ${known.join(', ')}`;
  return ApplicationFailure.create({
    type: 'AgentUnknown',
    message: `agent: this worker has no agent "${name}"; ${list}`,
  });
}

function refused(message: string): ApplicationFailure {
  const problem: ActivityProblem = { type: 'failed', reason: 'input', message };
  return ApplicationFailure.create({
    type: 'AgentRefused',
    nonRetryable: true,
    message,
    details: [problem],
  });
}
