import type { Predicate } from '../requests/predicate.js';
import { predicateProblem } from '../requests/predicate.js';
import type { Decision, Grant, RequestedGrant } from '../requests/decision.js';
import { decidersProblem, type Deciders } from '../requests/deciders.js';
import type { LimitReached, RaisedRequest } from '../requests/request.js';
import { rulesProblem, type Rule, type Verdict } from '../requests/rules.js';
import {
  amount,
  fields,
  json,
  jsonObject,
  list,
  nullable,
  oneOf,
  optional,
  text,
  yes,
  type Shape,
} from './shape.js';

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

const limitReached = fields<LimitReached>({
  name: oneOf('steps', 'toolCalls', 'tokens', 'costUsd', 'wallMs', 'depth'),
  used: amount,
  limit: nullable(amount),
});

export const raisedShape = fields<RaisedRequest>({
  id: text,
  kind: oneOf(
    'approval',
    'question',
    'plan',
    'limit',
    'outcome_unknown',
    'safety_check',
    'tool_changed',
    'client_tool',
  ),
  why: text,
  raisedAt: amount,
  expiresAt: optional(amount),
  deciders: optional(deciders),
  limit: optional(limitReached),
  definition: optional(text),
  notified: optional(yes),
});

export const decisionWordShape = oneOf(
  'approve',
  'some',
  'deny',
  'edit',
  'answer',
  'happened',
  'retry',
  'abandon',
  'accept',
  'raise',
  'stop',
);

const requestedGrant = fields<RequestedGrant>({
  scope: oneOf('same_call', 'tool'),
  where: optional(predicateShape),
});

export const decisionShape = fields<Decision>({
  request: text,
  digest: text,
  as: decisionWordShape,
  arguments: optional(jsonObject),
  actions: optional(list(text)),
  result: optional(json),
  note: optional(text),
  grant: optional(requestedGrant),
  by: optional(text),
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
});
