import { Context, type Info } from '@temporalio/activity';
import type { PromptMessage } from '../core/messages.js';
import { callId } from '../core/messages.js';
import type { RecordedReply } from '../core/reply.js';
import type { AttemptReport } from '../core/report.js';
import { isObject, type JsonObject } from '../core/json.js';
import type { ModelRequest } from '../models/model.js';
import type { CallModelInput } from './contract.js';
import type { PinnedAgent } from './definitions.js';
import type { ActivityDependencies } from './dependencies.js';
import { asModelError, attemptReport, decideFailure, modelFailure } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { ownWorkflow } from './own-workflow.js';
import { recordReply } from './recorded-reply.js';
import type { PromptName } from './transcript-cache.js';

const KEPT_REPORTS = 10;
/** The report type of a well-formed reply that says nothing. */
const EMPTY_REPLY = 'empty_reply';

/**
 * One model call. The prompt is rebuilt from this worker's memory or the workflow's transcript;
 * what a failed attempt leaves behind travels in the heartbeat to the next one, and with the reply
 * into the history.
 */
export async function callModel(
  deps: ActivityDependencies,
  input: CallModelInput,
): Promise<RecordedReply> {
  const context = Context.current();
  const reports = earlierReports(context.info);
  return await withHeartbeat(
    context,
    () => heartbeatDetails(reports),
    async () => {
      const { pinned, name, messages } = await rebuild(deps, context, input);
      const request = requestOf(pinned, messages, input);
      const reply = await ask(deps, context, { input, request, pinned, reports });
      deps.transcripts.noteReply(name, assistantMessage(reply, input));
      return reply;
    },
  );
}

async function rebuild(
  deps: ActivityDependencies,
  context: Context,
  input: CallModelInput,
): Promise<{ pinned: PinnedAgent; name: PromptName; messages: readonly PromptMessage[] }> {
  const own = ownWorkflow(context, deps.stopping);
  const pinned = await deps.definitions.find(input.definition, () => own.definition());
  const name: PromptName = {
    run: runKey(context.info),
    definition: input.definition,
    upTo: input.upTo,
    head: input.head,
  };
  const messages = await deps.transcripts.prompt(name, (from, to) => own.messages(from, to));
  return { pinned, name, messages };
}

interface Asking {
  readonly input: CallModelInput;
  readonly request: ModelRequest;
  readonly pinned: PinnedAgent;
  readonly reports: AttemptReport[];
}

/** Calls the model; a failed attempt is reported, judged, and handed to Temporal. */
async function ask(
  deps: ActivityDependencies,
  context: Context,
  { input, request, pinned, reports }: Asking,
): Promise<RecordedReply> {
  const signal = context.cancellationSignal;
  const { model, name } = deps.models.resolve(pinned.definition.model);
  try {
    const reply = await model.call({ ...request, model: name }, { signal });
    const recorded = await recordReply(reply, { request, pinned, blobs: deps.blobs });
    return reports.length === 0 ? recorded : { ...recorded, reports };
  } catch (thrown) {
    signal.throwIfAborted();
    const error = asModelError(thrown);
    const { attempt, scheduledTimestampMs } = context.info;
    const at = Date.now();
    const empty = reports.filter(({ type }) => type === EMPTY_REPLY).length + 1;
    const decision = decideFailure(error, {
      attempt,
      elapsedMs: at - scheduledTimestampMs,
      ...(input.blocked !== undefined && { blocked: input.blocked }),
      emptyReplies: empty,
      random: Math.random,
    });
    const report = attemptReport(error, decision, { attempt, at });
    const failure = modelFailure(decision, report, reports);
    reports.push(report);
    context.log.warn('model call failed', { report, decision: decision.type });
    context.heartbeat(heartbeatDetails(reports));
    throw failure;
  }
}

function requestOf(
  { definition }: PinnedAgent,
  messages: readonly PromptMessage[],
  input: CallModelInput,
): ModelRequest {
  const { settings } = definition;
  const capped =
    input.maxOutputTokens === undefined
      ? settings
      : {
          ...settings,
          maxOutputTokens: Math.min(input.maxOutputTokens, settings.maxOutputTokens ?? Infinity),
        };
  return {
    model: definition.model,
    instructions: definition.instructions,
    messages,
    tools: definition.tools.map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    })),
    toolChoice: input.closing ? 'none' : definition.toolChoice,
    settings: capped,
  };
}

/** The message that the workflow will make of this reply: the same function of the same values. */
function assistantMessage(
  reply: RecordedReply,
  { turn, step, closing }: CallModelInput,
): PromptMessage {
  if (closing || reply.calls === undefined) return { role: 'assistant', text: reply.text };
  const calls = reply.calls.map((call, index) => ({ ...call, id: callId({ turn, step, index }) }));
  return { role: 'assistant', text: reply.text, calls };
}

export function runKey({ namespace, workflowExecution }: Info): string {
  return `${namespace}/${workflowExecution?.workflowId ?? ''}`;
}

function heartbeatDetails(reports: readonly AttemptReport[]): JsonObject | undefined {
  return reports.length === 0
    ? undefined
    : { reports: reports.slice(-KEPT_REPORTS).map((report) => ({ ...report })) };
}

function earlierReports(info: Info): AttemptReport[] {
  const details: unknown = info.heartbeatDetails;
  return isObject(details) && Array.isArray(details['reports']) ? details['reports'] : [];
}
