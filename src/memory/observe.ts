import { isLost, never } from './attempt.js';
import type { Agent } from '../agents/agent.js';
import { toPlain } from '../tools/result/plain.js';
import { type Tool, type ToolContext, createToolRegistry } from '../tools/tool.js';
import type { Model, ModelRequest } from '../models/model.js';
import { type Script, type Stage, afterCall, afterStep, beforeCall, beforeStep } from './script.js';

/** A tool call that was executed. */
export interface MemoryEffect {
  /** The id of the run that made the call. */
  readonly run: string;
  readonly turn: number;
  readonly step: number;
  /** The id of the call. */
  readonly call: string;
  readonly tool: string;
  /** What the tool got. */
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

interface Watch {
  readonly script: Script;
  readonly stage: () => Stage;
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
    const own = { ...agent, tools: createToolRegistry(tools), agents: [] as readonly Agent[] };
    made.set(agent, own);
    own.agents = agent.agents.map(observe);
    return own;
  };
  return agents.map(observe);
}

function observeTool(tool: Tool, { effects }: Observed, { script, stage }: Watch): Tool {
  return {
    ...tool,
    async executeParsed(input: unknown, context: ToolContext) {
      const { run, call, idempotencyKey } = context;
      await beforeCall(script, stage(), { tool: tool.name, call: call.id });
      if (isLost()) return await never();
      const { id, turn, step } = run;
      const place = { run: id, turn, step, call: call.id, tool: tool.name };
      const effect = { ...place, input: toPlain(input), attempt: call.attempt, idempotencyKey };
      try {
        const result: unknown = await tool.executeParsed(input, context);
        effects.push({ ...effect, result: toPlain(result) });
        return result;
      } catch (error) {
        effects.push({ ...effect, error: error instanceof Error ? error.message : String(error) });
        throw error;
      } finally {
        afterCall(script, stage(), call.id);
      }
    },
  };
}

/** Returns the model, so that each request is observed. */
export function observeModel(
  model: Model,
  { modelRequests }: Observed,
  { script, stage }: Watch,
): Model {
  return {
    ...model,
    async call(request, context) {
      const number = await beforeStep(script, stage());
      if (isLost()) return await never();
      const { files: _files, ...recorded } = request;
      modelRequests.push({ ...recorded, messages: [...recorded.messages] });
      try {
        return await model.call(request, context);
      } finally {
        afterStep(script, stage(), number);
      }
    },
  };
}
