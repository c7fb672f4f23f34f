import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { AgentDefinition, ModelPrice } from '../core/definition/definition.js';
import { InputError } from '../core/errors.js';
import { definitionShape } from '../core/guards/definition.js';
import { priceShape } from '../core/guards/state.js';
import type { Ask } from '../core/input/inbox.js';
import type { RunInput } from '../core/input/input.js';
import { visible } from '../core/state/summaries.js';
import { type Spent, spentShape } from '../core/state/turn.js';
import { type Json, isObject, parseJson, sha256Hex } from '../core/text/json.js';
import {
  type Shape,
  amount,
  fields,
  hex,
  json,
  list,
  nullable,
  oneOf,
  optional,
  shape,
  table,
  tagged,
  text,
} from '../core/text/shape.js';
import {
  callShape,
  decisionShape,
  messageShape,
  outcomeShape,
} from '../core/transcript/message-shapes.js';
import type { Message, ToolCall } from '../core/transcript/messages.js';
import type { Outcome } from '../core/transcript/outcome.js';
import type { Decision, Request, RequestKind } from '../core/transcript/request.js';

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
      /** The time from its request to its reply in ms, with retries. */
      readonly tookMs: number;
      /** The reply is a summary of older messages, and no step; absent in recordings of 0.2.0. */
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
  | { readonly type: 'message'; readonly message: Ask }
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
}

/** Returns what a request is about. */
export function subjectOf({ kind, tool, ...request }: Request): RecordedRequest {
  const args = request.parsed ?? request.arguments;
  return {
    kind,
    ...(tool !== undefined && { tool }),
    ...(args !== undefined && { arguments: args }),
    ...(SHOWN.includes(kind) && { shown: request.shown }),
  };
}

/** Their words are their subject. */
const SHOWN: readonly RequestKind[] = ['question', 'plan'];

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

const FORMAT = 'perdure/recording';
const VERSION = 1;

/** Returns a recording of these runs. */
export function createRecording(
  runs: readonly RecordedRun[],
  blobs: Readonly<Record<string, string>>,
): Recording {
  return { format: FORMAT, version: VERSION, runs, blobs };
}

const ask = shape<Ask>('an object', isObject);
const recordedValue = shape<Json>('an object', isObject);
const call: Shape<ToolCall> = callShape;
const place = { at: amount, turn: amount, step: amount };

const aboutShape = fields<RecordedRequest>({
  kind: shape<RequestKind>('a kind of request', (value) => typeof value === 'string'),
  tool: optional(text),
  arguments: optional(text),
  shown: optional(text),
});

const fact = tagged<RecordedFact, 'type'>('type', {
  reply: fields<FactOf<'reply'>>({
    ...place,
    type: oneOf('reply'),
    reply: recordedValue,
    tookMs: amount,
    summary: optional(oneOf(true)),
  }),
  result: fields({
    ...place,
    type: oneOf('result'),
    call,
    effect: text,
    result: recordedValue,
  }),
  activity: fields({
    at: amount,
    type: oneOf('activity'),
    activity: text,
    input: json,
    result: json,
  }),
  failure: fields({
    at: amount,
    type: oneOf('failure'),
    activity: text,
    input: json,
    error: fields<{ readonly type: string; readonly message: string }>({
      type: text,
      message: text,
    }),
  }),
  message: fields({ at: amount, type: oneOf('message'), message: ask }),
  decision: fields<FactOf<'decision'>>({
    at: amount,
    type: oneOf('decision'),
    decision: decisionShape,
    about: optional(aboutShape),
  }),
  control: fields({ at: amount, type: oneOf('control'), name: text, input: json }),
  called: fields({ at: amount, type: oneOf('called'), call: text, run: text }),
  cancel: fields({ at: amount, type: oneOf('cancel') }),
});

const recorded = fields<RecordedRun>({
  id: text,
  agent: text,
  startedAt: amount,
  endedAt: nullable(amount),
  input: fields<Pick<RunInput, 'agent' | 'message'>>({
    agent: text,
    message: optional(text),
  }),
  definitions: list(definitionShape),
  price: optional(priceShape),
  window: optional(amount),
  facts: list(fact),
  messages: list(messageShape),
  outcome: nullable(outcomeShape),
  spent: spentShape,
});

