import type { ToolDefinition } from '../definition/definition.js';
import { isObject, parseJson } from '../json.js';
import type { Artifact, ToolCall } from '../transcript/messages.js';
import type { RunState } from '../state.js';

/** An author's name, and the number that the run may have given it. */
const NAME = /^[a-z0-9_-]{1,71}$/;
/** References that travel with one call. */
const MOST_NAMED = 50;
/** Names that travel with a call which names one that there is not. */
const MOST_KNOWN = 20;

/** What a call can be told of one artifact. */
export type ArtifactRef = Pick<Artifact, 'name' | 'blob' | 'text'>;

/** What a call is told of the artifacts of its run; absent where the run has none. */
export interface CallArtifacts {
  /** Those that its arguments name. */
  readonly named?: readonly ArtifactRef[];
  /** Names of others, newest first, where the arguments may have meant one of them. */
  readonly known?: readonly string[];
}

/**
 * The artifacts that a call names: by a text anywhere in its arguments, or by a default in its tool's
 * schema, that is an artifact's name from end to end, upper case or lower. Null where the run has none.
 */
export function callArtifacts(
  { artifacts = [] }: Pick<RunState, 'artifacts'>,
  call: Pick<ToolCall, 'arguments'>,
  tool: Pick<ToolDefinition, 'parameters'>,
): CallArtifacts | null {
  if (artifacts.length === 0) return null;
  const asked = new Set([...namesIn(parseJson(call.arguments)), ...defaultsIn(tool.parameters)]);
  const named = artifacts.filter(({ name }) => asked.has(name)).slice(-MOST_NAMED);
  if (named.length === asked.size) return named.length === 0 ? {} : { named: named.map(refOf) };
  const known = artifacts.filter((one) => !named.includes(one)).slice(-MOST_KNOWN);
  return {
    ...(named.length > 0 && { named: named.map(refOf) }),
    ...(known.length > 0 && { known: known.map(({ name }) => name).toReversed() }),
  };
}

/** As names are compared. */
export function plainName(name: string): string {
  return name.trim().toLowerCase();
}

function refOf({ name, blob, text }: Artifact): ArtifactRef {
  return { name, blob, ...(text && { text }) };
}

/** Texts in a JSON value, at any depth, that may be names. */
function namesIn(value: unknown): readonly string[] {
  const names: string[] = [];
  walk(value, (_key, one) => {
    if (typeof one === 'string' && NAME.test(plainName(one))) names.push(plainName(one));
  });
  return names;
}

/** What a tool gets where the model says nothing: a tool may always work on the same artifact. */
function defaultsIn(schema: unknown): readonly string[] {
  const names: string[] = [];
  walk(schema, (key, one) => {
    if (key === 'default') names.push(...namesIn(one));
  });
  return names;
}

/** Without recursion: the arguments of a model may be nested as deep as it likes. */
function walk(value: unknown, visit: (key: string, value: unknown) => void): void {
  const open: (readonly [string, unknown])[] = [['', value]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [key, one] = next;
    visit(key, one);
    if (Array.isArray(one)) for (const item of one) open.push(['', item]);
    else if (isObject(one)) open.push(...Object.entries(one));
  }
}
