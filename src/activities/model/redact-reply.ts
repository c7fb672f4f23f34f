import type { ModelReply } from '../../models/model.js';
import { redactJson, redactJsonText } from '../../secrets/redact-json.js';
import { redact, redactMessage } from '../../secrets/redact.js';

/**
 * Returns a model's reply without the secrets that this process knows. It is done before anything is
 * digested or recorded, so that digests, prompts, and executed arguments speak of the same text.
 */
export function redactReply(reply: ModelReply): ModelReply {
  const { requestId, provider } = reply;
  return {
    ...reply,
    text: redact(reply.text),
    calls: reply.calls.map((call) => ({
      ...redactJson(call),
      name: redact(call.name),
      arguments: redactJsonText(call.arguments),
    })),
    ...(provider !== undefined && { provider: redactJson(provider) }),
    ...(requestId !== undefined && { requestId: redactMessage(requestId) }),
  };
}
