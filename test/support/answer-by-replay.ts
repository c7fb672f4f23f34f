import { defaultPayloadConverter } from '@temporalio/common';
import { Worker } from '@temporalio/worker';
import { ReusableVMWorkflow } from '@temporalio/worker/lib/workflow/reusable-vm.js';
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';
import type { RunStatus, TranscriptPage } from '../../src/core/status.js';
import type { History } from '../../src/history/decode-event.js';
import { statusQuery, transcriptQuery } from '../../src/workflows/messages.js';
import { sourceBundle } from './bundle.js';
import { wholeTranscript, type RunAnswer } from './run-answer.js';

/** Asks a workflow one query. Rejects if the workflow does not answer. */
type Query = (name: string, args: readonly unknown[]) => Promise<unknown>;

/** Called for each replayed workflow before it leaves the memory. Null while no answer is wanted. */
let onEvicted: ((query: Query) => Promise<void>) | null = null;
let isHooked = false;
/** Replays follow each other: there is one hook. */
let last: Promise<unknown> = Promise.resolve();

/** What a run said after a history, or why it could not. */
type ReplayedAnswer = RunAnswer | { readonly problem: string };

/**
 * Replays a history with the workflow code of the sources, and returns what the run said after it.
 * Needs no worker, so it works for runs whose worker is gone.
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
  hookEvictions();
  const found: ReplayedAnswer[] = [];
  onEvicted = async (query) => {
    found.push(await ask(query).catch(toProblem));
  };
  try {
    const options = { workflowBundle: await sourceBundle() };
    for await (const { error } of Worker.runReplayHistories(options, [{ history, workflowId }])) {
      if (error) found.unshift({ problem: `it does not replay: ${error.message}` });
    }
  } finally {
    onEvicted = null;
    // A replay worker hooks every promise of this process, and leaves that to the next tests.
    globalHandlers.uninstall();
  }
  return found[0] ?? { problem: 'the replay began no workflow' };
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

/** Replays run workflow code in the main thread, where a workflow can be asked before it is disposed of. */
function hookEvictions(): void {
  if (isHooked) return;
  isHooked = true;
  // oxlint-disable-next-line typescript/unbound-method -- called with its `this` below
  const { dispose } = ReusableVMWorkflow.prototype;
  ReusableVMWorkflow.prototype.dispose = async function (this: ReusableVMWorkflow) {
    await onEvicted?.(async (name, args) => await queryWorkflow(this, name, args));
    await dispose.call(this);
  };
}

async function queryWorkflow(
  workflow: ReusableVMWorkflow,
  queryType: string,
  args: readonly unknown[],
): Promise<unknown> {
  const payloads = args.map((arg) => defaultPayloadConverter.toPayload(arg));
  // The SDK reads jobs by the name of their variant.
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
