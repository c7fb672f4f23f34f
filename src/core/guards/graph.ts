import type {
  EachBody,
  GraphCase,
  GraphDefinition,
  GraphExit,
  GraphNode,
  NodeOutput,
} from '../graph/definition.js';
import type {
  ConfirmedPlan,
  GraphPlace,
  GraphState,
  Interrupted,
  NodeVisits,
  Conversation,
} from '../graph/graph-state.js';
import { predicateShape } from './requests.js';
import { resultShape } from './result.js';
import {
  amount,
  count,
  fields,
  json,
  jsonObject,
  list,
  nullable,
  oneOf,
  optional,
  tagged,
  text,
  yes,
} from './shape.js';

type NodeOf<K extends GraphNode['kind']> = Extract<GraphNode, { kind: K }>;
type BodyOf<K extends EachBody['kind']> = Extract<EachBody, { kind: K }>;

const node = {
  name: text,
  exits: list(fields<GraphExit>({ name: text, to: text })),
  label: optional(text),
  maxVisits: optional(count),
};
const worker = { timeoutMs: amount, attempts: count };
const named = { prompt: optional(text), args: optional(json) };
const timed = { timeoutMs: optional(amount) };
const bounded = { ...timed, attempts: optional(count) };

const body = tagged<EachBody, 'kind'>('kind', {
  run: fields<BodyOf<'run'>>({ kind: oneOf('run'), ...worker }),
  agent: fields<BodyOf<'agent'>>({
    kind: oneOf('agent'),
    agent: text,
    message: json,
    ...named,
    ...timed,
  }),
  graph: fields<BodyOf<'graph'>>({ kind: oneOf('graph'), graph: text, input: json, ...timed }),
  tool: fields<BodyOf<'tool'>>({ kind: oneOf('tool'), tool: text, arguments: json, ...bounded }),
});

const nodeShape = tagged<GraphNode, 'kind'>('kind', {
  run: fields<NodeOf<'run'>>({ ...node, kind: oneOf('run'), ...worker }),
  route: fields<NodeOf<'route'>>({ ...node, kind: oneOf('route'), ...worker }),
  choose: fields<NodeOf<'choose'>>({
    ...node,
    kind: oneOf('choose'),
    cases: list(fields<GraphCase>({ exit: text, when: predicateShape })),
  }),
  agent: fields<NodeOf<'agent'>>({
    ...node,
    kind: oneOf('agent'),
    agent: text,
    message: json,
    ...named,
    save: optional(text),
    continues: optional(yes),
    ...timed,
  }),
  graph: fields<NodeOf<'graph'>>({
    ...node,
    kind: oneOf('graph'),
    graph: text,
    input: json,
    save: optional(text),
    ...timed,
  }),
  decide: fields<NodeOf<'decide'>>({
    ...node,
    kind: oneOf('decide'),
    save: optional(text),
    message: optional(json),
    toolChoice: optional(oneOf('required')),
    output: optional(fields<NodeOutput>({ name: text, schema: jsonObject, attempts: count })),
  }),
  plan: fields<NodeOf<'plan'>>({
    ...node,
    kind: oneOf('plan'),
    planning: oneOf('schema', 'catalog'),
    save: text,
    answer: optional(text),
    maxActions: count,
    attempts: count,
  }),
  execute: fields<NodeOf<'execute'>>({
    ...node,
    kind: oneOf('execute'),
    plan: text,
    save: text,
    atOnce: count,
    timeoutMs: amount,
    onFailedDependency: oneOf('skip', 'fail', 'null'),
  }),
  answer: fields<NodeOf<'answer'>>({
    ...node,
    kind: oneOf('answer'),
    save: text,
    plan: optional(text),
    results: optional(text),
  }),
  tool: fields<NodeOf<'tool'>>({
    ...node,
    kind: oneOf('tool'),
    tool: text,
    arguments: optional(json),
    save: optional(text),
    ...bounded,
  }),
  each: fields<NodeOf<'each'>>({
    ...node,
    kind: oneOf('each'),
    over: json,
    atOnce: count,
    body,
    save: optional(text),
  }),
  confirm: fields<NodeOf<'confirm'>>({
    ...node,
    kind: oneOf('confirm'),
    show: json,
    expiresMs: optional(amount),
    plan: optional(text),
  }),
});

export const graphShape = fields<GraphDefinition>({
  start: text,
  nodes: list(nodeShape),
  fields: list(text),
  initial: jsonObject,
  perTurn: list(text),
  messageTo: optional(text),
  historyTo: optional(
    fields<NonNullable<GraphDefinition['historyTo']>>({ field: text, last: count }),
  ),
  answerFrom: optional(text),
  answerJoins: optional(yes),
  nodesJoin: optional(yes),
  refusedFrom: optional(text),
  errorTo: optional(text),
});

export const graphStateShape = fields<GraphState>({
  values: jsonObject,
  at: nullable(fields<GraphPlace>({ node: text, visit: count, since: amount })),
  visited: list(
    fields<NodeVisits>({
      node: text,
      inTurn: count,
      total: count,
      ms: amount,
      taken: list(fields<NodeVisits['taken'][number]>({ exit: text, count })),
    }),
  ),
  confirmed: optional(fields<ConfirmedPlan>({ digest: text, actions: list(text) })),
  interrupted: optional(
    fields<Interrupted>({ node: text, visit: count, results: list(resultShape) }),
  ),
  conversations: optional(list(fields<Conversation>({ node: text, agent: text, run: text }))),
});
