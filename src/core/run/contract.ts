import type { SentArtifacts } from '../calls/artifacts.js';
import type { Budget, LimitSet, Limits } from '../definition/definition.js';
import type { Rule } from '../definition/rules.js';
import type { Effect, ParentClose } from '../definition/tool-definition.js';
import type {
  ArchiveMessagesResult,
  CheckDecisionResult,
  FollowRunResult,
  ForkMessagesResult,
  RetrieveResult,
  RunFunctionResult,
  RunReadsResult,
  RunToolResult,
} from '../guards/recorded.js';
import type { ClientTool } from '../definition/tool-definition.js';
import type { AskReceipt } from '../input/inbox.js';
import type { RunInput } from '../input/input.js';
import type { PromptCall } from '../input/named-prompt.js';
import type { ContextFields } from '../input/turn-context.js';
import type { ForkMessagesInput } from '../state/fork.js';
import type { RunConfig } from '../state/state.js';
import type { RememberInput, RetrieveInput } from '../state/turn.js';
import type { Json, JsonObject } from '../text/json.js';
import type { SpanPlace } from '../transcript/call-result.js';
import type { BlobRef, ToolCall } from '../transcript/messages.js';
import type { AgentBlock, ModelBlock, RecordedReply, ToolBlock } from '../transcript/outcome.js';
import type { Decision, Request, ServerAnswer } from '../transcript/request.js';

export type {
  CheckDecisionResult,
  FollowRunResult,
  ForkMessagesResult,
  ArchiveMessagesResult,
  RetrieveResult,
  RunFunctionResult,
  RunReadsResult,
  RunToolResult,
} from '../guards/recorded.js';

/** Input of the activity that loads the agent of a new run. */
export interface LoadAgentInput extends SpanPlace {
  readonly agent: string;
  readonly limits: Limits;
  /** How many agents are above the run; absent for a run without a caller. */
  readonly depth?: number;
  /** Arguments for instructions that are a template. */
  readonly args?: JsonObject;
  /** The prompt that the run's first message names; absent once the run has an agent. */
  readonly prompt?: PromptCall;
  /** The rules of the run's own input; absent once the run has an agent. */
  readonly rules?: readonly Rule[];
  /** The tools of the run's own input. */
  readonly clientTools?: readonly ClientTool[];
  /** The remaining budget of the caller. */
  readonly budget?: LimitSet;
  /** The run's context; present only if it is too large to send with every call. */
  readonly context?: Json;
  /** With `context`: id of the run that owns it, which is the root of all callers. */
  readonly root?: string;
  /** The activity's timeout allows time to list the tools of the agent's MCP servers. */
  readonly withMcp?: true;
  /** Why the run is blocked, if this is a probe. The same problem is not reported again. */
  readonly blocked?: AgentBlock;
  /**
   * The text of the run's first message, for the worker's transcript cache. Only a local activity
   * gets it, whose input is not recorded.
   */
  readonly first?: string;
}

/**
 * Input of a model call. Its size does not grow with the conversation: it names the prompt by
 * digest. It has the run's context only for agents with a function that reads it.
 */
export interface CallModelInput extends ContextFields, SpanPlace {
  /** Number of canonical messages in the prompt. */
  readonly upTo: number;
  /** Digest of these messages as the model sees them; the definition has its own hash. */
  readonly head: string;
  /** Hash of the pinned definition. */
  readonly definition: string;
  readonly turn: number;
  readonly step: number;
  /** The turn is at a limit: the model must answer without calls. */
  readonly closing?: true;
  /** The graph's node, if its model call differs from the graph's definition. */
  readonly node?: string;
  /** The prompt of the agent that the turn's message names; absent if it names none. */
  readonly prompt?: string;
  /** Settings of the model that the turn's messages add; absent if they add none. */
  readonly settings?: JsonObject;
  /** Place in the prompt: the messages before it are summarized. The call is then not a step. */
  readonly compact?: number;
  /** For a summary: the model's context window in tokens; absent if unknown. */
  readonly window?: number;
  readonly maxOutputTokens?: number;
  /** For a decision function: the budget of its model calls; absent if nothing limits them. */
  readonly left?: Budget;
  /** Message number at which the run was forked; a part of the ids of its calls. */
  readonly fork?: number;
  /** Request parameters that the server has refused earlier in this run. */
  readonly without?: readonly string[];
  /** The rules of the run's own input; present only if it has some. */
  readonly rules?: readonly Rule[];
  /** Maximum number of failed attempts; absent: the run waits until the model answers. */
  readonly attempts?: number;
  /** Why the run is blocked, if this is a probe. The same problem is not reported again. */
  readonly blocked?: ModelBlock;
  /** The reply that an earlier call of this step paid for but could not check (a `PaidReply`). */
  readonly paid?: Json;
}

/** What a call sends to an MCP server that has asked for input. */
export interface AnsweredInput {
  readonly answers: Readonly<Record<string, ServerAnswer>>;
  readonly state?: string;
}

/** Input of `runTool`. */
export interface RunToolInput extends ContextFields, SpanPlace {
  /** Hash of the pinned definition. */
  readonly definition: string;
  readonly turn: number;
  readonly step: number;
  readonly call: ToolCall;
  /** The tool's effect in the pinned definition. */
  readonly effect: Effect;
  /** The call's idempotency key. */
  readonly key: string;
  /** Present only in a run that has artifacts. */
  readonly artifacts?: SentArtifacts;
  /** For a changed tool of an MCP server: the definition that a person has accepted. */
  readonly accepted?: string;
  /** Why the run is blocked, if this is a probe. */
  readonly blocked?: ToolBlock | ModelBlock;
  /** For a node: the replies that an earlier call of it paid for (see `AttemptMemory`). */
  readonly paid?: Json;
  /** For a `once` tool: an earlier run for the same call may have executed it. */
  readonly again?: true;
  /** The answers to what the call's MCP server has asked, by its keys, and the server's own data. */
  readonly answered?: AnsweredInput;
  /** The worker must apply the rules to the call first, including the input's `rules`. */
  readonly evaluateRules?: true;
  readonly rules?: readonly Rule[];
  /** The activity only checks whether its worker could execute the call. */
  readonly find?: true;
  /** The activity only applies the rules to the call, which the run itself executes. */
  readonly judge?: true;
  /** Number of executions before this activity that threw; they count as attempts. */
  readonly tries?: number;
}

