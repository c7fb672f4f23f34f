import type { PlanNode } from '../../core/definition/node-data.js';
import {
  type PlanFault,
  type PlannedAction,
  askingProblem,
  planFaults,
  planValue,
  refsIn,
} from '../../core/plan/plan.js';
import type { CallModelInput } from '../../core/run/contract.js';
import { type Json, type JsonObject, isObject } from '../../core/text/json.js';
import { callableTools } from '../../core/transcript/catalog.js';
import type { ProviderItems } from '../../core/transcript/messages.js';
import type { ParsedAnswer, RecordedReply, ReplyUsage } from '../../core/transcript/outcome.js';
import {
  type MarkedCalls,
  parseCallsInContent,
  parseMarkedCalls,
} from '../../models/calls-in-markup.js';
import {
  type ModelReply,
  type ModelRequest,
  type ModelUsage,
  estimateUsage,
} from '../../models/model.js';
import { extractJson } from '../../output/extract-json.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { type PinnedAgent, planNode } from '../activity-context.js';
import { offloadText, retryStore } from '../fork-messages.js';
import type { TracedReply } from '../observe.js';
import type { RuleContext } from '../requests/evaluate-call.js';
import { checkModelAnswer, parseClassReply, readDecision } from './answer-formats.js';
import { normalizedPlan } from './model-request.js';
import {
  type ReadCall,
  checkCall,
  digestCall,
  parsedForm,
  readCall,
  recordCalls,
  recordSafety,
} from './reply-calls.js';
import { CHECK_GIVEN_UP, isSlowAnswer } from './attempt-memory.js';

interface PlanSource {
  readonly node: PlanNode;
  readonly ruleContext: RuleContext;
  /** The author's code has frozen a worker, so it is not called again. */
  readonly isGivenUp: boolean;
}

/** Maximum faults in one answer to the planner, and characters of all of them. */
const MAX_FAULTS = 30;
const MAX_CHARACTERS = 16_000;

/**
 * Reads a whole plan from a model's reply, and checks it before anything is executed: its form,
 * each action's arguments against the tool's schema, and the rules. Never rejects: the reply is
 * paid for.
 */
async function readPlan(
  text: string,
  { node, ruleContext, isGivenUp }: PlanSource,
): Promise<ParsedAnswer> {
  const extracted = extractJson(text);
  if (!extracted.ok) return extracted;
  const { definition } = ruleContext.pinned;
  const value = normalizedPlan(extracted.value, definition.tools);
  const tools = definition.tools.map(({ name }) => name);
  const unsound = planFaults(value, { tools, maxActions: node.maxActions });
  if (unsound.some(({ index }) => index === undefined)) return refused(unsound);
  const { actions, answer } = readFields(value);
  // Each reply of the planner is paid for, so it learns all faults from one answer.
  const checked = await Promise.all(
    actions.map(async (action, index) =>
      unsound.some((fault) => fault.index === index)
        ? null
        : await checkAction(action, { ruleContext, isGivenUp }),
    ),
  );
  const faults = checked.flatMap((one, index): readonly PlanFault[] =>
    typeof one === 'string' ? [{ index, problem: one }] : [],
  );
  if (unsound.length + faults.length > 0) return refused([...unsound, ...faults]);
  const planned = checked.flatMap((one) => (typeof one === 'string' || one === null ? [] : [one]));
  const tooMany = askingProblem(planned);
  if (tooMany !== null) return { ok: false, problem: tooMany };
  const plan = {
    actions: planned,
    done: [],
    asks: planned.some(({ asks }) => asks !== undefined),
    ...(answer !== undefined && { answer }),
  };
  return { ok: true, output: planValue(plan) };
}

