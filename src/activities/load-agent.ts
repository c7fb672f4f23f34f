import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { filledDefinition } from '../agents/agent-definition.js';
import type { LoadedAgent } from '../agents/catalog.js';
import type { BlobStore } from '../storage/blob-store.js';
import { storeContext } from '../storage/context-text.js';
import type { ActivityProblem } from '../core/failure.js';
import type { AgentDefinition } from '../core/definition/definition.js';
import { renderTemplate } from '../prompts/render-template.js';
import { effectiveLimits, withinBudget } from '../core/limits.js';
import type { ContextRef } from '../core/transcript/messages.js';
import { show } from '../core/text/format-value.js';
import type { RunConfig } from '../core/state.js';
import { nearestFirst } from '../tools/nearest.js';
import type { LoadAgentInput } from '../core/contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { needingStorage } from './storage.js';
import { withMcpTools } from './mcp-listing.js';
import { searchDelayMs } from './search-delay.js';

const INLINE_CHARACTERS = 16_000;
/** At most so many agent names are listed when a worker does not have the agent of a run. */
const NEAREST = 3;

/**
 * Gives all that a run pins at its start. Fails with `AgentUnknown` (another worker may know it),
 * `AgentRefused` (no worker can start it like this) or `AgentNeedsTime` (ask `patient`ly).
 */
export async function loadAgent(
  deps: ActivityDependencies,
  input: LoadAgentInput,
): Promise<RunConfig> {
  const { agents, definitions, models, blobs, mcp, searchAttributes, segment, heartbeatMs } = deps;
  const loaded = agents.named(input.agent);
  if (loaded === undefined) throw unknownAgent(input, agents.names);
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
  const contextBlob = await needingStorage(input, () => keepContext(blobs, input));
  return {
    definition,
    limits,
    price,
    ...(window !== null && { window }),
    searchAttributes: await searchAttributes(),
    ...(contextBlob && { contextBlob }),
    ...(segment && { segment }),
    ...(heartbeatMs !== undefined && { heartbeatMs }),
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
async function keepContext(
  blobs: BlobStore,
  { context, root = '' }: Pick<LoadAgentInput, 'context' | 'root'>,
): Promise<ContextRef | null> {
  if (context === undefined) return null;
  try {
    return { ...(await storeContext(blobs, { context, root })), root };
  } catch (error) {
    if (JSON.stringify(context).length <= INLINE_CHARACTERS) return null;
    throw error;
  }
}

function isSet(limit: number | null | undefined): boolean {
  return limit !== undefined && limit !== null;
}

/** Retryable, for each attempt may reach a worker that has it; a probe has all the time there is. */
function unknownAgent(
  { agent, blocked }: LoadAgentInput,
  known: readonly string[],
): ApplicationFailure {
  const nearest = nearestFirst(agent, known).slice(0, NEAREST);
  const others = known.length > nearest.length ? ', …' : '';
  const list = nearest.length === 0 ? 'it has none' : `nearest: ${nearest.join(', ')}${others}`;
  const message =
    `agent: expected an agent of this worker, got ${show(agent)} (${list}); start a worker that ` +
    'has it, or cancel this run and start one with the right name';
  const problem: ActivityProblem = { type: 'blocked', reason: 'agent_missing', message };
  return ApplicationFailure.create({
    type: 'AgentUnknown',
    message,
    details: [problem],
    ...(blocked && { nextRetryDelay: searchDelayMs(Context.current().info.attempt) }),
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
