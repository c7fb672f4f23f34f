import { isObject } from '../../core/text/json.js';
import {
  type Shape,
  fields,
  jsonObject,
  list,
  oneOf,
  optional,
  shape,
  text,
} from '../../core/text/shape.js';
import { safetyShape } from '../../core/transcript/message-shapes.js';
import {
  type Model,
  ModelError,
  type ModelReply,
  type ModelRequest,
  type ReplyCall,
  type TokenAlternative,
  type TokenLogprob,
} from '../../models/model.js';
import { BAD_REPLY } from './model-failures.js';
import { readUsage } from './record-reply.js';

/** The fields of a reply that must have their form. The others are read leniently: the reply was paid for. */
type ReadReply = Omit<ModelReply, 'usage' | 'logprobs' | 'dropped'>;

const numeral = shape<number>('a number', (value) => typeof value === 'number');
const alternativeShape = fields<TokenAlternative>({ token: text, logprob: numeral });

const logprobsShape = list(
  fields<TokenLogprob>({ token: text, logprob: numeral, top: list(alternativeShape) }),
);
const droppedShape = list(text);

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

/**
 * Reads a reply field by field, because an instance of a class may have getters, which a copy would lack.
 * An optional field that is null counts as absent.
 */
function readReply(reply: unknown): unknown {
  const read = pick(reply, ['text', 'calls', 'finish'], {
    usage: same,
    requestId: same,
    logprobs: (given) => ifFits(logprobsShape, given),
    provider: (provider) => pick(provider, ['from', 'items']),
    dropped: (given) => ifFits(droppedShape, given),
  });
  return isObject(read) ? { ...read, calls: each(read['calls'], readCall) } : read;
}

function readCall(call: unknown): unknown {
  const readSafety = (check: unknown): unknown =>
    pick(check, ['id'], { code: same, message: same });
  return pick(call, ['name', 'arguments'], { safety: (checks) => each(checks, readSafety) });
}

/** Returns these fields of an object; anything else as it is. */
function pick(
  value: unknown,
  required: readonly string[],
  optionals: Readonly<Record<string, (field: unknown) => unknown>> = {},
): unknown {
  if (!isObject(value)) return value;
  const present = Object.entries(optionals).flatMap(([name, read]) => {
    const field = value[name];
    return field === undefined || field === null ? [] : [[name, read(field)] as const];
  });
  return Object.fromEntries([...required.map((name) => [name, value[name]] as const), ...present]);
}

function each(value: unknown, read: (entry: unknown) => unknown): unknown {
  return Array.isArray(value) ? value.map(read) : value;
}

const same = (field: unknown): unknown => field;

/** Returns a field that a run can do without; undefined if it has another form. */
function ifFits<T>(shapeOf: Shape<T>, field: unknown): unknown {
  return shapeOf(field, 'reply') === null ? field : undefined;
}

/** How a check ends for a field that is not there. */
const MISSING = ', got undefined';

/**
 * Returns the reply of a model that anyone may have written. A usage whose counts are not whole numbers
 * from 0 is estimated, because the reply was paid for. Throws a `ModelError` that names the model and the
 * field for any other malformed reply: the model's code is at fault, so another call would be paid for and
 * end in the same way.
 */
export function checkedReply(given: ModelReply, request: ModelRequest): ModelReply {
  const read = readReply(given);
  const problem = replyShape(read, 'reply');
  if (problem !== null) {
    const what = problem.endsWith(MISSING)
      ? problem.slice(0, -MISSING.length).replace(': expected ', ': missing, expected ')
      : problem;
    const message = `model ${JSON.stringify(request.model)}: ${what}; correct the \`Model\``;
    throw new ModelError(message, { kind: 'request', type: BAD_REPLY });
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked above
  const reply = read as ModelReply;
  return reply.usage === undefined ? reply : { ...reply, usage: readUsage(reply, request) };
}

/** Returns a model whose replies are checked. */
export function checkedModel(model: Model): Model {
  return {
    call: async (request, context) => checkedReply(await model.call(request, context), request),
  };
}
