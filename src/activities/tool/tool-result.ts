import type { Context } from '@temporalio/activity';
import type { z } from 'zod';
import { type ArtifactRef, foldName } from '../../core/calls/artifacts.js';
import type { Effect, ToolDefinition } from '../../core/definition/tool-definition.js';
import type { RunToolInput } from '../../core/run/contract.js';
import { screenshotText } from '../../core/state/summaries.js';
import { nodeOfCall, toolText } from '../../core/state/turn-definition.js';
import { type Json, type JsonObject, parseJson } from '../../core/text/json.js';
import { wellFormed } from '../../core/text/text.js';
import type { ToolSuccess } from '../../core/transcript/call-result.js';
import type { CreatedArtifact } from '../../core/transcript/messages.js';
import { parseWithZod } from '../../output/parse-output.js';
import { redact } from '../../secrets/redact.js';
import { type BlobStore, readFor } from '../../storage/blob-store.js';
import { readOwned } from '../../storage/owned-text.js';
import {
  type Screenshot,
  artifactValue,
  defaultArtifactName,
  isArtifact,
  isScreenshot,
} from '../../tools/built-in/artifact.js';
import { ToolError, guarded } from '../../tools/errors.js';
import { isAsyncIterable, normalizeResult, partNotJson } from '../../tools/result/normalize.js';
import { toPlain } from '../../tools/result/plain.js';
import type { CallArtifacts, Tool, ToolContext } from '../../tools/tool.js';
import { nearestFirst } from '../../validation/near-names.js';
import { createLog, toRunIds, toSafeDetails } from '../attempt.js';
import { offloadText, retryStore } from '../fork-messages.js';

/** Maximum bytes of an inline output; a larger result is untyped text, stored by reference. */
const OUTPUT_BYTES = 64 * 1024;

/** Maximum bytes of JSON that a node may return, because its graph's state holds them. */
const NODE_BYTES = 1_000_000;

type Warn = (message: string) => void;

/**
 * Validates a tool's return value against the tool's `output` schema and, if the tool ends the
 * turn, the agent's output `contract`. Returns the parsed value. For an invalid value, a `read`
 * throws a `ToolError`, which the model reads. Any other tool has already had its side effect, so
 * its value is returned unchanged, with a warning.
 */
export async function validateResult(
  tool: Pick<Tool, 'name' | 'output' | 'effect'>,
  returned: unknown,
  { contract, warn }: { readonly contract: z.ZodType | null; readonly warn: Warn },
): Promise<unknown> {
  if (isScreenshot(returned)) return returned;
  const isNamed = isArtifact(returned);
  let value = await validateOutput(tool, isNamed ? returned.value : returned, warn);
  if (contract !== null) value = await validateTurnOutput({ ...tool, contract }, value, warn);
  return isNamed ? { ...returned, value } : value;
}

async function validateOutput(
  tool: Pick<Tool, 'name' | 'output' | 'effect'>,
  returned: unknown,
  warn: Warn,
): Promise<unknown> {
  const schema = tool.output;
  if (schema === undefined) return returned;
  const checked = await guarded(`output schema of tool "${tool.name}"`, () =>
    schema.safeParseAsync(returned),
  );
  if (checked.ok && checked.value.success) return checked.value.data;
  const fault = checked.ok ? checked.value.error?.message : checked.message;
  const message = `the result of ${toolText(tool)} does not fit its output schema: ${fault ?? ''}`;
  return rejectOrWarn(tool.effect, { returned, message, warn });
}

/** Validates the result of a tool with `ends`, which becomes the typed output of the turn. */
async function validateTurnOutput(
  tool: { readonly name: string; readonly effect: Effect; readonly contract: z.ZodType },
  returned: unknown,
  warn: Warn,
): Promise<unknown> {
  const parsed = await parseWithZod(tool.contract, toPlain(returned));
  const bytes = parsed.ok ? Buffer.byteLength(JSON.stringify(parsed.output)) : 0;
  if (parsed.ok && bytes <= OUTPUT_BYTES) return parsed.output;
  const fault = parsed.ok
    ? `it has ${bytes} bytes as JSON, at most ${OUTPUT_BYTES} fit`
    : parsed.problem;
  const message = `the result of ${toolText(tool)} cannot be the output of this agent: ${fault}`;
  return rejectOrWarn(tool.effect, { returned, message, warn });
}

function rejectOrWarn(
  effect: Effect,
  { returned, message, warn }: { returned: unknown; message: string; warn: Warn },
): unknown {
  if (effect === 'read') throw new ToolError(message);
  warn(message);
  return returned;
}

/**
 * Checks that a function's return value is plain JSON. A `read` throws a `ToolError` that names the
 * tool, the place, and the type. Any other tool has already had its side effect: the fault is logged,
 * and returned as a note for the model, which reads the value in the nearest form that JSON has. Null
 * for plain JSON, and for what has one form in JSON: dates, `toJSON`, errors, and bytes.
 */
export function plainFault(
  tool: Pick<ToolDefinition, 'name' | 'effect'>,
  returned: unknown,
  warn: Warn,
): string | null {
  const value = isArtifact(returned) ? returned.value : returned;
  if (isScreenshot(value) || isAsyncIterable(value)) return null;
  const part = partNotJson(value);
  if (part === null) return null;
  const message = `the result of ${toolText(tool)} is not plain JSON: got ${part.slice(0, 300)}; let the tool return plain JSON`;
  if (tool.effect === 'read') throw new ToolError(message);
  warn(`${toolText(tool)} was executed, but ${message}`);
  return `[the call was executed; ${message}]`;
}

