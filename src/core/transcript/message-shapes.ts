import { LIMIT_NAMES } from '../definition/definition.js';
import { type Predicate, predicateProblem } from '../definition/predicate.js';
import {
  type Deciders,
  type Rule,
  type Verdict,
  decidersProblem,
  rulesProblem,
} from '../definition/rules.js';
import { isObject } from '../text/json.js';
import {
  type Shape,
  amount,
  count,
  fields,
  flag,
  guard,
  hex,
  json,
  jsonObject,
  list,
  nullable,
  oneOf,
  optional,
  tagged,
  text,
  yes,
} from '../text/shape.js';
import type { CallResult } from './call-result.js';
import type {
  AssistantMessage,
  Attachment,
  BlobRef,
  CallProblem,
  CreatedArtifact,
  Message,
  ParsedArguments,
  ProviderItems,
  RequestedCall,
  RunArtifact,
  SafetyCheck,
  SuppliedMessage,
  ToolCall,
  ToolMessage,
  UserMessage,
} from './messages.js';
import {
  type AttemptReport,
  type Outcome,
  type ReplyUsage,
  STOP_REASONS,
  type StopReason,
  type Usage,
} from './outcome.js';
import {
  type AskedByServer,
  type Decision,
  DECISION_KINDS,
  type Grant,
  type RecordedLimit,
  type RaisedRequest,
  REQUEST_KINDS,
  type RequestedGrant,
  type ServerAnswer,
  type ServerAsk,
} from './request.js';

export const rulesShape: Shape<readonly Rule[]> = rulesProblem;
export const predicateShape: Shape<Predicate> = predicateProblem;
const deciders: Shape<readonly Deciders[]> = list((value, at) =>
  value === undefined ? `${at}: expected deciders` : decidersProblem(value, at),
);

export const verdictShape = fields<Verdict>({
  then: oneOf('ask', 'deny'),
  why: text,
  deciders: optional(deciders),
  expires: optional(amount),
});

const limitReached = fields<RecordedLimit>({
  name: oneOf(...LIMIT_NAMES),
  used: amount,
  limit: nullable(amount),
});

export const raisedShape = fields<RaisedRequest>({
  id: text,
  kind: oneOf(...REQUEST_KINDS),
  why: text,
  raisedAt: amount,
  expiresAt: optional(amount),
  deciders: optional(deciders),
  limit: optional(limitReached),
  definition: optional(text),
  notified: optional(yes),
});

export const serverAsksShape = list(
  fields<ServerAsk>({ key: text, message: text, form: optional(jsonObject), url: optional(text) }),
);

export const serverAnswerShape = fields<ServerAnswer>({
  action: oneOf('accept', 'decline', 'cancel'),
  content: optional(jsonObject),
});

export const askedShape = fields<AskedByServer>({
  asks: serverAsksShape,
  answers: list(serverAnswerShape),
  state: optional(text),
  rounds: count,
});

const requestedGrant = fields<RequestedGrant>({
  scope: oneOf('same_call', 'tool'),
  where: optional(predicateShape),
});

export const decisionShape = fields<Decision>({
  request: text,
  digest: text,
  as: oneOf(...DECISION_KINDS),
  arguments: optional(jsonObject),
  actions: optional(list(text)),
  result: optional(json),
  note: optional(text),
  grant: optional(requestedGrant),
  by: optional(text),
  door: optional(text),
  groups: optional(list(text)),
  patched: optional(yes),
});

export const grantShape = fields<Grant>({
  id: text,
  tool: text,
  scope: oneOf('same_call', 'tool'),
  digest: optional(text),
  parsed: optional(text),
  where: optional(predicateShape),
  shown: text,
  request: text,
  at: amount,
  by: optional(text),
  door: optional(text),
  groups: optional(list(text)),
});

export const blobShape = fields<BlobRef>({ sha256: hex(64), bytes: count });

const stored = fields<Extract<Attachment, { blob: BlobRef }>>({
  type: oneOf('image', 'file'),
  blob: blobShape,
  mediaType: text,
  name: optional(text),
});
const linked = fields<Extract<Attachment, { url: string }>>({ type: oneOf('image'), url: text });
export const attachmentShape: Shape<Attachment> = (value, at) =>
  isObject(value) && 'url' in value ? linked(value, at) : stored(value, at);

export const safetyShape = fields<SafetyCheck>({
  id: text,
  code: optional(text),
  message: optional(text),
});

export const parsedShape = fields<ParsedArguments>({
  arguments: text,
  digest: text,
  blob: optional(blobShape),
});

const requestedFields = {
  name: text,
  arguments: text,
  digest: text,
  blob: optional(blobShape),
  parsed: optional(parsedShape),
  problem: optional(
    fields<CallProblem>({
      type: oneOf('unknown_tool', 'invalid_json', 'invalid_arguments', 'truncated'),
      message: text,
    }),
  ),
  summary: optional(text),
  safety: optional(list(safetyShape)),
  verdict: optional(verdictShape),
  via: optional(oneOf('catalog')),
};
export const requestedCallShape = fields<RequestedCall>(requestedFields);
const placeKey: Shape<string | number> = (value, at) =>
  typeof value === 'string' || typeof value === 'number'
    ? null
    : `${at}: expected a name or an index`;
