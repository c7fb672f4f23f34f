import { ChildWorkflowCancellationType, workflowInfo } from '@temporalio/workflow';
import { callArtifacts } from '../../core/calls/artifacts.js';
import { findTool } from '../../core/calls/batch.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { continuedRun } from '../../core/graph/run-node.js';
import type { RunInput } from '../../core/input/input.js';
import { INLINE } from '../../core/interpret/inline-calls.js';
import { childBudget } from '../../core/run/complete-batch.js';
import type { AnsweredInput, RunToolInput } from '../../core/run/contract.js';
import { workflowSummary } from '../../core/run/details.js';
import { getInterruption } from '../../core/state/change.js';
import { isUnjudged, peopleOf } from '../../core/state/consent.js';
import type { RunState } from '../../core/state/state.js';
import { callSummary } from '../../core/state/summaries.js';
import {
  callsAtOnce,
  currentNode,
  nodeOfCall,
  workText,
} from '../../core/state/turn-definition.js';
import { getOpenBatch } from '../../core/state/turn.js';
import { WORK, type CallWork, findWork } from '../../core/state/work.js';
import {
  type JsonObject,
  isObject,
  parseJson,
  sha256Hex,
  textField,
} from '../../core/text/json.js';
import {
  type KeyOrigin,
  calledId,
  idempotencyKey,
  keyOrigin,
} from '../../core/transcript/call-result.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { NODE_BLOCKS, TOOL_BLOCKS } from '../../core/transcript/outcome.js';
import type { AskedByServer } from '../../core/transcript/request.js';
import { findActivity, functionActivity, readsActivity, toolActivity } from '../activities.js';
import {
  type ActivityStart,
  type StartStep,
  activityStart,
  blobCheck,
  blockedField,
  doWork,
  failureFact,
} from '../do-work.js';
import { type RunContext, contextFields, inFlight, recordNow } from '../run-context.js';
import { runChildOnce } from './run-child-once.js';

/** Returns the idempotency key of one call of the open batch. */
function callKey({ called }: RunInput, state: RunState, call: ToolCall): string {
  const batch = getOpenBatch(state);
  const { turn } = state;
  const origin = originOf(called);
  const step = batch?.step ?? turn.spent.steps;
  const index = batch?.calls.findIndex(({ id }) => id === call.id) ?? 0;
  return idempotencyKey({ ...origin, turn: turn.number, step, index }, call);
}

/**
 * Returns the idempotency key for remembering the ended turn. It is the same after a reset in the
 * turn.
 */
export function memoryKey({ called }: RunInput, { turn }: RunState): string {
  const place = { ...originOf(called), turn: turn.number, step: 0, index: 0 };
  return idempotencyKey(place, { name: WORK.remember, digest: '' });
}

function originOf(called: RunInput['called']): KeyOrigin {
  const { namespace, workflowId, firstExecutionRunId: firstRunId, parent } = workflowInfo();
  return keyOrigin({ namespace, workflowId, firstRunId, parentId: parent?.workflowId }, called);
}

interface Execution {
  readonly call: ToolCall;
  readonly tool: ToolDefinition;
}

/**
 * Applies the rules to a call that the run itself executes. Returns whether it may be executed now;
 * if not, it has a result, waits for a decision, or the run is interrupted. Never rejects because of
 * a worker.
 */
export async function mayExecute(run: RunContext, { call, tool }: Execution): Promise<boolean> {
  const summary = `apply the rules to ${workOf(run, call)}`;
  const input = toolInput(run, { call, tool });
  await doWork(run, {
    name: call.id,
    doing: workOf(run, call),
    isReady,
    activity: (step, work) => {
      if (step.as === 'check') return blobCheck(call.id, step);
      const blocked = blockedField(step, TOOL_BLOCKS);
      const current = { ...currentInput(run, input, work), ...blocked };
      const judge = { ...current, find: true, judge: true } as const;
      return activityStart('runTool', judge, findActivity(summary));
    },
  });
  const work = findWork(run.state, call.id);
  return work !== undefined && isReady(work) && getInterruption(run.state) === null;
}

/** Returns a call as people see it, in the status and in Temporal's UI. */
function workOf({ state }: RunContext, call: ToolCall): string {
  return workText(state.config.definition, call);
}

