import { z } from 'zod';
import type { Context } from '@temporalio/activity';
import type { NodeFunction } from '../../agents/agent.js';
import { readFor } from '../../storage/blob-store.js';
import { errorText } from '../../core/transcript/call-result.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import type { GraphNode } from '../../core/definition/node-kinds.js';
import {
  definedTool,
  findNode,
  nodeOfCall,
  toolAt,
  toolText,
} from '../../core/state/turn-definition.js';
import {
  sha256Hex,
  canonicalJson,
  isJsonObject,
  isObject,
  parseJson,
  type JsonObject,
} from '../../core/text/json.js';
import { parseArguments } from '../../tools/arguments/arguments.js';
import { checkArguments, parsedJson } from '../../tools/arguments/check-arguments.js';
import { normalizeError } from '../../tools/result/plain.js';
import type { NodeContext, Tool, ToolContext } from '../../tools/tool.js';
import type { RunToolInput, RunToolResult } from '../../core/run/contract.js';
import type { PinnedAgent, ActivityDependencies } from '../activity-context.js';
import { blockedToolFailure, THIS_WORKER } from '../attempt.js';
import { queryWorkflow } from '../prompt.js';
import { unsureMessage } from './execute-call.js';
import {
  findMcpTool,
  effectChangedMessage,
  ifUnchanged,
  START_NEW_RUN,
  toPinnedInput,
} from './mcp-tool.js';

export type PreparedCall =
  | {
      readonly ok: true;
      readonly agent: PinnedAgent;
      readonly tool: Tool;
      /** The run's pinned definition of the tool; its effect, timeouts, and attempts apply. */
      readonly pinned: ToolDefinition;
      /** The original arguments. */
      readonly original: JsonObject;
      /** The checked arguments. */
      readonly value: unknown;
    }
  | { readonly ok: false; readonly result: RunToolResult };

/**
 * Finds the code for a call and checks the call's arguments, also against what rules and people were
 * asked about. The worker's code may be newer than
 * the run; the arguments must then fit both the pinned and the current schema. Throws the failure
 * that blocks the run if the tool is missing or has changed.
 */
export async function prepareCall(
  deps: ActivityDependencies,
  context: Context,
  input: RunToolInput,
  use: 'execute' | 'verify' = 'execute',
): Promise<PreparedCall> {
  const { call } = input;
  const agent = await deps.definitions.find(input.definition, () =>
    queryWorkflow(context, deps).definition(),
  );
  const called = await findTool(deps, context, { input, agent });
  if ('result' in called) return { ok: false, result: called.result };
  const { pinned, tool } = called;
  const text =
    call.blob === undefined
      ? call.arguments
      : await readFor(`the arguments of ${toolText(call)} (${call.id})`, call.blob, deps.blobs);
  const parsed = parseArguments(text);
  if (!parsed.ok) return refuse(parsed.problem);
  const checked = await checkArguments(tool, parsed.value);
  if (!agent.current && pinned.mcp === undefined) {
    const message = await findChange(pinned, tool, { value: parsed.value, fits: checked.ok });
    if (message !== null) {
      throw blockedToolFailure(context, input, { reason: 'tool_changed', message });
    }
    const misfit = await nodeMisfit(agent, call, parsed.value);
    if (misfit !== null) {
      // Another worker may have the code that the run began with.
      throw blockedToolFailure(context, input, { reason: 'tool_missing', message: misfit });
    }
  }
  if (!checked.ok) return refuse(checked.problem);
  const found = { tool, pinned, original: parsed.value, value: checked.value };
  // `verify` gets no arguments, only the key of the call that was made.
  const judged = use === 'verify' ? found : await judgedValue(deps, input, found);
  if (judged === null) return unlikeJudged(context, input, pinned);
  return { ok: true, agent, tool, pinned, original: parsed.value, value: judged.value };
}

/**
 * Returns the value to execute: what rules and people were asked about, whatever the tool's code
 * makes of the arguments now. Null if that cannot be executed any more.
 */
