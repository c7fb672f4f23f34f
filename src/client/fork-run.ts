import type { Client } from '@temporalio/client';
import type { z } from 'zod';
import {
  type GraphDefinition,
  type NodeVisit,
  nodeVisitProblem,
} from '../core/definition/graph-definition.js';
import { InputError } from '../core/errors.js';
import { INPUT_FIELDS } from '../core/input/input.js';
import type { LimitOptions, Limits } from '../core/definition/definition.js';
import type { ClientTool } from '../core/definition/tool-definition.js';
import { addedToolsProblem } from '../core/input/client-tools.js';
import { droppedPart, inputProblem } from '../core/graph/walk.js';
import { checkLimits, toLimits } from '../core/input/limits.js';
import { effectiveLimits } from '../core/rules/limits.js';
import { visible } from '../core/state/summaries.js';
import { type JsonObject, isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { Attachment } from '../core/transcript/messages.js';
import { type RunReading, readRun } from '../history/read-run.js';
import { readVisit } from '../history/run-transcript.js';
import { readSegment, readSegmentStart } from '../history/segments.js';
import type { ServedAgent } from '../temporal/pollers.js';
import type { Archive, BlobStore } from '../storage/blob-store.js';
import { readContext } from '../storage/owned-text.js';
import {
  type AgentLike,
  type RunSettings,
  type StartedRun,
  agentName,
  assertStartFields,
  createRunInput,
  startRun,
} from '../updates/start.js';
import { fieldsProblem, requiredFields } from '../validation/check-options.js';
import { namesHint } from '../validation/near-names.js';
import { assertOptionNames } from '../validation/option-names.js';
import { claimAttachments } from './attach.js';
import { nameRun } from './run-ids.js';

/** Where a fork branches off from the other run, and what the new run starts with. */
export interface ForkOptions<Output> extends RunSettings {
  /**
   * Number of the first message that is left out; default: all messages are copied. Or a visit of a
   * node in the run's graph: the new run begins its first turn at that node, with the state and the
   * messages that the run had when the visit began. No earlier node is executed again.
   */
  readonly at?: number | NodeVisit;
  /** Required, except for an open run that gets its first message later, and at a node. */
  readonly message?: string;
  /**
   * For a graph: fields of its state. At a node, they replace the values of the other run. Default:
   * none.
   */
  readonly input?: JsonObject;
  /** Files and images of the message; default: none. */
  readonly attachments?: readonly Attachment[];
  /** The permanent id of the new run; default: as for any run. */
  readonly id?: string;
  /** Whether the run waits for more messages after a turn instead of ending; default false. */
  readonly open?: boolean;
  /**
   * Default: the agent of the other run, with its arguments, context, and `clientTools`, in its current version.
   */
  readonly agent?: AgentLike<Output>;
}

const FORK_NAMES = {
  at: true,
  message: true,
  input: true,
  attachments: true,
  id: true,
  open: true,
  agent: true,
  limits: true,
  context: true,
  args: true,
  settings: true,
  tags: true,
  archive: true,
  by: true,
  rules: true,
  tenant: true,
  unattended: true,
  modelAttempts: true,
} as const;

/**
 * Throws an `InputError` for an option that a fork does not have, such as a misspelled `at`. What only a start has is
 * left to the check of the input, which says what to do instead.
 */
export function assertForkOptions(given: ForkOptions<unknown>): void {
  const left = Object.entries(given).filter(([name]) => !INPUT_FIELDS.includes(name));
  assertOptionNames<Partial<ForkOptions<unknown>>>(Object.fromEntries(left), FORK_NAMES, 'fork');
  const at: unknown = given.at;
  if (at === undefined || typeof at === 'number' || isObject(at)) return;
  throw new InputError(
    `fork.at: expected the number of a message, or { node } for a node, got ${show(at)}`,
  );
}

/**
 * Starts a run that begins with the messages of another run, on the same task queue. The other run
 * does not change. Rejects with a `NoRunError`, an `InputError`, or an `IdTakenError`.
 */
export async function forkRun<Output>(
  client: Client,
  source: string,
  { id, agent, at, ...given }: ForkOptions<Output>,
  { config, memo, ...stores }: ForkPlace,
): Promise<StartedRun> {
  const { blobs, archive } = stores;
  const run = await readRun(client, source, { archive });
  const visit = typeof at === 'object' ? await visitOf(client, run, { at, archive }) : null;
  const total = run.view.state?.transcript.next ?? 0;
  if (total === 0 && visit === null) {
    throw new InputError(`fork.run: run "${visible(source)}" has no messages; start a new run`);
  }
  if (typeof at === 'number' && at > total) {
    throw new InputError(
      `fork.at: expected at most ${total}, the messages of run "${visible(source)}", got ${at}`,
    );
  }
  const name = agent === undefined ? run.agent : agentName(agent);
  const [started] = run.events;
  const runId = started?.type === 'started' ? started.firstRunId : '';
  const place = visit ?? at;
  const fork = {
    run: source,
    ...(place !== undefined && { at: place }),
    ...(runId !== '' && { runId }),
  };
  const inherited = name === run.agent ? await readSettings(client, run, stores) : {};
  assertKnownAgent(config, agent ?? name, { ...inherited, ...given });
  // A called run has the tenant of its caller by its priority alone.
  const tenant = run.view.input?.tenant ?? run.description?.priority?.fairnessKey;
  const shares = tenant ? { tenant } : {};
  const named = await nameRun(client, {
    id,
    agent: name,
    tenant: given.tenant ?? (tenant || undefined),
  });
  const attached = await claimAttachments(blobs, named.id, given);
  const input = createRunInput(name, { ...shares, ...inherited, ...given, ...attached, fork });
  return await startRun(client, input, {
    ...named,
    taskQueue: run.taskQueue,
    ...(memo && { memo }),
  });
}

/** Returns the visit with its number. Throws an `InputError` if the run cannot be forked there. */
async function visitOf(
  client: Client,
  run: RunReading,
  { at, archive }: { readonly at: NodeVisit; readonly archive: Archive },
): Promise<NodeVisit> {
  const misfit = nodeVisitProblem(at, 'fork.at');
  if (misfit !== null) throw new InputError(misfit);
  const found = await readVisit(client, run, { ...at, archive });
  if ('problem' in found) throw new InputError(found.problem);
  return { node: at.node, visit: found.graph.visit };
}

/** The stores for large texts, and for runs that the server has deleted. */
interface Stores {
  readonly blobs: BlobStore;
  readonly archive: Archive;
}

interface ForkPlace extends Stores {
  /** The agents that the client knows; absent if it knows none. */
  readonly config?: { readonly agents: readonly KnownAgent[] } | undefined;
  /** The initial memo of the new run. */
  readonly memo?: Readonly<Record<string, unknown>>;
}

/** Returns the agent's arguments and context, and the caller's tools, from the first segment; later ones may lack them. */
async function readSettings(
  client: Client,
  { id, runId, events, view }: RunReading,
  { blobs, archive }: Stores,
): Promise<object> {
  const [newest] = events;
  if (newest?.type !== 'started') return {};
  const firstRunId = newest.firstRunId || runId;
  const first =
    (await readSegmentStart(client, id, firstRunId)) ??
    (await readSegment(client, { id, runId: firstRunId, archive }))?.events[0];
  const { input } = first?.type === 'started' ? first : newest;
  if (!isObject(input)) return {};
  const { context, contextBlob, args, clientTools } = input;
  const ref = view.state?.config.contextBlob;
  // A called agent gets its context from its caller by reference; the fork has no caller.
  const isOwn = contextBlob === undefined || ref === undefined;
  return { context: isOwn ? context : await readContext(blobs, ref), args, clientTools };
}

/**
 * What a client knows about an agent, to refuse a run that no worker could start. `Agent` is
 * assignable to it.
 */
export interface KnownAgent {
  readonly name: string;
  /** Null if its instructions are not a template; it then accepts no arguments. */
  readonly template: { readonly args: z.ZodObject } | null;
  /** Its named prompts; absent if there are none. */
  readonly prompts?: ReadonlyMap<string, { readonly args?: z.ZodObject }>;
  /** Its tools; absent: unknown. */
  readonly tools?: { readonly tools: readonly { readonly name: string; readonly kind?: string }[] };
  /** Present if it is a graph. */
  readonly graph?: { readonly definition: GraphDefinition; readonly input: z.ZodObject };
  /** The limits that a run may only lower; absent: unknown. */
  readonly limits?: Limits;
  /** The agents that it may call; they may also be started. */
  readonly agents: readonly KnownAgent[];
}

/** The parts of a start that depend on the agent. */
interface KnownStart {
  /** Null: they are given elsewhere, or in part, so that none is missing. */
  readonly args?: object | null | undefined;
  readonly prompt?: string | undefined;
  readonly promptArgs?: unknown;
  readonly message?: unknown;
  readonly messages?: unknown;
  readonly input?: unknown;
  readonly clientTools?: readonly ClientTool[] | undefined;
  readonly limits?: LimitOptions | undefined;
}

/**
 * Returns why none of these agents can start the run, or which part of the start would have no
 * effect; null if one can.
 */
export function agentProblem(
  agents: readonly KnownAgent[],
  {
    agent,
    args = {},
    prompt,
    promptArgs = {},
    messages,
    message = messages ?? prompt,
    input,
    clientTools,
    limits,
  }: KnownStart & { readonly agent: string },
): string | null {
  const known = withCalled(agents);
  const found = known.find(({ name }) => name === agent);
  if (found === undefined) {
    const agentNames = known.map(({ name }) => name);
    return `${unknownAgent(agent, agentNames, 'the configuration')}; correct the name, or add the agent`;
  }
  const names = [...(found.prompts?.keys() ?? [])];
  if (prompt !== undefined && !names.includes(prompt)) {
    if (names.length === 0) return `prompt: agent ${show(agent)} has no prompts; give a message`;
    return `prompt: expected a prompt of agent ${show(agent)}, got ${show(prompt)} (${namesHint(prompt, names.map(visible))}); correct the name`;
  }
  if (found.template === null && Object.keys(args ?? {}).length > 0) {
    return `args: expected none for agent ${show(agent)}, whose instructions are not a template; remove them`;
  }
  const { template, prompts, graph, tools } = found;
  const extended = { name: agent, tools: tools?.tools ?? [], graph };
  return (
    addedToolsProblem(extended, clientTools) ??
    (template && args
      ? argsProblem('args', args, { of: `agent ${show(agent)}`, type: template.args })
      : null) ??
    promptArgsProblem(promptArgs, { agent, prompt, type: prompts?.get(prompt ?? '')?.args }) ??
    droppedPart({ name: agent, graph: graph?.definition }, { message, input }) ??
    (graph && isObject(input) ? graphInputProblem(graph, agent, input) : null) ??
    limitsProblem(found, limits)
  );
}

/** Returns why a run cannot have these limits, or null. What is wrong with their form is found elsewhere. */
function limitsProblem(agent: KnownAgent, given: LimitOptions | undefined): string | null {
  const limits = toLimits(given);
  if (limits === undefined || checkLimits(limits, 'limits') !== null) return null;
  const effective = effectiveLimits(agent.limits ?? {}, limits);
  return typeof effective === 'string' ? effective : null;
}

/** Returns the text about an agent that its owner lacks, with the nearest names and without a fix. */
export function unknownAgent(agent: string, names: readonly string[], owner: string): string {
  return `agent: expected an agent of ${owner}, got ${show(agent)} (${namesHint(agent, names.map(visible))})`;
}

/** Returns why no worker on the task queue can start the agent; null if one may. */
export function servedAgentProblem(
  agent: string,
  served: ServedAgent,
  taskQueue: string,
): string | null {
  if (served.is !== 'lacking') return null;
  const owner = `the worker on task queue "${visible(taskQueue)}"`;
  return `${unknownAgent(agent, served.agents, owner)}; correct the name, or start a worker that has it`;
}

/** Returns what is wrong with the arguments of a template, or null. */
function argsProblem(
  where: string,
  args: object,
  { of, type }: { readonly of: string; readonly type: z.ZodObject },
): string | null {
  const fields = { known: Object.keys(type.shape), shape: type.shape };
  const wrong = fieldsProblem({ where, owner: `the template of ${of}` }, args, fields);
  if (wrong !== null) return wrong;
  const missing = requiredFields(fields).find((name) => !Object.hasOwn(args, name));
  if (missing === undefined) return null;
  return `${where}.${missing}: missing; the template of ${of} takes ${fields.known.join(', ')}`;
}

function promptArgsProblem(
  given: unknown,
  {
    agent,
    prompt,
    type,
  }: {
    readonly agent: string;
    readonly prompt: string | undefined;
    readonly type: z.ZodObject | undefined;
  },
): string | null {
  if (prompt === undefined || !isObject(given)) return null;
  if (type === undefined) {
    if (Object.keys(given).length === 0) return null;
    return `promptArgs: expected none for prompt ${show(prompt)} of agent ${show(agent)}, whose text is not a template; remove them`;
  }
  return argsProblem('promptArgs', given, { of: `prompt ${show(prompt)}`, type });
}

/** Returns what is wrong with the fields that start a graph, or null. */
function graphInputProblem(
  { definition, input: type }: NonNullable<KnownAgent['graph']>,
  name: string,
  input: object,
): string | null {
  const fields = { known: definition.fields, shape: type.shape };
  const owner = `the state of graph ${show(name)}`;
  const wrong = fieldsProblem({ where: 'input', owner }, input, fields);
  return wrong ?? inputProblem({ name, graph: definition }, input);
}

function withCalled(agents: readonly KnownAgent[]): readonly KnownAgent[] {
  const all = new Set<KnownAgent>();
  const add = (agent: KnownAgent): void => {
    if (all.has(agent)) return;
    all.add(agent);
    agent.agents.forEach(add);
  };
  agents.forEach(add);
  return [...all];
}

/**
 * Throws an `InputError` if the client knows its agents, or is given the agent itself, and the run
 * cannot start.
 */
export function assertKnownAgent(
  config: { readonly agents: readonly KnownAgent[] } | undefined,
  agent: AgentLike<unknown> | undefined,
  given: KnownStart = {},
): void {
  if (agent === undefined) return;
  const agents = config?.agents ?? (isKnownAgent(agent) ? [agent] : undefined);
  if (agents === undefined) return;
  const problem = agentProblem(agents, { ...given, agent: agentName(agent) });
  if (problem !== null) throw new InputError(problem);
}

/** Like `assertKnownAgent`; before that, refuses a field that a start does not have: a misspelled one may be what is missing. */
export function assertStart(
  ...[config, agent, given = {}]: Parameters<typeof assertKnownAgent>
): void {
  assertStartFields(given);
  assertKnownAgent(config, agent, given);
}

/** Whether a caller has passed what `defineAgent` or `defineGraph` made. */
function isKnownAgent(agent: object | string): agent is KnownAgent {
  return typeof agent === 'object' && 'template' in agent && 'agents' in agent;
}
