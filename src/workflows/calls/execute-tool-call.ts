import { callArtifacts } from '../../core/artifacts/named-artifacts.js';
import { NODE_BLOCKS, TOOL_BLOCKS } from '../../core/blocked.js';
import { nodeOfCall } from '../../core/graph/node-tool.js';
import type { RunToolInput } from '../../core/contract.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { isUnjudged } from '../../core/requests/consent.js';
import { callSummary } from '../../core/text/summaries.js';
import { getOpenBatch } from '../../core/turn.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { getInterruption } from '../../core/work/interruption.js';
import { findWork, type Work } from '../../core/work/work.js';
import { findActivity, functionActivity, toolActivity } from '../activities.js';
import { contextFields, type RunContext } from '../run-context.js';
import {
  blobCheck,
  blockedField,
  activityStart,
  doWork,
  type StartStep,
  type ActivityStart,
} from '../do-work.js';
import { callKey } from './call-key.js';

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
  const summary = `apply the rules to ${callSummary(call)}`;
  const input = toolInput(run, { call, tool });
  await doWork(run, {
    name: call.id,
    doing: callSummary(call),
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

/** Whether the rules allow a call that waits for nothing else. */
function isReady({ found, block }: Work): boolean {
  return found === true && block === undefined;
}

/**
 * Whether the rules may have changed since a person was asked, or were never applied to the call. If
 * not, they allowed it where its reply was recorded.
 */
export function needsJudgment(call: ToolCall): boolean {
  return call.verdict?.then === 'ask' || isUnjudged(call);
}

/** Executes one tool call until it has a result. Never rejects because of a tool or a worker. */
export function executeToolCall(run: RunContext, execution: Execution): Promise<unknown> {
  const { call } = execution;
  const input = toolInput(run, execution);
  return doWork(run, {
    name: call.id,
    doing: callSummary(call),
    activity: (step, work) => activityFor(run, { ...execution, input }, step, work),
  });
}

function activityFor(
  run: RunContext,
  { call, tool, input }: Execution & { readonly input: RunToolInput },
  step: StartStep,
  work: Work | undefined,
): ActivityStart {
  const summary = callSummary(call);
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
  work: Work | undefined,
): RunToolInput {
  const { accepted = {} } = state;
  const { name } = input.call;
  const form = Object.hasOwn(accepted, name) ? accepted[name] : undefined;
  const { again, ...rest } = input;
  const once = again && !work?.retried && { again };
  const evaluation = isUnjudged(input.call) && !work?.approved && { evaluateRules: true as const };
  const paid = work?.paid !== undefined && { paid: work.paid };
  return {
    ...rest,
    ...once,
    ...evaluation,
    ...paid,
    ...(form !== undefined && { accepted: form }),
  };
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
