import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import {
  type LoadedAgent,
  extendedDefinition,
  filledDefinition,
  listedDefinition,
  refuseLarge,
} from '../agents/agent-definition.js';
import type { AgentDefinition, McpOmission } from '../core/definition/definition.js';
import type { ToolDefinition } from '../core/definition/tool-definition.js';
import { promptProblem } from '../core/input/named-prompt.js';
import { effectiveLimits, withinBudget } from '../core/rules/limits.js';
import type { LoadAgentInput } from '../core/run/contract.js';
import { type RunConfig, SEMANTICS } from '../core/state/state.js';
import { formatCount, show } from '../core/text/text.js';
import type { ContextRef } from '../core/transcript/messages.js';
import { NoProtocolError, WorkerFaultError } from '../mcp/connection.js';
import { acceptCommand, describeOdd, lockedTools, serverTools } from '../mcp/lock-tools.js';
import type { McpServer } from '../mcp/mcp-server.js';
import { renderTemplate } from '../prompts/template.js';
import { redactMessage } from '../secrets/redact.js';
import type { BlobStore } from '../storage/blob-store.js';
import { storeContext } from '../storage/owned-text.js';
import { normalizeError } from '../tools/result/plain.js';
import { namesHint } from '../validation/near-names.js';
import { type KnownTools, ruleFindings } from '../validation/rule-names.js';
import { modelsOf } from './model/fallback.js';
import type { ResolvedModel } from '../models/model-catalog.js';
import type { ActivityDependencies } from './activity-context.js';
import {
  THIS_WORKER,
  problemFailure,
  refusedFailure,
  searchDelayMs,
  withHeartbeat,
} from './attempt.js';
import { type ServerListing, mcpRules } from './mcp-rules.js';
import { runKey } from './prompt.js';
import { findStorageFault, withStorageMapping } from './storage-faults.js';

/**
 * Returns the definition of a run with the tools that the agent's MCP servers list now. Throws
 * `McpUnreachable`, which Temporal retries, if a server that the agent needs cannot be reached, and
 * the failure from `refuse` for a problem that no retry can fix, and the fault of a lock that cannot be
 * read or written.
 */
async function listMcpTools(
  deps: Pick<ActivityDependencies, 'mcp' | 'toolLock'>,
  { agent, definition: own }: LoadedAgent,
  run: { definition: AgentDefinition; refuse: (message: string) => ApplicationFailure },
): Promise<{ readonly listed: AgentDefinition } & Pick<ServerTools, 'left' | 'listings'>> {
  const { definition, refuse } = run;
  try {
    const found = await withHeartbeat(Context.current(), () =>
      Promise.all(agent.mcp.map((server) => listOrLeave(deps, server))),
    );
    const left = found.flatMap((each) => each.left);
    const listed = listedDefinition(definition, {
      unlisted: own.hash,
      tools: found.flatMap(({ tools }) => tools),
      left: [...left, ...found.flatMap(({ unaccepted = [] }) => unaccepted)],
    });
    refuseLarge(listed);
    return { listed, left, listings: found.flatMap(({ listings }) => listings) };
  } catch (error) {
    if (error instanceof UnreachableError) {
      throw ApplicationFailure.create({ type: 'McpUnreachable', message: error.message });
    }
    if (findStorageFault(error) !== null) throw error;
    throw refuse(normalizeError(error).message);
  }
}

/** A server could not be reached; another attempt may succeed. */
class UnreachableError extends Error {}

/** A server's answer is unusable, and another attempt would get the same answer. */
class UnusableError extends Error {}

interface ServerTools {
  readonly tools: readonly ToolDefinition[];
  /** The servers that the run works without. */
  readonly left: readonly McpOmission[];
  /** The server, when none of its tools has been accepted; absent otherwise. */
  readonly unaccepted?: readonly McpOmission[];
  /** What the server lists; empty if it is left out. */
  readonly listings: readonly ServerListing[];
}

/** Returns the tools of a server. A server with startup `best_effort` is left out if it fails. */
async function listOrLeave(
  deps: Pick<ActivityDependencies, 'mcp' | 'toolLock'>,
  server: McpServer,
): Promise<ServerTools> {
  const { name, startup } = server;
  try {
    return await listTools(deps, server);
  } catch (error) {
    // Without the lock, no tool can be trusted.
    if (findStorageFault(error) !== null) throw error;
    const isOfWorker = error instanceof WorkerFaultError;
    const message = isOfWorker ? error.on(THIS_WORKER) : normalizeError(error).message;
    if (startup === 'best_effort') {
      return { tools: [], left: [{ server: name, message }], listings: [] };
    }
    // A slow server that prints a banner gets a second start.
    const isNoServer = error instanceof NoProtocolError && Context.current().info.attempt > 1;
    if (isOfWorker || isNoServer) throw new UnusableError(message);
    if (error instanceof UnusableError) throw error;
    throw new UnreachableError(message, { cause: error });
  }
}

