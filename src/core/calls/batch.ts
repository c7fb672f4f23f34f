import { artifactList } from '../artifacts/artifact-text.js';
import { asksCatalog } from '../catalog/catalog.js';
import { catalogAnswer } from '../catalog/catalog-answers.js';
import { denial } from './denial.js';
import { shortSignature, signature } from './idempotency.js';
import { deniedCall, refusal, type CallResult } from './call-result.js';
import type { ToolCalls, ToolDefinition } from '../definition/definition.js';
import { callsLeft } from '../limits.js';
import type { Message, ToolCall } from '../transcript/messages.js';
import { computerHandler } from '../definition/native-tools.js';
import type { RunState } from '../state.js';
import { batchOf, type Batch } from '../turn.js';
import { currentDefinition } from '../graph/node-definition.js';
import { currentNode, definedTool } from '../graph/node-tool.js';
import { needsConsent } from '../requests/consent.js';
import { findWork } from '../work/work.js';
import { waitedText, waitUntil } from './wait.js';

/** Maximum depth of agents that call agents, whatever the limits say. */
const MAX_DEPTH = 16;

/** After so many characters of lists, a message gets no further lists, to keep the prompt small. */
const MAX_LIST_CHARACTERS = 64 * 1024;

/** A limit that refuses calls. */
type CallLimit = 'toolCalls' | 'depth';

/** What to do with one call of a message. */
type Plan =
  | { readonly type: 'execute' }
  | { readonly type: 'answer'; readonly result: CallResult }
  /** The same call is in this message before; this one takes its result. */
  | { readonly type: 'same-as'; readonly index: number };

/**
 * Opens a batch, in which the calls that need no execution have their results. Returns the batch, and
 * the limit that refused one of the calls, or null.
 */
export function openBatch(
  state: RunState,
  opened: { step: number; at: number; calls: readonly ToolCall[] },
): { batch: Batch; refused: CallLimit | null } {
  const seen = new Map<string, number>();
  let left = callsLeft(state);
  let listed = 0;
  let refused: CallLimit | null = null;
  const results = opened.calls.map((call, index): CallResult | null => {
    const first = opened.calls.findIndex(({ name }) => name === call.name);
    const plan = planCall(state, { call, index, seen, listed, at: opened.at, first });
    if (plan.type === 'answer') {
      if (listAnswer(state, call) !== null) listed += plan.result.text.length;
      return plan.result;
    }
    if (plan.type === 'same-as' || isNoted(state, call)) return null;
    if (left <= 0) {
      refused = 'toolCalls';
      return notExecuted(call, 'the limit of tool calls is used up');
    }
    if (tooDeep(state, call)) {
      refused ??= 'depth';
      return notExecuted(call, 'agents may not call each other any deeper than this');
    }
    left -= 1;
    return null;
  });
  return { batch: { ...opened, results }, refused };
}

/** A planner's call is only noted, unless it reads. */
function isNoted(state: RunState, { name }: ToolCall): boolean {
  return currentNode(state)?.kind === 'plan' && findTool(state, name)?.effect !== 'read';
}

interface PlannedCall {
  readonly call: ToolCall;
  readonly index: number;
  readonly seen: Map<string, number>;
  /** Characters of lists that this message has got so far. */
  readonly listed: number;
  readonly at: number;
  /** Index of the first call of this tool in the message. */
  readonly first: number;
}

function planCall(state: RunState, planned: PlannedCall): Plan {
  const { call, index, seen, listed } = planned;
  const { definition } = state.config;
  const policy: ToolCalls = currentDefinition(state).toolCalls;
  if (policy === 'first' && index > 0) {
    return answer(notExecuted(call, 'only the first call of a message is executed'));
  }
  if (call.problem) return answer(refusal(call.id, call.problem));
  const denied = denial(state, call);
  if (denied !== null) return answer(deniedCall(call, denied));
  const list = listAnswer(state, call);
  if (list !== null) {
    if (listed < MAX_LIST_CHARACTERS) return answer(list());
    return answer(notExecuted(call, 'the answers are too long for one message; ask in the next'));
  }
  const tool = findTool(state, call.name);
  if (tool === undefined) {
    return answer(refusal(call.id, { type: 'unknown_tool', message: `no tool "${call.name}"` }));
  }
  // An action on a screen depends on what the screen shows after the action before.
  if (call.name === computerHandler(definition.settings) && planned.first < index) {
    return answer(notExecuted(call, 'one action on the screen per message; look first'));
  }
  const until = tool.kind === 'wait' ? waitUntil(call.arguments, planned.at) : 0;
  if (typeof until !== 'number') {
    return answer(refusal(call.id, { type: 'invalid_arguments', message: until.problem }));
  }
  if (!guardsRepeats(tool)) return { type: 'execute' };
  const earlier = earlierCall(state, call);
  if (earlier !== null) return answer(fromRecord(call, state, earlier));
  const twin = seen.get(signature(call));
  if (twin !== undefined) return { type: 'same-as', index: twin };
  seen.set(signature(call), index);
  return { type: 'execute' };
}

