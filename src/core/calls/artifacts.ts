import type { ToolDefinition } from '../definition/tool-definition.js';
import type { AttachedArtifact } from '../input/turn-context.js';
import { appendMessage, withTurn } from '../state/change.js';
import type { RunState } from '../state/state.js';
import { artifactText, attachedArtifactText } from '../state/summaries.js';
import { type Batch, getOpenBatch } from '../state/turn.js';
import { isObject, parseJson } from '../text/json.js';
import type { CallResult } from '../transcript/call-result.js';
import type { CreatedArtifact, RunArtifact, ToolCall } from '../transcript/messages.js';
import { fillBatch, openCalls } from './batch.js';

/**
 * The number of newest artifacts that a run can name. `read_result` still reads older ones from the
 * store.
 */
const MAX_ARTIFACTS = 300;
/** The maximum characters of the index, at most 240 kB, which is passed from segment to segment. */
const MAX_INDEX_CHARACTERS = 80_000;
/** Characters of an entry in addition to its texts: the reference and the field names. */
const FIXED_CHARACTERS = 150;

/**
 * Names the artifacts of the open batch. Names depend on call order, so an open call delays those
 * after it. `end`: artifacts of calls before this index are named; default: those before the first
 * open call.
 */
export function nameArtifacts(state: RunState, end?: number): RunState {
  const batch = getOpenBatch(state);
  if (batch === null || batch.results.every((result) => result?.artifact === undefined)) {
    return state;
  }
  const [open] = openCalls(state, batch);
  const first = open === undefined ? batch.calls.length : batch.calls.indexOf(open);
  const known = batch.results.slice(0, end ?? first).filter((result) => result !== null);
  const taken = takeArtifacts(state, batch, known);
  return withTurn(taken.state, {
    phase: { type: 'acting', batch: taken.results.reduce(fillBatch, batch) },
  });
}

/**
 * Adds the artifacts among the results of a batch to the index, in call order, and adds to each
 * result the name by which the model can pass the value on.
 *
 * A name refers to the same value for the whole run: another value with that name gets a number.
 * Each attempt of a call therefore gets the same values, and a repeated call can be recognized.
 */
export function takeArtifacts(
  state: RunState,
  batch: Batch,
  results: readonly CallResult[],
): { readonly state: RunState; readonly results: readonly CallResult[] } {
  if (results.every(({ artifact }) => artifact === undefined)) return { state, results };
  let index = state.artifacts ?? [];
  const changed = new Map<string, CallResult>();
  for (const { id, name: tool } of batch.calls) {
    const result = results.find((one) => one.id === id);
    if (result?.artifact === undefined) continue;
    const { artifact: made, ...rest } = result;
    const { named, index: next } = addArtifact(index, made, { tool, call: id });
    index = next;
    // A value that ends a turn is its answer, so its text does not change.
    const text = rest.output === undefined ? artifactText(named, made.name, rest.text) : rest.text;
    changed.set(id, { ...rest, text, blob: rest.blob ?? named.blob, artifactName: named.name });
  }
  return {
    state: { ...state, artifacts: index },
    results: results.map((result) => changed.get(result.id) ?? result),
  };
}

/** Adds the values of a message to the index and announces them to the model. */
export function attachArtifacts(
  state: RunState,
  artifacts: readonly AttachedArtifact[],
  at: number,
): RunState {
  const announcedBy = state.transcript.next;
  let index = state.artifacts ?? [];
  const texts: string[] = [];
  for (const { head, ...made } of artifacts) {
    const { named, index: next } = addArtifact(index, made, { announcedBy, tool: '', call: '' });
    index = next;
    texts.push(attachedArtifactText(named, made.name, head));
  }
  const text = texts.join('\n\n');
  return appendMessage({ ...state, artifacts: index }, at, {
    role: 'user',
    text,
    origin: 'perdure',
  });
}

/** Returns the artifact under its name in this run, and the index that includes it. */
function addArtifact(
  index: readonly RunArtifact[],
  made: CreatedArtifact,
  by: Pick<RunArtifact, 'tool' | 'call' | 'announcedBy'>,
): { readonly named: RunArtifact; readonly index: readonly RunArtifact[] } {
  const known = index.find((one) => isSame(one, made));
  if (known !== undefined) return { named: known, index };
  const named = { ...renamed(index, made), ...by };
  return { named, index: newest([...index, named]) };
}

/** Whether an artifact is the same value under the same name, or under that name with a number. */
function isSame(one: RunArtifact, made: CreatedArtifact): boolean {
  return one.blob.sha256 === made.blob.sha256 && numberOf(one, made.name) !== null;
}

