import { Context } from '@temporalio/activity';
import { isLost, never } from './attempt.js';
import type { Agent, GraphParts, NodeFunction } from '../agents/agent.js';
import type { RunToolInput, RunToolResult } from '../core/run/contract.js';
import { parseJson } from '../core/text/json.js';
import { toPlain } from '../tools/result/plain.js';
import { RecordedResult, type Tool, type ToolContext, createToolRegistry } from '../tools/tool.js';
import type { Model, ModelRequest } from '../models/model.js';
import { withCall } from '../models/model-entry.js';

/** A tool call that was executed. */
export interface MemoryEffect {
  /** The id of the run that made the call. */
  readonly run: string;
  readonly turn: number;
  readonly step: number;
  /** The id of the call. */
  readonly call: string;
  /** The name of the tool, with that of its MCP server if it has one, or of the node whose function was called. */
  readonly tool: string;
  /** What the tool got; of a function of a node: the state, and the item of an `each`. */
  readonly input: unknown;
  /** Counts from 1. */
  readonly attempt: number;
  readonly idempotencyKey: string;
  /** What the tool returned; absent if it threw. */
  readonly result?: unknown;
  /** Why the tool threw. */
  readonly error?: string;
}

/** What happened outside the history. */
export interface Observed {
  readonly modelRequests: ModelRequest[];
  readonly effects: MemoryEffect[];
}

/** What is told of each call and of each step: where scripts and faults act. */
export interface Watch {
  /** Just before a call is executed. */
  readonly beforeCall: (begun: BegunCall) => Promise<void>;
  /** A call was executed, and nobody has learned of it. */
  readonly afterCall: (call: string) => void;
  /** Just before a model call. Resolves with its number, from 1. */
  readonly beforeStep: () => Promise<number>;
  /** The model has replied, and nobody has learned of it. */
  readonly afterStep: (number: number) => void;
}

/** A call that is about to be executed. */
interface BegunCall {
  /** The name of the tool, or of the node whose function is called. */
  readonly tool: string;
  /** Its id. */
  readonly call: string;
}

/** Returns the agents, with those that they call, so that each execution of a tool is observed. */
export function observeAgents(
  agents: readonly Agent[],
  observed: Observed,
  watch: Watch,
): readonly Agent[] {
  const made = new Map<Agent, Agent>();
  const observe = (agent: Agent): Agent => {
    const known = made.get(agent);
    if (known !== undefined) return known;
    const tools = agent.tools.tools.map((tool) => observeTool(tool, observed, watch));
    const own = {
      ...agent,
      tools: createToolRegistry(tools),
      agents: [] as readonly Agent[],
      ...(agent.graph && { graph: observeGraph(agent.graph, observed, watch) }),
    };
    made.set(agent, own);
    own.agents = agent.agents.map(observe);
    return own;
  };
  return agents.map(observe);
}

function observeTool(tool: Tool, observed: Observed, watch: Watch): Tool {
  return {
    ...tool,
    executeParsed: async (input: unknown, context: ToolContext) =>
      await observeCall(
        { tool: tool.name, input, context, execute: () => tool.executeParsed(input, context) },
        observed,
        watch,
      ),
  };
}

function observeGraph(graph: GraphParts, observed: Observed, watch: Watch): GraphParts {
  const functions = [...graph.functions].map(([node, run]): [string, NodeFunction] => [
    node,
    async (input, context) =>
      await observeCall(
        { tool: node, input, context, execute: () => run(input, context) },
        observed,
        watch,
      ),
  ]);
  return { ...graph, functions: new Map(functions) };
}

interface ObservedCall<Result> {
  readonly tool: string;
  readonly input: unknown;
  readonly context: Pick<ToolContext, 'run' | 'call' | 'idempotencyKey'>;
  readonly execute: () => Result | Promise<Result>;
}

async function observeCall<Result>(
  { tool, input, context, execute }: ObservedCall<Result>,
  { effects }: Observed,
  { beforeCall, afterCall }: Watch,
): Promise<Result> {
  const { run, call, idempotencyKey } = context;
  await beforeCall({ tool, call: call.id });
  if (isLost()) return await never();
  const { id, turn, step } = run;
  const place = { run: id, turn, step, call: call.id, tool };
  const effect = { ...place, input: toPlain(input), attempt: call.attempt, idempotencyKey };
  try {
    const result = await execute();
    const end = result instanceof RecordedResult ? result.end : { result: toPlain(result) };
    effects.push({ ...effect, ...end });
    return result;
  } catch (error) {
    effects.push({ ...effect, error: error instanceof Error ? error.message : String(error) });
    throw error;
  } finally {
    afterCall(call.id);
  }
}

/** Returns the model, so that each request is observed. */
export function observeModel(
  model: Model,
  { modelRequests }: Observed,
  { beforeStep, afterStep }: Watch,
): Model {
  return withCall(model, async (request, context) => {
    const number = await beforeStep();
    if (isLost()) return await never();
    const { files: _files, ...recorded } = request;
    modelRequests.push({ ...recorded, messages: [...recorded.messages] });
    try {
      return await model.call(request, context);
    } finally {
      afterStep(number);
    }
  });
}

/** An activity that executes a call. */
type RunTool = (input: RunToolInput) => Promise<RunToolResult>;

/**
 * Returns the activity that executes calls, so that those of MCP servers are observed: their code is
 * elsewhere. `servers`: their names.
 */
export function observeMcp(
  runTool: RunTool,
  {
    servers,
    observed,
    watch,
  }: {
    readonly servers: ReadonlySet<string>;
    readonly observed: Observed;
    readonly watch: Watch;
  },
): RunTool {
  return async (input) => {
    const { call, turn, step, key, find, judge } = input;
    const [server, name] = call.name.split('__');
    const isMcp = name !== undefined && servers.has(server ?? '');
    if (!isMcp || find || judge) return await runTool(input);
    await watch.beforeCall({ tool: call.name, call: call.id });
    if (isLost()) return await never();
    const { attempt, workflowExecution } = Context.current().info;
    const run = workflowExecution?.workflowId ?? '';
    const place = { run, turn, step, call: call.id, tool: call.name };
    const given = { ...place, input: parseJson(call.arguments), attempt, idempotencyKey: key };
    const result = await runTool(input);
    if (result.ok === true)
      observed.effects.push({ ...given, result: result.output ?? result.text });
    else if (result.ok === false) observed.effects.push({ ...given, error: result.text });
    else if (result.ok === 'unknown') observed.effects.push({ ...given, error: result.message });
    watch.afterCall(call.id);
    return result;
  };
}
