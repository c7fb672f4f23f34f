import {
  CancellationScope,
  allHandlersFinished,
  condition,
  makeContinueAsNewFunc,
  sleep,
  upsertMemo,
  workflowInfo,
} from '@temporalio/workflow';
import { byteLength } from '../core/input/inbox.js';
import type { RunInput } from '../core/input/input.js';
import type { Effects } from '../core/interpret/loop.js';
import { ownPlaces } from '../core/rules/documents.js';
import { budgetLeft } from '../core/rules/limits.js';
import { nextMemo } from '../core/run/carry.js';
import type { CallModelInput } from '../core/run/contract.js';
import { type AtOnceAction, FIRST_MESSAGE_MS, type TimedAction } from '../core/run/next-action.js';
import { reduce } from '../core/run/reduce.js';
import { type CarriedState, STATE_VERSION } from '../core/segments/migrations.js';
import type { RunState } from '../core/state/state.js';
import { stepSummary } from '../core/state/summaries.js';
import { currentVariant, definitionFor } from '../core/state/turn-definition.js';
import { type RememberInput, type RetrieveInput, getOutcome } from '../core/state/turn.js';
import { WORK } from '../core/state/work.js';
import { MODEL_BLOCKS, TOOL_BLOCKS } from '../core/transcript/outcome.js';
import { promptLength } from '../core/transcript/transcript.js';
import { functionActivities, modelActivity } from './activities.js';
import { archiveForCompaction, archiveForNextSegment, loadRun, reloadAgent } from './begin.js';
import { memoryKey } from './calls/execute-call.js';
import { runCalls } from './calls/run-calls.js';
import { activityStart, blobCheck, blockedField, doWork } from './do-work.js';
import type { AgentWorkflow } from './messages/definitions.js';
import { reportTurn, recordTurnMemo, updatesHandled } from './messages/queries.js';
import { checkProposal, continueRequests, publishRequests } from './requests.js';
import {
  type RunContext,
  actionNow,
  contextFields,
  mustLeave,
  recordNow,
  renewScope,
  segmentFacts,
  startDeadlineTimer,
  unlessInterrupted,
} from './run-context.js';

/** Maximum bytes of a segment's input. The server always refuses an input over 2 MiB. */
const MAX_INPUT_BYTES = 1.5 * 1024 * 1024;
/** Number of message ids kept in a state that would otherwise be too large. */
const MIN_IDS = 100;

/**
 * Continues the run in a new segment between two steps, while nothing is in flight and no handler
 * runs. If the messages cannot be archived, the run stays in its segment and tries again some steps
 * later.
 */
async function continueAsNew(run: RunContext): Promise<void> {
  if (!(await archiveForNextSegment(run))) return;
  run.leaving = true;
  if (!allHandlersFinished()) await condition(allHandlersFinished);
  run.leaving = false;
  // A cancellation may have arrived in the meantime.
  if (!mustLeave(run)) return;
  run.deadlineTimer?.cancel();
  run.expiryTimer?.scope.cancel();
  run.expiryTimer = null;
  const next = nextArguments(run);
  if (next === null) {
    recordNow(run, { type: 'segment-kept' });
    // The history must show why the run stays in its segment.
    upsertMemo({ kept: run.state.segments });
    startDeadlineTimer(run);
    return continueRequests(run);
  }
  const [input, carried] = next;
  run.state = carried.state;
  const { memo, workflowId } = workflowInfo();
  // oxlint-disable-next-line no-restricted-properties -- as a number, it needs no time zone
  const began = workflowInfo().startTime.getTime();
  const move = makeContinueAsNewFunc<AgentWorkflow>({
    // A pinned run moves to the newest build only here.
    initialVersioningBehavior: 'AUTO_UPGRADE',
    memo: {
      ...nextMemo(run.state, { memo, began, run: workflowId, tags: input.tags }),
      // A list of an older version, which cannot read the state, says so.
      schema: STATE_VERSION,
    },
  });
  await move(input, carried);
}

/**
 * Returns the arguments of the next segment. If they exceed the maximum input size, nonessential
 * parts are omitted; null if even that is not enough.
 */
