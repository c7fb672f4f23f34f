import { artifactText } from './artifact-text.js';
import { fillBatch, openCalls } from '../calls/batch.js';
import type { CallResult } from '../calls/call-result.js';
import { withTurn } from '../change.js';
import type { Artifact, ArtifactMade } from '../transcript/messages.js';
import type { Batch, RunState } from '../state.js';

/** The newest that a run knows by name; older ones lie in the store, where `read_result` finds them. */
const MOST = 300;
/** Of their index, which is carried from segment to segment: 240 kB at the very most. */
const MOST_CHARACTERS = 80_000;
/** Of an entry, beside its words: the reference and the names of the fields. */
const FIXED_CHARACTERS = 150;

/**
 * Names the artifacts that the open batch has made, as soon as the order of its calls decides the
 * names: a call that is still open keeps those behind it waiting. `end`: the calls before this index
 * are named; default: those before the first open call.
 */
export function nameArtifacts(state: RunState, end?: number): RunState {
  const { batch } = state.turn;
  if (batch === null || batch.results.every((result) => result?.artifact === undefined)) {
    return state;
  }
  const [open] = openCalls(state, batch);
  const first = open === undefined ? batch.calls.length : batch.calls.indexOf(open);
  const known = batch.results.slice(0, end ?? first).filter((result) => result !== null);
  const taken = takeArtifacts(state, batch, known);
  return withTurn(taken.state, { batch: taken.results.reduce(fillBatch, batch) });
}

/**
 * Takes the artifacts among the results of a batch into the index, in call order, and puts into each
 * result what the model reads: under which name the value can be handed on.
 *
 * A name means the same value for as long as the run lives: another value under a name that is taken
 * gets a number. So what a call named is what it gets in every attempt, whatever came meanwhile, and
 * the same call can be known again.
 */
export function takeArtifacts(
  state: RunState,
  batch: Batch,
  results: readonly CallResult[],
): { readonly state: RunState; readonly results: readonly CallResult[] } {
  if (results.every(({ artifact }) => artifact === undefined)) return { state, results };
  let index = state.artifacts ?? [];
  const told = new Map<string, CallResult>();
  for (const { id, name: tool } of batch.calls) {
    const result = results.find((one) => one.id === id);
    if (result?.artifact === undefined) continue;
    const { artifact: made, ...rest } = result;
    const known = index.find((one) => isSame(one, made));
    const named = known ?? { ...renamed(index, made), tool, call: id };
    if (known === undefined) index = newest([...index, named]);
    // What ends a turn is its answer, and stays as the tool gave it.
    const text = rest.output === undefined ? artifactText(named, made.name, rest.text) : rest.text;
    told.set(id, { ...rest, text, blob: rest.blob ?? named.blob });
  }
  return {
    state: { ...state, artifacts: index },
    results: results.map((result) => told.get(result.id) ?? result),
  };
}

/** The same value under the same name, or under that name with a number. */
function isSame(one: Artifact, made: ArtifactMade): boolean {
  return one.blob.sha256 === made.blob.sha256 && numberOf(one, made.name) !== null;
}

/** Under its name, or `name_2` and so on: one more than the highest, so that no name is ever given twice. */
function renamed(index: readonly Artifact[], made: ArtifactMade): ArtifactMade & { base?: string } {
  const { name: base } = made;
  const highest = Math.max(0, ...index.map((one) => numberOf(one, base) ?? 0));
  if (highest === 0) return made;
  // A tool may have given such a name itself.
  const taken = new Set(index.map(({ name }) => name));
  let number = highest + 1;
  while (taken.has(`${base}_${number}`)) number += 1;
  return { ...made, name: `${base}_${number}`, base };
}

/** 1 for the name itself, 2 for `name_2` where the run made it of that name; null for another name. */
function numberOf(one: Artifact, base: string): number | null {
  if (one.name === base) return 1;
  return one.base === base ? Number(one.name.slice(base.length + 1)) : null;
}

/** Counted without writing it as JSON: each further artifact pays for all of them. */
function newest(index: readonly Artifact[]): readonly Artifact[] {
  let characters = 0;
  const from = index.findLastIndex(({ name, base = '', kind, tool, call, summary = '' }) => {
    const named = name.length + base.length + tool.length + call.length;
    const words = named + kind.length + summary.length;
    characters += words + FIXED_CHARACTERS;
    return characters > MOST_CHARACTERS;
  });
  return index.slice(Math.max(from + 1, index.length - MOST));
}
