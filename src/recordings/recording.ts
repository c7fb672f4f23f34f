import type { AgentDefinition, ModelPrice } from '../core/definition/definition.js';
import type { Ask } from '../core/input/inbox.js';
import type { RunInput } from '../core/input/input.js';
import { isUndoing } from '../core/requests/undo-text.js';
import type { Spent } from '../core/state/turn.js';
import { type Json, isObject } from '../core/text/json.js';
import type { Message, ToolCall } from '../core/transcript/messages.js';
import type { Outcome } from '../core/transcript/outcome.js';
import type { Decision, Request, RequestKind } from '../core/transcript/request.js';
import type { Keyring } from '../encryption/keyring.js';

/**
 * What happened to a recorded run, in the order of its history. `at`: Unix time in ms, by the server.
 * Values that activities recorded have the form of the history.
 */
export type RecordedFact = { readonly at: number } & (
  | {
      /** A model, or a decision function, replied. */
      readonly type: 'reply';
      readonly turn: number;
      readonly step: number;
      readonly reply: Json;
      /** The time of the attempt that replied, in ms, from its start on a worker. */
      readonly tookMs: number;
      /** The reply is a summary of older messages, and no step; absent in older recordings. */
      readonly summary?: true;
    }
  | {
      /** A tool call, or a node's function, ended on a worker. */
      readonly type: 'result';
      readonly turn: number;
      readonly step: number;
      readonly call: ToolCall;
      readonly effect: string;
      readonly result: Json;
    }
  | {
      /** Documents were retrieved, a `verify` or `undo` was executed, or another activity ended. */
      readonly type: 'activity';
      readonly activity: string;
      readonly input: Json;
      readonly result: Json;
    }
  | {
      /** An activity failed for the last time. */
      readonly type: 'failure';
      readonly activity: string;
      readonly input: Json;
      readonly error: { readonly type: string; readonly message: string };
    }
  | {
      readonly type: 'message';
      readonly message: Ask;
      /** What the message decided about; absent if it decided nothing. */
      readonly about?: RecordedRequest;
    }
  | {
      readonly type: 'decision';
      readonly decision: Decision;
      /** What was decided; absent if no request was open under its id. */
      readonly about?: RecordedRequest;
    }
  /** Limits, pauses, and the like: an update or a signal under its own name. */
  | { readonly type: 'control'; readonly name: string; readonly input: Json }
  /** An agent was called, as the run with this id. */
  | { readonly type: 'called'; readonly call: string; readonly run: string }
  | { readonly type: 'cancel' }
);

/** Whether a run was open when it was recorded, and not waiting for a message, as far as is known. */
export function isMidTurn({ endedAt, lastTurn = null }: RecordedRun): boolean {
  return endedAt === null && lastTurn === null;
}

/** Whether a turn of a run was under way when the run was recorded, when it was canceled, or when its time was up. */
export function wasCutOff(run: RecordedRun, turn: number): boolean {
  if (isMidTurn(run)) return true;
  const { at: from = run.startedAt } = run.messages.find((one) => one.turn === turn) ?? {};
  const { at: until = Infinity } = run.messages.find((one) => one.turn > turn) ?? {};
  return run.facts.some(
    (fact) =>
      (fact.type === 'cancel' ||
        (fact.type === 'control' && fact.name === 'cancelTurn') ||
        raisesTime(fact)) &&
      fact.at >= from &&
      fact.at <= until,
  );
}

/** Whether a person has given more time, so that what the time limit had cut off went on. */
export function raisesTime(fact: RecordedFact): boolean {
  if (fact.type !== 'decision' || fact.about?.kind !== 'limit') return false;
  const { as, arguments: raised } = fact.decision;
  return as === 'raise' && isObject(raised) && raised['wallMs'] !== undefined;
}

/** A fact of one type. */
export type FactOf<T extends RecordedFact['type']> = Extract<RecordedFact, { readonly type: T }>;

/** A fact of one type, and the run that it belongs to. */
export interface Placed<T extends RecordedFact['type']> {
  readonly run: RecordedRun;
  readonly fact: FactOf<T>;
}

/** Returns the facts of a type of all runs, in the order in which they happened. */
export function factsOf<T extends RecordedFact['type']>(
  { runs }: Recording,
  type: T,
): readonly Placed<T>[] {
  return runs
    .flatMap((run) =>
      run.facts
        .filter((fact): fact is FactOf<T> => fact.type === type)
        .map((fact) => ({ run, fact })),
    )
    .toSorted((one, other) => one.fact.at - other.fact.at);
}