/** Returns the answer to a plan with these faults, in the order of its actions. */
function refused(faults: readonly PlanFault[]): ParsedAnswer {
  const sorted = faults.toSorted((one, other) => (one.index ?? -1) - (other.index ?? -1));
  let left = MAX_CHARACTERS;
  const lines = sorted.slice(0, MAX_FAULTS).flatMap(({ problem }) => {
    left -= problem.length;
    return left < 0 && left + problem.length < MAX_CHARACTERS ? [] : [problem];
  });
  const more = sorted.length - lines.length;
  const rest = more > 0 ? [`… and ${more} more faults`] : [];
  return { ok: false, problem: [...lines, ...rest].join('\n') };
}

/** Returns only the known fields of a plan whose form has been checked. */
function readFields(value: Json): {
  readonly actions: readonly PlannedAction[];
  readonly answer?: string;
} {
  const { actions, answer } = isObject(value) ? value : {};
  const list: readonly unknown[] = Array.isArray(actions) ? actions : [];
  const objects = list.map((one) => (isObject(one) ? one : {}));
  return {
    actions: objects.map(({ id, tool, arguments: given, after }) => ({
      id: String(id),
      tool: String(tool),
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `planProblem` has checked it
      arguments: given as JsonObject,
      ...(Array.isArray(after) && after.length > 0 && { after: after.map(String) }),
    })),
    ...(typeof answer === 'string' && answer !== '' && { answer }),
  };
}

/** Returns the action with its description and the rules' verdict, or the problem with it. */
async function checkAction(
  action: PlannedAction,
  options: Pick<PlanSource, 'ruleContext' | 'isGivenUp'>,
): Promise<PlannedAction | string> {
  const { id, tool, arguments: given } = action;
  const known = options.ruleContext.pinned.definition.tools.find(({ name }) => name === tool);
  if (known?.kind === 'wait') return `action ${id}: a plan cannot wait; omit it`;
  const { problem, summary, verdict, parsedCanonical } = await checkCall(tool, given, options);
  if (problem !== undefined) return `action ${id}: ${problem.message}`;
  if (verdict?.then === 'deny') return `action ${id}: it is not allowed: ${verdict.why}`;
  return {
    ...action,
    ...(parsedCanonical !== undefined && { parsed: parsedForm(parsedCanonical) }),
    ...(summary !== undefined && { shown: summary }),
    ...(verdict && { asks: verdict }),
    ...(refsIn(given).length > 0 && { late: true }),
  };
}

/** Maximum calls in one message, more than any provider permits; further ones are dropped. */
const MAX_CALLS = 128;

interface ReplySource {
  readonly request: ModelRequest;
  readonly pinned: PinnedAgent;
  /** The rules and functions that are applied to the calls. */
  readonly ruleContext: RuleContext;
  readonly blobs: BlobStore;
  readonly input: CallModelInput;
  /** The run's `context`, for the functions of its author. */
  readonly userContext: Json;
  /** A check that may block was started too often, so it is not run again and counts as failed. */
  readonly isGivenUp: boolean;
}

/** A reply, and its answer as parsed by the agent's output contract. */
interface ReadReply {
  readonly reply: ModelReply;
  readonly parsed?: ParsedAnswer;
}

/**
 * Returns a model's reply as the history records it: calls are checked and digested, large values
 * are offloaded, and usage is estimated if the provider did not report it. User functions
 * (refinements, descriptions) run here, for all calls at once. The reply is recorded in any case,
 * because it has been paid for.
 */
