import { ApplicationFailure, upsertMemo, workflowInfo } from '@temporalio/workflow';
import type { ForkInput } from '../core/input/fork-input.js';
import type { RunInput } from '../core/input/input.js';
import { isLoaded } from '../core/rules/limits.js';
import { countOverflow } from '../core/run/carry.js';
import type { ArchiveMessagesInput, LoadAgentInput } from '../core/run/contract.js';
import { type Begun, readStart } from '../core/segments/start.js';
import { getInterruption } from '../core/state/change.js';
import { nothingSpent } from '../core/state/turn.js';
import { WORK, findWork } from '../core/state/work.js';
import { problemText } from '../core/text/text.js';
import { AGENT_BLOCKS, type Outcome } from '../core/transcript/outcome.js';
import { chunkedLength } from '../core/transcript/transcript.js';
import {
  archiveMessages,
  archiveMessagesAtEnd,
  archiveMessagesBlocked,
  archiveMessagesOnCancel,
  forkMessages,
  forkMessagesBlocked,
  loadAgentBlocked,
  loadAgentLocally,
  loadAgentOnAnyWorker,
  loadAgentWhenAvailable,
  loadAgentWithMcp,
} from './activities.js';
import {
  activityProblem,
  activityStart,
  blobCheck,
  blockedField,
  doWork,
  failureFact,
  failureMessage,
} from './do-work.js';
import { type RunContext, recordNow, runsLocally, startDeadlineTimer } from './run-context.js';

/**
 * Maximum characters of an inline context. A larger one is offloaded once instead of being sent
 * with every call.
 */
const INLINE_CONTEXT_CHARACTERS = 1_000;

/**
 * Loads the agent that a run pins at its start. The run is visibly blocked while no worker has the
 * agent or the store refuses the run's context. Returns early if the segment is full or the run is
 * interrupted. Rejects with the failure of a run that cannot begin.
 */
async function loadPinnedAgent(run: RunContext): Promise<void> {
  const failure = await loadAgent(run);
  if (isLoaded(run.state) || getInterruption(run.state) !== null) return;
  if (findWork(run.state, WORK.agent) === undefined) throw beginFailure(failure);
}

/**
 * Loads the newest definition of a run's agent. The run keeps its current definition if no worker
 * has the agent. Only a store that refuses the run's context blocks the run, which then stays in
 * its segment.
 */
export async function reloadAgent(run: RunContext): Promise<void> {
  await loadAgent(run);
}

/** Loads the agent on this worker in the first workflow task, or else on any worker that has it. */
async function loadAgent(run: RunContext): Promise<unknown> {
  const request = loadInput(run.input, isLoaded(run.state));
  let failure: unknown = null;
  if (findWork(run.state, WORK.agent) === undefined && runsLocally(run, 'loadAgent')) {
    failure = await loadLocally(run, request);
    if (findWork(run.state, WORK.agent) === undefined) return failure;
  }
  return await doWork(run, {
    name: WORK.agent,
    doing: `find agent ${run.input.agent}`,
    activity: (step, work) => {
      if (step.as === 'check') return blobCheck(WORK.agent, step);
      const input = { ...request, ...blockedField(step, AGENT_BLOCKS) };
      const slowInput = { ...input, withMcp: true as const };
      if (input.blocked === 'storage')
        return activityStart('loadAgent', slowInput, loadAgentBlocked);
      // No model call has been paid for yet, so an MCP server that stays down ends the run after
      // some attempts.
      if (work?.slow) return activityStart('loadAgent', slowInput, loadAgentWithMcp);
      const load = input.blocked === undefined ? loadAgentOnAnyWorker : loadAgentWhenAvailable;
      return activityStart('loadAgent', input, load);
    },
  });
}

/**
 * Loads the agent on this worker. It is never interrupted, because it is quick and the outcome of a
 * canceled run names its agent.
 */
async function loadLocally(run: RunContext, request: LoadAgentInput): Promise<unknown> {
  const task = { activity: 'loadAgent', input: { local: true } };
  try {
    const result = await loadAgentLocally({ ...request, ...firstText(run.input) });
    recordNow(run, { type: 'completed', task, result });
    return null;
  } catch (error) {
    recordNow(run, failureFact(task, error));
    return error;
  }
}