export const callShape = fields<ToolCall>({
  ...requestedFields,
  id: text,
  edited: optional(yes),
  node: optional(text),
  after: optional(list(text)),
  refs: optional(list(list(placeKey))),
  asks: optional(yes),
  confirmed: optional(yes),
  asShown: optional(yes),
});
/** Whether a value is a call of a message. */
export const isCall = guard(callShape);

export const providerShape = fields<ProviderItems>({
  from: text,
  items: optional(list(jsonObject)),
  blob: optional(blobShape),
});

const placed = { n: count, turn: count, step: count, at: amount };

export const refusedShape = oneOf('message', 'attachments');

export const messageShape = tagged<Message, 'role'>('role', {
  user: fields<UserMessage>({
    ...placed,
    role: oneOf('user'),
    text,
    attachments: optional(list(attachmentShape)),
    origin: optional(oneOf('perdure', 'retrieved', 'graph')),
    node: optional(text),
    document: optional(
      fields<NonNullable<UserMessage['document']>>({ id: optional(text), source: optional(text) }),
    ),
    blob: optional(blobShape),
    id: optional(text),
    by: optional(text),
    door: optional(text),
    pinned: optional(yes),
    side: optional(yes),
    refused: optional(refusedShape),
    compacts: optional(fields<{ from: number; to: number }>({ from: count, to: count })),
  }),
  assistant: fields<AssistantMessage>({
    ...placed,
    role: oneOf('assistant'),
    text,
    side: optional(yes),
    supplied: optional(yes),
    origin: optional(oneOf('graph')),
    node: optional(text),
    refuses: optional(fields<{ from: number; to: number }>({ from: count, to: count })),
    refused: optional(refusedShape),
    model: optional(text),
    blob: optional(blobShape),
    calls: optional(list(callShape)),
    provider: optional(providerShape),
  }),
  tool: fields<ToolMessage>({
    ...placed,
    role: oneOf('tool'),
    text,
    blob: optional(blobShape),
    callId: text,
    ok: optional(flag),
    attachments: optional(list(attachmentShape)),
    acknowledged: optional(yes),
    refused: optional(refusedShape),
    grant: optional(text),
    edited: optional(text),
  }),
});

export const saidShape = fields<SuppliedMessage>({ role: oneOf('user', 'assistant'), text });

const made = {
  name: text,
  blob: blobShape,
  kind: text,
  text: optional(yes),
  summary: optional(text),
};
export const createdArtifactShape = fields<CreatedArtifact>(made);
export const artifactShape = fields<RunArtifact>({
  ...made,
  base: optional(text),
  announcedBy: optional(count),
  tool: text,
  call: text,
});

export const replyUsageShape = fields<ReplyUsage>({
  inputTokens: amount,
  outputTokens: amount,
  cachedTokens: amount,
  cacheWriteTokens: optional(amount),
  reasoningTokens: optional(amount),
  costUsd: optional(amount),
  estimated: optional(yes),
});

export const usageShape = fields<Usage>({
  inputTokens: amount,
  outputTokens: amount,
  cachedTokens: amount,
  cacheWriteTokens: optional(amount),
  reasoningTokens: optional(amount),
  costUsd: nullable(amount),
  estimated: optional(yes),
});

export const stopReasonShape: Shape<StopReason> = oneOf(...STOP_REASONS);

const body = fields<Omit<Outcome, 'status' | 'reason'>>({
  answer: nullable(text),
  blob: optional(blobShape),
  output: nullable(json),
  steps: count,
  toolCalls: count,
  usage: usageShape,
  segments: count,
  error: optional(text),
  template: optional(text),
  issues: optional(list(text)),
  lost: optional(list(text)),
  limit: optional(stopReasonShape),
});
const status = oneOf('completed', 'stopped', 'cancelled', 'failed');
export const outcomeShape: Shape<Outcome> = (value, at) => {
  if (!isObject(value)) return body(value, at);
  const { status: how, reason } = value;
  return status(how, `${at}.status`) ?? text(reason, `${at}.reason`) ?? body(value, at);
};

export const reportShape = fields<AttemptReport>({
  type: text,
  status: optional(amount),
  attempt: count,
  waitMs: amount,
  requestId: optional(text),
  at: amount,
  message: text,
});

export const resultShape = fields<CallResult>({
  id: text,
  ok: flag,
  text,
  blob: optional(blobShape),
  lost: optional(text),
  output: optional(json),
  artifact: optional(createdArtifactShape),
  artifactName: optional(text),
  attachments: optional(list(attachmentShape)),
  acknowledged: optional(yes),
  denied: optional(yes),
  note: optional(text),
  by: optional(text),
  door: optional(text),
  patched: optional(yes),
  expired: optional(yes),
  grant: optional(text),
  executed: flag,
  usage: optional(usageShape),
  at: optional(amount),
  limit: optional(oneOf('tokens', 'costUsd')),
});
