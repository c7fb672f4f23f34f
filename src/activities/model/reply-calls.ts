import {
  answerQuestion,
  requestedTool,
  CATALOG_NAMES,
  DISCOVER_TOOLS,
  INVOKE,
  TOOL_SCHEMA,
  hasCatalog,
  isCatalogCall,
} from '../../core/transcript/catalog.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { refsIn } from '../../core/plan/plan.js';
import { type JsonObject, canonicalJson, sha256Hex } from '../../core/text/json.js';
import { wellFormed } from '../../core/text/text.js';
import type {
  BlobRef,
  CallProblem,
  ParsedArguments,
  RequestedCall,
  SafetyCheck,
} from '../../core/transcript/messages.js';
import type { ModelReply, ReplyCall } from '../../models/model.js';
import { redactJsonText } from '../../secrets/redact.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { parseArguments, unknownTool } from '../../tools/arguments/arguments.js';
import {
  checkArguments,
  checkPlannedArguments,
  parsedJson,
  readInvokedCall,
} from '../../tools/arguments/check-arguments.js';
import { describeCall } from '../../tools/define-tool.js';
import { normalizeError } from '../../tools/result/plain.js';
import { type PinnedAgent, planNode } from '../activity-context.js';
import { type RuleContext, evaluateCall } from '../requests/evaluate-call.js';
import { ifUnchanged, toPinnedInput } from '../tool/mcp-tool.js';
import { CHECK_GIVEN_UP, isSlowTool } from './attempt-memory.js';

/** A call with its full arguments as canonical JSON, before large ones are offloaded. */
export type ReadCall = Omit<RequestedCall, 'arguments' | 'blob' | 'parsed'> & {
  readonly canonical: string;
  /** What the tool gets as canonical JSON; absent if that is what was written. */
  readonly parsedCanonical?: string;
};

interface ReadOptions {
  /**
   * An earlier check froze a worker. Tools that may block therefore do not check arguments, and
   * each of their calls has a problem. No approval function runs, so every call of such a tool
   * needs approval.
   */
  readonly isGivenUp: boolean;
  readonly ruleContext: RuleContext;
}

/**
 * Reads a call from the model: checks and digests it. A call of `invoke_tool` becomes a call of the
 * real tool, with that tool's effect, schema, key, and summary.
 */
export async function readCall(
  requested: ModelReply['calls'][number],
  options: ReadOptions,
): Promise<ReadCall> {
  const { pinned } = options.ruleContext;
  // A name that providers refuse would fail every later request.
  const name = requested.name.replaceAll(/[^\w-]/g, '_').slice(0, 64) || '_';
  const parsed = parseArguments(requested.arguments);
  if (!parsed.ok) {
    // Servers refuse invalid JSON in later requests, so it becomes a string within JSON.
    const canonical = JSON.stringify({
      unreadable: wellFormed(requested.arguments.slice(0, 2_000)),
    });
    const digest = sha256Hex(wellFormed(requested.arguments));
    return { name, canonical, digest, problem: parsed.problem };
  }
  const { value } = parsed;
  if (name === INVOKE && hasCatalog(pinned.definition)) {
    return await readInvoked(value, options);
  }
  return { ...digestCall(name, value), ...(await checkCall(requested.name, value, options)) };
}

/**
 * Reads a call by `invoke_tool`. If it names no tool of the agent, it stays unchanged, with a
 * problem.
 */
async function readInvoked(value: JsonObject, options: ReadOptions): Promise<ReadCall> {
  const { pinned } = options.ruleContext;
  const invoked = readInvokedCall(value);
  if (!invoked.ok) return { ...digestCall(INVOKE, value), problem: invoked.problem };
  const { name } = invoked;
  if (!pinned.definition.tools.some((tool) => tool.name === name)) {
    const problem = CATALOG_NAMES.includes(name)
      ? ({
          type: 'invalid_arguments',
          message: `Call ${name} by itself, without ${INVOKE}.`,
        } as const)
      : unknownToolProblem(name, pinned);
    return { ...digestCall(INVOKE, value), problem };
  }
  const checked = await checkCall(name, invoked.value, options);
  return { ...digestCall(name, invoked.value), ...checked, via: 'catalog' };
}

/** Returns a call with its digest. */
export function digestCall(name: string, value: JsonObject): ReadCall {
  const canonical = canonicalJson(value);
  return { name, canonical, digest: sha256Hex(canonical) };
}

