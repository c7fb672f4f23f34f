import { artefactText } from './artefact-text.js';
import type { CallResult } from './calls.js';
import type { Artefact, ArtefactMade } from './messages.js';
import type { Batch, RunState } from './state.js';

/** The newest that a run knows by name; older ones lie in the store, where `read_result` finds them. */
const MOST = 300;
/** Of their index, which is carried from segment to segment: 240 kB at the very most. */
const MOST_CHARACTERS = 80_000;
/** Of an entry, beside its words: the reference and the names of the fields. */
const FIXED_CHARACTERS = 150;

/**
 * Takes the artefacts among the results of a batch into the index, in call order, and puts into each
 * result what the model reads: under which name the value can be handed on.
 *
 * A name means the same value for as long as the run lives: another value under a name that is taken
 * gets a number. So what a call named is what it gets in every attempt, whatever came meanwhile, and
 * the same call can be known again.
 */
export function takeArtefacts(
  state: RunState,
  batch: Batch,
  results: readonly CallResult[],
): { readonly state: RunState; readonly results: readonly CallResult[] } {
  if (results.every(({ artefact }) => artefact === undefined)) return { state, results };
  let index = state.artefacts ?? [];
  const told = new Map<string, CallResult>();
  for (const { id, name: tool } of batch.calls) {
    const result = results.find((one) => one.id === id);
    if (result?.artefact === undefined) continue;
    const { artefact: made, ...rest } = result;
    const known = index.find((one) => isSame(one, made));
    const named = known ?? { ...made, name: freeName(index, made.name), tool, call: id };
    if (known === undefined) index = newest([...index, named]);
    // What ends a turn is its answer, and stays as the tool gave it.
    const text = rest.output === undefined ? artefactText(named, made.name, rest.text) : rest.text;
    told.set(id, { ...rest, text, blob: rest.blob ?? named.blob });
  }
  return {
    state: { ...state, artefacts: index },
    results: results.map((result) => told.get(result.id) ?? result),
  };
}

/** The same value under the same name, or under that name with a number. */
function isSame(one: Artefact, made: ArtefactMade): boolean {
  return one.blob.sha256 === made.blob.sha256 && numberOf(one.name, made.name) !== null;
}

/** `name`, or `name_2` and so on: one more than the highest, so that no name is ever given twice. */
function freeName(index: readonly Artefact[], name: string): string {
  const numbers = index.map((one) => numberOf(one.name, name) ?? 0);
  const highest = Math.max(0, ...numbers);
  return highest === 0 ? name : `${name}_${highest + 1}`;
}

/** 1 for the name itself, 2 for `name_2`; null for another name. */
function numberOf(name: string, base: string): number | null {
  if (name === base) return 1;
  if (!name.startsWith(`${base}_`)) return null;
  const digits = name.slice(base.length + 1);
  return /^[1-9]\d{0,5}$/.test(digits) ? Number(digits) : null;
}

/** Counted without writing it as JSON: each further artefact pays for all of them. */
function newest(index: readonly Artefact[]): readonly Artefact[] {
  let characters = 0;
  const from = index.findLastIndex(({ name, kind, tool, call, summary = '' }) => {
    const words = name.length + kind.length + tool.length + call.length + summary.length;
    characters += words + FIXED_CHARACTERS;
    return characters > MOST_CHARACTERS;
  });
  return index.slice(Math.max(from + 1, index.length - MOST));
}
