import type { Context } from '@temporalio/activity';
import type { z } from 'zod';
import { foldName, type ArtifactRef } from '../../core/artifacts/named-artifacts.js';
import type { RunToolInput } from '../../core/contract.js';
import type { Json, JsonObject } from '../../core/json.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { readOwned } from '../../storage/owned-text.js';
import { readFor } from '../../storage/worker-store.js';
import { guarded } from '../../tools/guard.js';
import { nearestFirst } from '../../validation/nearest.js';
import { ToolError } from '../../tools/tool-error.js';
import type { CallArtifacts, ToolContext } from '../../tools/tool.js';
import { createLog, toRunIds, toSafeDetails } from './user-function.js';

/** Creates the context that a tool's `execute` receives. */
export function createToolContext(
  context: Context,
  call: {
    readonly input: RunToolInput;
    readonly userContext: Json;
    readonly artifacts: CallArtifacts;
    /** The model calls of a node's function, whose replies each heartbeat carries. */
    readonly generator: { details(): JsonObject | undefined } | null;
  },
  signal: AbortSignal,
): ToolContext {
  const { info } = context;
  const { input, userContext, artifacts, generator } = call;
  return {
    artifacts,
    signal,
    idempotencyKey: input.key,
    heartbeat: (details?: Json) => {
      const safe = toSafeDetails(details);
      const kept = generator?.details();
      context.heartbeat(kept === undefined ? safe : { ...kept, details: safe });
    },
    log: createLog(context),
    run: { ...toRunIds(info), turn: input.turn, step: input.step },
    call: {
      id: input.call.id,
      attempt: info.attempt,
      scheduledAt: info.currentAttemptScheduledTimestampMs,
    },
    context: userContext,
  };
}

interface ArtifactInput
  extends Partial<Pick<RunToolInput, 'effect'>>, Pick<RunToolInput, 'artifacts'> {
  readonly call?: Partial<RunToolInput['call']>;
}

/**
 * Returns the artifacts that a call may read. Each one is fetched on demand. Those of a `once` tool
 * are fetched before its execution, because a store that is down can no longer block the run
 * afterward. Rejects with a `StoreFault` if they cannot be read then. `run` is the workflow id of
 * the run.
 */
export async function openArtifacts(
  input: ArtifactInput,
  { blobs, run }: { readonly blobs: BlobStore; readonly run: string },
): Promise<CallArtifacts> {
  const named = input.artifacts?.named ?? [];
  const readContent = async ({ name, blob, announcedBy }: ArtifactRef): Promise<string> => {
    const stored = await readFor(`artifact "${name}"`, blob, blobs);
    // The sender of a message chose the reference, so the value must have been stored for this run.
    const text = announcedBy === undefined ? stored : readOwned('artifact', run, stored);
    if (text !== null) return text;
    throw new ToolError(`artifact "${name}" was not stored for this run; it has to be sent again`);
  };
  const fetched = new Map<string, string>();
  if (input.effect === 'once') {
    for (const artifact of named) fetched.set(artifact.name, await readContent(artifact));
  }
  const get = async (name: string, schema?: z.ZodType): Promise<unknown> => {
    const found = named.find((artifact) => artifact.name === foldName(name));
    if (found === undefined) throw new ToolError(missingArtifactMessage(name, input));
    const text = fetched.get(found.name) ?? (await readContent(found));
    const value: unknown = found.text ? text : JSON.parse(text);
    return schema === undefined ? value : await parseArtifact(schema, value, found.name);
  };
  return { names: named.map(({ name }) => name), get };
}

async function parseArtifact(schema: z.ZodType, value: unknown, name: string): Promise<unknown> {
  const checked = await guarded('the schema of an artifact', () => schema.safeParseAsync(value));
  if (checked.ok && checked.value.success) return checked.value.data;
  const fault = checked.ok ? checked.value.error?.message : checked.message;
  throw new ToolError(`artifact "${name}" does not fit this tool: ${fault ?? ''}`);
}

/** Explains to the model which artifacts exist, nearest names first, or why there are none. */
function missingArtifactMessage(name: string, { artifacts, call }: ArtifactInput): string {
  const problem = `unknown artifact ${JSON.stringify(name.slice(0, 100))}`;
  if (artifacts === undefined) {
    return `${problem}; this run has no artifacts, and only values that a tool has returned as an artifact have a name`;
  }
  if (call?.blob !== undefined) {
    return `${problem}; the ${call.blob.bytes} bytes of arguments are too long to search, so name it in a shorter call`;
  }
  const others = [
    ...(artifacts.named ?? []).map((artifact) => artifact.name),
    ...(artifacts.known ?? []),
  ];
  if (others.length === 0)
    return `${problem}; the arguments of this call do not name it; name it there`;
  return `${problem}; available: ${nearestFirst(name, others).join(', ')}`;
}
