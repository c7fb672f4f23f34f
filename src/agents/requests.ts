import type { Json } from '../core/json.js';
import type { Decision } from '../core/requests/decision.js';
import type { DecisionKind, Request } from '../core/requests/request.js';
import type { Rule } from '../core/requests/rules.js';

/** The decision that `mayDecide` checks, and where it comes from. */
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
 * Returns whether a person may make a decision. Only `true` allows it: if the function throws,
 * returns anything else, or takes longer than 5 seconds, the decision is refused, and the request
 * stays open.
 */
export type MayDecide = (request: Request, decider: Decider) => boolean | Promise<boolean>;

/**
 * The part of a request that a notice contains: enough to recognize it, and the command that
 * decides it.
 */
export interface NoticeRequest extends Pick<
  Request,
  'id' | 'kind' | 'tool' | 'effect' | 'digest' | 'expiresAt'
> {
  /** For people: the first 300 characters of what the run will do; of a plan, its actions in brief. */
  readonly shown: string;
  /** For people: the first 300 characters. */
  readonly why: string;
  readonly decisions: readonly DecisionKind[];
  /** The command that decides the request. */
  readonly fix: string;
}

/**
 * The notice that is sent when a run raises a request. It cannot decide the request: a decision is
 * always an update.
 */
export interface Notice {
  /** The workflow id. */
  readonly run: string;
  readonly agent: string;
  readonly turn: number;
  readonly request: NoticeRequest;
}

/** Where notices are posted, signed according to Standard Webhooks. */
export interface NotifyTarget {
  /** An HTTP or HTTPS URL. */
  readonly url: string;
  /** Name of the environment variable with the key: `whsec_` and 24 to 64 bytes in base64. */
  readonly secretEnv: string;
}

/**
 * A function to call instead of a URL. It has 10 s, is retried if it throws, and may receive a
 * notice twice.
 */
export type NotifyFunction = (notice: Notice) => void | Promise<void>;

/** Options for requests, in the configuration and on a worker. */
export interface RequestOptions {
  /** Rules for all calls of all agents. The rules of an agent or a run can only tighten them. */
  readonly rules?: readonly Rule[];
  /** Decides who may decide, in addition to the `deciders` of the rules. */
  readonly mayDecide?: MayDecide;
  /** Sends a notice of each request that a run raises. */
  readonly notify?: NotifyTarget | NotifyFunction;
}