/** Returns the artifact under its name, or under `name_2` and so on, so no name is used twice. */
function renamed(
  index: readonly RunArtifact[],
  made: CreatedArtifact,
): CreatedArtifact & { base?: string } {
  const { name: base } = made;
  const highest = Math.max(0, ...index.map((one) => numberOf(one, base) ?? 0));
  if (highest === 0) return made;
  // A tool may have used a numbered name for another artifact.
  const taken = new Set(index.map(({ name }) => name));
  let number = highest + 1;
  while (taken.has(`${base}_${number}`)) number += 1;
  return { ...made, name: `${base}_${number}`, base };
}

/**
 * Returns 1 for the name itself, 2 for `name_2` if the run derived it from that name, and null for
 * any other name.
 */
function numberOf(one: RunArtifact, base: string): number | null {
  if (one.name === base) return 1;
  return one.base === base ? Number(one.name.slice(base.length + 1)) : null;
}

/**
 * Returns the newest artifacts within the limits. Sizes are summed without JSON, which would be
 * slow.
 */
function newest(index: readonly RunArtifact[]): readonly RunArtifact[] {
  let characters = 0;
  const from = index.findLastIndex(({ name, base = '', kind, tool, call, summary = '' }) => {
    const named = name.length + base.length + tool.length + call.length;
    const words = named + kind.length + summary.length;
    characters += words + FIXED_CHARACTERS;
    return characters > MAX_INDEX_CHARACTERS;
  });
  return index.slice(Math.max(from + 1, index.length - MAX_ARTIFACTS));
}

/** Matches a name of up to 64 characters, plus the number that the run may add. */
const NAME = /^[a-z0-9_-]{1,71}$/;
/** The maximum number of artifacts sent with one call. */
const MAX_NAMED = 50;
/** The maximum number of other names sent with a call that names an unknown artifact. */
const MAX_KNOWN = 20;

/** The part of an artifact that is sent with a call. */
export type ArtifactRef = Pick<RunArtifact, 'name' | 'blob' | 'text' | 'announcedBy'>;

/** The artifacts that are sent with a call; absent if the run has none. */
export interface SentArtifacts {
  /** The artifacts that the call's arguments name. */
  readonly named?: readonly ArtifactRef[];
  /** Names of other artifacts, newest first, in case the arguments mean one of them. */
  readonly known?: readonly string[];
}

/**
 * Returns the artifacts that a call names: a string anywhere in its arguments, or a default in its
 * tool's schema, that is an artifact's name in upper or lower case. Null if the run has no
 * artifacts.
 */
export function callArtifacts(
  { artifacts = [] }: Pick<RunState, 'artifacts'>,
  call: Pick<ToolCall, 'arguments'>,
  tool: Pick<ToolDefinition, 'parameters'>,
): SentArtifacts | null {
  if (artifacts.length === 0) return null;
  const names = new Set([...namesIn(parseJson(call.arguments)), ...defaultsIn(tool.parameters)]);
  const named = artifacts.filter(({ name }) => names.has(name)).slice(-MAX_NAMED);
  if (named.length === names.size) return named.length === 0 ? {} : { named: named.map(toRef) };
  const known = artifacts.filter((one) => !named.includes(one)).slice(-MAX_KNOWN);
  return {
    ...(named.length > 0 && { named: named.map(toRef) }),
    ...(known.length > 0 && { known: known.map(({ name }) => name).toReversed() }),
  };
}

/** Returns a name in its form for comparison. */
export function foldName(name: string): string {
  return name.trim().toLowerCase();
}

function toRef({ name, blob, text, announcedBy }: RunArtifact): ArtifactRef {
  return { name, blob, ...(text && { text }), ...(announcedBy !== undefined && { announcedBy }) };
}

/** Returns the strings in a JSON value, at any depth, that may be names. */
function namesIn(value: unknown): readonly string[] {
  const names: string[] = [];
  walk(value, (_key, one) => {
    if (typeof one === 'string' && NAME.test(foldName(one))) names.push(foldName(one));
  });
  return names;
}

/** Returns the names in a schema's defaults, because a tool may always use the same artifact. */
function defaultsIn(schema: unknown): readonly string[] {
  const names: string[] = [];
  walk(schema, (key, one) => {
    if (key === 'default') names.push(...namesIn(one));
  });
  return names;
}

/** Visits all values in JSON, without recursion: arguments may be nested to any depth. */
function walk(value: unknown, visit: (key: string, value: unknown) => void): void {
  const open: (readonly [string, unknown])[] = [['', value]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [key, one] = next;
    visit(key, one);
    if (Array.isArray(one)) for (const item of one) open.push(['', item]);
    else if (isObject(one)) open.push(...Object.entries(one));
  }
}