export async function recordReply(
  original: TracedReply,
  source: ReplySource,
): Promise<RecordedReply> {
  const decision = readSpecialForm(original, source);
  const answer = decision.parsed ?? (await readAnswer(decision.reply, source));
  // A text that fits the agent's contract is its answer, even if it looks like calls.
  const isAnswer = decision.parsed !== undefined || answer?.ok === true;
  const written = isAnswer ? null : await readWrittenCalls(decision.reply, source);
  const reply =
    written === null ? decision.reply : { ...decision.reply, text: written.text, ...CALLS };
  const parsed = written === null ? answer : undefined;
  const read = written?.calls ?? (await readCalls(reply.calls, source));
  const dropped = reply.calls.length - read.length;
  const note = dropped > 0 ? `\n[${dropped} further calls of this message were dropped]` : '';
  // The provider's items belong to the original reply, not to one that was read in another form;
  // thoughts before calls in the text have to go back as those before other calls do.
  const hasItems =
    (reply === original || (written !== null && decision.reply === original)) &&
    source.input.compact === undefined;
  const [fitted, calls, provider] = await Promise.all([
    offloadText(reply.text + note, source.blobs),
    recordCalls(read, source.blobs),
    hasItems ? recordItems(original, source.blobs) : undefined,
  ]);
  const { requestId, dropped: droppedParameters = [] } = reply;
  return {
    text: fitted.text,
    ...(fitted.blob && { blob: fitted.blob }),
    ...(calls.length > 0 && { calls }),
    ...(provider && { provider }),
    ...(parsed && { parsed }),
    ...(calls.length > 0 && original.span !== undefined && { span: original.span }),
    finish: reply.finish,
    usage: readUsage(original, source.request),
    ...(droppedParameters.length > 0 && { dropped: droppedParameters }),
    ...(requestId !== undefined && { requestId: requestId.slice(0, 200) }),
    ...(original.fallback && { fallback: original.fallback }),
  };
}

/** Reads a decision as JSON, or a class, if the agent's replies have that form. */
function readSpecialForm(
  reply: ModelReply,
  { pinned: { definition }, input }: ReplySource,
): ReadReply {
  const { output, decide } = definition;
  if (input.compact !== undefined) return { reply };
  if (output?.type === 'classes') return parseClassReply(reply, output);
  return decide === 'schema' ? readDecision(reply, definition) : { reply };
}

/**
 * Checks a reply that would end the turn against the agent's contract; undefined for any other
 * reply.
 */
async function readAnswer(
  { text, calls, finish }: ModelReply,
  { pinned, input, userContext, isGivenUp, ruleContext }: ReplySource,
): Promise<ParsedAnswer | undefined> {
  if (finish !== 'stop' || calls.length > 0 || input.compact !== undefined) return undefined;
  if (isGivenUp && isSlowAnswer(pinned)) {
    return { ok: false, problem: `The answer could not be checked: ${CHECK_GIVEN_UP}.` };
  }
  const node = planNode(pinned);
  if (node?.planning === 'schema') return await readPlan(text, { node, ruleContext, isGivenUp });
  return await checkModelAnswer(pinned, text, userContext);
}

/** The form of a reply whose text had calls, so the model does not read them twice. */
const CALLS = { calls: [], finish: 'calls' } as const;

/** Calls that were part of a text, and the rest of the text. */
interface WrittenCalls {
  readonly text: string;
  readonly calls: readonly ReadCall[];
}

/**
 * Reads calls that a model wrote as its answer, as some small models do. Null unless the agent
 * decides by native calls, and the text ends with calls between tags or is nothing but calls that
 * all fit their tools.
 */
async function readWrittenCalls(
  { text, calls, finish }: ModelReply,
  { pinned, input, isGivenUp, ruleContext }: ReplySource,
): Promise<WrittenCalls | null> {
  const { definition } = pinned;
  const mayCall = definition.decide === undefined && definition.toolChoice !== 'none';
  const isTurn = input.compact === undefined && input.closing === undefined;
  if (!mayCall || !isTurn || finish !== 'stop' || calls.length > 0) return null;
  const tools = callableTools(definition);
  if (tools.length === 0) return null;
  const read = async (requested: ModelReply['calls']): Promise<readonly ReadCall[]> =>
    await Promise.all(requested.map((call) => readCall(call, { isGivenUp, ruleContext })));
  const marked = parseMarkedCalls(text, tools);
  if (marked !== null) return await readMarkedCalls(marked, { tools, read });
  const requested = parseCallsInContent(text, tools);
  if (requested.length === 0 || requested.length > MAX_CALLS) return null;
  const ready = await read(requested);
  return ready.every(({ problem }) => problem === undefined) ? { text: '', calls: ready } : null;
}

