import { showPlan } from '../plan/confirm-plan.js';
import { planCalls } from '../plan/plan-batch.js';
import { planIn, planValue } from '../plan/plan.js';
import type { EachBody, GraphNode } from '../definition/graph-definition.js';
import { holds } from '../definition/predicate.js';
import { type GraphState, type RunState } from '../state/state.js';
import { nodeCallId, nodeCallName } from '../state/turn-definition.js';
import {
  type Json,
  type JsonObject,
  type Scope,
  canonicalJson,
  evaluate,
  evaluateText,
  isObject,
  itemsOf,
  sha256Hex,
  textField,
  valueAt,
} from '../text/json.js';
import type { ToolCall } from '../transcript/messages.js';
import {
  type NodeEnd,
  type Visited,
  agentEnd,
  confirmEnd,
  eachEnd,
  executeEnd,
  functionEnd,
  toolEnd,
} from './node-ends.js';

/** What a call of a node does: a tool's name or the node's own, and the arguments. */
interface Planned {
  readonly name: string;
  readonly arguments: JsonObject;
}

type Kind = GraphNode['kind'];
type NodeOf<K extends Kind> = Extract<GraphNode, { kind: K }>;

/** All that distinguishes one kind of node from another for the run that visits it. */
interface NodeKindRules<N> {
  /** What the node does, in a few words. It may contain any characters. */
  readonly about: (node: N) => string;
  /** What its text is between in a Mermaid chart, which determines its shape. */
  readonly shape: readonly [string, string];
  /** The calls of a visit; none if the node's work is not a call, or if it takes no time. */
  readonly calls: (node: N, graph: GraphState) => readonly ToolCall[];
  /** How a visit with these results has ended. */
  readonly end: (state: RunState, node: N, visited: Visited) => NodeEnd;
  /** The exit of a visit that takes no time; null if it takes time. */
  readonly exitAtOnce: (node: N, graph: GraphState) => string | null;
}

const BOX = ['["', '"]'] as const;
const CHOICE = ['{{"', '"}}'] as const;
const FRAME = ['[["', '"]]'] as const;

/** A node without a call of its own, such as one whose work is a model call. */
const CALLS_NOTHING = {
  calls: () => [],
  end: () => ({ exit: 'failed' }),
  exitAtOnce: () => null,
} as const;

/** The rules of each kind of node. One that is not here does not compile. */
const NODE_KINDS: { readonly [K in Kind]: NodeKindRules<NodeOf<K>> } = {
  run: {
    about: () => 'run',
    shape: BOX,
    calls: functionCalls,
    end: (_state, node, { results: [result] }) => functionEnd(node, result),
    exitAtOnce: () => null,
  },
  route: {
    about: () => 'route',
    shape: CHOICE,
    calls: functionCalls,
    end: (_state, node, { results: [result] }) => functionEnd(node, result),
    exitAtOnce: () => null,
  },
  choose: {
    ...CALLS_NOTHING,
    about: () => 'choose',
    shape: ['{"', '"}'],
    exitAtOnce: (node, { values }) =>
      node.cases.find(({ when }) => holds(when, values))?.exit ?? 'else',
  },
  agent: {
    about: (node) => `agent ${node.agent}`,
    shape: FRAME,
    calls: (node, graph) => visitCalls(node, graph, [toCall(node.name, node, scopeOf(graph))]),
    end: (_state, node, { results: [result] }) => agentEnd(node, result),
    exitAtOnce: () => null,
  },
  graph: {
    about: (node) => `graph ${node.graph}`,
    shape: FRAME,
    calls: (node, graph) => visitCalls(node, graph, [toCall(node.name, node, scopeOf(graph))]),
    end: (_state, node, { results: [result] }) => agentEnd(node, result),
    exitAtOnce: () => null,
  },
  decide: { ...CALLS_NOTHING, about: () => 'decide', shape: CHOICE },
  plan: { ...CALLS_NOTHING, about: () => 'plan', shape: BOX },
  execute: {
    about: () => 'execute',
    shape: BOX,
    calls: planCalls,
    end: (state, node, { results }) => executeEnd(state, node, results),
    exitAtOnce: () => null,
  },
  answer: {
    ...CALLS_NOTHING,
    about: () => 'answer',
    shape: BOX,
    // An earlier node's answer is kept.
    exitAtOnce: (node, { values }) => (valueAt(values, node.save) ? 'done' : null),
  },
  tool: {
    about: (node) => `tool ${node.tool}`,
    shape: BOX,
    calls: (node, graph) => {
      const given = toObject(evaluate(node.arguments ?? {}, scopeOf(graph)));
      return visitCalls(node, graph, [{ name: node.tool, arguments: given }]);
    },
    end: (_state, node, { results: [result] }) => toolEnd(node, result),
    exitAtOnce: () => null,
  },
  each: {
    about: ({ body, atOnce }) => `each ${aboutBody(body)}, ${atOnce} at once`,
    shape: BOX,
    calls: (node, graph) => {
      const { body, name, over } = node;
      const items = itemsOf(over, graph.values) ?? [];
      const state = body.kind === 'run' ? withoutList(graph.values, over) : graph.values;
      return visitCalls(
        node,
        graph,
        items.map((item) => toCall(name, body, { state, item })),
      );
    },
    end: eachEnd,
    exitAtOnce: () => null,
  },
  confirm: {
    about: () => 'confirm',
    // In flow charts, a trapezoid is a manual operation. An emoji marks a person.
    shape: ['[\\"👤 ', '"/]'],
    calls: (node, graph) => {
      const given = questionOf(node, graph.values);
      return visitCalls(node, graph, [{ name: nodeCallName(node.name), arguments: given }]);
    },
    end: (state, node, { results: [result] }) => confirmEnd(state, node, result),
    exitAtOnce: () => null,
  },
};

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- ties a node to its rules
function rulesOf<K extends Kind>({ kind }: { readonly kind: K }): NodeKindRules<NodeOf<K>> {
  return NODE_KINDS[kind];
}

