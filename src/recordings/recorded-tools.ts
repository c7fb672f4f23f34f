import type { Agent, GraphParts, NodeFunction } from '../agents/agent.js';
import { InputError } from '../core/errors.js';
import { isToolResult } from '../core/guards/recorded.js';
import { nodeOfCallId } from '../core/state/turn-definition.js';
import { type Json, canonicalJson, isObject, textField } from '../core/text/json.js';
import { failureOf } from '../core/transcript/call-result.js';
import { isCall } from '../core/transcript/message-shapes.js';
import { parseCallId } from '../core/transcript/messages.js';
import type { CurrentActivity } from '../memory/attempt.js';
import { ToolError } from '../tools/errors.js';
import { toPlain } from '../tools/result/plain.js';
import { RecordedResult, type Tool, type ToolContext, createToolRegistry } from '../tools/tool.js';
import type { PlacedDecision } from './decided-requests.js';
import { type ComparedCall, comparedCall } from './divergence-text.js';
import { type Found, createDivergence, deniedText, nearestCall } from './divergence.js';
import { pinnedMcpTools } from './recorded-agent.js';
import {
  type OpenResult,
  abortOf,
  endOf,
  recordedResults,
  returnedBy,
} from './recorded-results.js';
import {
  type Placed,
  type Recording,
  factsOf,
  isMidTurn,
  raisesTime,
  wasCutOff,
} from './recording.js';

/** A live tool for a rerun: only one with the effect `read`. */
export type LiveTools = Readonly<Record<string, Tool>>;

/** Throws an `InputError` for a live tool that has a side effect. */
export function checkLiveTools(tools: LiveTools): void {
  for (const [name, tool] of Object.entries(tools)) {
    if (tool.effect === 'read') continue;
    throw new InputError(
      `tools.${name}: expected a tool with the effect "read", got "${tool.effect}"; a rerun never executes side effects`,
    );
  }
}

/** What the tools of a rerun have in common. */
interface RecordedTools {
  readonly recording: Recording;
  readonly live: LiveTools;
  readonly found: Found;
  readonly decisions: readonly PlacedDecision[];
  /**
   * Whether a call gets the result of the same call, as with the recorded model; another model may
   * make the same calls at other places.
   */
  readonly isSameModel: boolean;
  /** Returns the activity whose code calls this, with the recorded id of its run. */
  readonly current: () => CurrentActivity | null;
  /** Returns the recorded id of a run of the rerun. */
  readonly idOf: (id: string) => string;
}

/**
 * Returns the agent, and those that it calls, with tools that give the recorded results. Those of MCP
 * servers are as the run has pinned them, so no server is needed.
 */
export function withRecordedTools(agent: Agent, given: RecordedTools): Agent {
  const { recording, live, found, idOf } = given;
  const results = recording.runs.flatMap((run) => recordedResults(run, recording));
  const verified = recordedVerifications(recording);
  const made = new Map<Agent, Agent>();
  const replace = (one: Agent): Agent => {
    const known = made.get(one);
    if (known !== undefined) return known;
    const own = { ...given, agent: one.name, results, verified };
    const tools = [...one.tools.tools, ...pinnedMcpTools(recording, one)].map(
      (tool) => live[tool.name] ?? { ...recordedTool(tool, own), ...recordedVerify(tool, own) },
    );
    const copy = {
      ...one,
      tools: createToolRegistry(tools),
      mcp: [],
      agents: [] as readonly Agent[],
      retrieve: one.retrieve && {
        ...one.retrieve,
        find: (
          { query }: { readonly query: string },
          { run }: { readonly run: { readonly id: string; readonly turn: number } },
        ) => documentsOf(recording, { ...run, id: idOf(run.id), query, agent: one.name, found }),
      },
      ...(one.graph && { graph: graphCutOff(one.graph, own) }),
      // It would save the turn a second time.
      remember: one.remember && { ...one.remember, save: () => undefined },
    };
    made.set(one, copy);
    copy.agents = one.agents.map(replace);
    return copy;
  };
  return replace(agent);
}

/** Returns the functions of a graph, of which one that was cut off waits to be canceled again. */
function graphCutOff(graph: GraphParts, given: ToolsOf): GraphParts {
  const functions = [...graph.functions].map(([node, run]): [string, NodeFunction] => [
    node,
    async (input, context) => {
      const place = { ...context, run: { ...context.run, id: given.idOf(context.run.id) } };
      if (wasNodeCutOff(place, given)) await waitForAbort(context.signal, given);
      return await run(input, context);
    },
  ]);
  return { ...graph, functions: new Map(functions) };
}

async function waitForAbort(
  signal: AbortSignal,
  { current }: Pick<ToolsOf, 'current'>,
): Promise<void> {
  await current()?.wait(async () => await abortOf(signal));
  signal.throwIfAborted();
}

