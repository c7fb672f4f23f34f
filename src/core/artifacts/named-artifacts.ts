import type { ToolDefinition } from '../definition/tool-definition.js';
import { isObject, parseJson } from '../json.js';
import type { RunArtifact, ToolCall } from '../transcript/messages.js';
import type { RunState } from '../state.js';

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