/**
 * Checks a call against the pinned definition that the model has seen, not this worker's current
 * tool. Then applies the rules and the tool's `approval`.
 */
export async function checkCall(
  name: string,
  value: JsonObject,
  { isGivenUp, ruleContext }: ReadOptions,
): Promise<Pick<ReadCall, 'problem' | 'summary' | 'verdict' | 'parsedCanonical'>> {
  const { pinned } = ruleContext;
  const { definition, tools } = pinned;
  if (isCatalogCall(definition, { name })) return checkQuestion(name, value, pinned);
  const known = definition.tools.find((tool) => tool.name === name);
  if (known === undefined) return { problem: unknownToolProblem(name, pinned) };
  if (isGivenUp && isSlowTool(known, pinned)) {
    const message = `The arguments of ${name} could not be checked: ${CHECK_GIVEN_UP}.`;
    return { problem: { type: 'invalid_arguments', message } };
  }
  const tool = ifUnchanged(known, tools.get(name));
  const input = tool ?? { name, input: toPinnedInput(known) };
  // A planner may refer to results that do not exist yet.
  const checked =
    planNode(pinned) === undefined
      ? await checkArguments(input, value)
      : await checkPlannedArguments(input, value);
  if (!checked.ok) return { problem: checked.problem };
  const parsed = await executedForm(known, { tools, value, checked: checked.value });
  const call = { tool: known, original: value, parsed };
  const [summary, verdict] = await Promise.all([
    tool && describeCall(tool, 'described' in checked ? checked.described : checked.value),
    evaluateCall(call, ruleContext, isGivenUp ? { givenUp: CHECK_GIVEN_UP } : {}),
  ]);
  const parsedCanonical = parsedJson(parsed);
  // What a tool makes of a reference is unknown until the reference is resolved.
  const isComplete = planNode(pinned) === undefined || refsIn(value).length === 0;
  return {
    ...(summary !== undefined && { summary }),
    ...(verdict && { verdict }),
    ...(isComplete && parsedCanonical !== canonicalJson(value) && { parsedCanonical }),
  };
}

/**
 * Returns what this worker's tool would get. A tool that has changed since the run began gets what
 * its current schema makes of the arguments, if they fit it.
 */
async function executedForm(
  known: ToolDefinition,
  {
    tools,
    value,
    checked,
  }: Pick<PinnedAgent, 'tools'> & { readonly value: JsonObject; readonly checked: unknown },
): Promise<unknown> {
  const current = known.mcp === undefined ? tools.get(known.name) : undefined;
  if (current === undefined || ifUnchanged(known, current) !== undefined) return checked;
  const again = await checkArguments(current, value);
  return again.ok ? again.value : checked;
}

/**
 * Checks a question about the catalog, which the workflow answers. An unknown tool is already a
 * problem here, because finding the nearest names takes time.
 */
function checkQuestion(
  name: string,
  value: JsonObject,
  pinned: PinnedAgent,
): Pick<RequestedCall, 'problem'> {
  const { definition } = pinned;
  const requested = name === TOOL_SCHEMA ? requestedTool(value) : undefined;
  const isUnknown =
    requested !== undefined && !definition.tools.some((tool) => tool.name === requested);
  if (isUnknown) return { problem: unknownToolProblem(requested, pinned) };
  const answer = answerQuestion(definition, name, value);
  return answer.ok ? {} : { problem: { type: 'invalid_arguments', message: answer.message } };
}

/** Number of catalog names that a problem suggests. */
const NEAREST = 5;

/** Describes a call of an unknown tool; it suggests names, the nearest first. */
function unknownToolProblem(name: string, { definition }: PinnedAgent): CallProblem {
  const names = definition.tools.map((tool) => tool.name);
  if (!hasCatalog(definition)) return unknownTool(name, names);
  return unknownTool(name, names, { atMost: NEAREST, hint: ` ${DISCOVER_TOOLS} lists them.` });
}

/**
 * Maximum bytes of inline arguments. Larger ones are offloaded, and the model sees a placeholder.
 */
const INLINE_ARGUMENT_BYTES = 64 * 1024;
/** Maximum bytes of all inline arguments of one message, so no history event exceeds 256 KiB. */
const INLINE_MESSAGE_BYTES = 128 * 1024;
/** The limit for the problems of all calls of one message. */
const PROBLEM_CHARACTERS = 24_000;
/** Minimum characters kept of each problem's message, even above the limit for all of them. */
const MIN_PROBLEM_CHARACTERS = 120;

/**
 * Returns the calls of a message as the history records them, with large arguments in the blob
 * store.
 */