function nextArguments(run: RunContext): readonly [RunInput, CarriedState] | null {
  const { context, ...input } = withoutMessage(run.input);
  const hasContext = run.state.config.contextBlob === undefined && context !== undefined;
  const next: RunInput = { ...input, ...(hasContext && { context }) };
  const state = reduce(run.state, { type: 'segment-begun' });
  for (const each of [state, reduced(state)]) {
    const carried: CarriedState = { schema: STATE_VERSION, state: each, shown: run.shown };
    if (byteLength(JSON.stringify([next, carried])) <= MAX_INPUT_BYTES) return [next, carried];
  }
  return null;
}

/** The fields of the input that only the first segment uses. */
const TAKEN: ReadonlySet<string> = new Set([
  'message',
  'attachments',
  'artifacts',
  'messages',
  'prompt',
  'promptArgs',
  'settings',
  'turnContext',
] satisfies (keyof RunInput)[]);

/** Returns the input without the fields that only the first segment uses. */
function withoutMessage(input: RunInput): RunInput {
  const left = Object.entries(input).filter(([name]) => !TAKEN.has(name));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only optional fields are left out
  return Object.fromEntries(left) as unknown as RunInput;
}

/** Returns the state without the outcomes of earlier turns, and with fewer message ids. */
function reduced(state: RunState): RunState {
  const seen = state.inbox.seen.slice(-MIN_IDS);
  return { ...state, recent: [], inbox: { ...state.inbox, seen } };
}

type ModelAction = Extract<TimedAction, { type: 'call-model' | 'compact' }>;

/** Calls the model: one activity, whose input does not grow with the conversation. */
function callModel(run: RunContext, action: ModelAction): Promise<unknown> {
  const { state } = run;
  const closing = action.type === 'call-model' && action.closing;
  const summary =
    action.type === 'compact' ? `summarize ${action.cut} messages` : stepSummary(state, closing);
  const input = modelInput(run, action);
  return doWork(run, {
    name: WORK.model,
    doing: `${state.config.definition.model}, ${summary}`,
    activity: (step, work) => {
      if (step.as === 'check') return blobCheck(WORK.model, step);
      // The activity checks an already paid reply instead of calling the model again.
      const paid = work?.paid !== undefined && { paid: work.paid };
      const taskInput = { ...input, ...blockedField(step, MODEL_BLOCKS), ...paid };
      const anywhere = step.as === 'probe';
      const call = modelActivity(state.config, { summary, closing, anywhere });
      return activityStart('callModel', taskInput, call);
    },
  });
}

function modelInput(run: RunContext, action: ModelAction): CallModelInput {
  const { state, input } = run;
  const { window } = state.config;
  const { node, prompt, settings } = currentVariant(state);
  const definition = definitionFor(state.config.definition, {
    ...(prompt !== undefined && { prompt }),
  });
  const { rules, modelAttempts } = input;
  const { span } = state.config;
  const { maxOutputTokens } = action;
  const reads =
    definition.decide === 'function' ||
    definition.output?.type === 'function' ||
    definition.tools.some(({ approval }) => approval);
  const left = definition.decide === 'function' ? budgetLeft(state) : null;
  const size = window !== undefined && { window };
  return {
    upTo: promptLength(state.transcript),
    head: state.transcript.head,
    definition: definition.hash,
    turn: state.turn.number,
    step: state.turn.spent.steps + 1,
    // A later turn belongs to its sender's trace.
    ...(span !== undefined && state.turn.number === 1 && { span }),
    ...(action.type === 'call-model' && action.closing && { closing: true as const }),
    ...(action.type === 'call-model' && !action.closing && node !== undefined && { node }),
    ...(action.type === 'call-model' && prompt !== undefined && { prompt }),
    ...(action.type === 'call-model' && settings !== undefined && { settings }),
    ...(action.type === 'compact' && { compact: action.cut, ...size }),
    ...(state.forkedFrom && { fork: state.forkedFrom.at }),
    ...(state.dropped && { without: state.dropped }),
    ...(reads && contextFields(run)),
    ...(rules && { rules }),
    ...(maxOutputTokens !== null && { maxOutputTokens }),
    ...(left !== null && { left }),
    ...(modelAttempts !== undefined && { attempts: modelAttempts }),
  };
}

/** Retrieves documents: one activity, whose input does not grow with the conversation. */
function retrieve(run: RunContext): Promise<unknown> {
  const { retrieveDocuments } = functionActivities('retrieve', run.state.config);
  const input = retrieveInput(run);
  return doWork(run, {
    name: WORK.retrieve,
    doing: WORK.retrieve,
    activity: (step) => {
      if (step.as === 'check') return blobCheck(WORK.retrieve, step);
      const taskInput = { ...input, ...blockedField(step, TOOL_BLOCKS) };
      return activityStart('retrieveDocuments', taskInput, retrieveDocuments);
    },
  });
}

