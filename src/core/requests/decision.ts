import type { Json, JsonObject } from '../json.js';
import type { Predicate } from './predicate.js';
import type { DecisionKind } from './request.js';

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
  /** For `edit`: all new arguments. For `raise`: by how much, such as `{"steps": 10}`. */
  readonly arguments?: JsonObject;
  /**
   * For `some`: the ids of the plan's actions that are executed, with all that they depend on.
   * Absent: all that need no approval and depend on none that does.
   */
  readonly actions?: readonly string[];
  /** For `answer` and `happened`: the result. */
  readonly result?: Json;
  /**
   * For the model: the reason, at most 2,000 characters. It reaches the model with `deny`,
   * `abandon`, and every decision about a plan or about a question of a graph.
   */
  readonly note?: string;
  /** For `approve`: the approval also holds for later calls of this run. */
  readonly grant?: RequestedGrant;
  /** Who decides: a claim of 1 to 200 characters, recorded and not verified. */
  readonly by?: string;
  /** Set by the run only; see `keepsEarlierMeaning`. */
  readonly patched?: true;
}

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
  | 'unbound';

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
}