const header = fields<Pick<Recording, 'format' | 'version'>>({
  format: shape(`"${FORMAT}"`, (value) => value === FORMAT),
  version: shape(
    `${VERSION}; a newer version of perdure has made the recording, or record the run again`,
    (value) => value === VERSION,
  ),
});
const atLeastOne = shape<readonly RecordedRun[]>(
  'a list with the recorded run',
  (value) => Array.isArray(value) && value.length > 0,
);

/**
 * Checks a recording that was read from a file, field by field. Throws an `InputError` that names the
 * first wrong field.
 */
export function parseRecording(value: unknown): Recording {
  const problem =
    header(value, 'recording') ??
    fields<Pick<Recording, 'runs' | 'blobs'>>({ runs: atLeastOne, blobs: table(text) })(
      value,
      'recording',
    ) ??
    fields<Pick<Recording, 'runs'>>({ runs: list(recorded) })(value, 'recording');
  if (problem !== null) throw new InputError(problem);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked field by field
  const recording = value as Recording;
  const wrong = Object.entries(recording.blobs).find(([name, one]) => sha256Hex(one) !== name)?.[0];
  if (wrong === undefined) return recording;
  throw new InputError(
    `recording.blobs: expected the text with the SHA-256 ${visible(wrong.slice(0, 64))}, got another one`,
  );
}

/** The folder with the large texts of a recording, beside its file. */
function blobFolder(file: string): string {
  return `${file.replace(/\.json$/, '')}.blobs`;
}

/**
 * Writes a recording to a file, and its large texts to a folder beside it, such as `case.blobs` for
 * `case.json`.
 *
 * @example
 * ```ts
 * import { createClient } from 'perdure/client';
 * import { recordRun, writeRecording } from 'perdure/testing';
 *
 * const client = await createClient();
 * await writeRecording('test/cases/desk-17.json', await recordRun(client, 'desk-17'));
 * ```
 */
export async function writeRecording(file: string, recording: Recording): Promise<void> {
  const { blobs, ...rest } = recording;
  const names = Object.keys(blobs).toSorted();
  await mkdir(dirname(file), { recursive: true });
  if (names.length > 0) await mkdir(blobFolder(file), { recursive: true });
  for (const sha256 of names) await writeFile(join(blobFolder(file), sha256), blobs[sha256] ?? '');
  await writeFile(file, `${JSON.stringify({ ...rest, blobs: names }, null, 2)}\n`);
}

/**
 * Reads a recording that `writeRecording` or `perdure record` has written. Rejects with an
 * `InputError` that names the file and the first wrong field.
 *
 * @example
 * ```ts
 * import { readRecording } from 'perdure/testing';
 *
 * const recording = await readRecording('test/cases/desk-17.json');
 * console.log(recording.runs[0]?.agent);
 * ```
 */
export async function readRecording(file: string): Promise<Recording> {
  const name = visible(file);
  const content = await readText(file, `${name}: expected a readable recording`);
  const value = parseJson(content);
  if (!isObject(value)) {
    throw new InputError(`${name}: expected JSON as perdure record writes it, got something else`);
  }
  if (isObject(value['blobs'])) return await named(name, () => parseRecording(value));
  const problem = fields<{ readonly blobs: readonly string[] }>({ blobs: list(hex(64)) })(
    value,
    'recording',
  );
  const names = Array.isArray(value['blobs']) ? value['blobs'] : [];
  return await named(name, async () => {
    const known = header(value, 'recording') ?? problem;
    if (known !== null) throw new InputError(known);
    const blobs = Object.fromEntries(
      await Promise.all(names.map(async (sha256) => await readBlob(file, String(sha256)))),
    );
    return parseRecording({ ...value, blobs });
  });
}

/** Adds the name of a file to an `InputError`. */
async function named<T>(name: string, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!InputError.isInstance(error)) throw error;
    throw new InputError(`${name}: ${error.message}`, { cause: error });
  }
}

async function readBlob(file: string, sha256: string): Promise<readonly [string, string]> {
  const path = join(blobFolder(file), sha256);
  const content = await readText(path, `blobs: expected the text in ${visible(path)}`);
  if (sha256Hex(content) === sha256) return [sha256, content];
  throw new InputError(`blobs: expected the recorded text in ${visible(path)}, got another one`);
}

async function readText(file: string, expected: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new InputError(`${expected}, got an error (${reason})`, { cause: error });
  }
}