/** Returns the text with which the prompt of a run's first model call probably begins. */
function firstText({ message, prompt, messages, attachments }: RunInput): { first?: string } {
  const isWhole = prompt === undefined && messages === undefined && attachments === undefined;
  return message !== undefined && isWhole ? { first: message } : {};
}

function loadInput(input: RunInput, hasAgent: boolean): LoadAgentInput {
  const { agent, limits = {}, context, depth, budget, args, prompt, promptArgs } = input;
  const { rules, clientTools, called } = input;
  const large = context !== undefined && JSON.stringify(context).length > INLINE_CONTEXT_CHARACTERS;
  return {
    agent,
    limits,
    ...(depth !== undefined && { depth }),
    ...(budget !== undefined && { budget }),
    ...(args !== undefined && { args }),
    ...(called?.span !== undefined && { span: called.span }),
    ...(prompt !== undefined &&
      !hasAgent && { prompt: { prompt, ...(promptArgs && { args: promptArgs }) } }),
    ...(rules !== undefined && !hasAgent && { rules }),
    ...(clientTools !== undefined && { clientTools }),
    ...(large && { context, root: rootRun() }),
  };
}

/** Returns the id of the root of all callers; the run's own id if no run calls it. */
export function rootRun(): string {
  const { root, workflowId } = workflowInfo();
  return root?.workflowId ?? workflowId;
}

/** Returns the failure of a run that cannot begin because an activity failed. */
function beginFailure(error: unknown): ApplicationFailure {
  return inputFailure(activityProblem(error)?.message ?? failureMessage(error));
}

/** Returns the failure of a run that cannot begin, with an outcome that states the problem. */
function inputFailure(problem: string): ApplicationFailure {
  const error = problemText(problem);
  const { usage } = nothingSpent(null);
  const outcome: Outcome = {
    status: 'failed',
    reason: 'input',
    answer: null,
    output: null,
    steps: 0,
    toolCalls: 0,
    usage,
    segments: 1,
    error,
  };
  return ApplicationFailure.create({
    type: 'AgentFailed',
    nonRetryable: true,
    message: `input: ${error}`,
    details: [outcome],
  });
}

/** Reads the arguments of this segment. Throws the failure of a run that refuses them. */
export function readSegmentArguments(input: unknown, carried: unknown): Begun {
  const { cronSchedule, retryPolicy, parent, continuedFromExecutionRunId } = workflowInfo();
  const start = {
    cronSchedule: cronSchedule ?? '',
    hasRetryPolicy: retryPolicy !== undefined,
    hasParent: parent !== undefined,
    isContinued: continuedFromExecutionRunId !== undefined,
  };
  const read = readStart(start, { input, carried });
  if ('problem' in read) throw inputFailure(read.problem);
  return read;
}

/**
 * Pins the agent, and copies the messages of a run that this one forks. A cancellation takes effect
 * at any time: the run then ends like any run canceled before its first step.
 */
export async function loadRun(run: RunContext): Promise<void> {
  const { tags, fork } = run.input;
  if (!isLoaded(run.state)) {
    await loadPinnedAgent(run);
    if (!isLoaded(run.state)) return;
    if (tags !== undefined) upsertMemo({ tags: [...tags] });
    startDeadlineTimer(run);
  }
  if (fork !== undefined && run.state.forks) await copyMessages(run, fork);
}

