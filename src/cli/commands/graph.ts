import { WorkflowNotFoundError } from '@temporalio/client';
import { toAgentDefinition, withCalled } from '../../agents/agent-definition.js';
import type { Agent } from '../../agents/agent.js';
import { storedId } from '../../client/run-ids.js';
import { toRunStatus } from '../../client/status.js';
import type { GraphDefinition } from '../../core/definition/graph-definition.js';
import { type Drawing, drawGraph, drawLoop, drawRun, toMermaid } from '../../core/graph/draw.js';
import { runGraph } from '../../core/graph/describe.js';
import { isLoaded } from '../../core/rules/limits.js';
import { type PlanProgress, planProgress } from '../../core/run/details.js';
import type { GraphState } from '../../core/state/state.js';
import type { RunPhase } from '../../core/state/status.js';
import { visible } from '../../core/state/summaries.js';
import { currentNode } from '../../core/state/turn-definition.js';
import { readWaited } from '../../history/segments.js';
import { describeWorkflow } from '../../temporal/server-answers.js';
import { namesHint } from '../../validation/near-names.js';
import {
  type CliContext,
  type Command,
  CommandError,
  EXIT,
  type ExitCode,
  UsageError,
} from '../context.js';
import { withOptions } from '../input/options.js';
import { noConfigFix, openRun } from '../open-run.js';
import { nextCommandOf } from '../reports/next-command.js';

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
  if (agent === undefined) throw await unknownName(context, name, agents);
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

async function unknownName(
  context: CliContext,
  name: string,
  agents: readonly Agent[],
): Promise<UsageError> {
  const names = agents.map((agent) => visible(agent.name));
  const isRun = await isRunId(context, name);
  const draw = nextCommandOf(context, ['graph', `--run=${name}`]);
  const fix = isRun
    ? `it is a run: draw its graph with: ${draw}`
    : (noConfigFix(context) ??
      `correct the name${isRun === null ? `, or, if it is a run, draw its graph with: ${draw}` : ''}`);
  return new UsageError(
    `name: expected an agent or a graph of the configuration, got ${JSON.stringify(visible(name))} (${namesHint(name, names)}); ${fix}`,
  );
}

/** The end of an id that was generated for a run: the day, and random digits. */
const GENERATED_ID = /-\d{8}-[0-9a-f]{6}$/;

/** Returns whether a run has this id; null if no server says so, and the id may be that of a run. */
async function isRunId(context: CliContext, name: string): Promise<boolean | null> {
  try {
    const client = await context.client({ start: false });
    await describeWorkflow(client, await storedId(client, name));
    return true;
  } catch (error) {
    return error instanceof WorkflowNotFoundError || !GENERATED_ID.test(name) ? false : null;
  }
}

async function graphOfRun(context: CliContext, id: string): Promise<GraphOutput> {
  const { client, run } = await openRun(context, id, { archive: true });
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
  const { archive } = await context.stores();
  const waited = await readWaited({ client, archive }, run);
  const count = isExecuting ? `, ${plan.done} of ${plan.actions.length} done` : '';
  return {
    agent: run.agent,
    run: run.id,
    definition: state.config.definition.graph ?? null,
    state: runGraph(state)?.state ?? null,
    plan,
    drawing: drawRun(state, { here: `${hereText(status)}${count}`, waited }),
  };
}

/** Returns the label for the node that the run has reached. */
function hereText(status: RunPhase): string {
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
    case 'done':
      return 'ended here';
  }
}
