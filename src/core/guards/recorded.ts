import type { ToolSuccess } from '../calls/call-result.js';
import type { RetrievedDocument } from '../documents.js';
import type { AskReceipt } from '../inbox.js';
import {
  artifactMadeShape,
  artifactShape,
  askedCallShape,
  attachmentShape,
  blobShape,
  messageShape,
  providerShape,
} from './message.js';
import type { Artifact, BlobRef, Message } from '../transcript/messages.js';
import type { Outcome } from '../outcome.js';
import { outcomeShape, reportShape } from './outcome.js';
import type { ParsedAnswer, RecordedReply, ReplyUsage } from '../reply.js';
import {
  amount,
  count,
  either,
  fields,
  flag,
  guard,
  hex,
  json,
  list,
  oneOf,
  optional,
  tagged,
  text,
  yes,
} from './shape.js';
import { show } from '../text/format-value.js';
import { chunkShape, configShape } from './state.js';
import type { PromptChunk } from '../transcript/transcript.js';

// What the history records of an activity or a called agent. Anyone who may complete an activity by
// hand may record anything, so workflow and readers check each result by these guards before use.

/**
 * `unknown`: it may have happened or not; nobody on the worker can tell. `not_started`: nothing has
 * happened, the call may be scheduled again.
 */
export type RunToolResult =
  | ({ readonly ok: true } & ToolSuccess)
  | { readonly ok: false; readonly text: string }
  | { readonly ok: 'unknown' | 'not_started'; readonly message: string };

export type RunFunctionResult =
  | { readonly happened: true; readonly result: RunToolResult }
  | { readonly happened: false }
  | { readonly happened: 'unknown'; readonly message: string };

export interface RetrieveResult {
  /** In their order; none of them stands in the prompt already. */
  readonly documents: readonly RetrievedDocument[];
}

export interface ArchiveMessagesResult {
  /** The chunk: JSON lines of messages. */
  readonly blob?: BlobRef;
}

/**
 * `lost`: it ended without an outcome, or the server no longer keeps it. `other`: the run does not
 * answer this call.
 */
export type FollowRunResult =
  | { readonly type: 'ended'; readonly outcome: Outcome }
  | { readonly type: 'lost' }
  | { readonly type: 'other'; readonly running: boolean };

export interface ForkMessagesResult {
  /** The messages in the order of the prompt, as JSON lines. */
  readonly chunk: PromptChunk;
  /** Digest of them as the model sees them. */
  readonly head: string;
  /** Estimated, of the messages alone. */
  readonly tokens: number;
  /** Number of the next message. */
  readonly next: number;
  /** The first segment of the run that was read. */
  readonly from: { readonly runId: string };
  /** Of them, those that stay word for word. */
  readonly pinned?: readonly Message[];
  /** What the calls among them have made. */
  readonly artifacts?: readonly Artifact[];
}

const parsed = either(
  fields<Extract<ParsedAnswer, { ok: true }>>({ ok: yes, output: json }),
  fields<Extract<ParsedAnswer, { ok: false }>>({
    ok: oneOf(false),
    problem: text,
    output: optional(json),
  }),
);

const reply = fields<RecordedReply>({
  text,
  blob: optional(blobShape),
  calls: optional(list(askedCallShape)),
  provider: optional(providerShape),
  parsed: optional(parsed),
  finish: oneOf('stop', 'calls', 'length', 'filtered', 'refused'),
  usage: fields<ReplyUsage>({
    inputTokens: amount,
    outputTokens: amount,
    cachedTokens: amount,
    reasoningTokens: optional(amount),
    estimated: optional(yes),
  }),
  requestId: optional(text),
  dropped: optional(list(text)),
  reports: optional(list(reportShape)),
});

const toolResult = either(
  fields<Extract<RunToolResult, { ok: true }>>({
    ok: yes,
    text,
    blob: optional(blobShape),
    output: optional(json),
    artifact: optional(artifactMadeShape),
    attachments: optional(list(attachmentShape)),
  }),
  fields<Extract<RunToolResult, { ok: false }>>({ ok: oneOf(false), text }),
  fields<Exclude<RunToolResult, { ok: boolean }>>({
    ok: oneOf('unknown', 'not_started'),
    message: text,
  }),
);

const functionResult = either(
  fields<Extract<RunFunctionResult, { happened: true }>>({ happened: yes, result: toolResult }),
  fields<Extract<RunFunctionResult, { happened: false }>>({ happened: oneOf(false) }),
  fields<Extract<RunFunctionResult, { happened: 'unknown' }>>({
    happened: oneOf('unknown'),
    message: text,
  }),
);

const retrieved = fields<RetrieveResult>({
  documents: list(
    fields<RetrievedDocument>({
      text,
      blob: optional(blobShape),
      id: optional(text),
      source: optional(text),
    }),
  ),
});

const beginWithFork = fields<ForkMessagesResult>({
  chunk: chunkShape,
  head: hex(32),
  tokens: amount,
  next: count,
  from: fields<ForkMessagesResult['from']>({ runId: text }),
  pinned: optional(list(messageShape)),
  artifacts: optional(list(artifactShape)),
});

const followed = tagged<FollowRunResult, 'type'>('type', {
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

export const isReply = guard(reply);
export const isToolResult = guard(toolResult);
export const isFunctionResult = guard(functionResult);
export const isRunConfig = guard(configShape);
export const isRetrieved = guard(retrieved);
export const isKept = guard(fields<ArchiveMessagesResult>({ blob: optional(blobShape) }));
export const isForked = guard(beginWithFork);
export const isFollowed = guard(followed);
export const isReceipt = guard(fields<AskReceipt>({ turn: count, duplicate: optional(yes) }));
export const isReport = guard(reportShape);
export const isOutcome = guard(outcomeShape);

/** By the name of the activity. */
const GUARDS: ReadonlyMap<string, (value: unknown) => boolean> = new Map<
  string,
  (value: unknown) => boolean
>([
  ['loadAgent', isRunConfig],
  ['callModel', isReply],
  ['runTool', isToolResult],
  ['runFunction', isFunctionResult],
  ['retrieveDocuments', isRetrieved],
  ['archiveMessages', isKept],
  ['forkMessages', isForked],
  ['followRun', isFollowed],
  ['askRun', isReceipt],
]);

/** Whether a recorded result is one of the activity of this name. */
export function fitsActivity(activity: string, value: unknown): boolean {
  return GUARDS.get(activity)?.(value) ?? true;
}

/** What people read of a recorded result that is none of its activity. */
export function misfitMessage(activity: string, value: unknown): string {
  return `${activity}: expected a result of this activity, got ${show(value)}; it was completed by hand`;
}
