import { wellFormed } from '../../core/text/whole-text.js';
import {
  isCatalogCall,
  CATALOG_NAMES,
  DISCOVER_TOOLS,
  hasCatalog,
  INVOKE,
  TOOL_SCHEMA,
} from '../../core/catalog/catalog.js';
import { answerQuestion, requestedTool } from '../../core/catalog/catalog-answers.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { sha256Hex } from '../../core/digest.js';
import { refsIn } from '../../core/plan/references.js';
import { canonicalJson, type JsonObject } from '../../core/json.js';
import type { RequestedCall, CallProblem } from '../../core/transcript/messages.js';
import type { ModelReply } from '../../models/model.js';
import { parseArguments, unknownTool } from '../../tools/arguments/arguments.js';
import { checkArguments, parsedJson } from '../../tools/arguments/check-arguments.js';
import { checkPlannedArguments } from '../../tools/arguments/planned-arguments.js';
import { describeCall } from '../../tools/describe-call.js';
import { readInvokedCall } from '../../tools/arguments/invoked-call.js';
import { planNode, type PinnedAgent } from '../definitions.js';
import { evaluateCall, type RuleContext } from '../requests/evaluate-call.js';
import { ifUnchanged, toPinnedInput } from '../tool/pinned-tool.js';
import { CHECK_GIVEN_UP, isSlowTool } from './slow-check.js';

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