async function listTools(
  { mcp, toolLock }: Pick<ActivityDependencies, 'mcp' | 'toolLock'>,
  server: McpServer,
): Promise<ServerTools> {
  const listing = await mcp.of(server).listing({ maxAgeMs: 0 });
  const { used, odd, problems } = serverTools(server, listing);
  warnOf(server, odd.length === 0 ? '' : describeOdd(odd));
  const message = `MCP server "${server.name}": ${problems.slice(0, 5).join('; ')}`;
  if (problems.length > 0 && server.startup === 'strict') throw new UnusableError(message);
  const { tools, notes } = await lockedTools(toolLock, server, used);
  warnOf(server, notes.length === 0 ? '' : describeOdd(notes, 'not accepted'));
  const left = problems.length === 0 ? [] : [{ server: server.name, message }];
  const isBare = tools.length === 0 && used.length > 0;
  const accept = `accept them with: ${acceptCommand(server, null)}`;
  const none = `none of its ${formatCount(used.length, 'tool')} has been accepted, so this run has none of them; ${accept}`;
  const unaccepted = isBare ? [{ server: server.name, message: none }] : [];
  return { tools, left, unaccepted, listings: [{ server, listing }] };
}

function warnOf({ name }: McpServer, text: string): void {
  if (text !== '') Context.current().log.warn(redactMessage(`MCP server "${name}": ${text}`));
}

/** Maximum characters of a context that may be sent with every call while the store is down. */
const INLINE_CHARACTERS = 16_000;

/**
 * Returns everything that a run pins at its start. Throws `AgentUnknown` if another worker may have
 * the agent, `AgentRefused` if no worker can start it with this input, and `AgentNeedsTime` if it
 * must be loaded with `withMcp`.
 */
export async function loadAgent(
  deps: ActivityDependencies,
  input: LoadAgentInput,
): Promise<RunConfig> {
  const {
    agents,
    definitions,
    models,
    blobs,
    searchAttributes,
    segment,
    heartbeatMs,
    transcripts,
  } = deps;
  const loaded = agents.named(input.agent);
  if (loaded === undefined) throw unknownAgent(input, agents.names);
  const listed = await withStorageMapping(input, () => createDefinition(deps, loaded, input));
  const definition = withTools(deps, listed, { ...input, without: loaded.definition.hash });
  const misfit = input.prompt && promptProblem(definition, input.prompt);
  if (typeof misfit === 'string') throw refused(misfit);
  // A called agent gets the rules of its caller, which may name tools that only the caller has.
  const own = input.depth === undefined ? (input.rules ?? []) : [];
  const [silent] = ruleFindings(own, knownTools(loaded, definition)).errors;
  if (silent !== undefined) throw refused(silent);
  if (definition.hash !== loaded.definition.hash) definitions.add(definition);
  if (definition.model === '') {
    throw refused(
      `agent "${definition.name}" has no model; give it one, or set PERDURE_MODEL. Without a key, the model "demo" is a script that calls the agent's tools as a message says`,
    );
  }
  const effective = effectiveLimits(definition.limits, input.limits);
  if (typeof effective === 'string') throw refused(effective);
  const limits = withinBudget(effective, input.budget ?? {});
  const { price } = models.resolve(definition.model);
  const facts = modelsOf(definition).map((model) => ({ ...models.resolve(model), model }));
  const unpriced = facts.find((one) => one.price === null);
  if (unpriced && (isSet(limits.turn.costUsd) || isSet(limits.run.costUsd))) {
    throw refused(
      `limits.costUsd: the price of model "${unpriced.model}" is unknown; ` +
        'give `price` with the model in the config, or use limits.tokens',
    );
  }
  const contextBlob = await withStorageMapping(input, () => offloadContext(blobs, input));
  // The first model call would otherwise query the workflow for its prompt.
  if (input.first !== undefined) transcripts.noteFirst(runKey(Context.current().info), input.first);
  return {
    definition,
    semantics: SEMANTICS,
    endsGrants: true,
    revised: true,
    limits,
    price,
    ...ofAll(facts),
    searchAttributes: await searchAttributes(),
    ...(contextBlob && { contextBlob }),
    ...(segment && { segment }),
    ...(heartbeatMs !== undefined && { heartbeatMs }),
    ...decisionsOf(deps),
    ...(input.depth !== undefined && input.depth > 0 && { depth: input.depth }),
  };
}

/**
 * Returns what holds whichever of its models an agent calls: the smallest known window, and the
 * highest prices where there are several models.
 */
