import type { Client } from '@temporalio/client';
import type { Archive } from '../storage/archive.js';
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
import { readSegment, readSegmentStart } from '../history/segments.js';
import { newRunId, startRun, type StartedRun } from '../updates/start.js';

/** Where a fork branches off from the other run, and what the new run starts with. */
export interface ForkOptions<Output> extends RunSettings {
  /** Number of the first message that is left out; default: all messages are copied. */
  readonly at?: number;
  /** Required, except for an open run that gets its first message later. */
  readonly message?: string;
  readonly attachments?: readonly Attachment[];
  /** The permanent id of the new run; default: as for any run. */
  readonly id?: string;
  /** Whether the run waits for more messages after a turn instead of ending. */
  readonly open?: boolean;
  /**
   * Default: the agent of the other run, with its arguments and context, in its current version.
   */
  readonly agent?: AgentLike<Output>;
}

/**
 * Starts a run that begins with the messages of another run, on the same task queue. The other run
 * does not change. Rejects with a `NoRunError`, an `InputError`, or an `IdTakenError`.
 */
export async function forkRun<Output>(
  client: Client,
  source: string,
  { id, agent, at, ...given }: ForkOptions<Output>,
  stores: Stores,
): Promise<StartedRun> {
  const { blobs, archive } = stores;
  const run = await readRun(client, source, { archive });
  const total = run.view.state?.transcript.next ?? 0;
  if (total === 0) {
    throw new InputError(`fork.run: run "${visible(source)}" has no messages; start a new run`);
  }
  if (at !== undefined && at > total) {
    throw new InputError(
      `fork.at: expected at most ${total}, the messages of run "${visible(source)}"; got ${at}`,
    );
  }
  const name = agent === undefined ? run.agent : agentName(agent);
  const [started] = run.events;
  const runId = started?.type === 'started' ? started.firstRunId : '';
  const fork = { run: source, ...(at !== undefined && { at }), ...(runId !== '' && { runId }) };
  const inherited = name === run.agent ? await readSettings(client, run, stores) : {};
  const forkId = id === undefined ? newRunId(name) : id;
  const attached = await claimAttachments(blobs, forkId, given);
  const input = createRunInput(name, { ...inherited, ...given, ...attached, fork });
  return await startRun(client, input, { id: forkId, taskQueue: run.taskQueue });
}

/** The stores for large texts, and for runs that the server has deleted. */
interface Stores {
  readonly blobs: BlobStore;
  readonly archive: Archive;
}

/** Returns the agent's arguments and context from the first segment; later ones may lack them. */
async function readSettings(
  client: Client,
  { id, runId, events, view }: RunReading,
  { blobs, archive }: Stores,
): Promise<object> {
  const [newest] = events;
  if (newest?.type !== 'started') return {};
  const firstRunId = newest.firstRunId || runId;
  const first =
    (await readSegmentStart(client, id, firstRunId)) ??
    (await readSegment(client, { id, runId: firstRunId, archive }))?.events[0];
  const { input } = first?.type === 'started' ? first : newest;
  if (!isObject(input)) return {};
  const { context, contextBlob, args } = input;
  const ref = view.state?.config.contextBlob;
  // A called agent gets its context from its caller by reference; the fork has no caller.
  const isOwn = contextBlob === undefined || ref === undefined;
  return { context: isOwn ? context : await readContext(blobs, ref), args };
}