/** Input of the local activity that executes the calls of one reply, all of inline tools. */
export interface RunReadsInput extends SpanPlace {
  readonly calls: readonly RunToolInput[];
  /** How many of them are executed at the same time. */
  readonly atOnce: number;
}

/**
 * Input of a tool's function other than `execute`: `verify` determines the outcome of a call whose
 * outcome is unknown, and `undo` reverts one that succeeded.
 */
export interface RunFunctionInput extends RunToolInput {
  readonly function: 'verify' | 'undo';
  /** For `undo`: what the call returned. */
  readonly result?: UndoneResult;
  /** For `undo`: the rules of the run's own input. */
  readonly rules?: readonly Rule[];
  /** For `undo`: a person has approved it, so the rules do not require approval again. */
  readonly approved?: true;
}

/** The result of a call, for its `undo`. */
interface UndoneResult {
  readonly text: string;
  /** The whole text, if `text` is its head and tail. */
  readonly blob?: BlobRef;
}

/** Input of the activity that checks a decision before it takes effect. */
export interface CheckDecisionInput extends ContextFields {
  /** Hash of the pinned definition. */
  readonly definition: string;
  readonly turn: number;
  readonly step: number;
  /** The work that waits: a call id, or `limit`. */
  readonly work: string;
  readonly request: Request;
  readonly decision: Decision;
  /** The run began on workers with `mayDecide`, so a worker without it allows nothing. */
  readonly mayDecide?: true;
  /** The call that waits; absent for a limit. */
  readonly call?: ToolCall;
  /** The rules of the run's own input; present only if it has some. */
  readonly rules?: readonly Rule[];
}

/** Input of the activity that calls the worker's `notify` for a request. */
export interface NotifyRequestInput {
  readonly request: Request;
  readonly agent: string;
  readonly turn: number;
}

/** Input of the activity that stores messages outside the history. */
export interface ArchiveMessagesInput {
  /** First execution run id: with namespace and workflow id it identifies the run permanently. */
  readonly firstRunId: string;
  /** Numbers of the messages for the archive: from the first one up to, but not including, `to`. */
  readonly archive: { readonly from: number; readonly to: number } | null;
  /** Prompt places that are offloaded as one chunk, up to but not including `to`. */
  readonly chunk: { readonly from: number; readonly to: number } | null;
  /** The run cannot continue without this, so a store that is down blocks the run. */
  readonly must?: true;
  /** Place in the prompt: the messages before it are summarized next. */
  readonly cut?: number;
  /** This is a probe of a blocked run. */
  readonly blocked?: 'storage';
}

/** Input of the activity that sends a message to a run. */
export interface SendMessageInput {
  /** The workflow id of the run that receives the message. */
  readonly to: string;
  /** The id of the message. */
  readonly id: string;
  readonly message: string;
  /** Who sends it, unverified; absent if unknown. */
  readonly by?: string;
  /** The run to start if it does not exist. */
  readonly start?: RunInput;
}

/** Identifies the run of a called agent. */
export interface FollowRunInput {
  /** Its workflow id. */
  readonly run: string;
  /** The idempotency key of the call that it answers. */
  readonly key: string;
  /** What happens to it when its caller is canceled or has ended. */
  readonly close: ParentClose;
}

/** Input of `checkBlob`: a blob that the run needs and that could not be read. */
export interface CheckBlobInput {
  readonly sha256: string;
  /** The work that waits for the blob: a call id, `model`, or `retrieve`. */
  readonly work: string;
}

/** The boundary between workflow and worker. Histories record its names, so they are permanent. */
export interface Activities {
  readonly loadAgent: (input: LoadAgentInput) => Promise<RunConfig>;
  readonly callModel: (input: CallModelInput) => Promise<RecordedReply>;
  readonly runTool: (input: RunToolInput) => Promise<RunToolResult>;
  readonly runReads: (input: RunReadsInput) => Promise<RunReadsResult>;
  readonly retrieveDocuments: (input: RetrieveInput) => Promise<RetrieveResult>;
  readonly rememberTurn: (input: RememberInput) => Promise<void>;
  readonly archiveMessages: (input: ArchiveMessagesInput) => Promise<ArchiveMessagesResult>;
  readonly runFunction: (input: RunFunctionInput) => Promise<RunFunctionResult>;
  readonly forkMessages: (input: ForkMessagesInput) => Promise<ForkMessagesResult>;
  readonly checkBlob: (input: CheckBlobInput) => Promise<void>;
  readonly checkDecision: (input: CheckDecisionInput) => Promise<CheckDecisionResult>;
  readonly notifyRequest: (input: NotifyRequestInput) => Promise<void>;
  readonly askRun: (input: SendMessageInput) => Promise<AskReceipt>;
  readonly followRun: (input: FollowRunInput) => Promise<FollowRunResult>;
}

/** The activity of workflow type `probe`. No run schedules it. */
export interface ProbeActivities {
  /** Returns the names of all agents of this worker, sorted. */
  readonly listPerdureAgents: () => Promise<readonly string[]>;
}
