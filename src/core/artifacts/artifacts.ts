import { artifactText, attachedArtifactText } from './artifact-text.js';
import { fillBatch, openCalls } from '../calls/batch.js';
import type { CallResult } from '../calls/call-result.js';
import { appendMessage, withTurn } from '../change.js';
import type { AttachedArtifact } from '../input/attached-artifacts.js';
import type { RunArtifact, CreatedArtifact } from '../transcript/messages.js';
import type { RunState } from '../state.js';
import { getOpenBatch, type Batch } from '../turn.js';

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