/** A tool's result as text, before it is stored. */
export interface SerializedResult {
  readonly content: string;
  /** Whether the tool returned a text; otherwise, `content` is JSON. */
  readonly isText: boolean;
  /** Why `content` is not what the tool returned. */
  readonly lost?: string;
  readonly artifact?: Omit<CreatedArtifact, 'blob'> & { readonly head: string };
  readonly picture?: Pick<Screenshot, 'base64' | 'mediaType' | 'bytes'>;
}

/**
 * Serializes a tool's result; a stream is read here. For a value that cannot be an artifact, a
 * `read` throws a `ToolError`; any other tool's value becomes an ordinary result, with a warning.
 */
export async function serializeResult(
  result: unknown,
  tool: Pick<ToolDefinition, 'name' | 'effect'> & {
    readonly signal: AbortSignal;
    readonly warn: Warn;
  },
): Promise<SerializedResult> {
  const { signal } = tool;
  if (isScreenshot(result)) {
    return { content: wellFormed(redact(result.text)), isText: true, picture: result };
  }
  if (!isArtifact(result)) {
    const content = await normalizeResult(result, { signal });
    return { content, isText: typeof result === 'string' };
  }
  const { value, name = defaultArtifactName(tool.name), summary } = result;
  const serialized = await artifactValue(value, { signal });
  if ('problem' in serialized) {
    const message = `${toolText(tool)}: ${serialized.problem}`;
    if (tool.effect === 'read') throw new ToolError(message);
    tool.warn(message);
    const content = await normalizeResult(value, { signal });
    const lost = serialized.problem;
    return { content: `[no artifact: ${lost}]\n${content}`, isText: true, lost };
  }
  const { content, isText, kind, head } = serialized;
  const artifact = {
    name,
    kind,
    ...(isText && { text: true as const }),
    ...(summary !== undefined && { summary }),
    head,
  };
  return { content, isText, artifact };
}

/**
 * Returns a serialized result as the history records it. Oversized parts are offloaded first. Never
 * throws a `BlobError`: the tool has run, so the result then states what could not be stored.
 */
export async function recordResult(
  { name, ends, value }: Pick<ToolDefinition, 'name' | 'ends' | 'value'>,
  { content, isText, lost, artifact: made, picture }: SerializedResult,
  blobs: BlobStore,
): Promise<ToolSuccess> {
  if (picture !== undefined) return await recordScreenshot(content, { picture, blobs });
  if (nodeOfCall({ name }) !== null && !isText) return recordNode(content);
  const typed = (ends || value) && !isText;
  if (made === undefined) {
    const recorded = await recordText(content, { typed, blobs });
    return lost === undefined ? recorded : { ...recorded, lost };
  }
  const { head, ...facts } = made;
  const stored = await retryStore(() => blobs.put(content));
  if ('fault' in stored) {
    const fault = `it could not be stored: ${stored.fault}`;
    const { text, blob } = await offloadText(content, blobs);
    return { text: `[no artifact: ${fault}]\n${text}`, ...(blob && { blob }), lost: fault };
  }
  const artifact = { ...facts, blob: stored.value };
  // A result that ends a turn is its answer, and remains an artifact for the next turn.
  const shown = ends ? await recordText(content, { typed: !isText, blobs }) : { text: head };
  return { ...shown, artifact };
}

/** Returns why a node's result cannot become a part of its graph's state; null if it can. */
export function nodeResultProblem(
  { name }: Pick<ToolDefinition, 'name'>,
  { content }: SerializedResult,
): string | null {
  const bytes = nodeOfCall({ name }) === null ? 0 : Buffer.byteLength(content);
  if (bytes <= NODE_BYTES) return null;
  return `it returned ${bytes} bytes of JSON, at most ${NODE_BYTES} fit; keep large values elsewhere`;
}

/**
 * Records a node's result as a value, regardless of its size, because it is part of the graph's
 * state.
 */
function recordNode(content: string): ToolSuccess {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON.parse gives JSON
  return { text: '', output: parseJson(content) as Json };
}

async function recordText(
  content: string,
  { typed, blobs }: { typed: boolean | undefined; blobs: BlobStore },
): Promise<ToolSuccess> {
  const { text, blob, lost } = await offloadText(content, blobs);
  // Only the run's output is also recorded as a value; everything else is recorded once, as text.
  const fits = lost === undefined || Buffer.byteLength(content) <= NODE_BYTES;
  const output = typed && !blob && fits ? parseJson(content) : undefined;
  return {
    text,
    ...(blob && { blob }),
    ...(lost !== undefined && output === undefined && { lost: `it could not be stored: ${lost}` }),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON.parse gives JSON
    ...(output !== undefined && { output: output as Json }),
  };
}

/**
 * Records a screenshot. If it cannot be stored, the result informs the model that the action itself
 * was done.
 */
async function recordScreenshot(
  note: string,
  { picture, blobs }: { picture: NonNullable<SerializedResult['picture']>; blobs: BlobStore },
): Promise<ToolSuccess> {
  const { base64, mediaType } = picture;
  const stored = await retryStore(() => blobs.put(base64));
  if ('fault' in stored) {
    const lost = `[the action was done; its screenshot could not be stored: ${stored.fault}]`;
    return await recordText(`${lost}\n${note}`, { typed: false, blobs });
  }
  const attachments = [{ type: 'image', blob: stored.value, mediaType }] as const;
  return {
    ...(await recordText(screenshotText(picture, note), { typed: false, blobs })),
    attachments,
  };
}

/** Returns the number of this execution of a call, from 1. */
export function attemptOf({ info }: Context, { tries = 0 }: Pick<RunToolInput, 'tries'>): number {
  return info.attempt + tries;
}

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
      attempt: attemptOf(context, input),
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
