import type {
  AgentDefinition,
  Compaction,
  LimitSet,
  Limits,
  McpOmission,
  McpPolicy,
  McpUsed,
  OutputDefinition,
  ModelSettings,
  PromptDefinition,
  Tag,
  TagSet,
  TemplateUsed,
} from '../definition/definition.js';
import type { CatalogEntry, McpOrigin, ToolDefinition } from '../definition/tool-definition.js';
import type { AgentTexts } from '../text/author-texts.js';
import { graphShape } from './graph.js';
import { rulesShape } from './requests.js';
import {
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
  type Shape,
} from './shape.js';

const limit = optional(
  nullable(
    shape<number>(
      'a positive number',
      (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
    ),
  ),
);
const limits = {
  steps: limit,
  toolCalls: limit,
  tokens: limit,
  costUsd: limit,
  wallMs: limit,
  depth: limit,
};
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
  hash: text,
});
