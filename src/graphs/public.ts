// What the package exports for graphs.
export { cases } from './cases.js';
export { defineGraph, type UnwiredGraph } from './define-graph.js';
export type {
  Graph,
  GraphAgentOptions,
  GraphInput,
  GraphOf,
  GraphOptions,
} from './graph-options.js';
export type {
  ConfirmKind,
  DecideKind,
  EachAction,
  ExactFields,
  ExitChoice,
  GraphInputTemplate,
  GraphKinds,
  GraphMessage,
  GraphNodeOptions,
  NodeCases,
  NodeFunctionOptions,
  NodeSaveOptions,
  NodeSpec,
  RouteContext,
} from './node-spec.js';
export type { ExecuteNodeOptions, PlanNodeOptions } from './plan-spec.js';
export type {
  GraphFieldHolding,
  GraphFieldOf,
  GraphFieldTaking,
  GraphPatchOf,
  GraphStateOf,
} from './state-shape.js';
export type { GraphWiring, NodeEdges } from './wiring.js';
export {
  text,
  type GraphPath,
  type GraphPathConditions,
  type GraphPathOf,
  type GraphTemplate,
  type GraphText,
} from './path.js';
export {
  planAndExecute,
  type BeforePlan,
  type PlanAndExecute,
  type PlanAndExecuteOptions,
  type PlanStateShape,
} from './plan-and-execute.js';
export type { PassedOption } from './graph-options.js';
export { planState } from './plan-types.js';
export type { ActionResult, Plan, PlannedAction, PlannedRead } from '../core/plan/plan.js';
export type { Place, Referring } from '../core/plan/references.js';
export type {
  EachBody,
  ExecuteNode,
  FailedDependency,
  GraphCase,
  GraphDefinition,
  GraphExit,
  GraphNode,
  GraphValue,
  NodeKind,
  NodeOutput,
  PlanNode,
  WorkerNode,
} from '../core/graph/definition.js';