/** Whether a node made a call, in the recording, that had not ended when its turn was cut off. */
function wasNodeCutOff(
  { run: { id, turn }, call }: Place,
  { recording, results }: Pick<ToolsOf, 'recording' | 'results'>,
): boolean {
  const run = recording.runs.find((one) => one.id === id);
  const hasEnded = results.some((one) => one.run === id && one.call === call.id);
  return nodeOfCallId(call.id) !== null && run !== undefined && !hasEnded && wasCutOff(run, turn);
}

/** Whether a node's call ended only after a person had given more time, to which the rerun has not come yet. */
function wasOutOfTime(
  { run: { id }, call }: Place,
  { recording, decisions, isSameModel }: RecordedTools,
): boolean {
  const { facts = [] } = recording.runs.find((one) => one.id === id) ?? {};
  const end = facts.findLastIndex((one) => one.type === 'result' && one.call.id === call.id);
  return (
    isSameModel &&
    nodeOfCallId(call.id) !== null &&
    decisions.some(
      ({ run, fact, isUsed }) =>
        run.id === id && !isUsed && raisesTime(fact) && facts.indexOf(fact) < end,
    )
  );
}

interface ToolsOf extends RecordedTools {
  readonly agent: string;
  readonly results: readonly OpenResult[];
  readonly verified: readonly Verified[];
}

function recordedTool(tool: Tool, given: ToolsOf): Tool {
  const { agent, results, recording, found, idOf } = given;
  return {
    ...tool,
    async executeParsed(input, { run, ...rest }) {
      const context = { ...rest, run: { ...run, id: idOf(run.id) } };
      const made: ComparedCall = { tool: tool.name, arguments: toPlain(input) };
      // Its time was up, and the result is that of the execution after it was raised.
      if (wasOutOfTime(context, given)) await waitForAbort(context.signal, given);
      const next = resultOf(made, context, { ...given, effect: tool.effect });
      if (next !== undefined) {
        next.isUsed = true;
        return new RecordedResult(next.result, endOf(next.result, recording));
      }
      if (hadNoResult(made, context, given) || wasNodeCutOff(context, given)) {
        await waitForAbort(context.signal, given);
      }
      const { turn, step } = context.run;
      const there = recordedAt(context, given);
      const isDenied = wasDenied(made, context, given);
      const recorded = there === undefined ? null : toCall(there);
      found.divergence ??= createDivergence(
        {
          agent,
          turn,
          step,
          kind: 'call',
          actual: { ...made },
          recorded: isDenied ? { ...made } : recorded,
          nearest: nearestCall(made, results.map(toCall)),
        },
        isDenied ? deniedText(made) : undefined,
      );
      throw notRecorded(found);
    },
  };
}

function notRecorded({ divergence }: Found): ToolError {
  return new ToolError(`not in the recording: ${divergence?.text ?? ''}`);
}

function toCall({ tool, arguments: args }: ComparedCall): { tool: string; arguments: Json } {
  return { tool, arguments: args };
}

type Place = Pick<ToolContext, 'run' | 'call'>;

/**
 * Returns the recorded result of a call; undefined if there is none, or if it could be one of
 * several. Only a call that reads may get a result twice.
 */
function resultOf(
  made: ComparedCall,
  { run, call }: Place,
  {
    results,
    isSameModel,
    effect,
  }: Pick<ToolsOf, 'results' | 'isSameModel'> & { readonly effect: string },
): OpenResult | undefined {
  const text = canonicalJson(made.arguments);
  const same = results.filter(
    (one) => one.tool === made.tool && canonicalJson(one.arguments) === text,
  );
  const own = same.filter((one) => one.run === run.id);
  const again = (all: readonly OpenResult[]): OpenResult | undefined =>
    effect === 'read' ? all.at(-1) : undefined;
  if (isSameModel) {
    const here = own.filter((one) => one.call === call.id);
    return here.find(({ isUsed }) => !isUsed) ?? again(here);
  }
  // The n-th of equal calls in a run gets the n-th result.
  const next = own.find(({ isUsed }) => !isUsed);
  if (next !== undefined) return next;
  const others = own.length > 0 ? own : same;
  const isClear = new Set(others.map(({ result }) => canonicalJson(toPlain(result)))).size === 1;
  return isClear ? (others.find(({ isUsed }) => !isUsed) ?? again(others)) : undefined;
}

/** Returns the recorded call at the place of another call: with the recorded model, that with its id. */
function recordedAt(
  { run, call }: Place,
  { results, isSameModel }: Pick<ToolsOf, 'results' | 'isSameModel'>,
): OpenResult | undefined {
  return results.find(
    (one) =>
      one.run === run.id &&
      (isSameModel
        ? one.call === call.id
        : !one.isUsed && one.turn === run.turn && one.step === run.step),
  );
}

/** Whether a recorded call like this one was canceled, or was running still when it was recorded. */
function hadNoResult(made: ComparedCall, place: Place, given: CallsOf): boolean {
  return recordedCalls(made, place, given).some(({ run, result }) =>
    result === undefined ? isMidTurn(run) : failureOf(result)?.type === 'cancelled',
  );
}

