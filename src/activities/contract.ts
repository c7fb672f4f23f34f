import type { ModelBlock, ToolBlock } from '../core/blocked.js';
import type { ToolSuccess } from '../core/call-results.js';
import type { Effect, LimitSet, Limits } from '../core/definition.js';
import type { RetrievedDocument } from '../core/documents.js';
import type { AskReceipt } from '../core/inbox.js';
import type { RunInput } from '../core/input.js';
import type { Json, JsonObject } from '../core/json.js';
import type { Artefact, BlobRef, Message, ToolCall } from '../core/messages.js';
import type { CallArtefacts } from '../core/named-artefacts.js';
import type { RecordedReply } from '../core/reply.js';
import type { RunConfig } from '../core/state.js';
import type { PromptChunk } from '../core/transcript.js';

export interface LoadAgentInput {
  readonly agent: string;
  readonly limits: Limits;
  /** Agents above the run. */
  readonly depth?: number;
  /** For instructions that are a template. */
  readonly args?: JsonObject;
  /** What the caller has left. */
  readonly budget?: LimitSet;
  /** Only handed over when it is too large to travel with every call. */
  readonly context?: Json;
  /** There is time to ask the agent's MCP servers for their tools. */
  readonly patient?: true;
}

/** Constant in size, however long the conversation: the prompt is named, not carried. */
export interface CallModelInput {
  /** How many canonical messages the prompt has. */
  readonly upTo: number;
  /** Digest of the definition and of these messages as the model sees them. */
  readonly head: string;
  /** Hash of the pinned definition. */
  readonly definition: string;
  readonly turn: number;
  readonly step: number;
  readonly closing?: true;
  /** Summarise the messages before this place in the prompt; this is no step. */
  readonly compact?: number;
  /** Of a summary: tokens that the model reads at most, where somebody knows. */
  readonly window?: number;
  readonly maxOutputTokens?: number;
  /** Where the run was forked; a part of the ids of its calls. */
  readonly fork?: number;
  /** What the server has refused before in this run. */
  readonly without?: readonly string[];
  /** Only for agents with a function that reads it. */
  readonly context?: Json;
  readonly contextBlob?: BlobRef;
  /** This is a probe of a blocked run: the same trouble again is waited out, not reported again. */
  readonly blocked?: ModelBlock;
}

export interface RunToolInput {
  readonly definition: string;
  readonly turn: number;
  readonly step: number;
  readonly call: ToolCall;
  /** The pinned effect of the tool. */
  readonly effect: Effect;
  readonly key: string;
  readonly context?: Json;
  readonly contextBlob?: BlobRef;
  /** Only in a run that has artefacts. */
  readonly artefacts?: CallArtefacts;
  /** Of a tool of an MCP server that has changed: the form of it that a person has accepted. */
  readonly accepted?: string;
  readonly blocked?: ToolBlock;
}

/**
 * `unknown`: it may have happened or not; nobody on the worker can tell. `not_started`: nothing has
 * happened, the call may be scheduled again.
 */
export type RunToolResult =
  | ({ readonly ok: true } & ToolSuccess)
  | { readonly ok: false; readonly text: string }
  | { readonly ok: 'unknown' | 'not_started'; readonly message: string };

/** A call whose outcome is unknown, to be looked up at its destination. */
export interface RunFunctionInput extends RunToolInput {
  readonly function: 'verify';
}

export type RunFunctionResult =
  | { readonly happened: true; readonly result: RunToolResult }
  | { readonly happened: false }
  | { readonly happened: 'unknown'; readonly message: string };

/** Names the prompt as a model call does. */
export interface RetrieveInput {
  readonly upTo: number;
  readonly head: string;
  readonly definition: string;
  readonly turn: number;
  /** How many of the newest messages of the prompt are what the turn is about. */
  readonly asked: number;
  readonly context?: Json;
  readonly contextBlob?: BlobRef;
  readonly blocked?: ToolBlock;
}

export interface RetrieveResult {
  /** In their order; none of them stands in the prompt already. */
  readonly documents: readonly RetrievedDocument[];
}

export interface KeepMessagesInput {
  /** First execution run id: with namespace and workflow id it names the run for ever. */
  readonly firstRunId: string;
  /** Numbers of messages (first, and first not) that go to the archive. */
  readonly archive: { readonly from: number; readonly to: number } | null;
  /** Places in the prompt (first, and first not) that go to the blob store as one chunk. */
  readonly chunk: { readonly from: number; readonly to: number } | null;
}

export interface KeepMessagesResult {
  /** The chunk: JSON lines of messages. */
  readonly blob?: BlobRef;
}

export interface SendMessageInput {
  /** The run that gets it. */
  readonly to: string;
  /** Of the message. */
  readonly id: string;
  readonly message: string;
  /** What to start where there is no such run. */
  readonly start?: RunInput;
}

export interface ForkMessagesInput {
  readonly run: string;
  /** Number of the first message that is not taken; absent: all are. */
  readonly at?: number;
}

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
  readonly artefacts?: readonly Artefact[];
}

/** The seam between workflow and worker. Names and fields are recorded in histories: they are for ever. */
export interface Activities {
  readonly loadAgent: (input: LoadAgentInput) => Promise<RunConfig>;
  readonly callModel: (input: CallModelInput) => Promise<RecordedReply>;
  readonly runTool: (input: RunToolInput) => Promise<RunToolResult>;
  readonly retrieveDocuments: (input: RetrieveInput) => Promise<RetrieveResult>;
  readonly keepMessages: (input: KeepMessagesInput) => Promise<KeepMessagesResult>;
  readonly runFunction: (input: RunFunctionInput) => Promise<RunFunctionResult>;
  readonly forkMessages: (input: ForkMessagesInput) => Promise<ForkMessagesResult>;
  readonly askRun: (input: SendMessageInput) => Promise<AskReceipt>;
}
