import { forkedGraphShape } from './definition.js';
import type { ForkedGraph } from '../state/fork.js';
import type { BudgetName } from '../definition/definition.js';
import type { Verdict } from '../definition/rules.js';
import type { AskReceipt } from '../input/inbox.js';
import type { RetrievedDocument } from '../rules/documents.js';
import { isObject } from '../text/json.js';
import {
  type Shape,
  amount,
  count,
  either,
  fields,
  flag,
  guard,
  hex,
  json,
  list,
  nullable,
  oneOf,
  optional,
  shape,
  tagged,
  text,
  yes,
} from '../text/shape.js';
import { show } from '../text/text.js';
import type { ToolSuccess } from '../transcript/call-result.js';
import {
  artifactShape,
  attachmentShape,
  blobShape,
  createdArtifactShape,
  messageShape,
  outcomeShape,
  parsedShape,
  providerShape,
  replyUsageShape,
  reportShape,
  requestedCallShape,
  saidShape,
  usageShape,
  verdictShape,
  serverAnswerShape,
  serverAsksShape,
} from '../transcript/message-shapes.js';
import type {
  BlobRef,
  Message,
  ParsedArguments,
  RequestedCall,
  RunArtifact,
  SuppliedMessage,
} from '../transcript/messages.js';
import type {
  AttemptReport,
  FallbackModel,
  Outcome,
  ParsedAnswer,
  RecordedReply,
  Usage,
} from '../transcript/outcome.js';
import type { AskedByServer, ServerAnswer } from '../transcript/request.js';
import type { PromptChunk } from '../transcript/transcript.js';
import { chunkShape, configShape, priceShape } from './state.js';

// An operator can complete an activity with any value, so each recorded result is checked before use.

/** A reply of a model to the function of a graph's node. */
export interface GeneratedReply {
  readonly model: string;
  /** The reply, or the beginning of a long one. */
  readonly text: string;
  /** The whole of a long reply; absent if it could not be stored. */
  readonly blob?: BlobRef;
  /**
   * The digest of the request (`generatedDigest`). Absent if the reply is not whole, and in histories
   * of earlier versions.
   */
  readonly request?: string;
  /** Why the model stopped; absent for `stop`. */
  readonly finish?: RecordedReply['finish'];
  /** The tokens and the cost of the call. */
  readonly usage: Usage;
}

/** What the model calls of a node's function have cost, and their replies; absent without calls. */
export interface Generated {
  /** The usage that no earlier end of the call has reported. */
  readonly spent?: Usage;
  readonly generated?: readonly GeneratedReply[];
}

/** The rules' verdict on a call that no model reply has recorded, and what its tool would get. */
interface Undecided {
  readonly verdict: Verdict;
  readonly parsed?: ParsedArguments;
  /** The call as its tool describes it to people. A worker of an earlier version does not say it. */
  readonly summary?: string;
}

/**
 * The result of `runTool`. `unknown`: the worker cannot tell whether the tool took effect. For the
 * others, nothing was executed: `not_started` may be scheduled again, `undecided` waits for a
 * decision, and `input_required` for the answers to what an MCP server asks first.
 */
export type RunToolResult =
  | ({ readonly ok: true } & ToolSuccess & Generated)
  | ({
      readonly ok: false;
      readonly text: string;
      readonly reports?: readonly AttemptReport[];
      /** The limit that allowed a node's function no further model call. */
      readonly limit?: BudgetName;
    } & Generated)
  | ({ readonly ok: 'unknown' | 'not_started'; readonly message: string } & Generated)
  | ({ readonly ok: 'input_required' } & Pick<AskedByServer, 'asks' | 'state'>)
  | ({ readonly ok: 'undecided' } & Undecided);

/** What the local activity `runReads` records of one call. Its input is not in the history. */
export interface RunRead {
  /** The call's id. */
  readonly call: string;
  /** The call in one line, for people who look at the history. */
  readonly shown: string;
  /** Absent if the call has no result yet, so an activity executes it. */
  readonly result?: ReadResult;
  /**
   * Why there is no result. `slow`: the time was over; `threw`: the tool threw, and further attempts
   * remain; `elsewhere`: this worker does not execute it inline.
   */
  readonly why?: 'slow' | 'threw' | 'elsewhere';
}

type ReadResult = Extract<RunToolResult, { readonly ok: boolean }>;

/** The result of `runReads`. */
export interface RunReadsResult {
  readonly reads: readonly RunRead[];
}

