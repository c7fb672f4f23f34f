import type { z } from 'zod';
import type { OutputDefinition, TagSet } from '../core/definition/definition.js';
import type { Typed } from '../core/definition/agent-types.js';
import type { Rule } from '../core/definition/rules.js';
import { InputError } from '../core/errors.js';
import { type Json, type JsonObject, isObject } from '../core/text/json.js';
import { type Duration, show, toMs } from '../core/text/text.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import type { Outcome } from '../core/transcript/outcome.js';
import type { Decision, DecisionKind, Request } from '../core/transcript/request.js';
import type { Classes } from '../output/classes/classes.js';
import type { AnswerParser, ParseFunction } from '../output/parse-output.js';
import { outputSchema } from '../output/schemas.js';

/**
 * The required form of an answer: a zod type, `tags({…})`, `classify([…])`, or a function that
 * parses the answer or throws.
 */
export type AgentOutput<Output> =
  | z.ZodType<Output>
  | (TagSet & Typed<Output>)
  | (Pick<Classes, 'classes' | 'samples'> & Typed<Output>)
  | ((...given: Parameters<ParseFunction>) => Output | Promise<Output>);

/** The contract of an agent's answers: as data to pin, and as the code that validates. */
export interface AnswerContract {
  readonly definition: OutputDefinition;
  /** Null if the engine validates without user code, as for classes. */
  readonly parser: AnswerParser | null;
}

/**
 * Returns the contract of an agent's `output`. Throws an `InputError` if `output` is not of an
 * accepted type.
 */
export function answerContract(agent: string, output: AgentOutput<unknown>): AnswerContract {
  if (typeof output === 'function') {
    return { definition: { type: 'function' }, parser: { type: 'function', parse: output } };
  }
  const given: unknown = output;
  if (!isObject(given)) throw notAnOutput(agent, given);
  if (isZod(output)) {
    const { schema } = outputSchema(output);
    const definition = { type: 'json', name: 'answer', schema } as const;
    return { definition, parser: { type: 'zod', schema: output } };
  }
  if (isTags(output)) {
    const { xml, fences, signals } = output;
    const tags = { xml, fences, signals };
    return { definition: { type: 'tags', tags }, parser: { type: 'tags', tags } };
  }
  if ('classes' in output && Array.isArray(output.classes)) {
    return { definition: { type: 'classes', ...output }, parser: null };
  }
  throw notAnOutput(agent, output);
}

function notAnOutput(agent: string, given: unknown): Error {
  return new InputError(
    `agent "${agent}": output: expected a zod type, tags({…}), classify([…]), or a function, got ${show(given)}; ` +
      'for any JSON, use z.json()',
  );
}

function isZod(output: object): output is z.ZodType {
  return '_zod' in output;
}

function isTags(output: object): output is TagSet {
  return 'xml' in output && 'fences' in output && 'signals' in output;
}

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
  /**
   * Rules for all calls of all agents. The rules of an agent or a run can only tighten them.
   * Default: none.
   */
  readonly rules?: readonly Rule[];
  /**
   * Decides who may decide, in addition to the `deciders` of the rules. Default: those deciders
   * alone.
   */
  readonly mayDecide?: MayDecide;
  /** Sends a notice of each request that a run raises. Default: no notices. */
  readonly notify?: NotifyTarget | NotifyFunction;
}

/** What a retriever searches for. */
export interface RetrieveQuery {
  /** The message that started the turn. */
  readonly query: string;
  /** The conversation so far, with that message. */
  readonly messages: readonly PromptMessage[];
  /** The maximum number of documents that are used; the rest are dropped. */
  readonly limit: number;
}

/** What a retriever receives in addition to the query. */
export interface RetrieveContext {
  /** The run's `context`. */
  readonly context: Json;
  /** Aborts when the time is up or the turn is canceled. */
  readonly signal: AbortSignal;
  readonly run: { readonly id: string; readonly runId: string; readonly turn: number };
  readonly log: (message: string, fields?: JsonObject) => void;
}

/** A text, optionally with an id that identifies it in later turns and its source. */
export type FoundDocument =
  | string
  | {
      readonly text: string;
      readonly id?: string | undefined;
      readonly source?: string | undefined;
    };

/**
 * Finds documents for a turn, best first. The worker runs it once per turn, before the first model
 * call. If it throws, it is retried; the turn ends as `failed` after the last attempt.
 */
export type RetrieveFunction = (
  query: RetrieveQuery,
  context: RetrieveContext,
) => readonly FoundDocument[] | Promise<readonly FoundDocument[]>;

/** A retriever with options. */
export interface RetrieveOptions {
  readonly find: RetrieveFunction;
  /** The time limit of one attempt, as a `Duration`; default '30 seconds'. */
  readonly timeout?: Duration;
}

/** A retriever made by `createRetriever`, with defaults filled in. */
export interface Retriever {
  readonly find: RetrieveFunction;
  readonly timeoutMs: number;
}

/** Makes a retriever from checked options. */
export function createRetriever(given: RetrieveFunction | RetrieveOptions): Retriever {
  const { find, timeout = TIMEOUT_MS } = typeof given === 'function' ? { find: given } : given;
  return { find, timeoutMs: toMs(timeout) };
}

/** A turn that has ended, for a memory. */
export interface EndedTurn {
  /** Its number in the run, from 1. */
  readonly turn: number;
  /**
   * The messages of the turn, oldest first: from people and the model, and tool results. Messages
   * of a very long turn that a summary has replaced are missing. Empty if the turn has no messages,
   * as in a graph that starts with data.
   */
  readonly messages: readonly PromptMessage[];
  readonly outcome: Outcome;
}

/** What `remember` receives in addition to the turn. */
export interface RememberContext extends RetrieveContext {
  /**
   * 64 hex digits: the same in each attempt for this turn, even after a reset, and different for
   * every other turn. Store the memory under this key and overwrite any earlier value: the newest
   * call is correct.
   */
  readonly idempotencyKey: string;
}

/** Remembers a turn. It may be called more than once for a turn, with the same `idempotencyKey`. */
export type RememberFunction = (ended: EndedTurn, context: RememberContext) => unknown;

/** A `remember` function with options. */
export interface RememberOptions {
  readonly save: RememberFunction;
  /** The time limit of one attempt, as a `Duration`; default '30 seconds'. */
  readonly timeout?: Duration;
}

/**
 * A memory that lasts longer than a conversation: `remember` saves each turn that has ended, and
 * `retrieve` finds what helps with the next one. Both are options of `defineAgent`.
 *
 * @example
 * ```ts
 * import { defineAgent, type Memory } from 'perdure';
 *
 * const turns = new Map<string, string>();
 * const memory: Memory = {
 *   retrieve: ({ query }) => [...turns.values()].filter((text) => text.includes(query)),
 *   remember: ({ messages, outcome }, { idempotencyKey }) => {
 *     turns.set(idempotencyKey, `${messages[0]?.text} ${outcome.answer}`);
 *   },
 * };
 * defineAgent({ name: 'companion', instructions: 'Talk.', ...memory });
 * ```
 */
export interface Memory {
  readonly retrieve: RetrieveFunction;
  readonly remember: RememberFunction;
}

/** A `remember` function with defaults filled in. */
export interface Rememberer {
  readonly save: RememberFunction;
  readonly timeoutMs: number;
}

const TIMEOUT_MS = 30_000;

/** Fills in the defaults of checked options. */
export function createRememberer(given: RememberFunction | RememberOptions): Rememberer {
  const { save, timeout = TIMEOUT_MS } = typeof given === 'function' ? { save: given } : given;
  return { save, timeoutMs: toMs(timeout) };
}
