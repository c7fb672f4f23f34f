import type { ToolCalls } from '../definition/definition.js';
import { computerHandler } from '../input/turn-settings.js';
import { callsLeft } from '../rules/limits.js';
import { withTurn } from '../state/change.js';
import { needsConsent } from '../state/consent.js';
import type { RunState } from '../state/state.js';
import { artifactList } from '../state/summaries.js';
import {
  currentDefinition,
  currentNode,
  definedTool,
  nodeOfCall,
} from '../state/turn-definition.js';
import type { Batch, Turn } from '../state/turn.js';
import {
  type CallResult,
  deniedCall,
  refusal,
  shortSignature,
  signature,
} from '../transcript/call-result.js';
import { isCatalogCall, catalogAnswer } from '../transcript/catalog.js';
import type { Message, ToolCall } from '../transcript/messages.js';
import {
  CALLS_USED_UP,
  DEPTH_REACHED,
  findTool,
  guardsRepeats,
  notExecuted,
  tooDeep,
  waitUntil,
} from './batch.js';

/** Returns why a call is denied without a request; null if it is not. */
export function denial(state: RunState, call: ToolCall): string | null {
  const { verdict } = call;
  if (verdict?.then === 'deny') return verdict.why;
  if (state.turn.denied?.includes(shortSignature(call))) {
    return 'an identical call was denied earlier in this turn, and people are asked only once';
  }
  if (state.unattended !== 'deny') return null;
  const kind = definedTool(state.config.definition, call.name)?.kind;
  const asks = needsConsent(state, call);
  if (!asks && call.safety === undefined && kind !== 'question' && kind !== 'client') return null;
  const why = verdict === undefined ? '' : ` (${verdict.why})`;
  return `it needs a decision, and this run is unattended${why}`;
}

/** The number of consecutive denied calls after which the turn ends. */
const DENIALS = 3;

/** The number of denied calls that a turn remembers. All are passed from segment to segment. */
const REMEMBERED = 1_000;

/** Returns the changes that a result makes to the turn's count of denied calls. */
export function countDenials(
  { turn }: RunState,
  call: ToolCall,
  { denied, executed }: CallResult,
): Partial<Turn> {
  const { denials = 0 } = turn;
  if (!denied) return executed && denials > 0 ? { denials: 0 } : {};
  const signatures = [...new Set([...(turn.denied ?? []), shortSignature(call)])];
  return {
    denied: signatures.slice(-REMEMBERED),
    denials: denials + 1,
    ...(denials + 1 >= DENIALS && { limit: turn.limit ?? 'denied' }),
  };
}

/**
 * Counts the denied tool calls of a graph's node. A visit counts once, regardless of its number of
 * calls.
 */
export function countVisitDenials(state: RunState, { calls, results }: Batch): RunState {
  const made = calls.flatMap((call, index) => {
    const result = results[index];
    return result && nodeOfCall(call) === null ? [{ call, result }] : [];
  });
  const denied = made.filter(({ result }) => result.denied);
  const [first] = denied;
  if (first === undefined) {
    const executed = made.some(({ result }) => result.executed);
    return executed && state.turn.denials ? withTurn(state, { denials: 0 }) : state;
  }
  const counted = withTurn(state, countDenials(state, first.call, first.result));
  const signatures = denied.map(({ call }) => shortSignature(call));
  const all = [...new Set([...(counted.turn.denied ?? []), ...signatures])];
  return withTurn(counted, { denied: all.slice(-REMEMBERED) });
}

/** The maximum characters of lists in the results for one message, to keep the prompt small. */
const MAX_LIST_CHARACTERS = 64 * 1024;

/** A limit that refuses calls. */
type CallLimit = 'toolCalls' | 'depth';

/** What to do with one call of a message. */
type Plan =
  | { readonly type: 'execute' }
  | { readonly type: 'answer'; readonly result: CallResult }
  /** An identical call precedes this one in the message; this one shares its result. */
  | { readonly type: 'same-as'; readonly index: number };

/**
 * Opens a batch and adds the results of calls that need no execution. Returns the batch and the
 * limit that refused one of the calls, or null.
 */