/** Whether a recorded call like this one was denied, by a rule or by a person. */
function wasDenied(made: ComparedCall, place: Place, given: CallsOf): boolean {
  return recordedCalls(made, place, given).some(
    ({ call, result }) =>
      canonicalJson(comparedCall(call)) === canonicalJson({ ...made }) &&
      result !== undefined &&
      failureOf(result)?.type === 'denied',
  );
}

type CallsOf = Pick<ToolsOf, 'recording' | 'isSameModel'>;

/** Returns the recorded calls like this one, with their results, if there are any. */
function recordedCalls(
  made: ComparedCall,
  { run: { id }, call }: Place,
  { recording, isSameModel }: CallsOf,
) {
  const run = recording.runs.find((one) => one.id === id);
  if (run === undefined) return [];
  const { messages } = run;
  return messages
    .flatMap((one) => (one.role === 'assistant' ? (one.calls ?? []) : []))
    .filter((one) =>
      isSameModel
        ? one.id === call.id
        : canonicalJson(comparedCall(one)) === canonicalJson({ ...made }),
    )
    .map((one) => ({
      run,
      call: one,
      result: messages
        .filter((other) => other.role === 'tool')
        .find(({ callId }) => callId === one.id),
    }));
}

/** A `verify` that was executed, or failed for the last time. */
interface Verified {
  readonly run: string;
  /** The id of the call. */
  readonly call: string;
  readonly end: Json | Error;
  isUsed: boolean;
}

function recordedVerifications(recording: Recording): readonly Verified[] {
  const ends = (['activity', 'failure'] as const).flatMap((type) => factsOf(recording, type));
  return ends.flatMap(({ run, fact }): readonly Verified[] => {
    const call = verifiedCall(fact);
    if (call === null) return [];
    const end = fact.type === 'failure' ? new ToolError(fact.error.message) : fact.result;
    return [{ run: run.id, call: call.id, end, isUsed: false }];
  });
}

/** Returns the call that an activity verifies; null for any other activity. */
function verifiedCall({ activity, input }: Pick<CurrentActivity, 'activity' | 'input'>) {
  if (activity !== 'runFunction' || !isObject(input) || input['function'] !== 'verify') return null;
  return isCall(input['call']) ? input['call'] : null;
}

/** Returns a `verify` that gives what the tool's own one has found out. */
function recordedVerify(
  tool: Tool,
  { agent, verified, found, current, recording }: ToolsOf,
): Pick<Tool, 'verify'> {
  if (tool.verify === undefined) return {};
  return {
    verify() {
      const activity = current();
      const call = activity && verifiedCall(activity);
      const next = verified.find(
        (one) => !one.isUsed && one.run === activity?.run && one.call === call?.id,
      );
      if (next === undefined) {
        const { id = '', arguments: args = '' } = call ?? {};
        const actual = comparedCall({ name: `verify of ${tool.name}`, arguments: args });
        const place = { agent, ...parseCallId({ id }) };
        found.divergence ??= createDivergence({ ...place, kind: 'call', actual, recorded: null });
        throw notRecorded(found);
      }
      next.isUsed = true;
      if (next.end instanceof Error) throw next.end;
      const { happened, result } = isObject(next.end) ? next.end : {};
      if (happened === false) return { happened };
      if (happened !== true || !isToolResult(result) || result.ok !== true) return undefined;
      return { happened, result: returnedBy(tool.name, result, recording) };
    },
  };
}

const FRAME = /^[^\n]*\n<document [^\n]*>\n([^]*)\n<\/document>$/;

/**
 * Returns the documents that were retrieved for a turn, without the frames in which the model reads
 * them. Throws if nothing was retrieved for it, or that failed.
 */
function documentsOf(
  recording: Recording,
  {
    id,
    turn,
    query,
    agent,
    found,
  }: {
    readonly id: string;
    readonly turn: number;
    readonly query: string;
    readonly agent: string;
    readonly found: Found;
  },
) {
  const isOfTurn = ({ run, fact }: Placed<'activity'> | Placed<'failure'>): boolean =>
    run.id === id &&
    fact.activity === 'retrieveDocuments' &&
    isObject(fact.input) &&
    fact.input['turn'] === turn;
  const retrieved = factsOf(recording, 'activity').find(isOfTurn)?.fact.result;
  if (retrieved === undefined) {
    const failed = factsOf(recording, 'failure').findLast(isOfTurn)?.fact;
    if (failed !== undefined) throw new ToolError(failed.error.message);
    const actual = { tool: 'retrieve', arguments: { query } };
    const place = { agent, turn, step: 0 };
    found.divergence ??= createDivergence({ ...place, kind: 'call', actual, recorded: null });
    throw notRecorded(found);
  }
  const documents = isObject(retrieved) ? retrieved['documents'] : [];
  const list: readonly unknown[] = Array.isArray(documents) ? documents : [];
  return list.filter(isObject).map((one) => {
    const { id: name, source } = one;
    const text = textField(one, 'text');
    return {
      text: FRAME.exec(text)?.[1]?.replaceAll('&lt;', '<') ?? text,
      ...(typeof name === 'string' && { id: name }),
      ...(typeof source === 'string' && { source }),
    };
  });
}