export async function recordCalls(
  read: readonly ReadCall[],
  blobs: BlobStore,
): Promise<readonly RequestedCall[]> {
  const calls: RequestedCall[] = [];
  let argumentRoom = INLINE_MESSAGE_BYTES;
  let problemRoom = PROBLEM_CHARACTERS;
  for (const { canonical, parsedCanonical, ...call } of read) {
    const length = Math.max(problemRoom, MIN_PROBLEM_CHARACTERS);
    const problem = call.problem && {
      ...call.problem,
      message: call.problem.message.slice(0, length),
    };
    problemRoom -= problem?.message.length ?? 0;
    const recorded = await recordArguments(canonical, { room: argumentRoom, blobs });
    argumentRoom -= Buffer.byteLength(recorded.arguments);
    const parsed =
      parsedCanonical === undefined
        ? undefined
        : await recordArguments(parsedCanonical, { room: argumentRoom, blobs });
    argumentRoom -= Buffer.byteLength(parsed?.arguments ?? '');
    calls.push({
      ...call,
      ...(problem && { problem }),
      ...(parsed?.problem && { problem: parsed.problem }),
      ...recorded,
      ...(parsed && { parsed: parsedForm(parsedCanonical ?? '', parsed) }),
    });
  }
  return calls;
}

/**
 * Returns what the tool of a call gets as the history records it; undefined if that is what was
 * written. Rejects if it is large and cannot be stored.
 */
export async function recordParsed(
  { written, parsed }: { readonly written: string; readonly parsed: string },
  blobs: BlobStore,
): Promise<ParsedArguments | undefined> {
  if (parsed === written) return undefined;
  if (Buffer.byteLength(parsed) <= INLINE_ARGUMENT_BYTES) {
    return parsedForm(parsed, { arguments: redactJsonText(parsed) });
  }
  const blob = await blobs.put(redactJsonText(parsed));
  return parsedForm(parsed, { arguments: standIn(blob), blob });
}

/** Returns the record of what a tool gets. `canonical`: the whole of it. */
export function parsedForm(
  canonical: string,
  { arguments: given, blob }: Pick<RequestedCall, 'arguments' | 'blob'> = { arguments: canonical },
): ParsedArguments {
  return { arguments: given, digest: sha256Hex(canonical), ...(blob && { blob }) };
}

function standIn(blob: BlobRef): string {
  return JSON.stringify({ omitted: `${blob.bytes} bytes, stored as ${blob.sha256}` });
}

/**
 * Offloads arguments that are too large. If the store is down, the call has a problem and is not
 * made.
 */
async function recordArguments(
  canonical: string,
  { room, blobs }: { room: number; blobs: BlobStore },
): Promise<Pick<RequestedCall, 'arguments' | 'blob' | 'problem'>> {
  const bytes = Buffer.byteLength(canonical);
  if (bytes <= Math.min(INLINE_ARGUMENT_BYTES, room)) return { arguments: canonical };
  try {
    const blob = await blobs.put(canonical);
    return { arguments: standIn(blob), blob };
  } catch (error) {
    const message = `not executed: its ${bytes} bytes of arguments could not be stored: ${normalizeError(error).message}`;
    const short = JSON.stringify({ omitted: `${bytes} bytes` });
    return { arguments: short, problem: { type: 'truncated', message } };
  }
}

/**
 * Limits for the safety checks of one call. They are for people; the provider gets its original
 * text back.
 */
const MAX_CHECKS = 10;
const WORD_CHARACTERS = 200;
const MESSAGE_CHARACTERS = 600;

/**
 * Returns a provider's safety checks, shortened for people. A call with checks never loses all of
 * them.
 */
export function recordSafety({ safety = [] }: ReplyCall): { safety?: readonly SafetyCheck[] } {
  if (safety.length === 0) return {};
  const shown = safety.slice(0, MAX_CHECKS).map(({ id, code, message }) => ({
    id: cut(id, WORD_CHARACTERS),
    ...(code !== undefined && { code: cut(code, WORD_CHARACTERS) }),
    ...(message !== undefined && { message: cut(message, MESSAGE_CHARACTERS) }),
  }));
  const left = safety.length - shown.length;
  const more = { id: 'more', message: `and ${left} more checks` };
  return { safety: left > 0 ? [...shown, more] : shown };
}

function cut(text: string, characters: number): string {
  return text.length <= characters ? wellFormed(text) : `${wellFormed(text.slice(0, characters))}…`;
}
