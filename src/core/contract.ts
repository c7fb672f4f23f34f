import type { AgentBlock, ModelBlock, ToolBlock } from './blocked.js';
import type { Effect, LimitSet, Limits, ParentClose } from './definition/definition.js';
import type { AskReceipt } from './inbox.js';
import type { RunInput } from './input/input.js';
import type { Json, JsonObject } from './json.js';
import type { ContextRef, ToolCall } from './transcript/messages.js';
import type { CallArtifacts } from './artifacts/named-artifacts.js';
import type {
  FollowRunResult,
  ForkMessagesResult,
  KeepMessagesResult,
  RetrieveResult,
  RunFunctionResult,
  RunToolResult,
} from './guards/recorded.js';
import type { RecordedReply } from './reply.js';
import type { RunConfig } from './state.js';

export type {
  FollowRunResult,
  ForkMessagesResult,
  KeepMessagesResult,
  RetrieveResult,
  RunFunctionResult,
  RunToolResult,
} from './guards/recorded.js';

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
  /** With `context`: id of the run that owns it, the one above all its callers. */
  readonly root?: string;
  /** There is time to ask the agent's MCP servers for their tools. */
  readonly patient?: true;
  /** This is a probe of a blocked run: an agent that is missing, or a store that is down, is waited for. */
  readonly blocked?: AgentBlock;
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
  /** Summarize the messages before this place in the prompt; this is no step. */
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
  readonly contextBlob?: ContextRef;
  /** This is a probe of a blocked run: the same trouble again is waited out, not reported again. */
  readonly blocked?: ModelBlock;
  /** The reply that an earlier call of this step has paid for and could not check (a `PaidReply`). */
  readonly paid?: Json;
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
  readonly contextBlob?: ContextRef;
  /** Only in a run that has artifacts. */
  readonly artifacts?: CallArtifacts;
  /** Of a tool of an MCP server that has changed: the form of it that a person has accepted. */
  readonly accepted?: string;
  readonly blocked?: ToolBlock;
  /** Of a `once` tool: an earlier run for the same call may have executed it. */
  readonly again?: true;
  /** Only look whether this worker can execute the call; execute nothing. */
  readonly find?: true;
}

/** A call whose outcome is unknown, to be looked up at its destination. */
export interface RunFunctionInput extends RunToolInput {
  readonly function: 'verify';
}

/** Names the prompt as a model call does. */
export interface RetrieveInput {
  readonly upTo: number;
  readonly head: string;
  readonly definition: string;
  readonly turn: number;
  /** How many of the newest messages of the prompt are what the turn is about. */
  readonly asked: number;
  readonly context?: Json;
  readonly contextBlob?: ContextRef;
  readonly blocked?: ToolBlock;
}

export interface KeepMessagesInput {
  /** First execution run id: with namespace and workflow id it names the run for ever. */
  readonly firstRunId: string;
  /** Numbers of messages (first, and first not) that go to the archive. */
  readonly archive: { readonly from: number; readonly to: number } | null;
  /** Places in the prompt (first, and first not) that go to the blob store as one chunk. */
  readonly chunk: { readonly from: number; readonly to: number } | null;
  /** The run cannot go on without it: a store that is down blocks the run. */
  readonly must?: true;
  /** This is a probe of a blocked run. */
  readonly blocked?: 'storage';
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

/** Names the run of a called agent, and how to recognize it. */
export interface FollowRunInput {
  /** Its workflow id. */
  readonly run: string;
  /** The idempotency key of the call that it answers. */
  readonly key: string;
  /** What happens to it when its caller is canceled or gone. */
  readonly close: ParentClose;
}

export interface ForkMessagesInput {
  readonly run: string;
  /** The agent of the run that begins with these messages, and those whose messages it may take beside its own. */
  readonly agent: string;
  readonly forkFrom?: readonly string[];
  /** Number of the first message that is not taken; absent: all are. */
  readonly at?: number;
  /** This is a probe of a blocked run. */
  readonly blocked?: 'storage';
}

/** A blob that the run needs and that could not be read. */
export interface CheckBlobInput {
  readonly sha256: string;
  /** The work that waits for it: a call id, `model`, or `retrieve`. */
  readonly work: string;
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
  readonly checkBlob: (input: CheckBlobInput) => Promise<void>;
  readonly askRun: (input: SendMessageInput) => Promise<AskReceipt>;
  readonly followRun: (input: FollowRunInput) => Promise<FollowRunResult>;
}
