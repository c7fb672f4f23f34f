import { artifactList } from '../artifacts/artifact-text.js';
import { asksCatalog } from '../catalog/catalog.js';
import { catalogAnswer } from '../catalog/catalog-answers.js';
import { shortSignature, signature } from './idempotency.js';
import { refusal, type CallResult } from './call-result.js';
import type { ToolCalls, ToolDefinition } from '../definition/definition.js';
import { callsLeft } from '../limits.js';
import type { Message, ToolCall } from '../transcript/messages.js';
import { computerHandler } from '../definition/native-tools.js';
import type { Batch, RunState, Turn } from '../state.js';
import { waitedText, waitUntil } from './wait.js';

/** Agents below the root that a chain of calls can have, whatever the limits say. */
const DEEPEST = 16;

/** Characters of lists after which no further ones of a message are told: a prompt shall not be flooded. */
const LISTED_CHARACTERS = 64 * 1024;

/** What shall be done with one call of a message. */
type Plan =
  | { readonly type: 'execute' }
  | { readonly type: 'answer'; readonly result: CallResult }
  /** The same as an earlier call of this message; takes over its result. */
  | { readonly type: 'same-as'; readonly index: number };

/**
 * Opens a batch: the calls that need no execution already have their result.
 * @returns the batch, and the limit that refused one of them
 */
export function openBatch(
  state: RunState,
  opened: { step: number; at: number; calls: readonly ToolCall[] },
): { batch: Batch; refused: Turn['callsRefused'] } {
  const seen = new Map<string, number>();
  let left = callsLeft(state);
  let told = 0;
  let refused: Turn['callsRefused'] = null;
  const results = opened.calls.map((call, index): CallResult | null => {
    const first = opened.calls.findIndex(({ name }) => name === call.name);
    const plan = planCall(state, { call, index, seen, told, at: opened.at, first });
    if (plan.type === 'answer') {
      if (listsOf(state, call) !== null) told += plan.result.text.length;
      return plan.result;
    }
    if (plan.type === 'same-as') return null;
    if (left <= 0) {
      refused = 'toolCalls';
      return notExecuted(call, 'the limit of tool calls is used up');
    }
    if (tooDeep(state, call)) {
      refused ??= 'depth';
      return notExecuted(call, 'agents may call each other no deeper than this');
    }
    left -= 1;
    return null;
  });
  return { batch: { ...opened, results }, refused };
}

interface Place {
  readonly call: ToolCall;
  readonly index: number;
  readonly seen: Map<string, number>;
  /** Characters that the catalog has answered so far. */
  readonly told: number;
  readonly at: number;
  /** Index of the message's first call of this tool. */
  readonly first: number;
}

function planCall(state: RunState, place: Place): Plan {
  const { call, index, seen, told } = place;
  const { definition } = state.config;
  const policy: ToolCalls = definition.toolCalls;
  if (policy === 'first' && index > 0) {
    return answer(notExecuted(call, 'only the first call of a message is executed'));
  }
  if (call.problem) return answer(refusal(call.id, call.problem));
  const lists = listsOf(state, call);
  if (lists !== null) {
    if (told < LISTED_CHARACTERS) return answer(lists());
    return answer(notExecuted(call, 'the answers are too long for one message; ask in the next'));
  }
  const tool = findTool(state, call.name);
  if (tool === undefined) {
    return answer(refusal(call.id, { type: 'unknown_tool', message: `no tool "${call.name}"` }));
  }
  // What comes next on a screen depends on what the action before has made of it.
  if (call.name === computerHandler(definition.settings) && place.first < index) {
    return answer(notExecuted(call, 'one action on the screen per message; look first'));
  }
  const until = tool.kind === 'wait' ? waitUntil(call.arguments, place.at) : 0;
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

/** The id of the same call, where it succeeded in this turn. */
function earlierCall({ turn }: RunState, call: ToolCall): string | null {
  const begin = `${shortSignature(call)} `;
  return turn.succeeded.findLast((done) => done.startsWith(begin))?.slice(begin.length) ?? null;
}

/** The calls still to be executed, in order. A twin of an earlier call in the batch is not among them. */
export function openCalls(state: RunState, batch: Batch): readonly ToolCall[] {
  const seen = new Set<string>();
  return batch.calls.filter((call, index) => {
    const tool = findTool(state, call.name);
    const guarded = tool !== undefined && guardsRepeats(tool) && !call.problem;
    const twin = guarded && seen.has(signature(call));
    if (guarded) seen.add(signature(call));
    return !twin && batch.results[index] === null;
  });
}

export interface OpenWait {
  readonly call: ToolCall;
  /** Unix time in ms. */
  readonly until: number;
}

/** The waits among these calls, and when each is over. */
export function openWaits(
  state: RunState,
  batch: Batch,
  calls: readonly ToolCall[],
): readonly OpenWait[] {
  return calls.flatMap((call) => {
    if (findTool(state, call.name)?.kind !== 'wait') return [];
    const until = waitUntil(call.arguments, batch.at);
    return { call, until: typeof until === 'number' ? until : batch.at };
  });
}

/** Whether a message waits that has not woken this turn before: each does so once. */
export function hasWakingMessage({ inbox, turn }: RunState): boolean {
  return inbox.waiting.length > 0 && (inbox.count ?? 0) > (turn.wokenBy ?? 0);
}

/** The results of the waits that are over: their time has come, or a message has. */
export function finishedWaits(state: RunState, at: number): readonly CallResult[] {
  const { batch } = state.turn;
  if (batch === null) return [];
  const woken = hasWakingMessage(state);
  return openWaits(state, batch, openCalls(state, batch)).flatMap(({ call, until }) => {
    const over = until <= at;
    if (!over && !woken) return [];
    const text = waitedText(call.arguments, !over);
    return { id: call.id, ok: true, text, executed: true };
  });
}

/** The batch with one more result, at the place of its call. */
export function fillBatch(batch: Batch, result: CallResult): Batch {
  const results = batch.calls.map((call, index) =>
    call.id === result.id ? result : (batch.results[index] ?? null),
  );
  return { ...batch, results };
}

export function notExecuted(call: ToolCall, reason: string): CallResult {
  return refusal(call.id, { type: 'not_executed', message: `not executed: ${reason}` });
}

export function findTool(state: RunState, name: string): ToolDefinition | undefined {
  return state.config.definition.tools.find((tool) => tool.name === name);
}

/** Whether the call would start an agent below the deepest level that is allowed. */
function tooDeep(state: RunState, call: ToolCall): boolean {
  const { limits, depth = 0 } = state.config;
  if (findTool(state, call.name)?.kind !== 'agent') return false;
  const deepest = Math.min(limits.turn.depth ?? DEEPEST, limits.run.depth ?? DEEPEST, DEEPEST);
  return depth >= deepest;
}

/** A repeated read is legitimate polling; what changes the world is not done twice by accident. */
export function guardsRepeats(tool: ToolDefinition): boolean {
  return tool.effect !== 'read' && tool.repeat !== 'allow';
}

/**
 * How a call that asks what there is, tools or artifacts, is answered by the state; null for any other.
 * As of the message that asks: what its other calls make is not among it.
 */
function listsOf(state: RunState, call: ToolCall): (() => CallResult) | null {
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
