import { Context, type Info } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { callId, type BlobRef, type PromptMessage } from '../core/messages.js';
import type { RecordedReply } from '../core/reply.js';
import type { AttemptReport } from '../core/report.js';
import { isObject, type JsonObject } from '../core/json.js';
import type { ResolvedModel } from '../models/catalog.js';
import { ModelError } from '../models/model-error.js';
import type { ModelReply, ModelRequest } from '../models/model.js';
import { askForClass } from './classification.js';
import type { CallModelInput } from './contract.js';
import type { PinnedAgent } from './definitions.js';
import type { ActivityDependencies } from './dependencies.js';
import { asModelError, attemptReport, decideFailure, modelFailure } from './failures.js';
import { functionModel } from './function-model.js';
import { withHeartbeat } from './heartbeat.js';
import { liveCall } from './live-call.js';
import { modelRequest } from './model-request.js';
import { rebuildPrompt } from './rebuild-prompt.js';
import { recordReply } from './recorded-reply.js';
import { runContext } from './run-context.js';
import { settledValue } from './settle-tool.js';

const KEPT_REPORTS = 10;
/** Beyond every adapter's own clock; a model that never answers does not hold a slot for ever. */
const LONGEST_CALL_MS = 60 * 60_000;
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
      const { pinned, name, request, reply } = await judged(
        context,
        { input, reports },
        async () => {
          const rebuilt = await rebuildPrompt(deps, context, input);
          const { definition } = rebuilt.pinned;
          const asked = withFiles(deps, modelRequest(definition, rebuilt.messages, input));
          const how = { pinned: rebuilt.pinned, input };
          return { ...rebuilt, request: asked, reply: await ask(deps, context, how, asked) };
        },
      );
      // Paid for by now: nothing from here on may lead to another call.
      const recorded = await recordReply(reply, { request, pinned, blobs: deps.blobs, input });
      if (input.compact === undefined) {
        deps.transcripts.noteReply(name, assistantMessage(recorded, input));
      }
      return reports.length === 0 ? recorded : { ...recorded, reports };
    },
  );
}

/** Where something is there by reference only, the way to it. */
function withFiles({ blobs }: ActivityDependencies, request: ModelRequest): ModelRequest {
  const isReferring = request.messages.some(
    (one) =>
      (one.role !== 'assistant' && one.attachments) ||
      (one.role === 'assistant' && one.provider?.blob),
  );
  return isReferring ? { ...request, files: (blob: BlobRef) => blobs.get(blob) } : request;
}

/** Calls the model under the activity's cancellation, even one that does not listen to it. */
async function ask(
  deps: ActivityDependencies,
  context: Context,
  how: { pinned: PinnedAgent; input: CallModelInput },
  request: ModelRequest,
): Promise<ModelReply> {
  const { model, name } = await decider(deps, how);
  const { output, decide } = how.pinned.definition;
  const asked = { ...request, model: name };
  const isStep = how.input.compact === undefined;
  const classes = output?.type === 'classes' && isStep ? output : null;
  // What a summary says, and the JSON of a decision, nobody is meant to read along.
  const live = isStep && decide !== 'schema' ? deps.live : undefined;
  const place = { info: context.info, input: how.input };
  const call = (signal: AbortSignal): Promise<ModelReply> =>
    classes === null
      ? liveCall(live, place, (watched) => model.call(asked, { signal, ...watched }))
      : askForClass(model, asked, { signal, output: classes });
  return await settledValue(call, {
    timeoutMs: LONGEST_CALL_MS,
    cancelled: context.cancellationSignal,
    late: () =>
      new ModelError(`no reply within ${LONGEST_CALL_MS} ms`, { kind: 'retry', type: 'timeout' }),
  });
}

/** The model, or what the agent has in its place. A summary is always a model's. */
async function decider(
  deps: ActivityDependencies,
  { pinned, input }: { pinned: PinnedAgent; input: CallModelInput },
): Promise<Pick<ResolvedModel, 'model' | 'name'>> {
  const { definition, agent } = pinned;
  if (definition.decide !== 'function' || input.compact !== undefined) {
    return deps.models.resolve(definition.model);
  }
  if (typeof agent?.decide !== 'function') {
    throw new ModelError(
      `agent "${definition.name}" has no decide function on this worker; deploy it again`,
      { kind: 'model', type: 'decide_missing' },
    );
  }
  const context = await runContext(input, deps.blobs);
  const closing = input.closing === true;
  return { model: functionModel(agent.decide, { closing, context }), name: definition.model };
}

/** A failed attempt is reported, judged, and handed to Temporal. */
async function judged<T>(
  context: Context,
  { input, reports }: { input: CallModelInput; reports: AttemptReport[] },
  attemptIt: () => Promise<T>,
): Promise<T> {
  try {
    return await attemptIt();
  } catch (thrown) {
    context.cancellationSignal.throwIfAborted();
    // Our own failures (a worker that shuts down) have been judged where they were made.
    if (thrown instanceof ApplicationFailure) throw thrown;
    const error = asModelError(thrown);
    const { attempt, scheduledTimestampMs } = context.info;
    const at = Date.now();
    const decision = decideFailure(error, {
      attempt,
      elapsedMs: at - scheduledTimestampMs,
      ...(input.blocked !== undefined && { blocked: input.blocked }),
      emptyReplies: reports.filter(({ type }) => type === EMPTY_REPLY).length + 1,
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

/** The message that the workflow will make of this reply: the same function of the same values. */
function assistantMessage(
  reply: RecordedReply,
  { turn, step, fork, closing }: CallModelInput,
): PromptMessage {
  const { provider } = reply;
  const said = { role: 'assistant', text: reply.text, ...(provider && { provider }) } as const;
  if (closing || reply.calls === undefined) return said;
  const calls = reply.calls.map((call, index) => ({
    ...call,
    id: callId({ turn, step, index, fork }),
  }));
  return { ...said, calls };
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
