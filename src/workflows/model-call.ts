import { MODEL_BLOCKS, TOOL_BLOCKS } from '../core/blocked.js';
import type { CallModelInput } from '../core/contract.js';
import type { RememberInput, RetrieveInput } from '../core/input/turn-inputs.js';
import type { TimedAction } from '../core/next-action.js';
import { ownPlaces } from '../core/documents.js';
import { budgetLeft } from '../core/limits.js';
import { getOutcome } from '../core/turn.js';
import { stepSummary } from '../core/text/summaries.js';
import { currentVariant, definitionFor } from '../core/named-prompts/turn-definition.js';
import { promptLength } from '../core/transcript/transcript.js';
import { WORK } from '../core/work/work.js';
import { functionActivities, modelActivity } from './activities.js';
import { memoryKey } from './calls/call-key.js';
import { contextFields, type RunContext } from './run-context.js';
import { blobCheck, blockedField, activityStart, doWork } from './do-work.js';

type ModelAction = Extract<TimedAction, { type: 'call-model' | 'compact' }>;

/** Calls the model: one activity, whose input does not grow with the conversation. */
export function callModel(run: RunContext, action: ModelAction): Promise<unknown> {
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
export function retrieve(run: RunContext): Promise<unknown> {
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
export async function remember(run: RunContext): Promise<void> {
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
