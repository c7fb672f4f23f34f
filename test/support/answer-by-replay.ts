import { defaultPayloadConverter } from '@temporalio/common';
import { ReusableVMWorkflow } from '@temporalio/worker/lib/workflow/reusable-vm.js';
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';
import type { RunStatus, TranscriptPage } from '../../src/core/state/status.js';
import type { History } from '../../src/history/history-event.js';
import { statusQuery, transcriptQuery } from '../../src/workflows/messages/definitions.js';
import { UntimedWorker } from '../../src/temporal/untimed-worker.js';
import { sourceBundle } from './bundle.js';
import { wholeTranscript, type RunAnswer } from './run-answer.js';

/** Sends a workflow one query. Rejects if the workflow does not answer. */
type Query = (name: string, args: readonly unknown[]) => Promise<unknown>;

/** Called for each replayed workflow before it is evicted. Null while no answer is expected. */
let onEvicted: ((runId: string, query: Query) => Promise<void>) | null = null;
let isHooked = false;
/** Replays run one at a time, so there is only one hook. */
let last: Promise<unknown> = Promise.resolve();

/** The answer of a run after a history, or why it could not answer. */
export type ReplayedAnswer = RunAnswer | { readonly problem: string };

/**
 * Replays a history with the workflow code of the sources, and returns the answer of the run after
 * it. Needs no worker, so it works for runs whose worker is gone.
 */
export async function answerByReplay(
  history: History,
  workflowId: string,
): Promise<ReplayedAnswer> {
  const answer = last.then(async () => await replay(history, workflowId));
  last = answer.catch(() => undefined);
  return await answer;
}

async function replay(history: History, workflowId: string): Promise<ReplayedAnswer> {
  const found: ReplayedAnswer[] = [];
  const answered = (_runId: string, answer: ReplayedAnswer): void => void found.push(answer);
  await replayAll([{ history, workflowId }], {
    answered,
    failed: (_index, message) => void found.unshift({ problem: `it does not replay: ${message}` }),
  });
  return found[0] ?? { problem: 'the replay began no workflow' };
}

/** Callbacks for replayed histories. */
interface Replays {
  /** Receives the answer of a run after its history; `runId` is the id that the run began with. */
  readonly answered?: (runId: string, answer: ReplayedAnswer) => void;
  readonly failed: (index: number, message: string) => void;
}

/** Replays histories with the workflow code of the sources, in order, with a single worker. */
export async function replayAll(
  histories: readonly { readonly history: History; readonly workflowId: string }[],
  { answered, failed }: Replays,
): Promise<void> {
  hookEvictions();
  if (answered) {
    onEvicted = async (runId, query) => answered(runId, await ask(query).catch(toProblem));
  }
  const options = { workflowBundle: await sourceBundle() };
  let index = 0;
  try {
    // The worker replays one history at a time, in order.
    for await (const { error } of UntimedWorker.runReplayHistories(options, [...histories])) {
      if (error) failed(index, error.message);
      index += 1;
    }
  } finally {
    onEvicted = null;
    // A replay worker hooks every promise of this process, and would leave the hook to the next
    // test files.
    globalHandlers.uninstall();
  }
}

function toProblem(error: unknown): ReplayedAnswer {
  return { problem: error instanceof Error ? error.message : String(error) };
}

async function ask(query: Query): Promise<RunAnswer> {
  const page = await wholeTranscript(
    async (range) => (await query(transcriptQuery.name, [range])) as TranscriptPage,
  );
  return { status: (await query(statusQuery.name, [])) as RunStatus, page };
}

/**
 * Replays run workflow code in the main thread, where a workflow can be queried before it is
 * disposed.
 */
function hookEvictions(): void {
  if (isHooked) return;
  isHooked = true;
  // oxlint-disable-next-line typescript/unbound-method -- called with its `this` below
  const { dispose } = ReusableVMWorkflow.prototype;
  ReusableVMWorkflow.prototype.dispose = async function (this: ReusableVMWorkflow) {
    await onEvicted?.(this.runId, async (name, args) => await queryWorkflow(this, name, args));
    await dispose.call(this);
  };
}

async function queryWorkflow(
  workflow: ReusableVMWorkflow,
  queryType: string,
  args: readonly unknown[],
): Promise<unknown> {
  const payloads = args.map((arg) => defaultPayloadConverter.toPayload(arg));
  // The SDK identifies jobs by the name of their variant.
  const job = {
    variant: 'queryWorkflow' as const,
    queryWorkflow: { queryId: 'oracle', queryType, arguments: payloads },
  };
  const { successful, failed } = await workflow.activate({ runId: workflow.runId, jobs: [job] });
  const result = successful?.commands?.find((one) => one.respondToQuery)?.respondToQuery;
  const response = result?.succeeded?.response;
  if (!response) {
    const why = result?.failed?.message ?? failed?.failure?.message ?? 'no response';
    throw new Error(`the query ${queryType} failed: ${why}`);
  }
  return defaultPayloadConverter.fromPayload(response);
}
