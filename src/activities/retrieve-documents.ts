import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { RetrieveQuery, Retriever } from '../agents/retriever.js';
import type { RetrieveResult } from '../core/contract.js';
import type { RetrieveInput } from '../core/input/turn-inputs.js';
import type { RetrievedDocument } from '../core/documents.js';
import type { Places } from '../core/turn.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import { chain, toPromptMessage } from '../core/transcript/transcript.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import type { ActivityDependencies } from './dependencies.js';
import { blockedToolFailure, problemFailure, THIS_WORKER } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { rebuildPrompt, type Prompt } from './model/rebuild-prompt.js';
import { MAX_DOCUMENTS, recordDocuments, selectDocuments } from './record-documents.js';
import {
  checkWritable,
  trackStore,
  unstoredFailure,
  withStorageMapping,
} from './storage-faults.js';
import { callTurnFunction, TURN_FUNCTION_ATTEMPTS, messagesAt } from './turn-function.js';

/** The tool that reads the rest of a document. */
const READ_ON = 'read_result';

/**
 * Calls the agent's `retrieve` for the documents of a turn. The input specifies the prompt by its
 * digest.
 */
export async function retrieveDocuments(
  deps: ActivityDependencies,
  input: RetrieveInput,
): Promise<RetrieveResult> {
  const context = Context.current();
  return await withHeartbeat(context, async () => {
    if (input.blocked === 'storage') await checkWritable(deps.blobs, 'storage');
    const prompt = await withStorageMapping(input, () => rebuildPrompt(deps, context, input));
    const { definition } = prompt.pinned;
    const retriever = findRetriever(context, prompt, input);
    const found = await withFailureMapping(context, definition.name, async () => {
      const { turn, own } = input;
      const { find, timeoutMs } = retriever;
      const called = { name: 'retrieve', prompt, turn, timeoutMs } as const;
      const query = createQuery(prompt.messages, own);
      const returned = await callTurnFunction(context, called, (given) => find(query, given));
      return selectDocuments(returned, prompt.messages);
    });
    const readable = definition.tools.some((tool) => tool.name === READ_ON);
    const store = trackStore(deps.blobs);
    const documents = await recordDocuments(found, { blobs: store.blobs, readable });
    const failure = unstoredFailure('a retrieved document', store, input);
    if (failure !== null) throw failure;
    cacheDocuments(deps, prompt, documents);
    return { documents };
  });
}

/**
 * Returns the agent's retriever. Throws the failure that blocks the run if this worker has none.
 */
function findRetriever(
  context: Context,
  { pinned: { agent, definition } }: Prompt,
  input: RetrieveInput,
): Retriever {
  if (agent?.retrieve) return agent.retrieve;
  const message = `agent "${definition.name}" has no retrieve function on ${THIS_WORKER}; deploy it again, or cancel the run`;
  throw blockedToolFailure(context, input, { reason: 'tool_missing', message });
}

function createQuery(messages: readonly PromptMessage[], own: Places): RetrieveQuery {
  const query = messagesAt(messages, own)
    .map(({ text }) => text)
    .join('\n\n');
  // The function gets a copy, because it may change the messages.
  return { query, messages: structuredClone(messages), limit: MAX_DOCUMENTS };
}

/**
 * Maps failures: Temporal retries the first ones, and the last one carries the problem to the
 * workflow.
 */
async function withFailureMapping<T>(
  { cancellationSignal, info, log }: Context,
  agent: string,
  find: () => Promise<T>,
): Promise<T> {
  try {
    return await find();
  } catch (thrown) {
    cancellationSignal.throwIfAborted();
    const { attempt } = info;
    const message = `retrieve of agent "${agent}": ${normalizeError(thrown).message}`;
    log.warn('retrieve failed', { attempt, message });
    const type = 'RetrieveFailed';
    if (attempt < TURN_FUNCTION_ATTEMPTS) throw ApplicationFailure.create({ type, message });
    throw problemFailure({ type: 'failed', reason: 'error', message }, { type });
  }
}

/** Adds the messages that the workflow will append to this worker's transcript cache. */
function cacheDocuments(
  { transcripts }: ActivityDependencies,
  { name: { run, upTo, head } }: Prompt,
  documents: readonly RetrievedDocument[],
): void {
  let link = head;
  for (const [index, { text }] of documents.entries()) {
    const message = toPromptMessage({ role: 'user', text });
    transcripts.noteReply({ run, upTo: upTo + index, head: link }, message);
    link = chain(link, message);
  }
}
