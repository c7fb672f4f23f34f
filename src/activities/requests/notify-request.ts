import { withProgram } from '../../core/requests/commands.js';
import { noticeText, presentRequest } from '../../core/requests/presentation.js';
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Notice } from '../../agents/agent-parts.js';
import type { NotifyRequestInput } from '../../core/run/contract.js';
import { sha256Hex } from '../../core/text/json.js';
import { redactJson } from '../../secrets/redact.js';
import { normalizeError } from '../../tools/result/plain.js';
import type { ActivityDependencies, Webhook } from '../activity-context.js';
import { runBoundedOrThrow } from '../attempt.js';
import { createHmac } from 'node:crypto';

const TIMEOUT_MS = 10_000;

/**
 * Calls the worker's `notify` for a request. Throws unless it accepted the notice. Temporal then
 * retries, unless the address refused it permanently.
 */
export async function notifyRequest(
  { requests: { notify } }: Pick<ActivityDependencies, 'requests'>,
  input: NotifyRequestInput,
): Promise<void> {
  const { cancellationSignal: cancelled, info } = Context.current();
  if (notify === undefined) {
    throw failed('this worker has no `notify`; give it to all workers, or to none');
  }
  const { namespace, workflowExecution } = info;
  const notice = createNotice(input, workflowExecution?.workflowId ?? '');
  const message = {
    id: noticeId(input, `${namespace}/${notice.run}`),
    body: { type: 'perdure.request', timestamp: isoTime(input.request.raisedAt), data: notice },
  };
  const bounds = {
    name: 'notify',
    timeoutMs: TIMEOUT_MS,
    cancelled,
    timeoutError: () => new Error(`timed out after ${TIMEOUT_MS / 1000} s`),
  };
  try {
    await runBoundedOrThrow(async (signal) => {
      if (typeof notify === 'function') await notify(notice);
      else await postWebhook(notify, message, signal);
    }, bounds);
  } catch (error) {
    cancelled.throwIfAborted();
    throw failed(normalizeError(error).message, error instanceof WebhookRefusal);
  }
}

/**
 * Returns the content of a notice: only the parts of the request that a visibility query shows, and
 * the command.
 */
function createNotice({ request, agent, turn }: NotifyRequestInput, run: string): Notice {
  const { id, kind, tool, effect, digest, expiresAt, decisions, fix } = request;
  const notice = {
    id,
    kind,
    ...(tool !== undefined && { tool }),
    ...(effect && { effect }),
    digest,
    shown: presentRequest(request).notice,
    why: noticeText(request.why),
    expiresAt,
    decisions,
    fix: withProgram(fix),
  };
  return redactJson({ run, agent, turn, request: notice });
}

/** Returns the same id in every attempt, so a receiver recognizes a duplicate notice. */
function noticeId({ request: { id, digest, raisedAt } }: NotifyRequestInput, run: string): string {
  return `msg_${sha256Hex(JSON.stringify([run, id, digest, raisedAt])).slice(0, 32)}`;
}

function isoTime(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? new Date(0).toISOString() : date.toISOString();
}

function failed(message: string, isFinal = false): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'NotifyFailed',
    message: `notify: ${message}`,
    nonRetryable: isFinal,
  });
}

/** A message of Standard Webhooks. */
interface WebhookMessage {
  /** The same in every attempt. */
  readonly id: string;
  readonly body: object;
}

/** The receiver has permanently refused a message. */
class WebhookRefusal extends Error {
  override readonly name = 'WebhookRefusal';
}

/** Transient statuses from 400 to 499: a later attempt may succeed. */
const PASSING = [408, 425, 429];

/**
 * Posts a message, signed as defined by Standard Webhooks: HMAC-SHA-256 over id, time, and body.
 * Only a status from 200 to 299 is a success. Redirects are not followed, because the body is meant
 * for this address. Throws a `WebhookRefusal` for a status that a retry would not change.
 */
async function postWebhook(
  { url, key }: Webhook,
  { id, body }: WebhookMessage,
  signal: AbortSignal,
): Promise<void> {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const text = JSON.stringify(body);
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${text}`).digest('base64');
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    },
    body: text,
    redirect: 'manual',
    signal,
  });
  // The response body is not read; without this, the connection stays open.
  await response.body?.cancel();
  if (response.ok) return;
  const { status } = response;
  const message = `the address answered ${status}; expected 200 to 299`;
  const isRefused = status >= 400 && status < 500 && !PASSING.includes(status);
  throw isRefused ? new WebhookRefusal(message) : new Error(message);
}
