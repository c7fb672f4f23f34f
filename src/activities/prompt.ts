import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Context, Info } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import type { ApplicationFailure } from '@temporalio/common';
import type { AgentDefinition } from '../core/definition/definition.js';
import type { ContextFields } from '../core/input/turn-context.js';
import type { NodeAllowance } from '../core/run/complete-batch.js';
import type { CallModelInput } from '../core/run/contract.js';
import type { PromptPage, TranscriptPage } from '../core/state/status.js';
import type { Json } from '../core/text/json.js';
import type { Message, PromptMessage, RunArtifact } from '../core/transcript/messages.js';
import type { PromptChunk } from '../core/transcript/transcript.js';
import type { BlobStore } from '../storage/blob-store.js';
import {
  type ActivityDependencies,
  type PinnedAgent,
  pinnedAt,
  readRunContext,
} from './activity-context.js';
import { retryFailure } from './attempt.js';
import { type PromptKey, readChunk } from './model/transcript-cache.js';

/** Milliseconds after which an unanswered query is assumed to be in the queue of a lost worker. */
const SILENCE_MS = 500;

/** The queries that an activity may send to the workflow that scheduled it. */
interface WorkflowQueries {
  /**
   * Returns messages by number, from `from` up to, but not including, `to`; of this segment only.
   */
  messages(from: number, to: number): Promise<readonly Message[]>;
  /**
   * Returns what the model sees, by place in the prompt. Chunks come from the blob store; rejects
   * with a `StoreFault` if one cannot be read.
   */
  prompt(from: number, to: number): Promise<readonly Message[]>;
  definition(): Promise<AgentDefinition>;
  /** Returns the run's artifacts, oldest first. */
  artifacts(): Promise<readonly RunArtifact[]>;
  /** Returns what limits the model calls of a node's function. */
  allowance(): Promise<NodeAllowance>;
}

/**
 * Returns the queries to the workflow that scheduled an activity. They specify the run id, because
 * a retried attempt must not read the next segment. When `stopping` aborts, a query rejects and is
 * retried: an answer could take long during the shutdown, while another worker gets it immediately.
 */
export function queryWorkflow(
  context: Context,
  { stopping, blobs }: Pick<ActivityDependencies, 'stopping' | 'blobs'>,
): WorkflowQueries {
  const { client, info } = context;
  const execution = info.workflowExecution;
  if (execution === undefined) throw new Error('this activity was not scheduled by a workflow');
  const handle = client.workflow.getHandle(execution.workflowId, execution.runId);
  const query = async <T>(name: string, ...input: unknown[]): Promise<T> => {
    // The answer would wait until the workflow task ends, of which a local activity is a part.
    if (info.isLocal) throw retryFailure('a local activity cannot query its workflow');
    return await sendTwice(() => handle.query<T, unknown[]>(name, ...input), {
      onSilence: () => resetSticky(client, info.namespace, execution),
      stopping,
    });
  };
  return {
    async messages(from, to) {
      const messages: Message[] = [];
      for (let next = from; next < to; next = (messages.at(-1)?.n ?? to) + 1) {
        const page = await query<TranscriptPage>('transcript', { from: next, to, side: true });
        if (page.messages.length === 0) break;
        messages.push(...page.messages);
      }
      return messages;
    },
    async prompt(from, to) {
      const first = await query<PromptPage>('prompt', { from, to });
      const chunked = from < first.start ? await readChunks(first.chunks, blobs) : [];
      const messages = [...chunked.slice(from, to), ...first.messages];
      while (from + messages.length < to) {
        const page = await query<PromptPage>('prompt', { from: from + messages.length, to });
        if (page.messages.length === 0) break;
        messages.push(...page.messages);
      }
      return messages;
    },
    definition: () => query<AgentDefinition>('definition'),
    allowance: () => query<NodeAllowance>('allowance'),
    artifacts: () => query<readonly RunArtifact[]>('artifacts'),
  };
}

async function readChunks(
  chunks: readonly PromptChunk[],
  blobs: BlobStore,
): Promise<readonly Message[]> {
  const read = await Promise.all(chunks.map((chunk) => readChunk(chunk, blobs)));
  return read.flat();
}

/**
 * Sends a query, and sends it again on a fresh queue if no reply arrives. Returns the first reply.
 */
async function sendTwice<T>(
  send: () => Promise<T>,
  on: { onSilence: () => Promise<void>; stopping: AbortSignal },
): Promise<T> {
  if (on.stopping.aborted) throw shutdownFailure();
  const over = new AbortController();
  const again = pause(SILENCE_MS, undefined, { signal: over.signal }).then(on.onSilence).then(send);
  try {
    return await Promise.race([
      Promise.any([send(), again]),
      rejectWhenStopping(on.stopping, over.signal),
    ]);
  } catch (error) {
    throw error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  } finally {
    over.abort();
  }
}

async function rejectWhenStopping(stopping: AbortSignal, signal: AbortSignal): Promise<never> {
  await once(stopping, 'abort', { signal });
  throw shutdownFailure();
}

function shutdownFailure(): ApplicationFailure {
  return retryFailure('this worker is shutting down; another worker takes over the call');
}

async function resetSticky(
  client: Client,
  namespace: string,
  execution: { workflowId: string; runId: string },
): Promise<void> {
  await client.workflowService.resetStickyTaskQueue({ namespace, execution });
}

/** The data to which an activity's input refers by digest. */
export interface Prompt {
  /** The workflow id of the run; empty if a workflow did not schedule the activity. */
  readonly run: string;
  readonly pinned: PinnedAgent;
  readonly name: PromptKey;
  readonly messages: readonly PromptMessage[];
  /** The run's `context`, for the functions of its author. */
  readonly userContext: Json;
}

/**
 * Returns the agent, the messages, and the context that an activity's input names, from this
 * worker's memory or else from the run. Rejects with a `StoreFault` if the blob store cannot be
 * read.
 */
export async function rebuildPrompt(
  deps: ActivityDependencies,
  context: Context,
  input: Pick<
    CallModelInput,
    'definition' | 'node' | 'prompt' | 'upTo' | 'head' | keyof ContextFields
  >,
): Promise<Prompt> {
  const queries = queryWorkflow(context, deps);
  const found = await deps.definitions.find(input.definition, () => queries.definition());
  const pinned = pinnedAt(found, input);
  const name = { run: runKey(context.info), upTo: input.upTo, head: input.head };
  const messages = await deps.transcripts.prompt(name, (from, to) => queries.prompt(from, to));
  // It is read before the model is paid, so it cannot be missing when the reply is read.
  const userContext = await readRunContext(input, deps.blobs);
  const run = context.info.workflowExecution?.workflowId ?? '';
  return { run, pinned, name, messages, userContext };
}

/** Returns the key of a run in this worker's memory: its namespace and workflow id. */
export function runKey({ namespace, workflowExecution }: Info): string {
  return `${namespace}/${workflowExecution?.workflowId ?? ''}`;
}