function ofAll(
  facts: readonly Pick<ResolvedModel, 'price' | 'window'>[],
): Pick<RunConfig, 'window' | 'highestPrice'> {
  const windows = facts.flatMap(({ window }) => window ?? []);
  const prices = facts.flatMap(({ price }) => price ?? []);
  const most = (kind: 'input' | 'cachedInput' | 'output'): number =>
    Math.max(...prices.map((price) => price[kind]));
  return {
    ...(windows.length > 0 && { window: Math.min(...windows) }),
    ...(prices.length > 1 && {
      highestPrice: {
        input: most('input'),
        cachedInput: most('cachedInput'),
        output: most('output'),
      },
    }),
  };
}

/** Returns the tools of a run: the agent's own, with their schemas, and those of its MCP servers. */
function knownTools({ agent, tools }: LoadedAgent, definition: AgentDefinition): KnownTools {
  return {
    tools: definition.tools.map((tool) => tools.get(tool.name) ?? tool),
    servers: agent.mcp.map(({ name }) => name),
  };
}

/** Returns the workers' settings for requests that the run pins; empty if there are none. */
function decisionsOf({ requests }: ActivityDependencies): Pick<RunConfig, 'decisions'> {
  const { mayDecide, notify } = requests;
  if (mayDecide === undefined && notify === undefined) return {};
  return {
    decisions: {
      ...(mayDecide && { mayDecide: true as const }),
      ...(notify && { notify: true as const }),
    },
  };
}

/**
 * Creates the definition of this run. Asking MCP servers for their tools takes time, so it needs
 * `withMcp`.
 */
async function createDefinition(
  deps: Pick<ActivityDependencies, 'mcp' | 'toolLock' | 'agents' | 'requests'>,
  loaded: LoadedAgent,
  input: LoadAgentInput,
): Promise<AgentDefinition> {
  const definition = fillTemplate(loaded, input);
  if (loaded.agent.mcp.length === 0) return definition;
  if (input.withMcp !== true) {
    throw ApplicationFailure.create({
      type: 'AgentNeedsTime',
      nonRetryable: true,
      // The workflow loads the agent again with `withMcp`, so the SDK logs no warning.
      category: ApplicationFailureCategory.BENIGN,
      message: 'its MCP servers must list their tools first',
    });
  }
  const { listed, listings, left } = await listMcpTools(deps, loaded, {
    definition,
    refuse: refused,
  });
  const { tools } = knownTools(loaded, listed);
  const { silent, notes } = await mcpRules(deps, {
    loaded,
    tools,
    listings,
    left,
  });
  for (const text of notes) Context.current().log.warn(text);
  // The rule would apply to no call, and calls that it is about would be executed without a question.
  if (silent !== null) throw refused(silent);
  return listed;
}

/** Adds the tools of the run's caller. Throws the failure of a run that cannot have them. */
function withTools(
  { agents: { builtIn } }: Pick<ActivityDependencies, 'agents'>,
  definition: AgentDefinition,
  { clientTools: given, without }: LoadAgentInput & { readonly without: string },
): AgentDefinition {
  if (given === undefined) return definition;
  try {
    const extended = extendedDefinition(definition, { given, without, builtIn });
    refuseLarge(extended);
    return extended;
  } catch (error) {
    throw refused(normalizeError(error).message);
  }
}

/** Fills the instructions with the run's arguments, if they are a template. */
function fillTemplate(
  { agent, definition }: LoadedAgent,
  { args = {} }: LoadAgentInput,
): AgentDefinition {
  const { template } = agent;
  if (template === null) {
    if (Object.keys(args).length === 0) return definition;
    throw refused(
      `args: expected none for agent "${agent.name}", whose instructions are not a template; remove them`,
    );
  }
  try {
    const instructions = renderTemplate(template, args);
    return filledDefinition(definition, { instructions, template: template.hash });
  } catch (error) {
    throw refused(`args: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * Stores the run's context. Null if there is none, or if the store is down and the context is
 * small.
 */
async function offloadContext(
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

/**
 * Creates a failure that Temporal retries, because the next attempt may reach a worker that has the
 * agent.
 */
function unknownAgent(
  { agent, blocked }: LoadAgentInput,
  known: readonly string[],
): ApplicationFailure {
  const message =
    `agent: expected an agent of ${THIS_WORKER}, got ${show(agent)} (${namesHint(agent, known)}); start a worker that ` +
    // As much as a line of the command shows.
    'has it, correct the name, or give each project its own taskQueue';
  return problemFailure(
    { type: 'blocked', reason: 'agent_missing', message },
    {
      type: 'AgentUnknown',
      isRetryable: true,
      ...(blocked && { retryAfterMs: searchDelayMs(Context.current().info.attempt) }),
    },
  );
}

function refused(message: string): ApplicationFailure {
  return refusedFailure(message, 'AgentRefused');
}
