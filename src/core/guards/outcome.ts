import { isObject } from '../json.js';
import { blobShape } from './message.js';
import { STOP_REASONS, type Outcome, type StopReason, type Usage } from '../outcome.js';
import type { ReplyUsage } from '../reply.js';
import type { AttemptReport } from '../report.js';
import {
  amount,
  count,
  fields,
  json,
  list,
  nullable,
  oneOf,
  optional,
  text,
  yes,
  type Shape,
} from './shape.js';

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
