import {
  ApplicationFailure,
  type WorkflowInterceptors,
  condition,
  defineQuery,
  log,
  metricMeter,
  setCurrentDetails,
  setHandler,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { RunInput } from '../../core/input/input.js';
import { openRequests } from '../../core/requests/open-requests.js';
import { isLoaded } from '../../core/rules/limits.js';
import { type NodeAllowance, nodeBudget } from '../../core/run/complete-batch.js';
import { currentDetails, graphView } from '../../core/run/details.js';
import {
  promptPage,
  rangeProblem,
  runStatus,
  shownStatus,
  transcriptPage,
  turnMemo,
} from '../../core/run/status.js';
import type { RunStatus } from '../../core/state/status.js';
import { blocks } from '../../core/state/work.js';
import { problemText } from '../../core/text/text.js';
import type { Outcome } from '../../core/transcript/outcome.js';
import type { RefusalReason } from '../../core/transcript/request.js';
import type { RunContext } from '../run-context.js';
import {
  artifactsQuery,
  definitionQuery,
  graphQuery,
  pendingQuery,
  promptQuery,
  statusQuery,
  transcriptQuery,
} from './definitions.js';

/**
 * Throws the failure by which a validator rejects an update, if there is a problem. The caller
 * receives it, but the history does not record it. `reason` becomes the first of the failure's
 * details.
 */
export function refuse(problem: string | null, reason?: RefusalReason): void {
  if (problem === null) return;
  throw ApplicationFailure.create({
    type: 'Refused',
    nonRetryable: true,
    message: problemText(problem),
    ...(reason && { details: [reason] }),
  });
}

/** Answers the run's queries. */
export function handleQueries(run: RunContext): void {
  setHandler(statusQuery, () => createStatus(run));
  setHandler(transcriptQuery, (range) => {
    refuse(rangeProblem('transcript', range));
    return transcriptPage(run.state.transcript, range ?? {});
  });
  setHandler(promptQuery, (range) => {
    refuse(rangeProblem('prompt', range, ['from', 'to']));
    return promptPage(run.state.transcript, range);
  });
  setHandler(pendingQuery, () => openRequests(run.state, workflowInfo().workflowId));
  setHandler(artifactsQuery, () => run.state.artifacts ?? []);
  setHandler(allowanceQuery, () => allowance(run));
  setHandler(definitionQuery, () => run.state.config.definition);
  setHandler(graphQuery, () => graphView(run.state));
}

/** What limits the model calls of a node's function; only the run's own activities ask for it. */
const allowanceQuery = defineQuery<NodeAllowance>('allowance');

function allowance({ state, input: { modelAttempts } }: RunContext): NodeAllowance {
  const left = nodeBudget(state);
  return {
    ...(left !== null && { left }),
    ...(modelAttempts !== undefined && { attempts: modelAttempts }),
  };
}

/** Returns the run's status for queries and search attributes. */
function createStatus({ state, ended, doing, input }: RunContext): RunStatus {
  const { workflowId, runId, historyLength } = workflowInfo();
  const tenant = tenantOf(input);
  const [blocked] = blocks(state);
  return {
    id: workflowId,
    runId,
    historyLength,
    ...(tenant && { tenant }),
    ...runStatus(state, { ended, run: workflowId }),
    doing: doing.size === 0 ? null : [...doing.values()].join(', '),
    reports: [...state.turn.reports, ...(blocked?.reports ?? [])],
  };
}

/** Returns for whom the run works; a called agent has the share of its caller. */
function tenantOf({ tenant }: Pick<RunInput, 'tenant'>): string | undefined {
  return tenant ?? workflowInfo().priority?.fairnessKey;
}

/** Null if the workflow code was bundled without perdure's interceptors. */
let hasUpdates: boolean | null = null;

/**
 * Records whether an activation has updates that the workflow accepts; see `updatesHandled`. A
 * refused update leaves nothing in the history, so a replay would not see it. All workflows of a V8
 * context share this flag, so each workflow must set it, regardless of its type.
 */
export function noteUpdates(): WorkflowInterceptors {
  return {
    internals: [
      {
        activate(input, next) {
          hasUpdates = false;
          return next(input);
        },
      },
    ],
    inbound: [
      {
        // This is not async, because an additional promise would change the order of commands.
        handleUpdate(input, next) {
          hasUpdates = true;
          return next(input);
        },
      },
    ],
  };
}

/**
 * Resolves when the updates of the same activation have been handled and answered. Their commands
 * therefore precede those of the loop, regardless of how the SDK groups workflow tasks. A worker
 * that has not cached the run gets a task without commands together with the next one. A later
 * replay gets them separately if the second one accepted an update. Returns undefined without
 * updates, because a condition in every step makes replay slower.
 */
export function updatesHandled(): Promise<void> | undefined {
  if (hasUpdates === false) return undefined;
  let isSecondCheck = false;
  // The SDK evaluates the condition immediately, and again after the activation's promises.
  return condition(() => {
    const isDone = isSecondCheck;
    isSecondCheck = true;
    return isDone;
  });
}

/** Shows the run in Temporal's Current Details, which are computed whenever they are read. */
export function showDetails(run: RunContext): void {
  setCurrentDetails(lazyText(() => currentDetails(run.state, createStatus(run))));
}

const ALL_ATTRIBUTES = ['AgentName', 'AgentStatus', 'AgentReason'];

/** Returns the status that the starter of a run has set as its search attributes; null if none. */
export function statusAtStart(input: Pick<RunInput, 'agent'>): string | null {
  const { AgentName: name = [], AgentStatus: status = [] } = workflowInfo().searchAttributes;
  return name[0] === input.agent && typeof status[0] === 'string' ? `${status[0]} ` : null;
}

/** Writes the search attributes if the status or the reason has changed. */
export function publishStatus(run: RunContext): void {
  // The loaded configuration lists the namespace's attributes. A client that has set some has found
  // all of them.
  if (!isLoaded(run.state) && !run.hasAttributes) return;
  const status = shownStatus(run.state, run.ended);
  const key = `${status.status} ${status.reason ?? ''}`;
  if (key === run.shown) return;
  run.shown = key;
  const known = isLoaded(run.state) ? run.state.config.searchAttributes : ALL_ATTRIBUTES;
  writeAttributes(known, {
    AgentName: status.agent,
    AgentStatus: status.status,
    AgentReason: status.reason ?? '',
  });
}

/**
 * Returns a text that is built only when it is read, when the SDK serializes it as JSON. Building
 * it at every step would cost more than all of the run's decisions together.
 */
function lazyText(make: () => string): string {
  const text: { toJSON(): string } = { toJSON: make };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its JSON is a string
  return text as unknown as string;
}

/**
 * Writes the known attributes. One that the namespace lacks would fail the workflow task
 * repeatedly.
 */
function writeAttributes(known: readonly string[], values: Record<string, string>): void {
  const entries = Object.entries(values).filter(([name]) => known.includes(name));
  if (entries.length === 0) return;
  upsertSearchAttributes(
    Object.fromEntries(entries.map(([name, value]) => [name, value === '' ? [] : [value]])),
  );
}

/** Writes the end of a turn to the memo, where it can be read without a worker. */
export function recordTurnMemo(turn: number, outcome: Outcome): void {
  upsertMemo({ ...turnMemo(turn, outcome) });
}

/**
 * Counts a turn that has ended, and logs one that has failed, in one line without texts of the
 * conversation. Only why input was refused is in no other line. The SDK adds the run, and drops both during a replay.
 */
export function reportTurn(run: RunContext, outcome: Outcome): void {
  const { number } = run.state.turn;
  if (run.reported === number) return;
  run.reported = number;
  const { status, reason, error = '' } = outcome;
  const { agent } = run.input;
  const tenant = tenantOf(run.input) ?? '';
  metricMeter
    .createCounter('perdure_turns', '', 'Ended turns')
    .add(1, { agent, tenant, status, reason });
  if (status !== 'failed') return;
  // A run whose input is refused has no turn yet.
  const what = number === 0 ? 'the start' : `turn ${number}`;
  const why = reason === 'input' && error !== '' ? `: ${error.replaceAll(/\s+/g, ' ')}` : '';
  log.warn(`${what} of agent "${agent}" failed: ${reason}${why}`);
}
