import type { LimitName } from '../definition/definition.js';
import type { Predicate } from '../definition/predicate.js';
import type { Deciders } from '../definition/rules.js';
import type { Effect } from '../definition/tool-definition.js';
import type { Json, JsonObject } from '../text/json.js';
import type { BlobRef, SafetyCheck } from './messages.js';

/**
 * The kinds of requests that a run makes to the outside.
 *
 * | kind              | asked when                                                    | decisions                          |
 * | ----------------- | ------------------------------------------------------------- | ---------------------------------- |
 * | `approval`        | a rule or the tool requires approval of the call              | `approve`, `deny`, `edit`, `answer` |
 * | `question`        | the model, a graph, or the MCP server of a call asks a person | `answer`, `deny`; for a server, also `abandon` |
 * | `plan`            | a graph shows a whole plan before it is executed              | `approve`, `some`, `deny`, `answer` |
 * | `client_tool`     | the tool has no `execute`: the caller executes it             | `answer`, `deny`                   |
 * | `limit`           | a limit was reached, and the agent has `onLimit: 'ask'`       | `raise`, `stop`                    |
 * | `outcome_unknown` | a call may have taken effect                                  | `happened`, `retry`, `abandon`     |
 * | `safety_check`    | the model's provider requires a person's review               | `approve`, `deny`                  |
 * | `tool_changed`    | an MCP server has changed the tool since it was accepted      | `accept`, `deny`                   |
 */
export type RequestKind = keyof typeof OFFERED;

/** What can be decided about a request; see `RequestKind`. */
export type DecisionKind = keyof typeof DECISION_FIELDS;

/** The fields of a `Decision` that only some decisions have. */
export type DecisionField = 'arguments' | 'actions' | 'result' | 'grant';

/** Everything that can be decided, and the field that it has beside a note. */
export const DECISION_FIELDS = {
  approve: 'grant',
  some: 'actions',
  deny: null,
  edit: 'arguments',
  answer: 'result',
  happened: 'result',
  retry: null,
  abandon: null,
  accept: null,
  raise: 'arguments',
  stop: null,
} as const satisfies Readonly<Record<string, DecisionField | null>>;

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
export const DECISION_KINDS = Object.keys(DECISION_FIELDS) as readonly DecisionKind[];

/** Maximum decisions in one update. */
export const MAX_DECISIONS = 200;
/** Maximum characters of the note of a decision. */
export const MAX_NOTE_CHARACTERS = 2_000;

/** Returns the decisions that have a field. */
export function decisionsWith(field: DecisionField): readonly DecisionKind[] {
  return DECISION_KINDS.filter((as) => DECISION_FIELDS[as] === field);
}

/** The decisions that a request of each kind offers. */
export const OFFERED = {
  approval: ['approve', 'deny', 'edit', 'answer'],
  question: ['answer', 'deny'],
  plan: ['approve', 'some', 'deny', 'answer'],
  client_tool: ['answer', 'deny'],
  limit: ['raise', 'stop'],
  outcome_unknown: ['happened', 'retry', 'abandon'],
  safety_check: ['approve', 'deny'],
  tool_changed: ['accept', 'deny'],
} as const satisfies Readonly<Record<string, readonly DecisionKind[]>>;

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
export const REQUEST_KINDS = Object.keys(OFFERED) as readonly RequestKind[];

/**
 * What an MCP server asks a person before its tool acts: the fields of a form, or to open an address.
 * All texts are the server's.
 */
export interface ServerAsk {
  /** Names it in the server's result. */
  readonly key: string;
  readonly message: string;
  /** JSON schema of the fields, an object; absent for an address. */
  readonly form?: JsonObject;
  /** The address, http or https; absent for a form. */
  readonly url?: string;
}

/** The answer that a server gets: the result of `elicitation/create`. */
export interface ServerAnswer {
  readonly action: 'accept' | 'decline' | 'cancel';
  /** For the fields of a form that was accepted. */
  readonly content?: JsonObject;
}

/** What the MCP server of a call has asked for, and the answers so far. */
export interface AskedByServer {
  /** All asks of one result. Each is a request, one after the other. */
  readonly asks: readonly ServerAsk[];
  /** The answers to the first asks, in the same order. */
  readonly answers: readonly ServerAnswer[];
  /** The server's own data, which is sent back to it unchanged with the answers. It is never shown. */
  readonly state?: string;
  /** The number of results of this call that asked. */
  readonly rounds: number;
}

/** A limit that a run has reached, and asks to raise. */
export interface LimitReached {
  readonly name: LimitName;
  /** The amount used: a count, tokens, US dollars, or milliseconds. */
  readonly used: number;
  /** The limit in force; null if only the run as a whole, or a caller's budget, has one. */
  readonly limit: number | null;
  /** Present if the limit, and the amount used, are those of the whole run. */
  readonly scope?: 'run';
}

/** A limit as the run records it with a request, whose digest covers it: the amount of the turn. */
export type RecordedLimit = Omit<LimitReached, 'scope'>;