async function judgedValue(
  { blobs }: Pick<ActivityDependencies, 'blobs'>,
  { call }: RunToolInput,
  {
    tool,
    pinned,
    original,
    value,
  }: Pick<Extract<PreparedCall, { ok: true }>, 'tool' | 'pinned' | 'original' | 'value'>,
): Promise<{ readonly value: unknown } | null> {
  // This worker judges the call of a graph's node itself, unless a person has already seen it.
  const isSeen = call.verdict !== undefined || call.parsed !== undefined || call.asShown === true;
  const isJudgedHere = call.node !== undefined && !isSeen;
  const current = parsedJson(value);
  const { parsed } = call;
  if (isJudgedHere || current === (parsed?.arguments ?? canonicalJson(original))) return { value };
  if (parsed === undefined) return null;
  if (sha256Hex(current) === parsed.digest) return { value };
  const recorded =
    parsed.blob === undefined
      ? parsed.arguments
      : await readFor(`the arguments of ${toolText(call)} (${call.id})`, parsed.blob, blobs);
  // Without its secrets, the recorded value is not what was judged.
  if (sha256Hex(recorded) !== parsed.digest) return null;
  const judged = parseJson(recorded);
  const again = await checkArguments(tool, judged);
  if (again.ok && parsedJson(again.value) === recorded) return { value: again.value };
  // The code of transforms is not part of a schema; a value of the same shape fits the function.
  const fits = ifUnchanged(pinned, tool) !== undefined && haveSameShape(judged, value);
  return fits ? { value: judged } : null;
}

