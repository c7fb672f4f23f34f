import type { Json } from '../core/json.js';
import type { Decision } from '../core/requests/decision.js';
import type { DecisionWord, Request } from '../core/requests/request.js';
import type { Rule } from '../core/requests/rules.js';

/** The decision that `mayDecide` is asked about, and where it comes from. */
export interface Decider {
  /** The name that the decider claims; null if none was given. */
  readonly by: string | null;
  readonly decision: Decision;
  readonly run: {
    /** The workflow id. */
    readonly id: string;
    /** The Temporal run id of the segment. */
    readonly runId: string;
    readonly turn: number;
  };
  /** The run's `context`. */
  readonly context: Json;
}

/**
 * Returns whether a person may make a decision. Only `true` allows it: if the function throws, returns
 * anything else, or takes longer than 5 seconds, the decision is refused, and the request stays open.
 */
export type MayDecide = (request: Request, decider: Decider) => boolean | Promise<boolean>;

/** What a notice says about a request: enough to recognize it, and the command that decides. */
export interface NoticeRequest extends Pick<
  Request,
  'id' | 'kind' | 'tool' | 'effect' | 'digest' | 'expiresAt'
> {
  /** For people: the first 300 characters of what the run will do. */
  readonly shown: string;
  /** For people: the first 300 characters. */
  readonly why: string;
  readonly decisions: readonly DecisionWord[];
  /** The command that decides. */
  readonly fix: string;
}

/** What is sent when a run raises a request. Nothing in it decides: a decision is always an update. */
export interface Notice {
  /** The workflow id. */
  readonly run: string;
  readonly agent: string;
  readonly turn: number;
  readonly request: NoticeRequest;
}

/** Where notices are posted, signed as Standard Webhooks says. */
export interface NotifyTarget {
  /** An address of http or https. */
  readonly url: string;
  /** Name of the environment variable with the key: `whsec_` and 24 to 64 bytes in base64. */
  readonly secretEnv: string;
}

/** A function in place of an address. What it throws is retried; it has 10 s, and may get a notice twice. */
export type NotifyFunction = (notice: Notice) => void | Promise<void>;

/** Options about requests: in the configuration, and of a worker. */
export interface RequestOptions {
  /** Rules about all calls of all agents. Rules of an agent or a run can only tighten them. */
  readonly rules?: readonly Rule[];
  /** Decides who may decide, beside the `deciders` of the rules. */
  readonly mayDecide?: MayDecide;
  /** Sends a notice of each request that a run raises. */
  readonly notify?: NotifyTarget | NotifyFunction;
}
