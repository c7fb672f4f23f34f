import { InputError } from '../core/errors.js';
import { definitionShape } from '../core/guards/definition.js';
import { replyShape, toolResultShape } from '../core/guards/recorded.js';
import { priceShape } from '../core/guards/state.js';
import type { Ask } from '../core/input/inbox.js';
import { type RunInput, isProblem, parseRunInput } from '../core/input/input.js';
import { askProblem } from '../core/run/ask.js';
import { spentShape } from '../core/state/turn.js';
import { commandLine } from '../core/requests/commands.js';
import { type Json, isObject, sha256Hex } from '../core/text/json.js';
import {
  type Shape,
  amount,
  count,
  fields,
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
import { show } from '../core/text/text.js';
import {
  callShape,
  decisionShape,
  messageShape,
  outcomeShape,
} from '../core/transcript/message-shapes.js';
import type { RequestKind } from '../core/transcript/request.js';
import {
  type FactOf,
  type RecordedFact,
  type RecordedRequest,
  type RecordedRun,
  type Recording,
  type TurnOutput,
  blobsIn,
} from './recording.js';

/** The last millisecond of the year 9999, after which Temporal has no times. */
const LATEST = 253_402_300_799_999;

const time = shape<number>(
  'a Unix time in ms, until the year 9999',
  (value) => typeof value === 'number' && value >= 0 && value <= LATEST,
);
const ask: Shape<Ask> = (value, at) => within(at, askProblem(value));
const input: Shape<RunInput> = (value, at) => {
  // A run may have got its first message before it continued in a new segment.
  const parsed = parseRunInput(value, { continued: true });
  return isProblem(parsed) ? within(at, parsed.problem) : null;
};

/** Returns a problem of a value at its place. */
function within(at: string, problem: string | null): string | null {
  return problem === null ? null : `${at}: ${problem}`;
}

const reply: Shape<Json> = (value, at) => replyShape(value, at);
const result: Shape<Json> = (value, at) => toolResultShape(value, at);
const place = { at: time, turn: count, step: count };

const aboutShape = fields<RecordedRequest>({
  kind: shape<RequestKind>('a kind of request', (value) => typeof value === 'string'),
  tool: optional(text),
  arguments: optional(text),
  shown: optional(text),
  undo: optional(oneOf(true)),
});

const fact = tagged<RecordedFact, 'type'>('type', {
  reply: fields<FactOf<'reply'>>({
    ...place,
    type: oneOf('reply'),
    reply,
    tookMs: amount,
    summary: optional(oneOf(true)),
  }),
  result: fields({
    ...place,
    type: oneOf('result'),
    call: callShape,
    effect: text,
    result,
  }),
  activity: fields({
    at: time,
    type: oneOf('activity'),
    activity: text,
    input: json,
    result: json,
  }),
  failure: fields({
    at: time,
    type: oneOf('failure'),
    activity: text,
    input: json,
    error: fields<{ readonly type: string; readonly message: string }>({
      type: text,
      message: text,
    }),
  }),
  message: fields<FactOf<'message'>>({
    at: time,
    type: oneOf('message'),
    message: ask,
    about: optional(aboutShape),
  }),
  decision: fields<FactOf<'decision'>>({
    at: time,
    type: oneOf('decision'),
    decision: decisionShape,
    about: optional(aboutShape),
  }),
  control: fields({ at: time, type: oneOf('control'), name: text, input: json }),
  called: fields({ at: time, type: oneOf('called'), call: text, run: text }),
  cancel: fields({ at: time, type: oneOf('cancel') }),
});

const recorded = fields<RecordedRun>({
  id: text,
  agent: text,
  startedAt: time,
  endedAt: nullable(time),
  input,
  definitions: list(definitionShape),
  price: optional(priceShape),
  window: optional(shape<number>('a number above 0', (value) => Number(value) > 0)),
  facts: list(fact),
  messages: list(messageShape),
  outcome: nullable(outcomeShape),
  lastTurn: optional(nullable(outcomeShape)),
  outputs: optional(list(fields<TurnOutput>({ turn: count, output: json }))),
  undecided: optional(list(aboutShape)),
  spent: spentShape,
});

/** What to do about a recording of another form; `formError` adds the command. */
const AGAIN = 'record the run again';

/** The fields that every form of a recording has. */
export const header = fields<Pick<Recording, 'format' | 'version'>>({
  format: (value, at) =>
    value === 'perdure/recording'
      ? null
      : `${at}: expected "perdure/recording", got ${show(value)}; this is not a recording`,
  version: (value, at) =>
    value === 1
      ? null
      : `${at}: expected 1, got ${show(value)}; read it with the version of perdure that wrote it, or ${AGAIN}`,
});
const atLeastOne = shape<readonly RecordedRun[]>(
  'a list with the recorded run',
  (value) => Array.isArray(value) && value.length > 0,
);

/**
 * Returns the error about a recording of another form, such as that of another version, with the command that records
 * the run again. It does not replace a file that is something else. `file`: where the recording is; absent: unknown.
 */
export function formError(problem: string, value: unknown, file = 'FILE'): InputError {
  if (!isObject(value) || value['format'] !== 'perdure/recording') {
    return new InputError(`${problem}; record a run with: perdure record RUN --out FILE`);
  }
  const [run] = Array.isArray(value['runs']) ? value['runs'] : [];
  const id = isObject(run) && typeof run['id'] === 'string' && run['id'] !== '' ? run['id'] : 'RUN';
  const command = commandLine('perdure', ['record', id, '--out', file, '--force']);
  const fix = problem.endsWith(AGAIN) ? '' : `; if another version of perdure wrote it, ${AGAIN}`;
  return new InputError(`${problem}${fix} with: ${command}`);
}

/**
 * Checks a recording that was read from a file, field by field. Throws an `InputError` that names the
 * first wrong field. `file`: its name, for the error.
 */
export function parseRecording(value: unknown, file?: string): Recording {
  const problem =
    header(value, 'recording') ??
    fields<Pick<Recording, 'runs' | 'blobs'>>({ runs: atLeastOne, blobs: table(text) })(
      value,
      'recording',
    ) ??
    fields<Pick<Recording, 'runs'>>({ runs: list(recorded) })(value, 'recording');
  if (problem !== null) throw formError(problem, value, file);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked field by field
  const recording = value as Recording;
  const wrong = repeatedRun(recording) ?? wrongBlob(recording);
  if (wrong !== null) throw new InputError(`recording.${wrong}`);
  return recording;
}

function repeatedRun({ runs }: Recording): string | null {
  const ids = runs.map(({ id }) => id);
  const index = ids.findIndex((id, at) => ids.indexOf(id) < at);
  if (index < 0) return null;
  return `runs[${index}].id: expected an id of its own, got ${show(ids[index])} again; remove the second run`;
}

function wrongBlob({ runs, blobs }: Recording): string | null {
  for (const [name, one] of Object.entries(blobs)) {
    if (sha256Hex(one) === name) continue;
    return `blobs: expected the text with the SHA-256 ${show(name)}, got another one; ${RESTORE}`;
  }
  for (const [name, path] of blobsIn(runs, 'runs')) {
    if (Object.hasOwn(blobs, name)) continue;
    return `${path}: expected a text in blobs, got ${name}, which is not there; ${RESTORE}`;
  }
  return null;
}

/** What to do about a recording that is not as it was written. */
export const RESTORE = 'restore it, or record the run again';
