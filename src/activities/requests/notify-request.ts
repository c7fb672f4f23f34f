import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Notice } from '../../agents/requests.js';
import type { NotifyRequestInput } from '../../core/contract.js';
import { sha256Hex } from '../../core/digest.js';
import { redactJson } from '../../secrets/redact-json.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import { wellFormed } from '../../tools/utf8.js';
import type { ActivityDependencies } from '../dependencies.js';
import { runBoundedOrThrow } from '../run-bounded.js';
import { postWebhook, WebhookRefusal } from './webhook.js';

const TIMEOUT_MS = 10_000;
const SHOWN_CHARACTERS = 300;

/**
 * Tells the worker's `notify` about a request. Throws unless it took the notice: Temporal then retries,
 * except if the address has refused it for good.
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
    timeoutError: () => new Error(`it did not end within ${TIMEOUT_MS / 1000} s`),
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

/** Returns what a notice says: no more than a visibility query shows of the request, and the command. */
function createNotice({ request, agent, turn }: NotifyRequestInput, run: string): Notice {
  const { id, kind, tool, effect, digest, expiresAt, decisions, fix } = request;
  const notice = {
    id,
    kind,
    ...(tool !== undefined && { tool }),
    ...(effect && { effect }),
    digest,
    shown: head(request.shown),
    why: head(request.why),
    expiresAt,
    decisions,
    fix,
  };
  return redactJson({ run, agent, turn, request: notice });
}

/** Returns the same id in every attempt, so that a receiver recognizes a notice that it has had. */
function noticeId({ request: { id, digest, raisedAt } }: NotifyRequestInput, run: string): string {
  return `msg_${sha256Hex(JSON.stringify([run, id, digest, raisedAt])).slice(0, 32)}`;
}

function head(text: string): string {
  return wellFormed(Array.from(text).slice(0, SHOWN_CHARACTERS).join(''));
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
