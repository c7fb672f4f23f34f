import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import type { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { AgentDefinition } from '../core/definition/definition.js';
import type { BlobStore } from '../storage/blob-store.js';
import type { Message } from '../core/transcript/messages.js';
import type { PromptPage, TranscriptPage } from '../core/status.js';
import type { PromptChunk } from '../core/transcript/transcript.js';
import type { ActivityDependencies } from './dependencies.js';
import { readChunk } from './model/prompt-chunk.js';

/** A query that is silent for so long waits in the queue of a worker that is gone. */
const SILENT_MS = 500;

/**
 * What an activity may ask the workflow that scheduled it. The run id is named: a retried attempt
 * must not read the next segment. `stopping` aborts when the worker shuts down: an answer could
 * then take as long as the shutdown, while another worker has it at once.
 */
export interface OwnWorkflow {
  /** What was said, by number; of this segment only. */
  said(from: number, to: number): Promise<readonly Message[]>;
  /** What the model sees, by place in the prompt; what lies in chunks comes from the blob store. */
  prompt(from: number, to: number): Promise<readonly Message[]>;
  definition(): Promise<AgentDefinition>;
}

export function ownWorkflow(
  context: Context,
  { stopping, blobs }: Pick<ActivityDependencies, 'stopping' | 'blobs'>,
): OwnWorkflow {
  const { client, info } = context;
  const execution = info.workflowExecution;
  if (execution === undefined) throw new Error('this activity was not scheduled by a workflow');
  const handle = client.workflow.getHandle(execution.workflowId, execution.runId);
  const ask = <T>(query: string, ...input: unknown[]): Promise<T> =>
    insistently(() => handle.query<T, unknown[]>(query, ...input), {
      onSilence: () => resetSticky(client, info.namespace, execution),
      stopping,
    });
  return {
    async said(from, to) {
      const messages: Message[] = [];
      for (let next = from; next < to; next = (messages.at(-1)?.n ?? to) + 1) {
        const page = await ask<TranscriptPage>('transcript', { from: next, to, side: true });
        if (page.messages.length === 0) break;
        messages.push(...page.messages);
      }
      return messages;
    },
    async prompt(from, to) {
      const first = await ask<PromptPage>('prompt', { from, to });
      const chunked = from < first.start ? await allOf(first.chunks, blobs) : [];
      const messages = [...chunked.slice(from, to), ...first.messages];
      while (from + messages.length < to) {
        const page = await ask<PromptPage>('prompt', { from: from + messages.length, to });
        if (page.messages.length === 0) break;
        messages.push(...page.messages);
      }
      return messages;
    },
    definition: () => ask<AgentDefinition>('definition'),
  };
}

async function allOf(
  chunks: readonly PromptChunk[],
  blobs: BlobStore,
): Promise<readonly Message[]> {
  const read = await Promise.all(chunks.map((chunk) => readChunk(chunk, blobs)));
  return read.flat();
}

/** Asks, and asks again on a fresh queue when nobody answers; the first answer counts. */
async function insistently<T>(
  ask: () => Promise<T>,
  on: { onSilence: () => Promise<void>; stopping: AbortSignal },
): Promise<T> {
  if (on.stopping.aborted) throw shuttingDown();
  const over = new AbortController();
  const again = silence(over.signal).then(on.onSilence).then(ask);
  try {
    return await Promise.race([
      Promise.any([ask(), again]),
      whenStopping(on.stopping, over.signal),
    ]);
  } catch (error) {
    throw error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  } finally {
    over.abort();
  }
}

async function silence(signal: AbortSignal): Promise<void> {
  await setTimeout(SILENT_MS, undefined, { signal });
}

async function whenStopping(stopping: AbortSignal, signal: AbortSignal): Promise<never> {
  await once(stopping, 'abort', { signal });
  throw shuttingDown();
}

function shuttingDown(): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'Retry',
    message: 'this worker is shutting down; another one takes the call over',
  });
}

async function resetSticky(
  client: Client,
  namespace: string,
  execution: { workflowId: string; runId: string },
): Promise<void> {
  await client.workflowService.resetStickyTaskQueue({ namespace, execution });
}