/** When a call was executed that a person asks to undo. */
export interface ExecutedCall {
  readonly turn: number;
  readonly step: number;
  /** Unix time in ms of its result; absent if the prompt no longer has the result. */
  readonly at?: number;
}

/**
 * A request to the outside, for which a run waits without occupying a worker. Exactly one decision
 * answers it. The engine generates all texts from recorded data; only the arguments and the
 * `question` are model text.
 */
export interface Request {
  /** Names the request in its run: `r1`, `r2`, … */
  readonly id: string;
  readonly kind: RequestKind;
  /** The id of the call that waits; absent for a limit. */
  readonly call?: string;
  readonly tool?: string;
  /** The effect of the tool; absent for a plan, which has `effects`. */
  readonly effect?: Effect;
  /** For `plan`: the effect of each tool that the plan calls. */
  readonly effects?: Readonly<Record<string, Effect>>;
  /** The call's arguments as JSON, as the model, the graph, or a person wrote them. */
  readonly arguments?: string;
  /** The blob with the arguments, if they are too large for the history. */
  readonly argumentsBlob?: BlobRef;
  /**
   * What the tool gets as JSON, if its schema changes the arguments (defaults, conversions,
   * transforms). Absent: it gets `arguments`.
   */
  readonly parsed?: string;
  /** The blob with what the tool gets, if that is too large for the history. */
  readonly parsedBlob?: BlobRef;
  /**
   * SHA-256 (hex) that a decision must specify. It covers the run, the request, the call, the tool,
   * the tool's pinned definition, and the arguments as written and as the tool gets them.
   */
  readonly digest: string;
  /**
   * For people: the tool, its effect, its target, its description, and every argument; for a plan,
   * its actions; for a question, who asks, and the words, quoted. Control characters are visible.
   */
  readonly shown: string;
  /** What the tool's `describe` returned, in one line; absent if the tool has none. */
  readonly summary?: string;
  /** Why the run asks: the rule, the check, or the fault. */
  readonly why: string;
  /** The claimed name of the person who began the turn; null if no name was specified. */
  readonly requester: string | null;
  /** The interface that has verified the requester, such as `http`; absent: the name is a claim. */
  readonly requesterDoor?: string;
  /** Unix time in ms. */
  readonly raisedAt: number;
  /** Unix time in ms at which the request expires; null: it waits indefinitely. */
  readonly expiresAt: number | null;
  /**
   * What happens when it expires: it is denied, the run stops, or the graph goes on by the exit
   * `expired` of its node.
   */
  readonly onExpiry: 'deny' | 'stop' | 'expired';
  /** The decisions that are possible. */
  readonly decisions: readonly DecisionKind[];
  /**
   * Who may decide; every entry must allow the person. Empty: anyone who may send updates to the
   * run.
   */
  readonly deciders: readonly Deciders[];
  /**
   * The command that decides, as `perdure approve RUN r1 --digest …`; for `outcome_unknown`, the one that
   * shows the ways to decide. A word in capitals, such as `TEXT` or `N`, stands for what the person adds.
   * In a project, put `npx` before it: a run does not know where its reader has the program.
   */
  readonly fix: string;
  /** For `question`: what the model, the graph, or the MCP server asks, in its own words. */
  readonly question?: string;
  /** For a `question` of an MCP server: its name in the agent's definition. */
  readonly server?: string;
  /** For a `question` of an MCP server: JSON schema of the fields that the answer has. */
  readonly form?: JsonObject;
  /** For a `question` of an MCP server: the address that a person opens. */
  readonly url?: string;
  /** For `client_tool`: JSON schema of the result; absent if any value is one. */
  readonly result?: JsonObject;
  /** For `question`: suggested answers; any other text is also allowed. */
  readonly options?: readonly string[];
  /** For `safety_check`: the checks in the provider's words. */
  readonly checks?: readonly SafetyCheck[];
  /** For an approval to undo an executed call: when that was executed; absent for any other request. */
  readonly undo?: ExecutedCall;
  /** For `limit`. */
  readonly limit?: LimitReached;
  /** For `outcome_unknown`: the idempotency key by which the destination may recognize the call. */
  readonly idempotencyKey?: string;
  /** For `tool_changed`: hash of the tool's current form. */
  readonly definition?: string;
  /** A decision was made and is being checked on a worker. */
  readonly checking?: true;
  /** Why a worker has refused the newest decision about the request; it can be decided again. */
  readonly refused?: string;
}

/** Whether a request asks to undo a call that has been made: its arguments cannot be edited. */
export function isUndoRequest({ kind, decisions }: Pick<Request, 'kind' | 'decisions'>): boolean {
  return kind === 'approval' && !decisions.includes('edit');
}

