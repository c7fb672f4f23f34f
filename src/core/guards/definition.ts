import {
  LIMIT_NAMES,
  type LimitName,
  type AgentDefinition,
  type AgentTexts,
  type CallerTools,
  type Compaction,
  type LimitSet,
  type Limits,
  type McpOmission,
  type McpPolicy,
  type McpUsed,
  type ModelSettings,
  type OutputDefinition,
  type PromptDefinition,
  type Tag,
  type TagSet,
  type TemplateUsed,
} from '../definition/definition.js';
import type { GraphDefinition } from '../definition/graph-definition.js';
import { nodeShape } from '../definition/node-kinds.js';
import type { ForkedGraph } from '../state/fork.js';
import type { CatalogEntry, McpOrigin, ToolDefinition } from '../definition/tool-definition.js';
import type {
  ConfirmedPlan,
  Conversation,
  GraphPlace,
  GraphState,
  Interrupted,
  NodeVisits,
} from '../state/state.js';
import {
  type Shape,
  amount,
  count,
  fields,
  flag,
  json,
  jsonObject,
  list,
  nullable,
  oneOf,
  optional,
  shape,
  table,
  tagged,
  text,
  yes,
} from '../text/shape.js';
import { resultShape, rulesShape } from '../transcript/message-shapes.js';

const graphShape = fields<GraphDefinition>({
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

const conversationShape = fields<Conversation>({ node: text, agent: text, run: text });

/** The shape of the state of a graph at the beginning of a visit. */
export const forkedGraphShape = fields<ForkedGraph>({
  begins: text,
  visit: count,
  values: jsonObject,
  conversations: optional(list(conversationShape)),
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
  conversations: optional(list(conversationShape)),
  begins: optional(text),
});

const limit = optional(
  nullable(
    shape<number>(
      'a positive number',
      (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
    ),
  ),
);
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- has each name
const limits = Object.fromEntries(LIMIT_NAMES.map((name) => [name, limit])) as Record<
  LimitName,
  typeof limit
>;
export const limitSetShape = fields<LimitSet>(limits);
export const limitsShape = fields<Limits>({ ...limits, run: optional(limitSetShape) });

const effect = oneOf('read', 'keyed', 'once');

const toolShape = fields<ToolDefinition>({
  name: text,
  description: text,
  parameters: jsonObject,
  effect,
  ends: optional(yes),
  value: optional(yes),
  inline: optional(yes),
  repeat: optional(oneOf('allow')),
  kind: optional(oneOf('wait', 'agent', 'artifacts', 'question', 'client')),
  calls: optional(
    fields<NonNullable<ToolDefinition['calls']>>({
      agent: text,
      parentClose: oneOf('terminate', 'request_cancel', 'abandon'),
      prompt: optional(text),
    }),
  ),
  verify: optional(yes),
  approval: optional(yes),
  undoMs: optional(amount),
  expiresMs: optional(amount),
  result: optional(jsonObject),
  caller: optional(yes),
  timeoutMs: amount,
  heartbeatMs: amount,
  attempts: count,
  catalog: optional(fields<CatalogEntry>({ summary: text, category: text, actions: list(text) })),
  mcp: optional(fields<McpOrigin>({ server: text, tool: text, hash: text })),
});

const tag = fields<Tag>({ name: text, required: flag });
const outputShape = tagged<OutputDefinition, 'type'>('type', {
  json: fields<Extract<OutputDefinition, { type: 'json' }>>({
    type: oneOf('json'),
    name: text,
    schema: jsonObject,
  }),
  tags: fields<Extract<OutputDefinition, { type: 'tags' }>>({
    type: oneOf('tags'),
    tags: fields<TagSet>({ xml: list(tag), fences: list(tag), signals: list(text) }),
  }),
  classes: fields<Extract<OutputDefinition, { type: 'classes' }>>({
    type: oneOf('classes'),
    classes: list(text),
    samples: optional(count),
  }),
  function: fields<Extract<OutputDefinition, { type: 'function' }>>({ type: oneOf('function') }),
});

const mcpShape = fields<McpUsed>({
  servers: list(
    fields<McpPolicy>({
      name: text,
      allowTools: optional(list(text)),
      denyTools: optional(list(text)),
      effects: optional(table(effect)),
      startup: optional(oneOf('best_effort')),
    }),
  ),
  unlisted: optional(text),
  left: optional(list(fields<McpOmission>({ server: text, message: text }))),
});

const known = fields<Pick<ModelSettings, 'temperature' | 'maxOutputTokens' | 'nativeTools'>>({
  temperature: optional(amount),
  maxOutputTokens: optional(amount),
  nativeTools: optional(list(jsonObject)),
});
const anySettings = table(json);
const settingsShape: Shape<ModelSettings> = (value, at) =>
  anySettings(value, at) ?? known(value, at);

const promptShape = fields<PromptDefinition>({
  text,
  args: optional(jsonObject),
  output: optional(nullable(outputShape)),
  attempts: optional(count),
  tools: optional(list(text)),
  settings: optional(settingsShape),
});

export const definitionShape = fields<AgentDefinition>({
  name: text,
  instructions: text,
  model: text,
  fallbacks: optional(list(text)),
  tools: list(toolShape),
  toolChoice: oneOf('auto', 'required', 'none'),
  toolCalls: oneOf('parallel', 'sequential', 'first'),
  onLimit: oneOf('answer', 'compose', 'fail', 'ask'),
  limits: limitsShape,
  settings: settingsShape,
  callSettings: optional(list(text)),
  compaction: optional(nullable(fields<Compaction>({ at: amount, keep: amount }))),
  output: optional(outputShape),
  attempts: optional(count),
  onInvalid: optional(oneOf('fail', 'best_effort')),
  decide: optional(oneOf('schema', 'function')),
  toolExposure: optional(oneOf('catalog')),
  onPlainText: optional(oneOf('fail')),
  retrieve: optional(fields<{ timeoutMs: number }>({ timeoutMs: amount })),
  remember: optional(fields<{ timeoutMs: number }>({ timeoutMs: amount })),
  mcp: optional(mcpShape),
  forkFrom: optional(list(text)),
  rules: optional(rulesShape),
  graph: optional(graphShape),
  texts: optional(
    fields<AgentTexts>({
      repair: optional(text),
      closing: optional(text),
      demandCall: optional(text),
    }),
  ),
  prompts: optional(table(promptShape)),
  template: optional(fields<TemplateUsed>({ hash: text, unfilled: text })),
  callerTools: optional(fields<CallerTools>({ names: list(text), without: text })),
  hash: text,
});