/**
 * The result of `checkDecision`. `call`: for `edit`, the call with the checked new arguments and
 * the rules' verdict on it. `result`: for `answer`, the call's result; `answer`: what goes
 * to the call's MCP server instead.
 */
export type CheckDecisionResult =
  | {
      readonly ok: true;
      readonly call?: RequestedCall;
      readonly result?: ToolSuccess;
      readonly answer?: ServerAnswer;
    }
  | { readonly ok: false; readonly message: string };

/**
 * The result of `verify`: whether the call took effect. The result of `undo`: whether the call was
 * undone. `verdict`: the rules deny the undo or require approval.
 */
export type RunFunctionResult =
  | { readonly happened: true; readonly result: RunToolResult }
  | { readonly happened: false }
  | { readonly happened: 'unknown'; readonly message: string }
  | ({ readonly happened: 'undecided' } & Undecided);

/** The result of `retrieveDocuments`. */
export interface RetrieveResult {
  /** The documents in the function's order, without those already in the prompt. */
  readonly documents: readonly RetrievedDocument[];
}

/** The result of `archiveMessages`. */
export interface ArchiveMessagesResult {
  /** The chunk, as JSON lines of messages; absent if none was written. */
  readonly blob?: BlobRef;
}

/**
 * The result of `followRun`. `lost`: the run ended without an outcome, or the server no longer has
 * it. `other`: the run belongs to another call.
 */
export type FollowRunResult =
  | { readonly type: 'ended'; readonly outcome: Outcome }
  | { readonly type: 'lost' }
  | { readonly type: 'other'; readonly running: boolean };

/** The result of `forkMessages`. */
export interface ForkMessagesResult {
  /** The messages in the order of the prompt, as JSON lines. */
  readonly chunk: PromptChunk;
  /** Digest of the messages as the model sees them. */
  readonly head: string;
  /** Estimated tokens of the messages. */
  readonly tokens: number;
  /** Number of the next message. */
  readonly next: number;
  /** The first segment of the other run. */
  readonly from: { readonly runId: string };
  /** The messages that stay verbatim. */
  readonly pinned?: readonly Message[];
  /** The last texts of the messages, if the input requests them. */
  readonly latest?: readonly SuppliedMessage[];
  /** The artifacts of these messages' calls. */
  readonly artifacts?: readonly RunArtifact[];
  /** Notes for the model about calls that were undone. */
  readonly notes?: readonly string[];
  /** The state of the graph, if the input names a node. */
  readonly graph?: ForkedGraph;
}

const parsed = either(
  fields<Extract<ParsedAnswer, { ok: true }>>({ ok: yes, output: json }),
  fields<Extract<ParsedAnswer, { ok: false }>>({
    ok: oneOf(false),
    problem: text,
    output: optional(json),
  }),
);

const finishShape = oneOf('stop', 'calls', 'length', 'filtered', 'refused');

export const replyShape = fields<RecordedReply>({
  text,
  blob: optional(blobShape),
  calls: optional(list(requestedCallShape)),
  provider: optional(providerShape),
  parsed: optional(parsed),
  finish: finishShape,
  usage: replyUsageShape,
  requestId: optional(text),
  fallback: optional(fields<FallbackModel>({ model: text, price: nullable(priceShape) })),
  span: optional(text),
  decided: optional(
    fields<NonNullable<RecordedReply['decided']>>({ modelCalls: count, promptTokens: amount }),
  ),
  dropped: optional(list(text)),
  reports: optional(list(reportShape)),
});

