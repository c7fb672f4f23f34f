import { fields, jsonObject, list, oneOf, optional, text } from '../../core/text/shape.js';
import { safetyShape } from '../../core/transcript/message-shapes.js';
import {
  type Model,
  ModelError,
  type ModelReply,
  type ModelRequest,
  type ReplyCall,
} from '../../models/model.js';
import { readUsage } from './record-reply.js';

/** The fields of a reply that the history records as they are; the others are read leniently. */
type ReadReply = Pick<ModelReply, 'text' | 'calls' | 'finish' | 'requestId' | 'provider'>;

const replyShape = fields<ReadReply>({
  text,
  calls: list(
    fields<ReplyCall>({ name: text, arguments: text, safety: optional(list(safetyShape)) }),
  ),
  finish: oneOf('stop', 'calls', 'length', 'filtered', 'refused'),
  requestId: optional(text),
  provider: optional(
    fields<NonNullable<ModelReply['provider']>>({ from: text, items: list(jsonObject) }),
  ),
});

/** How a check ends for a field that is not there. */
const MISSING = ', got undefined';

/**
 * Returns the reply of a model that anyone may have written. A usage whose counts are not whole numbers
 * from 0 is estimated, because the reply was paid for. Throws a `ModelError` that names the model and the
 * field for any other malformed reply.
 */
export function checkedReply(reply: ModelReply, request: ModelRequest): ModelReply {
  const problem = replyShape(reply, 'reply');
  if (problem !== null) {
    const what = problem.endsWith(MISSING)
      ? problem.slice(0, -MISSING.length).replace(': expected ', ': missing, expected ')
      : problem;
    const message = `model ${JSON.stringify(request.model)}: ${what}; correct the \`Model\``;
    throw new ModelError(message, { kind: 'retry', type: 'unexpected' });
  }
  return reply.usage === undefined ? reply : { ...reply, usage: readUsage(reply, request) };
}

/** Returns a model whose replies are checked. */
export function checkedModel(model: Model): Model {
  return {
    ...model,
    call: async (request, context) => checkedReply(await model.call(request, context), request),
  };
}
