import { type GeneratedReply, isToolResult } from '../core/guards/recorded.js';
import { nodeOfCall } from '../core/state/turn-definition.js';
import { isObject } from '../core/text/json.js';
import { failureOf } from '../core/transcript/call-result.js';
import { isCall } from '../core/transcript/message-shapes.js';
import type { CurrentActivity } from '../memory/attempt.js';
import {
  ModelError,
  type ModelReply,
  type ModelRequest,
  generatedDigest,
} from '../models/model.js';
import { type RecordedRun, type Recording, factsOf } from './recording.js';

/** The call of a node whose function asks a model (`context.generate`). */
export interface NodePlace {
  readonly run: string;
  /** The id of the call, which is unique in its run. */
  readonly call: string;
}

/** A reply to the function of a node, and whether a call of the rerun has got it. */
interface OpenReply extends NodePlace {
  readonly reply: GeneratedReply;
  isUsed: boolean;
}

/** The recorded replies to the functions of nodes, each of which is given once. */
export interface GeneratedReplies {
  /**
   * Returns the reply to a request of a node's function; undefined if the recording has none. Throws
   * a `ModelError` if the model failed for good.
   */
  readonly reply: (request: ModelRequest, place: NodePlace) => ModelReply | undefined;
}

/** Returns the call of a node that an activity executes; null for any other activity. */
export function nodePlaceOf({ activity, run, input }: CurrentActivity): NodePlace | null {
  if (activity !== 'runTool' || !isObject(input) || !isCall(input['call'])) return null;
  const { call } = input;
  return nodeOfCall(call) === null ? null : { run, call: call.id };
}

/** Returns the replies of a recording to the functions of nodes. */
export function generatedReplies(recording: Recording): GeneratedReplies {
  const results = factsOf(recording, 'result').map(({ run, fact: { call, result } }) => ({
    run: run.id,
    call: call.id,
    result,
  }));
  const open = results.flatMap(({ run, call, result }) =>
    repliesIn(result).map((reply): OpenReply => ({ run, call, reply, isUsed: false })),
  );
  return {
    reply(request, place) {
      const digest = generatedDigest(request);
      const here = open.filter(({ run, call }) => run === place.run && call === place.call);
      const same = here.filter(({ reply }) => reply.request === digest);
      const next = same.find(({ isUsed }) => !isUsed);
      if (next !== undefined) {
        next.isUsed = true;
        return toModelReply(next.reply, recording);
      }
      const ended = results.findLast(({ run, call }) => run === place.run && call === place.call);
      const failure = ended === undefined ? null : modelFailureIn(ended.result);
      if (failure !== null && here.every(({ isUsed }) => isUsed)) {
        throw new ModelError(failure, { kind: 'request', type: 'recorded' });
      }
      return undefined;
    },
  };
}

/** Returns why the model failed for good in a function that did not catch it; null if it did not fail. */
function modelFailureIn(result: unknown): string | null {
  if (!isToolResult(result) || result.ok !== false) return null;
  const { message } = failureOf(result) ?? {};
  return message?.startsWith(FAILED) === true ? message.slice(FAILED.length) : null;
}

const FAILED = 'context.generate: ';

/** Returns a recorded reply as its model gave it. */
function toModelReply(
  { text, blob, finish = 'stop', usage }: GeneratedReply,
  { blobs }: Recording,
): ModelReply {
  const whole = blob === undefined ? text : (blobs[blob.sha256] ?? text);
  const { inputTokens, outputTokens, cachedTokens } = usage;
  return { text: whole, calls: [], finish, usage: { inputTokens, outputTokens, cachedTokens } };
}

/** Returns the names of the models that the functions of nodes have called in a run. */
export function generatedModels({ facts }: RecordedRun): readonly string[] {
  const replies = facts.flatMap((fact) => (fact.type === 'result' ? repliesIn(fact.result) : []));
  return [...new Set(replies.map(({ model }) => model))];
}

/** How many replies of models a recording has, and how many of them no rerun can give. */
export interface ReplyCounts {
  readonly replies: number;
  /** Calls of `decide` functions, whose replies no history has. */
  readonly decided: number;
  /** Replies to the functions of nodes that an earlier version recorded, or that are not whole. */
  readonly unmatched: number;
}

/** Counts the replies of models in a recording. */
export function countReplies(recording: Recording): ReplyCounts {
  const replies = factsOf(recording, 'reply').map(({ fact: { reply } }) => reply);
  const decided = replies.flatMap((reply) => {
    const made = isObject(reply) && isObject(reply['decided']) ? reply['decided'] : {};
    return typeof made['modelCalls'] === 'number' ? [made['modelCalls']] : [];
  });
  const generated = factsOf(recording, 'result').flatMap(({ fact }) => repliesIn(fact.result));
  return {
    replies: replies.length + generated.length,
    decided: decided.reduce((sum, one) => sum + one, 0),
    unmatched: generated.filter(({ request }) => request === undefined).length,
  };
}

function repliesIn(result: unknown): readonly GeneratedReply[] {
  if (!isToolResult(result)) return [];
  return 'generated' in result ? (result.generated ?? []) : [];
}