const success = {
  text,
  blob: optional(blobShape),
  lost: optional(text),
  output: optional(json),
  artifact: optional(createdArtifactShape),
  attachments: optional(list(attachmentShape)),
  reports: optional(list(reportShape)),
  summary: optional(text),
};
const generated = {
  spent: optional(usageShape),
  generated: optional(
    list(
      fields<GeneratedReply>({
        model: text,
        text,
        blob: optional(blobShape),
        request: optional(text),
        finish: optional(finishShape),
        usage: usageShape,
      }),
    ),
  ),
};
const successShape = fields<ToolSuccess>(success);
const [succeeded, failed] = [
  fields<Extract<RunToolResult, { ok: true }>>({ ok: yes, ...success, ...generated }),
  fields<Extract<RunToolResult, { ok: false }>>({
    ok: oneOf(false),
    text,
    reports: optional(list(reportShape)),
    limit: optional(oneOf('tokens', 'costUsd')),
    ...generated,
  }),
];
const readsResult = fields<RunReadsResult>({
  reads: list(
    fields<RunRead>({
      call: text,
      shown: text,
      result: optional(either(succeeded, failed)),
      why: optional(oneOf('slow', 'threw', 'elsewhere')),
    }),
  ),
});
const undecided = fields<Extract<RunToolResult, { ok: 'undecided' }>>({
  ok: oneOf('undecided'),
  verdict: verdictShape,
  parsed: optional(parsedShape),
  summary: optional(text),
});
const inputRequired = fields<Extract<RunToolResult, { ok: 'input_required' }>>({
  ok: oneOf('input_required'),
  asks: serverAsksShape,
  state: optional(text),
});
const notExecuted = fields<Extract<RunToolResult, { message: string }>>({
  ok: oneOf('unknown', 'not_started'),
  message: text,
  ...generated,
});
const anyOk = shape<never>(
  'one of true, false, unknown, not_started, undecided, input_required',
  () => false,
);
/** Its field `ok` says which others it has. */
export const toolResultShape: Shape<RunToolResult> = (value, at) => {
  const { ok } = isObject(value) ? value : {};
  if (ok === true) return succeeded(value, at);
  if (ok === false) return failed(value, at);
  if (ok === 'undecided') return undecided(value, at);
  if (ok === 'input_required') return inputRequired(value, at);
  const isKnown = ok === 'unknown' || ok === 'not_started';
  return isKnown || !isObject(value) ? notExecuted(value, at) : anyOk(ok, `${at}.ok`);
};

const functionResult = either(
  fields<Extract<RunFunctionResult, { happened: true }>>({
    happened: yes,
    result: toolResultShape,
  }),
  fields<Extract<RunFunctionResult, { happened: false }>>({ happened: oneOf(false) }),
  fields<Extract<RunFunctionResult, { happened: 'unknown' }>>({
    happened: oneOf('unknown'),
    message: text,
  }),
  fields<Extract<RunFunctionResult, { happened: 'undecided' }>>({
    happened: oneOf('undecided'),
    verdict: verdictShape,
    parsed: optional(parsedShape),
    summary: optional(text),
  }),
);

const checkResult = either(
  fields<Extract<CheckDecisionResult, { ok: true }>>({
    ok: yes,
    call: optional(requestedCallShape),
    result: optional(successShape),
    answer: optional(serverAnswerShape),
  }),
  fields<Extract<CheckDecisionResult, { ok: false }>>({ ok: oneOf(false), message: text }),
);

const retrieveResult = fields<RetrieveResult>({
  documents: list(
    fields<RetrievedDocument>({
      text,
      blob: optional(blobShape),
      id: optional(text),
      source: optional(text),
    }),
  ),
});

const forkResult = fields<ForkMessagesResult>({
  chunk: chunkShape,
  head: hex(32),
  tokens: amount,
  next: count,
  from: fields<ForkMessagesResult['from']>({ runId: text }),
  pinned: optional(list(messageShape)),
  latest: optional(list(saidShape)),
  artifacts: optional(list(artifactShape)),
  notes: optional(list(text)),
  graph: optional(forkedGraphShape),
});

const followResult = tagged<FollowRunResult, 'type'>('type', {
  ended: fields<Extract<FollowRunResult, { type: 'ended' }>>({
    type: oneOf('ended'),
    outcome: outcomeShape,
  }),
  lost: fields<Extract<FollowRunResult, { type: 'lost' }>>({ type: oneOf('lost') }),
  other: fields<Extract<FollowRunResult, { type: 'other' }>>({
    type: oneOf('other'),
    running: flag,
  }),
});

export const isReply = guard(replyShape);
export const isToolResult = guard(toolResultShape);
export const isReadsResult = guard(readsResult);
export const isFunctionResult = guard(functionResult);
export const isRunConfig = guard(configShape);
export const isCheckedDecision = guard(checkResult);
export const isRetrieval = guard(retrieveResult);
export const isArchiveResult = guard(fields<ArchiveMessagesResult>({ blob: optional(blobShape) }));
export const isForked = guard(forkResult);
export const isFollowResult = guard(followResult);
export const isReceipt = guard(
  fields<AskReceipt>({ turn: count, duplicate: optional(yes), digest: optional(text) }),
);
export const isReport = guard(reportShape);
export const isOutcome = guard(outcomeShape);

/** Returns the error text for a recorded result of another form. */
export function misfitMessage(activity: string, value: unknown): string {
  return `${activity}: expected a result of this activity, got ${show(value)}; it was completed by hand`;
}