/** What a request was about, without the run: its digest names the run, which a rerun is not. */
export interface RecordedRequest {
  readonly kind: RequestKind;
  readonly tool?: string;
  /** The arguments as the tool gets them, as JSON. */
  readonly arguments?: string;
  /** The words that a person read, of a question or a plan. */
  readonly shown?: string;
  /** The call had been executed, and the request was about its undo. */
  readonly undo?: true;
}

/** Returns what a request is about. */
export function subjectOf({ kind, tool, ...request }: Request): RecordedRequest {
  const args = request.parsed ?? request.arguments;
  return {
    kind,
    ...(tool !== undefined && { tool }),
    ...(args !== undefined && { arguments: args }),
    ...(SHOWN.includes(kind) && { shown: request.shown }),
    ...(isUndoing({ kind, ...request }) && { undo: true }),
  };
}

/** Their words are their subject. */
const SHOWN: readonly RequestKind[] = ['question', 'plan'];

/** The `output` of a turn. */
export interface TurnOutput {
  readonly turn: number;
  readonly output: Json;
}

/** One run of a recording: the recorded run itself, or that of an agent that it called. */
export interface RecordedRun {
  readonly id: string;
  readonly agent: string;
  /** Unix time in ms. */
  readonly startedAt: number;
  /** Null if the run was open when it was recorded. */
  readonly endedAt: number | null;
  readonly input: RunInput;
  /** The agent's definitions that the run has pinned, oldest first. */
  readonly definitions: readonly AgentDefinition[];
  /** The price of the agent's model; absent if it was unknown. */
  readonly price?: ModelPrice;
  /** The maximum number of tokens in a prompt of the model; absent if it was unknown. */
  readonly window?: number;
  readonly facts: readonly RecordedFact[];
  /** All messages, also refused answers. */
  readonly messages: readonly Message[];
  /** Null if the run left none, or was open. */
  readonly outcome: Outcome | null;
  /**
   * How the last turn of an open run ended; null while a turn was under way. Absent for a run that has
   * ended, and in older recordings.
   */
  readonly lastTurn?: Outcome | null;
  /**
   * What the turns that have ended gave as their `output`, oldest first, without those that gave none.
   * Absent in older recordings, which have only that of the outcome.
   */
  readonly outputs?: readonly TurnOutput[];
  /**
   * The requests without a decision: they expired, were withdrawn, or were still open. Absent in older
   * recordings.
   */
  readonly undecided?: readonly RecordedRequest[];
  /** What all turns together have used, with the agents that it called. */
  readonly spent: Spent;
}

/**
 * A run that happened, as data: with it, `rerun` executes the run again without a model, tools, or a
 * server. Made by `recordRun` from histories alone.
 */
export interface Recording {
  readonly format: 'perdure/recording';
  readonly version: 1;
  /** The recorded run, then those that it called, each after its caller. */
  readonly runs: readonly RecordedRun[];
  /** The large texts to which the runs refer, by their SHA-256. In a file, a folder beside it has them. */
  readonly blobs: Readonly<Record<string, string>>;
}

/** Returns a recording of these runs. */
export function createRecording(
  runs: readonly RecordedRun[],
  blobs: Readonly<Record<string, string>>,
): Recording {
  return { format: 'perdure/recording', version: 1, runs, blobs };
}

/** Where a recording has the keys of its run. A copy of the recording has them, too; its JSON does not. */
const KEYS = Symbol('perdure.keys');
type WithKeys = Recording & { readonly [KEYS]?: Keyring };

/** Returns a recording that is written with these keys, unless others are given then. */
export function withKeys(recording: Recording, keyring: Keyring | null): Recording {
  const known: WithKeys = keyring === null ? recording : { ...recording, [KEYS]: keyring };
  return known;
}

/** Returns the keys of `withKeys`; null if there are none. */
export function keysOf(recording: WithKeys): Keyring | null {
  return recording[KEYS] ?? null;
}

/** Returns the SHA-256 of each large text to which a value refers, with the place of its first reference. */
export function blobsIn(
  value: unknown,
  path = '',
  found = new Map<string, string>(),
): ReadonlyMap<string, string> {
  if (Array.isArray(value)) {
    for (const [index, one] of value.entries()) blobsIn(one, `${path}[${index}]`, found);
  } else if (isObject(value)) {
    const { sha256, bytes } = value;
    const isRef = typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256);
    if (isRef && typeof bytes === 'number' && !found.has(sha256)) found.set(sha256, path);
    for (const [name, one] of Object.entries(value)) blobsIn(one, `${path}.${name}`, found);
  }
  return found;
}
