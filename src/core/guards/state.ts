import type { ModelPrice } from '../definition/definition.js';
import type { Inbox, Incoming, RefusedMessage, SeenMessage } from '../input/inbox.js';
import { type AttachedArtifact, turnContextShape } from '../input/turn-context.js';
import {
  type CompactionState,
  type EffectiveLimits,
  type FinishedTurn,
  type ForkPoint,
  type RecordedDecision,
  type RequestedLimits,
  type RunConfig,
  type RunState,
  SEMANTICS,
  type SegmentSize,
} from '../state/state.js';
import { spentShape, turnShape } from '../state/turn.js';
import type { ExecutedCall } from '../transcript/request.js';
import type { KeptCall } from '../state/undo.js';
import type { Block, Proposal, Work } from '../state/work.js';
import {
  type FieldShapes,
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
} from '../text/shape.js';
import {
  artifactShape,
  attachmentShape,
  blobShape,
  callShape,
  decisionShape,
  grantShape,
  messageShape,
  outcomeShape,
  raisedShape,
  reportShape,
  saidShape,
  askedShape,
} from '../transcript/message-shapes.js';
import { BLOCKED_REASONS } from '../transcript/outcome.js';
import type { PromptChunk, Transcript } from '../transcript/transcript.js';
import { definitionShape, graphStateShape, limitSetShape, limitsShape } from './definition.js';

const attachedArtifact = fields<AttachedArtifact>({
  name: text,
  blob: blobShape,
  kind: text,
  text: optional(yes),
  head: text,
});

/** A message's id, its turn, and its digest, which states of older versions do not have. */
const seen = shape<SeenMessage>(
  'an id, a turn, and perhaps a digest',
  (value) =>
    Array.isArray(value) &&
    (value.length === 2 || (value.length === 3 && typeof value[2] === 'string')) &&
    typeof value[0] === 'string' &&
    Number.isSafeInteger(value[1]),
);
const inboxShape = fields<Inbox>({
  waiting: list(
    fields<Incoming>({
      id: text,
      text,
      attachments: optional(list(attachmentShape)),
      turn: count,
      pinned: optional(yes),
      refresh: optional(yes),
      by: optional(text),
      door: optional(text),
      requesters: optional(list(text)),
      input: optional(jsonObject),
      messages: optional(list(saidShape)),
      prompt: optional(text),
      args: optional(jsonObject),
      artifacts: optional(list(attachedArtifact)),
      context: optional(turnContextShape),
      settings: optional(jsonObject),
    }),
  ),
  seen: list(seen),
  lastTurn: count,
  count: optional(count),
  refused: optional(list(fields<RefusedMessage>({ id: nullable(text), reason: text, at: amount }))),
  refusedTotal: optional(count),
});

const block = fields<Block>({
  reason: oneOf(...BLOCKED_REASONS),
  message: text,
  reports: optional(list(reportShape)),
  definition: optional(text),
  blob: optional(text),
  until: amount,
});

type WorkIn<P extends Work['phase']> = Extract<Work, { phase: P }>;

const common: Omit<FieldShapes<WorkIn<'waiting'>>, 'phase'> = {
  name: text,
  block: optional(block),
  probeMs: optional(amount),
  checked: optional(list(text)),
  resumed: optional(yes),
  found: optional(yes),
  paid: optional(json),
  starts: optional(count),
  startAt: optional(amount),
  tries: optional(count),
  unknown: optional(text),
  key: optional(text),
  request: optional(raisedShape),
  proposal: optional(fields<Proposal>({ id: text, decision: decisionShape, at: amount })),
  approved: optional(yes),
  asked: optional(askedShape),
  grant: optional(text),
  retried: optional(yes),
  by: optional(text),
  door: optional(text),
  again: optional(yes),
  child: optional(text),
  missing: optional(text),
  slow: optional(yes),
  last: optional(yes),
  cut: optional(count),
};

const workShape = tagged<Work, 'phase'>('phase', {
  'in-flight': fields<WorkIn<'in-flight'>>({
    ...common,
    phase: oneOf('in-flight'),
    as: oneOf('attempt', 'probe', 'find', 'check', 'verify', 'child', 'follow', 'decide'),
  }),
  waiting: fields<WorkIn<'waiting'>>({ ...common, phase: oneOf('waiting') }),
  asking: fields<WorkIn<'asking'>>({ ...common, phase: oneOf('asking') }),
});

export const priceShape = fields<ModelPrice>({
  input: amount,
  cachedInput: amount,
  cacheWrite: optional(amount),
  output: amount,
});

export const configShape = fields<RunConfig>({
  definition: definitionShape,
  semantics: optional(oneOf(SEMANTICS)),
  endsGrants: optional(yes),
  revised: optional(yes),
  limits: fields<EffectiveLimits>({ turn: limitSetShape, run: limitSetShape }),
  price: nullable(priceShape),
  highestPrice: optional(priceShape),
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
  door: optional(text),
  turn: optional(count),
  call: optional(text),
  grant: optional(text),
  limits: optional(text),
  as: optional(text),
  actions: optional(list(text)),
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
  executed: optional(fields<ExecutedCall>({ turn: count, step: count, at: optional(amount) })),
});

/** The complete shape of a run's state in the schema version `STATE_VERSION` of the migrations. */
export const stateShape = fields<RunState>({
  schema: oneOf(2),
  config: configShape,
  open: flag,
  startedAt: amount,
  transcript,
  inbox: inboxShape,
  total: spentShape,
  turn: turnShape,
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
  forkedFrom: optional(
    fields<ForkPoint>({
      run: text,
      runId: text,
      at: count,
      node: optional(text),
      visit: optional(count),
    }),
  ),
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
  notInline: optional(list(text)),
});