/** Whether two values are JSON with the same names and the same types at each place. */
function haveSameShape(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other)) return false;
    return one.length === other.length && one.every((item, at) => haveSameShape(item, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return typeof one === typeof other;
  if (Object.getPrototypeOf(other) !== Object.prototype) return false;
  const names = Object.keys(one).toSorted();
  return (
    names.join('\n') === Object.keys(other).toSorted().join('\n') &&
    names.every((name) => haveSameShape(one[name], other[name]))
  );
}

/** Returns the result of a call whose arguments mean something else now than when it was judged. */
function unlikeJudged(
  { info }: Context,
  { call, again }: RunToolInput,
  { effect }: ToolDefinition,
): PreparedCall {
  const isRepeated = info.attempt > 1 || again === true;
  const begin = `${toolText(call)}: its code makes something else of the arguments now than when the call was checked and approved`;
  if (isRepeated && effect === 'once') {
    const message = `${begin}; an earlier attempt may have taken effect`;
    return { ok: false, result: { ok: 'unknown', message } };
  }
  const doubt = isRepeated && effect !== 'read' ? '; an earlier attempt may have taken effect' : '';
  const message = `${begin}. It was not executed${doubt}. Make the call again, so that it is checked again.`;
  return refuse({ type: 'not_executed', message });
}

/**
 * Returns the pinned tool and the worker's code for it, or the result of a call whose outcome is unknown.
 * Throws the failure that blocks the run.
 */
async function findTool(
  deps: ActivityDependencies,
  context: Context,
  { input, agent }: { readonly input: RunToolInput; readonly agent: PinnedAgent },
): Promise<
  { readonly pinned: ToolDefinition; readonly tool: Tool } | { readonly result: RunToolResult }
> {
  const { accepted, answered, call } = input;
  const { name } = call;
  const known = definedTool(agent.definition, name);
  const pinned = known && toolAt(agent.definition, known, call);
  const remote =
    pinned?.mcp &&
    (await findMcpTool(deps, agent, { pinned, accepted, answered }).catch((error: unknown) =>
      unreached(context, input, error),
    ));
  if (remote !== undefined && 'result' in remote) return remote;
  if (remote?.ok === false) throw blockedToolFailure(context, input, remote);
  const own = agent.tools.get(name) ?? (pinned && findNodeFunction(agent, pinned));
  const tool = remote?.tool ?? own;
  if (pinned !== undefined && tool !== undefined) return { pinned, tool };
  throw blockedToolFailure(context, input, {
    reason: 'tool_missing',
    message: missingMessage(agent, name),
  });
}

/**
 * Returns the result of a `keyed` call whose server cannot be reached in the last attempt, although an
 * earlier one may have acted. Throws the error otherwise, to be retried.
 */
function unreached(
  context: Context,
  input: RunToolInput,
  error: unknown,
): { readonly result: RunToolResult } {
  // The input of `verify` and `undo` names the function.
  const isCall = input.effect === 'keyed' && !input.find && !Object.hasOwn(input, 'function');
  if (isCall) {
    const { attempt, retryPolicy: { maximumAttempts = Infinity } = {} } = context.info;
    const message = unsureMessage(
      context,
      input,
      `${toolText(input.call)}: ${normalizeError(error).message}`,
    );
    if (message !== null && attempt >= maximumAttempts)
      return { result: { ok: 'unknown', message } };
  }
  throw error;
}

function missingMessage({ definition }: PinnedAgent, name: string): string {
  const node = nodeOfCall({ name });
  const what =
    node === null
      ? `tool "${name}" of agent "${definition.name}"`
      : `the function of node "${node}" of graph "${definition.name}"`;
  return `${what} is not on ${THIS_WORKER}; deploy it again, or cancel the run`;
}

/**
 * Returns the change of the tool since the run pinned it, if it prevents this call: a different
 * effect, or valid arguments that are now refused. Null if the call may be made. Other changes do
 * not matter, because timeouts, attempts, `repeat`, and `ends` are the pinned ones.
 */
async function findChange(
  pinned: ToolDefinition,
  tool: Tool,
  call: { value: unknown; fits: boolean },
): Promise<string | null> {
  if (tool.effect !== pinned.effect) return effectChangedMessage(pinned, tool.effect);
  if (ifUnchanged(pinned, tool) !== undefined) return null;
  const fitsPinned = await toPinnedInput(pinned).safeParseAsync(call.value);
  if (!fitsPinned.success || call.fits) return null;
  return `the arguments fit tool "${pinned.name}" as of the start of the run, but not its current version; ${START_NEW_RUN}`;
}

function refuse(problem: Parameters<typeof errorText>[0]): PreparedCall {
  return { ok: false, result: { ok: false, text: errorText(problem) } };
}

/** The workflow's input to a node's function. The function's own schema checks the state. */
/** Returns how a node has changed so that its function no longer fits, or null. */
function nodeChange(before: GraphNode, now: GraphNode): string | null {
  if (before.kind !== now.kind) {
    return `is a \`${now.kind}\` now, and a \`${before.kind}\` in the run`;
  }
  if (now.kind !== 'route') return null;
  const added = now.exits.find(({ name }) => !before.exits.some((exit) => exit.name === name));
  return added === undefined ? null : `has the exit "${added.name}", which the run lacks`;
}

/**
 * Returns why this worker's function of a graph's node cannot serve a run that has pinned another
 * form of the graph, or null.
 */
async function nodeMisfit(
  { agent, definition }: PinnedAgent,
  call: RunToolInput['call'],
  { state }: JsonObject,
): Promise<string | null> {
  const name = nodeOfCall(call);
  const [pinned, current] = [definition.graph, agent?.graph];
  if (name === null || pinned === undefined || current === undefined) return null;
  const [before, now] = [pinned, current.definition].map((graph) => findNode(graph, name));
  if (before === undefined || now === undefined) return null;
  const change = nodeChange(before, now);
  const values = isJsonObject(state) ? state : {};
  const fault = change ?? (await current.stateMisfit?.(values, pinned.fields)) ?? null;
  if (fault === null) return null;
  const what = change === null ? `does not take the state of the run: ${fault}` : fault;
  return (
    `node "${name}" of graph "${definition.name}" on ${THIS_WORKER} ${what}; the graph has changed since the run ` +
    'began: start a worker with the code of then, or cancel the run'
  );
}

const nodeInput = z.object({
  state: z.record(z.string(), z.json()),
  item: z.json().optional(),
});

/**
 * Returns the function of a graph's node in the form of a tool, so it is executed as one: with a
 * time limit, attempts, cancellation, and redaction. Undefined if this worker does not have it.
 */
function findNodeFunction(
  { agent }: Pick<PinnedAgent, 'agent'>,
  pinned: ToolDefinition,
): Tool | undefined {
  const node = nodeOfCall(pinned);
  const run = node === null ? undefined : agent?.graph?.functions.get(node);
  return run && toTool(pinned, run);
}

function isNodeContext(context: ToolContext): context is NodeContext {
  return 'generate' in context;
}

function toTool(pinned: ToolDefinition, run: NodeFunction): Tool {
  const { name, description, parameters, effect, timeoutMs, heartbeatMs, attempts } = pinned;
  const execute: Tool['execute'] = async (input, context) => {
    const { state, item } = nodeInput.parse(input);
    if (!isNodeContext(context)) throw new Error('the function of a node needs its context');
    return await run({ state, ...(item !== undefined && { item }) }, context);
  };
  return {
    name,
    description,
    parameters,
    effect,
    timeoutMs,
    heartbeatMs,
    attempts,
    input: nodeInput,
    execute,
    executeParsed: execute,
  };
}