/** The id of the same call if it succeeded in this turn before; else null. */
function earlierCall({ turn }: RunState, call: ToolCall): string | null {
  const begin = `${shortSignature(call)} `;
  return turn.succeeded.findLast((done) => done.startsWith(begin))?.slice(begin.length) ?? null;
}

/** Returns the calls that can be executed now: the others wait for calls of the same plan. */
export function readyCalls(state: RunState, batch: Batch): readonly ToolCall[] {
  return openCalls(state, batch).filter(({ after }) => after === undefined);
}

/** Returns the calls still to be executed, in order, without repeats of a call in the same batch. */
export function openCalls(state: RunState, batch: Batch): readonly ToolCall[] {
  const seen = new Set<string>();
  return batch.calls.filter((call, index) => {
    const tool = findTool(state, call.name);
    // A call that a person has changed is what they want done, whatever else is in the message.
    const guarded = tool && guardsRepeats(tool) && !call.problem && !call.edited && !call.node;
    const twin = guarded && seen.has(signature(call));
    if (guarded) seen.add(signature(call));
    return !twin && batch.results[index] === null;
  });
}

/** A wait that has not ended. */
export interface OpenWait {
  readonly call: ToolCall;
  /** When it ends, Unix time in ms. */
  readonly until: number;
}

/** Returns the waits among these calls. */
export function openWaits(
  state: RunState,
  batch: Batch,
  calls: readonly ToolCall[],
): readonly OpenWait[] {
  return calls.flatMap((call) => {
    if (findTool(state, call.name)?.kind !== 'wait') return [];
    // A wait that a rule asks about begins when somebody approves it.
    if (needsConsent(state, call) && !findWork(state, call.id)?.approved) return [];
    const until = waitUntil(call.arguments, batch.at);
    return { call, until: typeof until === 'number' ? until : batch.at };
  });
}

/** Whether a message waits that has not woken this turn before. Each message does so once. */
export function hasWakingMessage({ inbox, turn }: RunState): boolean {
  return inbox.waiting.length > 0 && (inbox.count ?? 0) > (turn.wokenBy ?? 0);
}

/** Returns the results of the waits that end at `at` (Unix time in ms), by their time or by a message. */
export function finishedWaits(state: RunState, at: number): readonly CallResult[] {
  const batch = batchOf(state);
  if (batch === null) return [];
  const woken = hasWakingMessage(state);
  return openWaits(state, batch, openCalls(state, batch)).flatMap(({ call, until }) => {
    const over = until <= at;
    if (!over && !woken) return [];
    const text = waitedText(call.arguments, !over);
    return { id: call.id, ok: true, text, executed: true };
  });
}

/** Returns the batch with one more result, at the place of its call. */
export function fillBatch(batch: Batch, result: CallResult): Batch {
  const results = batch.calls.map((call, index) =>
    call.id === result.id ? result : (batch.results[index] ?? null),
  );
  return { ...batch, results };
}

/** Returns the result of a call that was not executed. */
export function notExecuted(call: ToolCall, reason: string): CallResult {
  return refusal(call.id, { type: 'not_executed', message: `not executed: ${reason}` });
}

/** Returns the pinned definition of a tool; undefined if the agent has none of that name. */
export function findTool(state: RunState, name: string): ToolDefinition | undefined {
  return definedTool(state.config.definition, name);
}

/** Whether the call would start an agent below the maximum depth. */
export function tooDeep(state: RunState, call: ToolCall): boolean {
  const { limits, depth = 0 } = state.config;
  if (findTool(state, call.name)?.kind !== 'agent') return false;
  const { turn, run } = limits;
  return depth >= Math.min(turn.depth ?? MAX_DEPTH, run.depth ?? MAX_DEPTH, MAX_DEPTH);
}

/** Whether a repeated call of this tool is not executed. A repeated read is legitimate polling. */
export function guardsRepeats(tool: ToolDefinition): boolean {
  return tool.effect !== 'read' && tool.repeat !== 'allow';
}

/**
 * Returns the answer to a call that lists tools or artifacts; null for any other call. It has the state
 * at the message that calls, without what the message's other calls make.
 */
function listAnswer(state: RunState, call: ToolCall): (() => CallResult) | null {
  const { artifacts = [], config } = state;
  if (asksCatalog(config.definition, call)) return () => catalogAnswer(config.definition, call);
  if (findTool(state, call.name)?.kind !== 'artifacts') return null;
  return () => ({ id: call.id, ok: true, text: artifactList(artifacts), executed: false });
}

function answer(result: CallResult): Plan {
  return { type: 'answer', result };
}

function fromRecord(call: ToolCall, state: RunState, earlierId: string): CallResult {
  const earlier = state.transcript.messages.find(
    (message): message is Message & { role: 'tool' } =>
      message.role === 'tool' && message.callId === earlierId,
  );
  const note = `[already done in this turn as ${earlierId}; not executed again, this is its result]`;
  return {
    id: call.id,
    ok: true,
    text: `${note}\n${earlier?.text ?? '[further up, or in the summary of what was before]'}`,
    ...(earlier?.blob && { blob: earlier.blob }),
    executed: false,
  };
}
