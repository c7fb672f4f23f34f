import { Context, type Info } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { attachedText, NotAttachedError } from '../../storage/attached-text.js';
import { callId, type BlobRef, type PromptMessage } from '../../core/transcript/messages.js';
import type { RecordedReply } from '../../core/reply.js';
import type { Json } from '../../core/json.js';
import { redactJson } from '../../secrets/redact-json.js';
import type { ResolvedModel } from '../../models/catalog.js';
import { ModelError } from '../../models/model-error.js';
import type { ModelReply, ModelRequest, ModelContext } from '../../models/model.js';
import { asDetails, memoryOf, readPaid, type AttemptMemory } from './attempt-memory.js';
import { askForClass } from './classification.js';
import type { CallModelInput } from '../../core/contract.js';
import type { PinnedAgent } from '../definitions.js';
import type { ActivityDependencies } from '../dependencies.js';
import { asModelError, attemptReport, decideFailure, modelFailure } from '../failures.js';
import { functionModel } from './function-model.js';
import { withHeartbeat } from '../heartbeat.js';
import { modelRequest } from './model-request.js';
import { redactReply } from './redact-reply.js';
import { rebuildPrompt } from './rebuild-prompt.js';
import { recordReply } from './recorded-reply.js';
import { runContext } from '../run-context.js';
import { storageBlock, storageFault } from '../storage.js';
import { settledValue } from '../tool/run-bounded.js';
import { mayCheck } from './slow-check.js';
import type { LiveHub } from '../../live/hub.js';
import { redactDeltas } from './redact-deltas.js';

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
  const memory = memoryOf(context.info, input);
  const { reports } = memory;
  const { blobs } = deps;
  return await withHeartbeat(
    context,
    () => asDetails(memory),
    async () => {
      const { reply, name, ...from } = await judged(context, { input, memory }, async () => {
        const rebuilt = await rebuildPrompt(deps, context, input);
        const { definition } = rebuilt.pinned;
        // Read before anything is paid: what reads the reply must not find it missing.
        const userContext = await runContext(input, blobs);
        const run = context.info.workflowExecution?.workflowId ?? '';
        const asked = withFiles(deps, run, modelRequest(definition, rebuilt.messages, input));
        const { pinned, name: prompt } = rebuilt;
        const how = { pinned, input, userContext };
        const paid = memory.paid && (await readPaid(memory.paid, blobs));
        const said = paid ?? redactReply(await ask(deps, context, how, asked));
        return { pinned, userContext, request: asked, reply: said, name: prompt };
      });
      // The reply is paid for by now: nothing from here on may lead to another call.
      const { pinned } = from;
      const givenUp = !(await mayCheck(reply, memory, { pinned, input, context, blobs }));
      // User code (schemas, summaries) may have put a secret in.
      const recorded = redactJson(await recordReply(reply, { ...from, blobs, input, givenUp }));
      if (input.compact === undefined) {
        deps.transcripts.noteReply(name, assistantMessage(recorded, input));
      }
      return reports.length === 0 ? recorded : { ...recorded, reports };
    },
  );
}

/**
 * Where something is there by reference only, the way to it. What is attached to a message was named by
 * whoever sent it, so it has to be attached in this run; all other references were made by workers.
 */
function withFiles(
  { blobs }: ActivityDependencies,
  run: string,
  request: ModelRequest,
): ModelRequest {
  const isReferring = request.messages.some(
    (one) =>
      (one.role !== 'assistant' && one.attachments) ||
      (one.role === 'assistant' && one.provider?.blob),
  );
  if (!isReferring) return request;
  const named = new Set(
    request.messages.flatMap((one) =>
      one.role === 'user'
        ? (one.attachments ?? []).flatMap((each) => ('blob' in each ? each.blob.sha256 : []))
        : [],
    ),
  );
  const files = async (blob: BlobRef): Promise<string> =>
    named.has(blob.sha256)
      ? await attachedText(blobs, run, blob).catch(asBadAttachment)
      : await blobs.get(blob);
  return { ...request, files };
}

function asBadAttachment(error: unknown): never {
  if (!(error instanceof NotAttachedError)) throw error;
  throw new ModelError(
    error.message,
    { kind: 'request', type: 'bad_attachment' },
    { cause: error },
  );
}

interface Decision {
  readonly pinned: PinnedAgent;
  readonly input: CallModelInput;
  readonly userContext: Json;
}

/** Calls the model under the activity's cancellation, even one that does not listen to it. */
async function ask(
  deps: ActivityDependencies,
  context: Context,
  how: Decision,
  request: ModelRequest,
): Promise<ModelReply> {
  const { model, name } = decider(deps, how);
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
    name: `model "${name}"`,
    timeoutMs: LONGEST_CALL_MS,
    cancelled: context.cancellationSignal,
    late: () =>
      new ModelError(`no reply within ${LONGEST_CALL_MS} ms`, { kind: 'retry', type: 'timeout' }),
  });
}

/** The model, or what the agent has in its place. A summary is always a model's. */
function decider(
  deps: ActivityDependencies,
  { pinned, input, userContext: context }: Decision,
): Pick<ResolvedModel, 'model' | 'name'> {
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
  const closing = input.closing === true;
  return { model: functionModel(agent.decide, { closing, context }), name: definition.model };
}

/** A failed attempt is reported, judged, and handed to Temporal. */
async function judged<T>(
  context: Context,
  { input, memory }: { input: CallModelInput; memory: AttemptMemory },
  attemptIt: () => Promise<T>,
): Promise<T> {
  try {
    return await attemptIt();
  } catch (thrown) {
    context.cancellationSignal.throwIfAborted();
    // Our own failures (a worker that shuts down) have been judged where they were made.
    if (thrown instanceof ApplicationFailure) throw thrown;
    const { reports } = memory;
    const left = { reports, paid: asDetails(memory)?.['paid'] };
    const storage = storageFault(thrown);
    if (storage !== null) throw storageBlock(storage, left);
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
    const failure = modelFailure(decision, report, left);
    reports.push(report);
    context.log.warn('model call failed', { report, decision: decision.type });
    context.heartbeat(asDetails(memory));
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

/** Makes a model call that tells its reply to whoever watches, while it comes. */
async function liveCall(
  live: LiveHub | undefined,
  { info, input }: { readonly info: Info; readonly input: CallModelInput },
  call: (watched: Pick<ModelContext, 'onDelta'>) => Promise<ModelReply>,
): Promise<ModelReply> {
  const { activityId, attempt, workflowExecution } = info;
  if (live === undefined || workflowExecution === undefined) return await call({});
  const { workflowId, runId } = workflowExecution;
  const { turn, step } = input;
  const writer = live.begin(workflowId, {
    segment: runId,
    activity: activityId,
    attempt,
    turn,
    step,
  });
  const redactor = redactDeltas((delta) => writer.push(delta));
  try {
    return await call({ onDelta: (delta) => redactor.push(delta) });
  } finally {
    redactor.end();
    writer.end();
  }
}