/**
 * Reads calls between tags. If nothing but tags was written, or a call names a tool, it is no
 * answer: the model gets the problem of a call that cannot be executed.
 */
async function readMarkedCalls(
  { before, calls }: MarkedCalls,
  {
    tools,
    read,
  }: {
    readonly tools: ReturnType<typeof callableTools>;
    readonly read: (requested: ModelReply['calls']) => Promise<readonly ReadCall[]>;
  },
): Promise<WrittenCalls | null> {
  if (calls === null) return { text: before, calls: [UNREADABLE] };
  const isKnown = calls.some(({ name }) => tools.some((tool) => tool.name === name));
  if (!isKnown && before !== '') return null;
  return { text: before, calls: await read(calls) };
}

/** A call in the text whose markup is incomplete, or of an unknown form. */
const UNREADABLE: ReadCall = {
  ...digestCall('unreadable_call', {}),
  problem: {
    type: 'invalid_json',
    message:
      'The call in the text of the reply is incomplete, so nothing was executed. Make the call again, ' +
      'as a tool call and not in the text.',
  },
};

async function readCalls(
  requested: ModelReply['calls'],
  { isGivenUp, ruleContext }: ReplySource,
): Promise<readonly ReadCall[]> {
  return await Promise.all(
    requested.slice(0, MAX_CALLS).map(async (call) => ({
      ...(await readCall(call, { isGivenUp, ruleContext })),
      ...recordSafety(call),
    })),
  );
}

/** Reads the usage of a reply. A custom model may report anything, so only whole numbers count. */
export function readUsage(reply: ModelReply, request: ModelRequest): ReplyUsage {
  const { usage } = reply;
  if (!isUsage(usage)) return { ...estimateUsage(request, reply), estimated: true };
  const { inputTokens, outputTokens, cachedTokens } = usage;
  const { reasoningTokens = 0, cacheWriteTokens = 0, costUsd = -1 } = usage;
  const hasWritten = isCounted(cacheWriteTokens) && cacheWriteTokens <= inputTokens - cachedTokens;
  return {
    inputTokens,
    outputTokens,
    cachedTokens,
    ...(hasWritten && { cacheWriteTokens }),
    ...(isCounted(reasoningTokens) && { reasoningTokens }),
    ...(Number.isFinite(costUsd) && costUsd >= 0 && { costUsd }),
    ...(usage.estimated === true && { estimated: true }),
  };
}

/** Whether a usage has all its counts. */
function isUsage(usage: unknown): usage is ModelUsage {
  if (!isObject(usage)) return false;
  const counts = [usage['inputTokens'], usage['outputTokens'], usage['cachedTokens']];
  return counts.every((count) => Number.isInteger(count) && Number(count) >= 0);
}

function isCounted(count: number): boolean {
  return Number.isInteger(count) && count > 0;
}

/** Larger items go to the blob store: no event of the history exceeds 256 KiB. */
const INLINE_ITEM_BYTES = 32 * 1024;
/** Larger items are dropped, because they would be sent again with every request. */
const MAX_ITEM_BYTES = 8 * 1024 * 1024;

/**
 * Returns the items that the provider needs back in later requests. Undefined if there are none or
 * they cannot be stored; later requests then omit them.
 */
async function recordItems(
  { provider }: ModelReply,
  blobs: BlobStore,
): Promise<ProviderItems | undefined> {
  if (provider === undefined || provider.items.length === 0) return undefined;
  const { from, items } = provider;
  const json = JSON.stringify(items);
  const bytes = Buffer.byteLength(json);
  if (bytes <= INLINE_ITEM_BYTES) return { from, items };
  if (bytes > MAX_ITEM_BYTES) return undefined;
  const stored = await retryStore(() => blobs.put(json));
  return 'value' in stored ? { from, blob: stored.value } : undefined;
}
