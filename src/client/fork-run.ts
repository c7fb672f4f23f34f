import type { Client } from '@temporalio/client';
import type { BlobStore } from '../storage/blob-store.js';
import { readContext } from '../storage/context-text.js';
import { isObject } from '../core/json.js';
import type { Attachment } from '../core/transcript/messages.js';
import { visible } from '../core/text/summaries.js';
import { claimAttachments } from './claim-attachments.js';
import { readRun, type RunReading } from '../history/read-run.js';
import {
  agentName,
  createRunInput,
  type AgentLike,
  type RunSettings,
} from '../updates/run-input.js';
import { InputError } from '../core/errors.js';
import { readSegmentStart } from '../history/segments.js';
import { newRunId, startRun, type StartedRun } from '../updates/start.js';

export interface ForkOptions<Output> extends RunSettings {
  /** Number of the first message that is not taken; default: all that there are by then are taken. */
  readonly at?: number;
  /** Needed, but for an open run that is told later. */
  readonly message?: string;
  readonly attachments?: readonly Attachment[];
  /** Names the new run for ever; default: as for any run. */
  readonly id?: string;
  /** Wait for more messages after a turn instead of ending. */
  readonly open?: boolean;
  /** Default: that of the other run, with its arguments and its context. It is loaded as it is now. */
  readonly agent?: AgentLike<Output>;
}

/**
 * Starts a run that begins with the messages of another one, on that one's task queue; it is left as it
 * is. Rejects with a `NoRunError`, an `InputError` and an `IdTakenError`.
 */
export async function forkRun<Output>(
  client: Client,
  source: string,
  { id, agent, at, blobs, ...given }: ForkOptions<Output> & { readonly blobs: BlobStore },
): Promise<StartedRun> {
  const run = await readRun(client, source);
  const total = run.view.state?.transcript.next ?? 0;
  if (total === 0) {
    throw new InputError(`fork.run: run "${visible(source)}" has no messages; start a new run`);
  }
  if (at !== undefined && at > total) {
    throw new InputError(
      `fork.at: ${at} is more than the ${total} messages of run "${visible(source)}"`,
    );
  }
  const name = agent === undefined ? run.agent : agentName(agent);
  const fork = { run: source, ...(at !== undefined && { at }) };
  const kept = name === run.agent ? await settingsOf(client, run, blobs) : {};
  const forkId = id ?? newRunId(name);
  const attached = await claimAttachments(blobs, forkId, given);
  const input = createRunInput(name, { ...kept, ...given, ...attached, fork });
  return await startRun(client, input, { id: forkId, taskQueue: run.taskQueue });
}

/** What the agent was given beside the message; a later segment need not have all of it. */
async function settingsOf(
  client: Client,
  { id, runId, events, view }: RunReading,
  blobs: BlobStore,
): Promise<object> {
  const [newest] = events;
  if (newest?.type !== 'started') return {};
  const first = await readSegmentStart(client, id, newest.firstRunId || runId);
  const { input } = first ?? newest;
  if (!isObject(input)) return {};
  const { context, contextBlob, args } = input;
  const ref = view.state?.config.contextBlob;
  // A called agent's context came from its caller, by reference: the fork has no caller.
  const called = contextBlob === undefined || ref === undefined;
  return { context: called ? context : await readContext(blobs, ref), args };
}