/** Whether the rules allow a call that waits for nothing else. */
function isReady({ found, block }: CallWork): boolean {
  return found === true && block === undefined;
}

/**
 * Whether the rules may have changed since a person was asked, or were never applied to the call. If
 * not, they allowed it where its reply was recorded.
 */
function needsJudgment(call: ToolCall): boolean {
  return call.verdict?.then === 'ask' || isUnjudged(call);
}

/** Executes one tool call until it has a result. Never rejects because of a tool or a worker. */
export function executeToolCall(run: RunContext, execution: Execution): Promise<unknown> {
  const { call } = execution;
  const input = toolInput(run, execution);
  return doWork(run, {
    name: call.id,
    doing: workOf(run, call),
    activity: (step, work) => activityFor(run, { ...execution, input }, step, work),
  });
}

/**
 * Executes calls of inline tools within this workflow task: one local activity for all of them. The
 * next actions of the loop execute those that have no result afterwards. Never rejects because of a
 * tool or a worker.
 */
export async function executeInline(run: RunContext, calls: readonly ToolCall[]): Promise<void> {
  const { state } = run;
  const inputs = calls.flatMap((call) => {
    const tool = findTool(state, call.name);
    return tool === undefined ? [] : [toolInput(run, { call, tool })];
  });
  const span = getOpenBatch(state)?.span;
  const input = {
    calls: inputs,
    atOnce: callsAtOnce(state),
    ...(span !== undefined && { span }),
  };
  try {
    const result = await readsActivity(calls.map(callSummary))(input);
    recordNow(run, { type: 'completed', task: INLINE, result });
  } catch (error) {
    recordNow(run, failureFact(INLINE, error));
  }
}

function activityFor(
  run: RunContext,
  { call, tool, input }: Execution & { readonly input: RunToolInput },
  step: StartStep,
  work: CallWork | undefined,
): ActivityStart {
  const summary = workOf(run, call);
  const current = currentInput(run, input, work);
  const reasons = nodeOfCall(call) === null ? TOOL_BLOCKS : NODE_BLOCKS;
  switch (step.as) {
    case 'check':
      return blobCheck(call.id, step);
    case 'verify': {
      const verify = functionActivity(tool, `verify ${summary}`);
      return activityStart('runFunction', { ...current, function: 'verify' as const }, verify);
    }
    case 'find': {
      const blocked = blockedField({ ...step, as: 'probe' }, reasons);
      const find = { ...current, ...blocked, find: true as const };
      return activityStart('runTool', find, findActivity(summary));
    }
    case 'attempt':
    case 'probe': {
      // This worker could not execute the call, so the task is not dispatched eagerly to it again.
      const wasBlocked = work?.probeMs !== undefined;
      const blocked = blockedField(step, reasons);
      return activityStart(
        'runTool',
        { ...current, ...blocked },
        toolActivity(tool, summary, wasBlocked),
      );
    }
  }
}

/**
 * Adds the accepted form of a changed tool, which a person may have accepted while the call waited.
 */
function currentInput(
  { state }: RunContext,
  input: RunToolInput,
  work: CallWork | undefined,
): RunToolInput {
  const { accepted = {} } = state;
  const { name } = input.call;
  const form = Object.hasOwn(accepted, name) ? accepted[name] : undefined;
  const { again, ...rest } = input;
  const once = again && !work?.retried && { again };
  const evaluation = isUnjudged(input.call) && !work?.approved && { evaluateRules: true as const };
  const paid = work?.paid !== undefined && { paid: work.paid };
  const tries = work?.tries !== undefined && { tries: work.tries };
  const answered = work?.asked && { answered: answeredInput(work.asked) };
  return {
    ...rest,
    ...once,
    ...evaluation,
    ...paid,
    ...tries,
    ...answered,
    ...(form !== undefined && { accepted: form }),
  };
}

function answeredInput({ asks, answers, state }: AskedByServer): AnsweredInput {
  const entries = answers.map((answer, at) => [asks[at]?.key ?? '', answer] as const);
  return { answers: Object.fromEntries(entries), ...(state !== undefined && { state }) };
}