/** The stored part of an open request; `Request` is built from it and the state. */
export interface RaisedRequest {
  readonly id: string;
  readonly kind: RequestKind;
  readonly why: string;
  /** Unix time in ms. */
  readonly raisedAt: number;
  /** Unix time in ms; absent: never. */
  readonly expiresAt?: number;
  readonly deciders?: readonly Deciders[];
  readonly limit?: RecordedLimit;
  /** For `tool_changed`: hash of the tool's current form. */
  readonly definition?: string;
  /** The worker's `notify` was called. */
  readonly notified?: true;
}

/** A request before the run has assigned its id. */
export type NewRequest = Omit<RaisedRequest, 'id'>;

/** The scope of an approval beyond its own call. */
export interface RequestedGrant {
  /**
   * `same_call`: the same tool with the same arguments. `tool`: the tool with arguments that fit
   * `where`.
   */
  readonly scope: 'same_call' | 'tool';
  /** Only with scope `tool`; absent: any arguments. */
  readonly where?: Predicate;
}

/**
 * A decision about a request: the argument of the update `resolve`. The first decision wins, and it
 * applies only to exactly what the digest covers.
 */
export interface Decision {
  /** The request's id. */
  readonly request: string;
  /** The request's digest, as shown. */
  readonly digest: string;
  readonly as: DecisionKind;
  /** Required for `edit`: all new arguments; and for `raise`: by how much, as `{"steps": 10}`. */
  readonly arguments?: JsonObject;
  /**
   * For `some`: the ids of the plan's actions that are executed, with all that they depend on.
   * Absent: all that need no approval and depend on none that does.
   */
  readonly actions?: readonly string[];
  /** The result: required for `answer`; for `happened`, default: none. */
  readonly result?: Json;
  /**
   * For the model: the reason, at most 2,000 characters. It reaches the model with `deny`,
   * `abandon`, and every decision about a plan or about a question of a graph. Default: none.
   */
  readonly note?: string;
  /**
   * For `approve`: the approval also holds for later calls of this run. Default: for this call
   * only.
   */
  readonly grant?: RequestedGrant;
  /**
   * Who decides: a claim of 1 to 200 characters, recorded and not verified. Default: `by` of the
   * client, if it has one.
   */
  readonly by?: string;
  /** The interface that has verified `by`, such as `http`; absent: `by` is a claim. Only a server sets it. */
  readonly door?: string;
  /** The groups of `by` that the interface has verified. Default: none. */
  readonly groups?: readonly string[];
  /** Set by the run only; see `keepsEarlierMeaning`. Default: none. */
  readonly patched?: true;
}

/**
 * The codes of refusals that the command, HTTP, and MCP tell apart. The others are `refused`, and so is
 * each as a `RefusedError`.
 */
export const REFUSAL_CODES: Readonly<
  Partial<Record<RefusalReason, 'no_request' | 'changed' | 'run_ended'>>
> = {
  unknown_request: 'no_request',
  decided: 'no_request',
  expired: 'no_request',
  wrong_digest: 'changed',
  run_ended: 'run_ended',
};

/** Why a decision, or a message that would be one, is refused. It is then not recorded. */
export type RefusalReason =
  /** The value does not have the form of a decision. */
  | 'malformed'
  /** The run has no such request. */
  | 'unknown_request'
  /** Another decision was made first. */
  | 'decided'
  | 'expired'
  /** The digest is not the request's: the call or its arguments differ from those shown. */
  | 'wrong_digest'
  /** The request does not offer this decision. */
  | 'not_offered'
  /** The rules do not allow this person to decide. */
  | 'not_a_decider'
  /** Another decision is being checked on a worker. */
  | 'checking'
  | 'too_large'
  /** For a message: it is close to an answer, but is none; the message says what can be answered. */
  | 'unclear'
  /** For a message: it must name the request and the digest that it answers. */
  | 'unbound'
  /** The run has ended, or is about to end. */
  | 'run_ended';

/** What the update `resolve` returns for each decision. */
export interface DecisionReceipt {
  readonly request: string;
  readonly as: DecisionKind;
  /**
   * The decision is checked on a worker before it takes effect; the run's status shows the result.
   */
  readonly checking?: true;
}

/** An approval that holds for later calls of the run, until it is revoked. */
export interface Grant {
  /** Names the grant in its run: `g1`, `g2`, … */
  readonly id: string;
  readonly tool: string;
  readonly scope: RequestedGrant['scope'];
  /** For `same_call`: SHA-256 (hex) of the arguments as written. */
  readonly digest?: string;
  /** For `same_call`: SHA-256 (hex) of what the tool gets, if that differs. */
  readonly parsed?: string;
  /** For `tool`. */
  readonly where?: Predicate;
  /** For people: a description of the grant. */
  readonly shown: string;
  /** The request whose approval created the grant. */
  readonly request: string;
  /** Unix time in ms. */
  readonly at: number;
  readonly by?: string;
  /** The interface that has verified `by`; absent: a claim. */
  readonly door?: string;
  /** The groups of `by` that the interface has verified. Default: none. */
  readonly groups?: readonly string[];
}
