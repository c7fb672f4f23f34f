import { toAgentDefinition } from '../../agents/agent-definition.js';
import type { Agent } from '../../agents/agent.js';
import { withCalled } from '../../agents/catalog.js';
import { toRunStatus } from '../../client/status.js';
import { isLoaded } from '../../core/definition/initial-config.js';
import type { GraphDefinition } from '../../core/graph/definition.js';
import { drawGraph } from '../../core/graph/draw.js';
import { drawLoop } from '../../core/graph/draw-loop.js';
import { drawRun, runGraph } from '../../core/graph/draw-run.js';
import { currentNode } from '../../core/graph/node-tool.js';
import { planProgress, type PlanProgress } from '../../core/plan/progress.js';
import type { Drawing } from '../../core/graph/drawing.js';
import type { GraphState } from '../../core/graph/graph-state.js';
import { toMermaid } from '../../core/graph/mermaid.js';
import type { RunStatusName } from '../../core/status.js';
import { visible } from '../../core/text/summaries.js';
import { nearestFirst } from '../../validation/nearest.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { CommandError, EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { openRun } from '../open-run.js';

export interface GraphCommandOptions {
  /** An agent of the configuration. */
  readonly name?: string;
  readonly run?: string;
}

/** The output of the command with `--json`. */
interface GraphOutput {
  /** The agent's name. */
  readonly agent: string;
  /** The run's id; null for an agent of the configuration. */
  readonly run: string | null;
  /** Null for the built-in loop. */
  readonly definition: GraphDefinition | null;
  /** Null without a run, or before its first turn. */
  readonly state: GraphState | null;
  /** The progress of the run's plan; null without a plan. */
  readonly plan: PlanProgress | null;
  readonly drawing: Drawing;
}

/** The maximum number of agents that an error lists. */
const NEAREST = 5;

/**
 * `graph NAME`, `graph --run ID`: prints the graph of an agent or of a run as Mermaid. Needs no
 * worker.
 */
export const graph: Command<GraphCommandOptions> = {
  declare: (entry) =>
    withOptions(entry.argument('[name]', 'an agent or a graph of the configuration'), 'run'),
  async run(context, { name, run }) {
    if (name !== undefined && run !== undefined) {
      throw new UsageError('--run: expected no NAME, got both; omit one of them');
    }
    if (run !== undefined) return print(context, await graphOfRun(context, run));
    if (name !== undefined) return print(context, await graphOfAgent(context, name));
    throw new UsageError(
      'name: expected the name of an agent or a graph, got none; add it, or select a run with --run ID',
    );
  },
};

function print(context: CliContext, output: GraphOutput): ExitCode {
  const text = toMermaid(output.drawing);
  context.out(context.options.json ? JSON.stringify({ ...output, mermaid: text }) : text);
  return EXIT.completed;
}

async function graphOfAgent(context: CliContext, name: string): Promise<GraphOutput> {
  const agents = withCalled((await context.config()).agents);
  const agent = agents.find((candidate) => candidate.name === name);
  if (agent === undefined) throw unknownName(name, agents);
  const definition = agent.graph?.definition ?? null;
  const found = { agent: name, run: null, definition, state: null, plan: null };
  if (definition !== null) return { ...found, drawing: drawGraph(definition) };
  if (agent.mcp.length > 0) {
    context.note('The tools of MCP servers are not shown: a run lists them when it starts.');
  }
  const model = agent.model ?? '';
  return {
    ...found,
    drawing: drawLoop(toAgentDefinition(agent, { model, tools: agent.tools.tools })),
  };
}

function unknownName(name: string, agents: readonly Agent[]): UsageError {
  const names = agents.map((agent) => agent.name);
  const nearest = nearestFirst(name, names).slice(0, NEAREST);
  return new UsageError(
    `name: expected an agent or a graph of the configuration, got ${JSON.stringify(visible(name))}; ` +
      `use one of: ${nearest.join(', ')}${names.length > nearest.length ? ', …' : ''}`,
  );
}

async function graphOfRun(context: CliContext, id: string): Promise<GraphOutput> {
  const { run } = await openRun(context, id, { archive: true });
  const { state } = run.view;
  if (state === null || !isLoaded(state)) {
    throw new CommandError(
      'unavailable',
      `run ${visible(id)} has no graph yet: no worker has loaded its agent`,
    );
  }
  const { status } = toRunStatus(run, Date.now());
  const plan = planProgress(state);
  const isExecuting = currentNode(state)?.kind === 'execute' && plan !== null;
  const count = isExecuting ? `, ${plan.done} of ${plan.actions.length} done` : '';
  return {
    agent: run.agent,
    run: id,
    definition: state.config.definition.graph ?? null,
    state: runGraph(state)?.state ?? null,
    plan,
    drawing: drawRun(state, `${hereText(status)}${count}`),
  };
}

/** Returns the label for the node that the run has reached. */
function hereText(status: RunStatusName): string {
  switch (status) {
    case 'waiting_message':
    case 'waiting_decision':
    case 'waiting_time':
      return 'waits here';
    case 'blocked':
      return 'is blocked here';
    case 'paused':
      return 'is paused here';
    case 'working':
      return 'works here';
    case 'completed':
    case 'stopped':
    case 'cancelled':
    case 'failed':
    case 'unknown':
      return 'ended here';
  }
}
