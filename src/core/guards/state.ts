import type { ModelPrice } from '../definition/definition.js';
import { definitionShape, limitSetShape, limitsShape } from './definition.js';
import type { RecordedDecision } from '../decisions.js';
import { inboxShape, turnContextShape } from './inbox.js';
import { isObject } from '../json.js';
import { artifactShape, blobShape, callShape, messageShape, saidShape } from './message.js';
import { outcomeShape, reportShape, stopReasonShape, usageShape } from './outcome.js';
import { graphStateShape } from './graph.js';
import { resultShape } from './result.js';
import { grantShape } from './requests.js';
import type { KeptCall } from '../requests/undo.js';
import {
  amount,
  count,
  fields,
  flag,
  hex,
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
import { SEMANTICS } from '../state.js';
import type {
  CompactionState,
  EffectiveLimits,
  FinishedTurn,
  ForkPoint,
  RequestedLimits,
  RunConfig,
  RunState,
  SegmentSize,
} from '../state.js';
import type { Batch, BestEffort, SameRead, SideBranch, Spent, Turn, TurnPhase } from '../turn.js';
import { workShape } from './work.js';
import type { PromptChunk, Transcript } from '../transcript/transcript.js';

const spent = fields<Spent>({ steps: count, toolCalls: count, usage: usageShape });
const batchFields = fields<Batch>({
  step: count,
  at: amount,
  span: optional(text),
  calls: list(callShape),
  results: list(nullable(resultShape)),
});
/** A batch has one result slot per call. */
const batch: Shape<Batch> = (value, at) => {
  const problem = batchFields(value, at);
  if (problem !== null || !isObject(value)) return problem;
  const { calls, results } = value;
  const paired = Array.isArray(calls) && Array.isArray(results) && calls.length === results.length;
  return paired ? null : `${at}.results: expected one place for each call`;
};

type PhaseOf<T extends TurnPhase['type']> = Extract<TurnPhase, { type: T }>;
const sideBranch = fields<SideBranch>({
  messages: count,
  head: text,
  tokens: amount,
  promptTokens: amount,
});
const phase = tagged<TurnPhase, 'type'>('type', {
  idle: fields<PhaseOf<'idle'>>({ type: oneOf('idle'), outcome: nullable(outcomeShape) }),
  deciding: fields<PhaseOf<'deciding'>>({ type: oneOf('deciding') }),
  acting: fields<PhaseOf<'acting'>>({ type: oneOf('acting'), batch }),
  repairing: fields<PhaseOf<'repairing'>>({ type: oneOf('repairing'), branch: sideBranch }),
  closing: fields<PhaseOf<'closing'>>({ type: oneOf('closing'), reason: stopReasonShape }),
  over: fields<PhaseOf<'over'>>({ type: oneOf('over'), outcome: outcomeShape }),
});

/** A range in the prompt: the first place, and the place after the last. */
const place = shape<readonly [number, number]>(
  'two places',
  (value) => Array.isArray(value) && value.length === 2 && value.every(Number.isSafeInteger),
);
const turn = fields<Turn>({
  number: count,
  startedAt: amount,
  spent,
  phase,
  limit: nullable(stopReasonShape),
  interruption: optional(oneOf('cancelTurn', 'wallMs')),
  succeeded: list(text),
  sameRead: nullable(fields<SameRead>({ digest: text, step: count, count })),
  wokenBy: optional(count),
  prompt: optional(text),
  context: optional(turnContextShape),
  settings: optional(jsonObject),
  retrieved: optional(yes),
  remembered: optional(yes),
  offloaded: optional(list(place)),
  refusedAnswers: optional(count),
  bestEffort: optional(fields<BestEffort>({ output: json, issue: text })),
  failedSteps: count,
  by: optional(list(text)),
  anonymous: optional(yes),
  denied: optional(list(text)),
  denials: optional(count),
  limitKept: optional(yes),
  reports: list(reportShape),
  lost: optional(list(text)),
});

export const configShape = fields<RunConfig>({
  definition: definitionShape,
  semantics: optional(oneOf(SEMANTICS)),
  limits: fields<EffectiveLimits>({ turn: limitSetShape, run: limitSetShape }),
  price: nullable(
    fields<ModelPrice>({
      input: amount,
      cachedInput: amount,
      cacheWrite: optional(amount),
      output: amount,
    }),
  ),
  window: optional(amount),
  searchAttributes: list(text),
  contextBlob: optional(blobShape),
  segment: optional(
    fields<SegmentSize>({ steps: amount, bytes: amount, events: optional(amount) }),
  ),
  heartbeatMs: optional(amount),
  depth: optional(count),
  span: optional(text),
  decisions: optional(
    fields<NonNullable<RunConfig['decisions']>>({
      mayDecide: optional(yes),
      notify: optional(yes),
    }),
  ),
});

export const chunkShape = fields<PromptChunk>({ blob: blobShape, count });
const transcript = fields<Transcript>({
  next: count,
  chunks: list(chunkShape),
  messages: list(messageShape),
  keptAside: list(messageShape),
  pruned: optional(list(messageShape)),
  chunksHead: optional(hex(32)),
  latest: optional(list(saidShape)),
  head: hex(32),
  tokens: amount,
});

const decision = fields<RecordedDecision>({
  what: oneOf('resolve', 'cancelTurn', 'pause', 'resume', 'setLimits', 'close', 'revoke', 'undo'),
  id: text,
  at: amount,
  by: optional(text),
  turn: optional(count),
  call: optional(text),
  as: optional(text),
  request: optional(text),
  refused: optional(text),
});

const kept = fields<KeptCall>({
  call: callShape,
  turn: count,
  step: count,
  key: text,
  text,
  blob: optional(blobShape),
  until: amount,
  state: optional(oneOf('undoing', 'undone', 'failed', 'denied')),
  message: optional(text),
});

/** The complete shape of a run's state in the schema version `STATE_VERSION` of the migrations. */
export const stateShape = fields<RunState>({
  schema: oneOf(2),
  config: configShape,
  open: flag,
  startedAt: amount,
  transcript,
  inbox: inboxShape,
  total: spent,
  turn,
  recent: list(fields<FinishedTurn>({ turn: count, outcome: outcomeShape })),
  ending: oneOf('closed', 'cancelled', 'wallMs', null),
  paused: flag,
  segments: count,
  segmentFrom: fields<RunState['segmentFrom']>({
    steps: count,
    message: count,
    visits: optional(count),
  }),
  archived: count,
  compaction: fields<CompactionState>({ promptTokens: amount, wanted: flag, notBelow: amount }),
  dropped: optional(list(text)),
  artifacts: optional(list(artifactShape)),
  forkedFrom: optional(fields<ForkPoint>({ run: text, runId: text, at: count })),
  accepted: optional(table(text)),
  decisions: optional(list(decision)),
  decisionsTotal: optional(count),
  work: list(workShape),
  requestedLimits: optional(list(fields<RequestedLimits>({ limits: limitsShape, decision }))),
  stayUntil: optional(fields<NonNullable<RunState['stayUntil']>>({ step: count, at: amount })),
  archives: optional(yes),
  forks: optional(yes),
  firstRunId: optional(text),
  requests: optional(count),
  grants: optional(list(grantShape)),
  kept: optional(list(kept)),
  unattended: optional(oneOf('deny')),
  notes: optional(list(text)),
  graph: optional(graphStateShape),
});
