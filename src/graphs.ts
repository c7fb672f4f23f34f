// Graphs and their nodes
export type { GraphParts, NodeFunction, NodeResult } from './agents/agent.js';
export type { NodeContext } from './tools/tool.js';
export { cases } from './graphs/cases.js';
export { defineGraph, type UnwiredGraph } from './graphs/define-graph.js';
export type {
  Graph,
  GraphAgentOptions,
  GraphInput,
  GraphOf,
  GraphOptions,
  PassedOption,
} from './graphs/graph-options.js';
export type { GraphKinds } from './graphs/node-kinds.js';
export {
  planState,
  type ConfirmKind,
  type DecideKind,
  type EachAction,
  type ExactFields,
  type ExitChoice,
  type GraphInputTemplate,
  type GraphMessage,
  type GraphNodeOptions,
  type NodeCases,
  type NodeFunctionOptions,
  type NodeSaveOptions,
  type NodeSpec,
  type RouteContext,
  type ExecuteNodeOptions,
  type PlanNodeOptions,
  type GraphWiring,
  type NodeEdges,
} from './graphs/node-spec.js';
export {
  text,
  type GraphFieldHolding,
  type GraphFieldOf,
  type GraphFieldTaking,
  type GraphPatchOf,
  type GraphStateOf,
  type GraphPath,
  type GraphPathConditions,
  type GraphPathOf,
  type GraphTemplate,
  type GraphText,
} from './graphs/values.js';

// Plans
export type {
  ActionResult,
  Plan,
  PlannedAction,
  PlannedRead,
  Place,
  Referring,
} from './core/plan/plan.js';
export {
  planAndExecute,
  type PlanAndExecuteOptions,
  type PlanAndExecute,
} from './graphs/plan-and-execute.js';

// Graphs as data
export type { NodeVisit, GraphDefinition } from './core/definition/graph-definition.js';
export type {
  EachBody,
  ExecuteNode,
  FailedDependency,
  GraphCase,
  GraphExit,
  GraphValue,
  NodeBase,
  NodeOutput,
  PlanNode,
  WorkerNode,
} from './core/definition/node-data.js';
export type { GraphNode, NodeKind } from './core/definition/node-kinds.js';
