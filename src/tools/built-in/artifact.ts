import { types } from 'node:util';
import { redact } from '../../secrets/redact.js';
import { ToolError } from '../tool-error.js';
import { wellFormed } from '../utf8.js';

/** The same in every copy of the package that a worker may have loaded. */
const ARTIFACT: unique symbol = Symbol.for('perdure.artifact');
const NAME = /^[a-z0-9_-]{1,64}$/;
const MAX_SUMMARY_CHARACTERS = 300;
/** The default name with its ending stays within what a name may have. */
const TOOL_CHARACTERS = 48;

/** What `artifact` makes of a value. */
export interface Artifact<Value = unknown> {
  readonly [ARTIFACT]: true;
  readonly value: Value;
  readonly name?: string;
  readonly summary?: string;
  /** Called only where it lies inside another value, in whose place a note then stands. */
  toJSON(): string;
}

export interface ArtifactOptions {
  /**
   * By which the model hands it on: 1 to 64 of a–z, 0–9, `_` and `-`; default: the tool's name with
   * `_result`. A name that means another value already gets a number: values never change.
   */
  readonly name?: string;
  /** For the model, one line of at most 300 characters: what it is, beyond its shape. */
  readonly summary?: string;
}

/**
 * Returned by a tool, keeps a value whole and by reference: it goes to the blob store, whatever its
 * size, and the model reads its name, its shape and how it begins. A later call whose arguments name
 * it gets it with `context.artifacts.get(name)`; it lives as long as the run.
 *
 * The value becomes JSON (dates as text, maps as objects); a text stays a text. Throws a `ToolError`
 * for a name that is not possible, and for what is no value: the model may have chosen the name.
 */
export function artifact<Value>(value: Value, options: ArtifactOptions = {}): Artifact<Value> {
  const { name, summary } = options;
  if (name !== undefined && (typeof name !== 'string' || !NAME.test(name))) {
    throw new ToolError(
      `artifact name ${JSON.stringify(name)?.slice(0, 100)} is not possible: ` +
        'use 1 to 64 of a-z, 0-9, "_" and "-"',
    );
  }
  if (summary !== undefined && typeof summary !== 'string') {
    throw new ToolError(`artifact: \`summary\` must be a text, not ${typeof summary}`);
  }
  const fault = faultOf(value);
  if (fault !== null) throw new ToolError(`artifact: ${fault}`);
  const line = summary === undefined ? '' : lineOf(summary);
  return {
    [ARTIFACT]: true,
    value,
    ...(name !== undefined && { name }),
    ...(line !== '' && { summary: line }),
    toJSON: () => '[an artifact has to be the whole result of a tool]',
  };
}

/** Before it is cut: of a secret not even the beginning shall stay. */
function lineOf(summary: string): string {
  const line = redact(summary).replaceAll(/\s+/g, ' ').trim();
  return wellFormed(line.slice(0, MAX_SUMMARY_CHARACTERS));
}

/** By the mark, not by the class: a project may have the package twice. */
export function isArtifact(value: unknown): value is Artifact {
  return typeof value === 'object' && value !== null && ARTIFACT in value;
}

/** The name of an artifact whose author gave it none. */
export function standardName(tool: string): string {
  return `${tool.toLowerCase().slice(0, TOOL_CHARACTERS)}_result`;
}

function faultOf(value: unknown): string | null {
  if (value === undefined) return 'there is no value (undefined); return one, or nothing at all';
  if (types.isPromise(value)) return 'the value is a promise; await it first';
  return isArtifact(value) ? 'the value is an artifact already; return that one' : null;
}