function toolInput(run: RunContext, { call, tool }: Execution): RunToolInput {
  const { state } = run;
  const { definition } = state.config;
  const artifacts = callArtifacts(state, call, tool);
  const batch = getOpenBatch(state);
  return {
    definition: definition.hash,
    turn: state.turn.number,
    step: batch?.step ?? state.turn.spent.steps,
    ...(batch?.span !== undefined && { span: batch.span }),
    call,
    effect: tool.effect,
    key: callKey(run.input, state, call),
    ...contextFields(run),
    ...(artifacts && { artifacts }),
    ...(isUnjudged(call) && run.input.rules && { rules: run.input.rules }),
    ...(run.input.called?.again && tool.effect === 'once' && { again: true as const }),
  };
}

/**
 * Executes one call of an agent as a child run. Never rejects, regardless of how the child ends.
 */
export async function executeAgentCall(
  run: RunContext,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): Promise<void> {
  if (needsJudgment(call) && !(await mayExecute(run, { call, tool }))) return;
  const { state } = run;
  const { parentClose = 'request_cancel' } = tool.calls ?? {};
  const key = callKey(run.input, state, call);
  const { workflowId, priority } = workflowInfo();
  const tenant = priority?.fairnessKey;
  const summary = workOf(run, call);
  run.doing.set(call.id, summary);
  run.publishStatus();
  try {
    await inFlight(run, () =>
      runChildOnce(
        childInput(run, { call, tool }),
        {
          key,
          close: parentClose,
          summary,
          call: call.id,
          span: getOpenBatch(state)?.span,
          again: findWork(state, call.id)?.again === true,
          observe: (fact) => recordNow(run, fact),
        },
        {
          workflowId: calledId({ workflowId, name: call.id, key, tenant }, sha256Hex),
          parentClosePolicy: CLOSE[parentClose],
          cancellationType:
            parentClose === 'abandon'
              ? ChildWorkflowCancellationType.ABANDON
              : ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
          staticSummary: workflowSummary(summary),
        },
      ),
    );
  } catch {
    // The end of the child is recorded as a fact.
  } finally {
    run.doing.delete(call.id);
  }
}

function childInput(
  run: RunContext,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): RunInput {
  const { state, input } = run;
  const args = parseJson(call.arguments);
  const { depth = 0 } = state.config;
  const { rules, unattended, modelAttempts } = input;
  const { requesters, joining, anonymous } = peopleOf(state);
  const people = [...new Set([...requesters, ...joining])];
  // A call for an unknown person has no name, so the called agent does not know everyone, either.
  const [by, ...others] = anonymous ? [undefined, ...people] : people;
  return {
    agent: tool.calls?.agent ?? '',
    ...messageOrInput(args, tool.calls?.prompt),
    ...conversationOf(state),
    depth: depth + 1,
    budget: childBudget(state, Date.now()),
    ...(rules && { rules }),
    ...(unattended && { unattended }),
    ...(modelAttempts !== undefined && { modelAttempts }),
    ...(by !== undefined && { by }),
    ...(others.length > 0 && { requesters: people }),
    ...contextFields(run),
  };
}

/** Returns the fork of the previous run if the node continues its conversation. */
function conversationOf(state: RunContext['state']): Pick<RunInput, 'fork'> {
  const node = currentNode(state);
  if (node?.kind !== 'agent' || !node.continues) return {};
  const run = continuedRun(state, node);
  return run === undefined ? {} : { fork: { run } };
}

/**
 * Returns the input of a called graph, or the message or prompt and the template arguments of a
 * called agent.
 */
function messageOrInput(
  callArguments: unknown,
  prompt: string | undefined,
): Pick<RunInput, 'message' | 'input' | 'args' | 'prompt' | 'promptArgs'> {
  if (!isObject(callArguments)) return { message: '' };
  const input = jsonField(callArguments, 'input');
  if (input !== null) return { input };
  const args = jsonField(callArguments, 'args');
  if (prompt !== undefined) {
    const promptArgs = jsonField(callArguments, 'promptArgs');
    return { prompt, ...(promptArgs && { promptArgs }), ...(args && { args }) };
  }
  return { message: textField(callArguments, 'message'), ...(args && { args }) };
}

function jsonField(object: Readonly<Record<string, unknown>>, name: string): JsonObject | null {
  const value = object[name];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parsed from JSON
  return isObject(value) ? (value as JsonObject) : null;
}

const CLOSE = {
  terminate: 'TERMINATE',
  request_cancel: 'REQUEST_CANCEL',
  abandon: 'ABANDON',
} as const;