/** Returns what a node does, in a few words. */
export function aboutNode(node: GraphNode): string {
  return rulesOf(node).about(node);
}

/** Returns the delimiters of a node's text in a Mermaid chart, which determine its shape. */
export function nodeShape(kind: Kind): readonly [string, string] {
  return NODE_KINDS[kind].shape;
}

/** Returns the calls with which a visit of a node begins. */
export function callsOf(node: GraphNode, graph: GraphState): readonly ToolCall[] {
  return rulesOf(node).calls(node, graph);
}

/** Returns how the visit of a node has ended. */
export function endOf(state: RunState, node: GraphNode, visited: Visited): NodeEnd {
  return rulesOf(node).end(state, node, visited);
}

/** Returns the exit of a node that takes no time; null for any other node. */
export function exitAtOnce(node: GraphNode, graph: GraphState): string | null {
  return rulesOf(node).exitAtOnce(node, graph);
}

function aboutBody(body: EachBody): string {
  switch (body.kind) {
    case 'agent':
      return `agent ${body.agent}`;
    case 'graph':
      return `graph ${body.graph}`;
    case 'tool':
      return `tool ${body.tool}`;
    case 'run':
      return 'run';
  }
}

function scopeOf({ values }: GraphState): Scope {
  return { state: values };
}

function visitCalls(
  node: GraphNode,
  graph: GraphState,
  planned: readonly Planned[],
): readonly ToolCall[] {
  return planned.map(({ name, arguments: given }, index): ToolCall => {
    const json = canonicalJson(given);
    const id = `${nodeCallId(node.name, graph)}_${index}`;
    return { id, name, arguments: json, digest: sha256Hex(json), node: node.name };
  });
}

function functionCalls(node: NodeOf<'run' | 'route'>, graph: GraphState): readonly ToolCall[] {
  const { values: state } = graph;
  return visitCalls(node, graph, [{ name: nodeCallName(node.name), arguments: { state } }]);
}

/**
 * Returns the question for a person. It includes the plan, so the decision is bound to every
 * action.
 */
function questionOf(
  { show, plan: field }: Extract<GraphNode, { kind: 'confirm' }>,
  values: JsonObject,
): JsonObject {
  const text = evaluateText(show, { state: values });
  if (field === undefined) return { question: text, options: ['yes', 'no'] };
  const plan = planIn(values, field);
  const question = [...(text === '' ? [] : [text, '']), showPlan(plan)].join('\n');
  return { question, options: ['yes', 'no'], actions: planValue(plan)['actions'] };
}

/**
 * Returns the state without the list for an item's function; otherwise, the list would be recorded
 * once per item.
 */
function withoutList(values: JsonObject, over: Json): JsonObject {
  const path = isObject(over) ? textField(over, '$path') : '';
  return path === '' ? values : without(values, path.split('.'));
}

function without(values: JsonObject, [field = '', ...inner]: readonly string[]): JsonObject {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]): [string, Json][] => {
      if (name !== field) return [[name, value ?? null]];
      if (inner.length > 0 && isObject(value)) return [[name, without(value, inner)]];
      return [];
    }),
  );
}

function toCall(
  node: string,
  body: EachBody | Extract<GraphNode, { kind: 'agent' | 'graph' }>,
  scope: Scope,
): Planned {
  const name = nodeCallName(node);
  switch (body.kind) {
    case 'run':
      return { name, arguments: { state: scope.state, item: scope.item ?? null } };
    case 'agent': {
      if (body.prompt === undefined) {
        return { name, arguments: { message: evaluateText(body.message, scope) } };
      }
      const given = body.args !== undefined && { promptArgs: evaluate(body.args, scope) };
      return { name, arguments: { ...given } };
    }
    case 'graph':
      return { name, arguments: { input: evaluate(body.input, scope) } };
    case 'tool':
      return { name: body.tool, arguments: toObject(evaluate(body.arguments, scope)) };
  }
}

/** Returns arguments as an object. Any other value is passed to the tool, which refuses it. */
function toObject(value: Json): JsonObject {
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the only other object is a list
  return isRecord ? (value as JsonObject) : { value };
}
