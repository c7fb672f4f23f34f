import { createHmac } from 'node:crypto';
import type { Webhook } from '../dependencies.js';

/** A message of Standard Webhooks. */
export interface WebhookMessage {
  /** The same in every attempt. */
  readonly id: string;
  readonly body: object;
}

/** The receiver has refused a message in a way that no retry changes. */
export class WebhookRefusal extends Error {
  override readonly name = 'WebhookRefusal';
}

/** Statuses from 400 to 499 after which a later attempt may succeed. */
const PASSING = [408, 425, 429];

/**
 * Posts a message, signed as Standard Webhooks says: HMAC-SHA-256 over id, time, and body. Only a status
 * from 200 to 299 is a success. Redirects are not followed, because the body is meant for this address.
 * Throws a `WebhookRefusal` for a status after which a retry is in vain.
 */
export async function postWebhook(
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
  // The receiver's words are not read; without this, the connection stays open.
  await response.body?.cancel();
  if (response.ok) return;
  const { status } = response;
  const message = `the address answered ${status}; expected 200 to 299`;
  const isRefused = status >= 400 && status < 500 && !PASSING.includes(status);
  throw isRefused ? new WebhookRefusal(message) : new Error(message);
}
