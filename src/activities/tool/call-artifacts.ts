import type { z } from 'zod';
import type { BlobStore } from '../../storage/blob-store.js';
import { readFor } from '../../storage/worker-store.js';
import { plainName, type ArtifactRef } from '../../core/artifacts/named-artifacts.js';
import { guarded } from '../../tools/guard.js';
import { nearestFirst } from '../../tools/nearest.js';
import { ToolError } from '../../tools/tool-error.js';
import type { CallArtifacts } from '../../tools/tool.js';
import type { RunToolInput } from '../../core/contract.js';

type Given = Pick<RunToolInput, 'artifacts' | 'call'> & Partial<Pick<RunToolInput, 'effect'>>;

/**
 * The artifacts that a call may read. Each is fetched when it is asked for. Those of a `once` tool are
 * fetched before it is entered: after it has acted, a store that is down could no longer block the run.
 */
export async function callArtifacts(input: Given, blobs: BlobStore): Promise<CallArtifacts> {
  const named = input.artifacts?.named ?? [];
  const content = ({ name, blob }: ArtifactRef): Promise<string> =>
    readFor(`artifact "${name}"`, blob, blobs);
  const fetched = new Map<string, string>();
  if (input.effect === 'once') {
    for (const one of named) fetched.set(one.name, await content(one));
  }
  const read = async (name: string, schema?: z.ZodType): Promise<unknown> => {
    const found = named.find((one) => one.name === plainName(name));
    if (found === undefined) throw new ToolError(missing(name, input));
    const text = fetched.get(found.name) ?? (await content(found));
    const value: unknown = found.text ? text : JSON.parse(text);
    return schema === undefined ? value : await fitting(schema, value, found.name);
  };
  return {
    names: named.map(({ name }) => name),
    get: read,
  };
}

async function fitting(schema: z.ZodType, value: unknown, name: string): Promise<unknown> {
  const checked = await guarded('the schema of an artifact', () => schema.safeParseAsync(value));
  if (checked.ok && checked.value.success) return checked.value.data;
  const fault = checked.ok ? checked.value.error?.message : checked.message;
  throw new ToolError(`artifact "${name}" is not what this tool takes: ${fault ?? ''}`);
}

/** For the model: which there are, the nearest first, or why none is. */
function missing(name: string, { artifacts, call }: Given): string {
  const asked = `there is no artifact ${JSON.stringify(name.slice(0, 100))}`;
  if (artifacts === undefined) {
    return `${asked}: this run has none; only what a tool has kept as an artifact can be named`;
  }
  if (call.blob !== undefined) {
    return `${asked} among the ${call.blob.bytes} bytes of arguments, which are too long to be searched; name it in a shorter call`;
  }
  const others = [...(artifacts.named ?? []).map((one) => one.name), ...(artifacts.known ?? [])];
  if (others.length === 0) return `${asked} among the arguments of this call; name it there`;
  return `${asked}; there are ${nearestFirst(name, others).join(', ')}`;
}