/** Copies another run's messages to the beginning of this one, and shows the fork in the memo. */
async function copyMessages(run: RunContext, { run: source, runId, at }: ForkInput): Promise<void> {
  const { name, forkFrom, graph } = run.state.config.definition;
  const input = {
    run: source,
    ...(runId !== undefined && { runId }),
    agent: name,
    ...(forkFrom && { forkFrom }),
    ...(at !== undefined && { at }),
    ...(graph?.historyTo && { latest: graph.historyTo.last }),
  };
  const failure = await doWork(run, {
    name: WORK.fork,
    activity: (step, work) => {
      if (step.as === 'check') return blobCheck(WORK.fork, step);
      const taskInput = { ...input, ...blockedField(step, ['storage']) };
      return activityStart(
        'forkMessages',
        taskInput,
        work === undefined ? forkMessages : forkMessagesBlocked,
      );
    },
  });
  const { forkedFrom } = run.state;
  if (forkedFrom !== undefined) upsertMemo({ forkedFrom: { ...forkedFrom } });
  // A cancellation is not a fault of the input.
  else if (getInterruption(run.state) === null && findWork(run.state, WORK.fork) === undefined) {
    throw beginFailure(failure);
  }
}

/**
 * The number of events at which a segment must end soon: the server ends a run at 51,200 events or
 * 50 MiB.
 */
const MAX_EVENTS = 30_000;
const MAX_BYTES = 30 * 1024 * 1024;

/**
 * Before a new segment: archives all messages, and offloads the older ones to the blob store. A run
 * whose store is down stays in its segment while there is room; after that, it is blocked visibly.
 * Returns whether the segment can end.
 */
export async function archiveForNextSegment(run: RunContext): Promise<boolean> {
  const { transcript } = run.state;
  const count = countOverflow(run.state);
  const from = chunkedLength(transcript);
  // This applies even without a new message: the archive links the history of each segment to the
  // previous one.
  const archive = run.state.archives ? wholeRange(run) : null;
  if (count === 0 && archive === null) return true;
  const chunk = count === 0 ? null : { from, to: from + count };
  const { historyLength, historySize } = workflowInfo();
  const must = historyLength >= MAX_EVENTS || historySize >= MAX_BYTES;
  return (await store(run, { archive, chunk }, must)) === null;
}

/**
 * Archives messages before a compaction removes them from memory. `must`: the run cannot continue
 * without it.
 */
export async function archiveForCompaction(
  run: RunContext,
  { cut, must }: { readonly cut: number; readonly must: boolean },
): Promise<void> {
  await store(run, { archive: unarchivedRange(run), chunk: null, cut }, must);
}

/** Stores messages. Returns the failure of the store, or null. */
function store(
  run: RunContext,
  messages: Pick<ArchiveMessagesInput, 'archive' | 'chunk' | 'cut'>,
  must: boolean,
): Promise<unknown> {
  const { firstExecutionRunId: firstRunId } = workflowInfo();
  const input = { firstRunId, ...messages, ...(must && { must: true as const }) };
  return doWork(run, {
    name: WORK.archive,
    activity: (step) => {
      if (step.as === 'check') return blobCheck(WORK.archive, step);
      const taskInput = { ...input, ...blockedField(step, ['storage']) };
      return activityStart(
        'archiveMessages',
        taskInput,
        must ? archiveMessagesBlocked : archiveMessages,
      );
    },
  });
}

/**
 * Archives the remaining messages at the end of the run. If that fails, they are still in the
 * history.
 */
export async function archiveAtEnd(run: RunContext): Promise<void> {
  if (run.state.archives !== true) return;
  const archive = wholeRange(run);
  const firstRunId = workflowInfo().firstExecutionRunId;
  const isCanceled = run.state.ending === 'cancelled';
  const activity = isCanceled ? archiveMessagesOnCancel : archiveMessagesAtEnd;
  const input = { firstRunId, archive, chunk: null };
  const task = { activity: 'archiveMessages', input };
  recordNow(run, { type: 'scheduled', task });
  try {
    const result = await activity(input);
    recordNow(run, { type: 'completed', task, result });
  } catch (error) {
    // The worker logs the reason.
    recordNow(run, failureFact(task, error));
  }
}

/** Returns the range of messages that are not in the archive yet; null if there are none. */
function unarchivedRange(run: RunContext): { from: number; to: number } | null {
  const range = wholeRange(run);
  return run.state.archives && range.to > range.from ? range : null;
}

/** Returns the range of messages that are not in the archive yet, which may be empty. */
function wholeRange({ state }: RunContext): { from: number; to: number } {
  return { from: state.archived, to: state.transcript.next };
}
