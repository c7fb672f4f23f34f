import type { SentMessage, DeliveredMessage } from '../../src/updates/ask.js';

/** Returns a message that the run has accepted; throws for one that is only recorded. */
export async function expectDelivered(sent: Promise<SentMessage>): Promise<DeliveredMessage> {
  const message = await sent;
  if (message.delivered) return message;
  throw new Error(`message ${message.messageId} is recorded, and no worker has taken it`);
}