function retrieveInput(run: RunContext): RetrieveInput {
  const { state } = run;
  const { definition } = state.config;
  return {
    upTo: promptLength(state.transcript),
    head: state.transcript.head,
    definition: definition.hash,
    turn: state.turn.number,
    own: ownPlaces(state),
    ...contextFields(run),
  };
}

/** Passes the ended turn to the agent's memory: one activity. */
async function remember(run: RunContext): Promise<void> {
  const outcome = getOutcome(run.state);
  if (outcome === null) return;
  const { rememberTurn } = functionActivities('remember', run.state.config);
  const input: RememberInput = {
    ...retrieveInput(run),
    outcome,
    key: memoryKey(run.input, run.state),
  };
  await doWork(run, {
    name: WORK.remember,
    doing: WORK.remember,
    activity: () => activityStart('rememberTurn', input, rememberTurn),
  });
}

/** Returns the effects of the loop: activities, timers, conditions, and the memo. */
export function effects(run: RunContext): Effects {
  return {
    now: () => Date.now(),
    segment: segmentFacts,
    perform: (action) => perform(run, action).then(updatesHandled),
    changed: (action) => changed(run, action),
  };
}

/** Performs an action. It is not async, because each promise of a step makes replay slower. */
function perform(run: RunContext, action: TimedAction): Promise<unknown> {
  switch (action.type) {
    case 'call-model':
    case 'compact':
      return callModel(run, action);
    case 'run-calls':
      return runCalls(run, action.calls);
    case 'retrieve':
      return retrieve(run);
    case 'remember':
      return remember(run);
    case 'archive':
      return archiveForCompaction(run, action);
    case 'refresh-agent':
      return reloadAgent(run);
    case 'load':
      return loadRun(run);
    case 'continue-as-new':
      return continueAsNew(run);
    case 'await-time':
      return awaiting(run, () => untilTimeOrMessage(run, action.until));
    case 'check-decision':
      return checkProposal(run, WORK.limit);
    case 'await-message':
    case 'await-resume':
    case 'await-decision':
    case 'await-work':
      return awaiting(run, () => untilChange(run, action));
  }
}

function changed(run: RunContext, { type }: AtOnceAction): void {
  switch (type) {
    case 'begin-turn':
      return startDeadlineTimer(run);
    case 'interrupt':
      renewScope(run);
      return publishRequests(run);
    case 'record-turn': {
      renewScope(run);
      startDeadlineTimer(run);
      const { number } = run.state.turn;
      const outcome = getOutcome(run.state);
      if (outcome !== null) {
        recordTurnMemo(number, outcome);
        reportTurn(run, outcome);
      }
      if (!run.state.open) run.publishStatus();
      return;
    }
    case 'raise-requests':
    case 'ask-limit':
      return publishRequests(run);
    default:
  }
}

/**
 * Publishes the waiting status, then waits. What was interrupted may still be in flight: the canceled
 * scope would reject each wait at once, and the loop would spin.
 */
function awaiting(run: RunContext, wait: () => Promise<unknown>): Promise<unknown> {
  run.publishStatus();
  return run.scope.consideredCancelled ? wait() : unlessInterrupted(run, wait);
}

/** Whether the next action differs from this one. */
function isOther(run: RunContext, { type }: TimedAction): boolean {
  return actionNow(run).type !== type;
}

async function untilChange(run: RunContext, action: TimedAction): Promise<void> {
  const hasChanged = (): boolean => isOther(run, action);
  if (action.type === 'await-message' && run.state.inbox.lastTurn === 0) {
    const leftMs = run.state.startedAt + FIRST_MESSAGE_MS - Date.now();
    await condition(hasChanged, Math.max(1, leftMs));
  } else await condition(hasChanged);
}

async function untilTimeOrMessage(run: RunContext, until: number): Promise<void> {
  const hasChanged = (): boolean => isOther(run, { type: 'await-time', until });
  const summary = `wait until ${new Date(until).toISOString()}`;
  const timer = new CancellationScope();
  const waitMs = Math.max(1, until - Date.now());
  try {
    await Promise.race([timer.run(() => sleep(waitMs, { summary })), condition(hasChanged)]);
  } finally {
    timer.cancel();
  }
}