export function openBatch(
  state: RunState,
  opened: Omit<Batch, 'results'>,
): { batch: Batch; refused: CallLimit | null } {
  const seen = new Map<string, number>();
  let left = callsLeft(state);
  let listed = 0;
  let refused: CallLimit | null = null;
  const ending = endingIndex(state, opened.calls);
  const results = opened.calls.map((call, index): CallResult | null => {
    const first = opened.calls.findIndex(({ name }) => name === call.name);
    const plan = planCall(state, { call, index, seen, listed, at: opened.at, first, ending });
    if (plan.type === 'answer') {
      if (listAnswer(state, call) !== null) listed += plan.result.text.length;
      return plan.result;
    }
    if (plan.type === 'same-as' || isNoted(state, call)) return null;
    if (left <= 0) {
      refused = 'toolCalls';
      return notExecuted(call, CALLS_USED_UP);
    }
    if (tooDeep(state, call)) {
      refused ??= 'depth';
      return notExecuted(call, DEPTH_REACHED);
    }
    left -= 1;
    return null;
  });
  return { batch: { ...opened, results }, refused };
}

/** Whether a call is only recorded in the plan. A planner's reads are executed. */
function isNoted(state: RunState, { name }: ToolCall): boolean {
  return currentNode(state)?.kind === 'plan' && findTool(state, name)?.effect !== 'read';
}

interface PlannedCall {
  readonly call: ToolCall;
  readonly index: number;
  readonly seen: Map<string, number>;
  /** Characters of lists for this message so far. */
  readonly listed: number;
  readonly at: number;
  /** Index of the first call of this tool in the message. */
  readonly first: number;
  /** Index of the call of the message that ends the turn; -1 if none. */
  readonly ending: number;
}

/**
 * Returns the index of the first call that ends the turn if it succeeds; -1 if there is none. Calls
 * next to an answer are not executed, because the answer cannot depend on their results. A
 * sequential batch executes the calls before it. In a graph, no call ends the turn.
 */
function endingIndex(state: RunState, calls: readonly ToolCall[]): number {
  const { toolCalls, graph } = currentDefinition(state);
  if (toolCalls !== 'parallel' || graph !== undefined) return -1;
  return calls.findIndex(
    (call) =>
      findTool(state, call.name)?.ends === true && !call.problem && denial(state, call) === null,
  );
}

function planCall(state: RunState, planned: PlannedCall): Plan {
  const { call, index, seen, listed } = planned;
  const { definition } = state.config;
  const policy: ToolCalls = currentDefinition(state).toolCalls;
  if (policy === 'first' && index > 0) {
    return answer(notExecuted(call, 'only the first call of a message is executed'));
  }
  if (call.problem) return answer(refusal(call.id, call.problem));
  // Some servers ignore the request's tool choice.
  if (currentDefinition(state).toolChoice === 'none') {
    return answer(notExecuted(call, 'no tool may be called in this turn; answer in text'));
  }
  const denied = denial(state, call);
  if (denied !== null) return answer(deniedCall(call, denied));
  const list = listAnswer(state, call);
  if (list !== null) {
    if (listed < MAX_LIST_CHARACTERS) return answer(list());
    return answer(
      notExecuted(call, 'the answers are too long for one message; ask again in the next message'),
    );
  }
  const tool = findTool(state, call.name);
  if (tool === undefined) {
    return answer(
      refusal(call.id, { type: 'unknown_tool', message: `unknown tool "${call.name}"` }),
    );
  }
  if (planned.ending >= 0 && planned.ending !== index) {
    return answer(notExecuted(call, 'another call in this message ends the turn'));
  }
  // An action on a screen depends on the screen after the previous action.
  if (call.name === computerHandler(definition.settings) && planned.first < index) {
    return answer(
      notExecuted(
        call,
        'only one action on the screen per message is executed; check the screen first',
      ),
    );
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

/**
 * Returns the id of an identical call that succeeded earlier in this turn; null if there is none.
 */
function earlierCall({ turn }: RunState, call: ToolCall): string | null {
  const begin = `${shortSignature(call)} `;
  return turn.succeeded.findLast((done) => done.startsWith(begin))?.slice(begin.length) ?? null;
}

/**
 * Returns the answer to a call that lists tools or artifacts; null for any other call. It reflects
 * the state at that message, without the results of the message's other calls.
 */
function listAnswer(state: RunState, call: ToolCall): (() => CallResult) | null {
  const { artifacts = [], config } = state;
  if (isCatalogCall(config.definition, call))
    return () => catalogAnswer(currentDefinition(state), call);
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
  const note = `[identical to ${earlierId} in this turn; not executed again. Its result:]`;
  return {
    id: call.id,
    ok: true,
    text: `${note}\n${earlier?.text ?? '[see above, or the summary]'}`,
    ...(earlier?.blob && { blob: earlier.blob }),
    executed: false,
  };
}
